"""Settings that a message names in words, without a sign that they are names."""

from __future__ import annotations

from service.remediation.message_hints import read_words
from service.remediation.worded_names import spellings, words_naming
from tests.tables import each_row

KNOWN = frozenset(
    {"gradient_checkpointing", "padding_free", "flash_attn", "max_len", "learning_rate", "data"}
)


@each_row(
    ("sentence", "names"),
    [
        ("Prefix tuning does not work with gradient checkpointing.", ["gradient_checkpointing"]),
        ("The padding-free collator wants one row", ["padding_free"]),
        ("needs Flash Attention here", ["flash_attention"]),
        ("Invalid learning rate: -1", ["learning_rate"]),
        ("the maximum length of a row", ["maximum_length"]),
        ("no such module in the learning rate", []),
        ("the learning rate is out of range", ["learning_rate"]),
        # A name of one word may mean anything, and a part of a path or of a longer name is none.
        ("the data are gone", []),
        ("see /gradient checkpointing/x and my_gradient checkpointing_y", []),
        ("gradient checkpointing(x)", []),
    ],
)
def test_that_runs_of_words_are_names(sentence: str, names: list[str]) -> None:
    assert [name for name, _, _ in words_naming(sentence, KNOWN.__contains__)] == names


def test_that_a_name_is_shortened_as_settings_are() -> None:
    assert spellings("maximum_sequence_length") == ("maximum_sequence_length", "max_seq_len")
    assert spellings("learning_rate") == ("learning_rate",)


@each_row(
    ("message", "expected"),
    [
        ("ValueError: X does not work with gradient checkpointing.", ("gradient_checkpointing", "denied")),
        ("ValueError: gradient checkpointing is not supported here", ("gradient_checkpointing", "denied")),
        ("ValueError: please disable gradient checkpointing", ("gradient_checkpointing", "off")),
        ("ValueError: Invalid learning rate: -1", ("learning_rate", "named")),
        ("The callback needs a `Trainer` that has no logger.", ("Trainer.logger", "set")),
    ],
)
def test_that_the_sentence_says_what_to_do_with_it(message: str, expected: tuple[str, str]) -> None:
    (found,) = read_words(message, KNOWN.__contains__)
    assert (found[0].name, found[0].way) == expected
