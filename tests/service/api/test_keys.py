"""Keys by themselves: how they are made, kept and compared."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.api import keys
from service.app.admission import Caller, Principal
from service.schemas.errors import InvalidRequestError
from service.schemas.records import Scope
from tests.tables import each_row

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_that_a_key_is_known_by_its_token_and_kept_without_its_secret() -> None:
    """What is kept is a hash; the token says which key it is."""
    record, token = keys.make_key("ci", ["triage"], NOW)
    parsed = keys.parse_key(token)
    assert parsed is not None
    assert parsed[0] == record.id
    assert keys.key_matches(record, parsed[1])
    assert parsed[1] not in record.model_dump_json()


def test_that_keys_are_256_random_bits() -> None:
    """No two are the same, and a secret is long."""
    tokens = {keys.make_key("ci", ["triage"], NOW)[1] for _ in range(100)}
    assert len(tokens) == 100
    assert {len((keys.parse_key(token) or ("", ""))[1]) for token in tokens} == {43}


def test_that_a_revoked_or_unknown_key_matches_nothing() -> None:
    """Also with the right secret."""
    record, token = keys.make_key("ci", ["triage"], NOW)
    _, secret = keys.parse_key(token) or ("", "")
    assert not keys.key_matches(record.model_copy(update={"revoked": NOW}), secret)
    assert not keys.key_matches(None, secret)
    assert not keys.key_matches(None, "")


@given(st.text(max_size=80))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_that_no_text_but_a_token_is_one(text: str) -> None:
    """Whatever is sent as a key, nothing breaks, and it matches no key."""
    record, token = keys.make_key("ci", ["triage"], NOW)
    parsed = keys.parse_key(text)
    assert text == token or parsed is None or not keys.key_matches(record, parsed[1])


@each_row(
    ("name", "scopes"),
    [("", ["triage"]), ("a\nb", ["triage"]), ("x" * 101, ["triage"]), ("ci", []), ("ci", ["root"])],
)
def test_that_a_key_without_a_name_or_scope_is_refused(name: str, scopes: list[str]) -> None:
    """A sentence says what is missing."""
    with pytest.raises(InvalidRequestError):
        keys.make_key(name, scopes, NOW)


@each_row(
    ("scopes", "wanted", "allowed"),
    [
        (("triage",), "triage", True),
        (("triage",), "batch", False),
        (("admin",), "batch", True),
        ((), "triage", False),
    ],
)
def test_that_a_scope_allows_itself_and_admin_allows_all(
    scopes: tuple[Scope, ...], wanted: Scope, allowed: bool
) -> None:
    """There is no other way up."""
    assert Principal(Caller("api"), scopes).may(wanted) is allowed
