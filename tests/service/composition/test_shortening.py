"""Texts are cut behind a sentence, a word or the last thing that they name."""

from __future__ import annotations

from service.composition.shortening import proof, shortened
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
