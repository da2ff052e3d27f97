"""A setting's key has one form to compare by, and is written as each program writes it."""

from __future__ import annotations

import re

from corpus import keys
from tests.tables import each_row


@each_row(
    "written",
    [
        "micro-batch-size",
        "micro_batch_size",
        "--micro-batch-size",
        "--micro_batch_size",
        "-micro-batch_size",
        "+micro_batch_size",
        "++micro_batch_size",
        "~micro_batch_size",
    ],
)
def test_every_spelling_of_a_key_is_one(written: str) -> None:
    assert keys.canonical(written) == "micro_batch_size"
    assert re.fullmatch(keys.pattern(written), keys.unsigned(written))
    assert re.fullmatch(keys.pattern("micro_batch-size"), keys.unsigned(written))
    assert keys.signs(written) + keys.unsigned(written) == written
    assert keys.canonical(keys.flag(written)) == "micro_batch_size"


@each_row(
    ("key", "levels", "last"),
    [
        ("+actor.optim.lr", ["actor", "optim", "lr"], "lr"),
        ("a.top-k", ["a", "top-k"], "top_k"),
        ("--lr", ["lr"], "lr"),
    ],
)
def test_a_path_has_levels(key: str, levels: list[str], last: str) -> None:
    assert (keys.levels(key), keys.last_level(key)) == (levels, last)


@each_row(
    ("key", "like", "flag"),
    [
        ("top-k", "", "--top-k"),
        ("top_k", "", "--top_k"),
        ("--top-k", "--old_name", "--top_k"),
        ("--top-k", "--old-name_x", "--top-k"),
        ("-k", "--old_name", "-k"),
    ],
)
def test_a_flag_is_written_as_its_neighbour_is(key: str, like: str, flag: str) -> None:
    assert keys.flag(key, like) == flag


@each_row(("on", "off"), [("--top-k", "--no-top-k"), ("--top_k", "--no_top_k"), ("--bf16", "--no-bf16")])
def test_a_switch_is_turned_and_turned_back(on: str, off: str) -> None:
    assert (keys.negated(on), keys.negated(off)) == (off, on)
