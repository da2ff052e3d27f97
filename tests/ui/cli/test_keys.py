"""`whycrash keys`: a key is shown once, listed without its secret, and revoked."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.api import keys as tokens
from service.schemas.errors import InvalidRequestError, NotFoundError
from ui.cli import keys


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHYCRASH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")


def test_that_a_key_is_shown_once_listed_and_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output has the token alone, so that a script can take it."""
    assert keys.add("ci", ["triage", "batch"]) == 0
    told = capsys.readouterr()
    parsed = tokens.parse_key(told.out.strip())
    assert parsed is not None
    key_id, secret = parsed
    assert secret not in told.err
    keys.show()
    listed = capsys.readouterr().out
    assert (
        key_id in listed,
        "ci" in listed,
        "triage, batch" in listed,
        secret in listed,
        "revoked" in listed,
    ) == (True, True, True, False, False)
    keys.revoke(key_id)
    keys.show()
    assert "revoked" in capsys.readouterr().out


def test_that_without_keys_the_list_says_who_may_ask(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty table would say nothing."""
    keys.show()
    assert "this machine" in capsys.readouterr().out


def test_that_a_wrong_scope_or_id_is_told() -> None:
    """As a sentence, not a traceback."""
    with pytest.raises(InvalidRequestError, match="triage, batch, admin"):
        keys.add("ci", ["root"])
    with pytest.raises(NotFoundError):
        keys.revoke("000000000000")
