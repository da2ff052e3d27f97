"""Texts are cut behind a sentence, a word or the last thing that they name."""

from __future__ import annotations

from service.composition.shortening import proof, shortened, without_ids
from tests.tables import each_row


@each_row(
    ("text", "most", "kept"),
    [
        ("It fits.", 20, "It fits."),
        ("It fits. What follows does not.", 20, "It fits."),
        ("one word after another without an end", 12, "one word…"),
        ("read `a very long name of code` and go on", 20, "read `a very long…`"),
    ],
)
def test_a_text_ends_behind_a_sentence_or_a_word(text: str, most: int, kept: str) -> None:
    assert shortened(text, most) == kept


def test_a_proof_is_longer_where_it_names_something_further_on() -> None:
    """A number just behind the usual length is kept whole; what follows it is not."""
    text = "the budget is spent and no more than 131072 tokens fit here and so on and so forth"
    assert proof(text, 30, 60) == "the budget is spent and no more than 131072…"
    assert proof(text, 30, 36) == "the budget is spent and no…"


@each_row(
    ("text", "kept"),
    [
        ("node (ID: 48b717f28d4e847b3aaf402ccce77540, IP: 10.88.2.37)", "node (ID: 48b717…, IP: 10.88.2.37)"),
        ("Request ID: 0b61bb9c-2e2a-4ad8-8a28-30e3b7cf61f5", "Request ID: 0b61bb…"),
        ("<HTTPSConnection object at 0x7f8e0a4f2770>", "<HTTPSConnection object at 0x7f8e…>"),
        ("Tried to allocate 1234567890123456789012 bytes", "Tried to allocate 1234567890123456789012 bytes"),
        ("RIP at 0x7f8e0a4f2770", "RIP at 0x7f8e0a4f2770"),
        ("/ckpt/48b717f28d4e847b3aaf402ccce77540/model", "/ckpt/48b717f28d4e847b3aaf402ccce77540/model"),
    ],
)
def test_ids_are_cut_and_numbers_and_paths_are_not(text: str, kept: str) -> None:
    assert without_ids(text) == kept
