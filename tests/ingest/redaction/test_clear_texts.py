"""Short texts that are known to hold no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest import shipped
from ingest.redaction import clear_texts
from ingest.redaction.clear_texts import ClearTexts

CONDITION = "1//0[a-z]{10}|key=[0-9]{4}(?:\\n|\\z)"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClearTexts:
    """Give texts of which the shapes are asked from the first one on."""
    monkeypatch.setattr(clear_texts, "PAYS", 0)
    monkeypatch.setattr(clear_texts, "PAYS_TO_COMPILE", 0)
    return ClearTexts([CONDITION], tmp_path)


def test_a_clear_shape_is_known_with_all_digits(asked: ClearTexts) -> None:
    """What meets no condition whatever its digits are is looked at once."""
    asked.add(b"step 17 of 20")
    assert asked.hold(b"step 99 of 20")
    assert not asked.hold(b"step 9 of 20")


@pytest.mark.parametrize(
    ("clear", "other"),
    [
        (b"2//0abcdefghij", b"1//0abcdefghij"),
        (b"a\nstep 1", b"a\nstep 2"),
        (b"\\u001b[31mstep 1", b"\\u001b[31mstep 2"),
    ],
    ids=["a digit that counts", "two rows", "an escape"],
)
def test_a_shape_that_may_hold_one_is_known_by_its_text_alone(
    clear: bytes, other: bytes, asked: ClearTexts
) -> None:
    """With other digits it may be a secret, or read otherwise."""
    asked.add(clear)
    assert asked.hold(clear)
    assert not asked.hold(other)


def test_what_asks_shapes_is_made_once(
    asked: ClearTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later process has it at hand, and need not wait for many texts."""
    asked.add(b"step 1")
    monkeypatch.setattr(clear_texts, "PAYS_TO_COMPILE", 1000)
    later, elsewhere = ClearTexts([CONDITION], tmp_path), ClearTexts([CONDITION], tmp_path / "none")
    for texts in (later, elsewhere):
        texts.add(b"step 1")
    assert later.hold(b"step 2")
    assert not elsewhere.hold(b"step 2")


def test_what_the_wheel_brings_along_is_at_hand(
    asked: ClearTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stores nothing, or has stored nothing yet, need not make it either."""
    asked.compile()
    monkeypatch.setattr(clear_texts, "PAYS_TO_COMPILE", 1000)
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    assert not [made for made in tmp_path.iterdir() if not any(map(made.match, shipped.COMPILED))]
    for cache in (None, tmp_path / "none"):
        installed = ClearTexts([CONDITION], cache)
        installed.add(b"step 1")
        assert installed.hold(b"step 2")
    assert not (tmp_path / "none").exists()
