"""The program's own settings get the value that the numbers of a failing message ask for."""

from __future__ import annotations

from typing import Any

from service.remediation.changes import propose_changes
from service.remediation.named_options import NamedOption
from service.remediation.own_values import own_values
from tests.service.factories import failed, library, report, setting, spec

GIVEN = {"--batch_size": "30", "model.heads": "6", "--tp": "4", "--num_workers": "0", "--epochs": "3"}


def values(message: str, known: bool = False) -> list[tuple[str, str | None]]:
    """Give the keys with their values for the message of a job that has these settings."""
    told = report(
        failed(text=message, body=message),
        frameworks=[("verl", "")],
        settings=[setting(key, value) for key, value in GIVEN.items()],
    )
    shelf = library(*([spec("batch_size")] if known else []))
    return [(option.key, option.value) for option in own_values(told, shelf, told.settings)]


def test_that_a_division_or_a_bound_gives_the_value() -> None:
    """Both ways out where the job sets both numbers; none where the message is not about its own."""
    rows: dict[str, list[tuple[str, str]]] = {
        "AssertionError: batch_size must be divisible by 8 (got 30)": [("--batch_size", "24")],
        "ValueError: batch_size (30) should be a multiple of 16": [("--batch_size", "16")],
        "ValueError: the batch size (30) needs to be a round multiple of the number of ranks (4)": [
            ("--batch_size", "28")
        ],
        "ValueError: the batch size must be divisible by 40, got 30": [("--batch_size", "40")],
        "AssertionError: heads (6) must be divisible by tp (4)": [("model.heads", "4"), ("--tp", "3")],
        "RuntimeError: 30 is not divisible by 8": [],
        "ValueError: batch_size (64) must be divisible by 5": [],
        "ValueError: batch_size must be divisible by 10 (got 30)": [],
        "ValueError: num_workers must be at least 1, got 0": [("--num_workers", "1")],
        "ValueError: num_workers must be at most 8": [],
        "ValueError: epochs must be a number": [],
    }
    assert {text: values(text) for text in rows} == rows


def test_that_a_frameworks_setting_is_left_to_its_rules() -> None:
    assert values("ValueError: batch_size must be divisible by 8 (got 30)", known=True) == []


def test_that_the_change_says_where_its_value_is_from() -> None:
    """The job's value is told before the new one, and an integer that was written otherwise is one."""
    shelf = library(spec("trainer.lr"))
    told = report(failed(), settings=[setting("--batch_size", "30"), setting("--steps", "1e3")])
    refused = [
        NamedOption("--batch_size", "30", value="24"),
        NamedOption("--steps", "1e3", sort="int"),
        NamedOption("--size", "2,048", sort="int"),
        NamedOption("--lr", "fast", sort="float"),
        NamedOption("--size2", "8.5", sort="int"),
    ]
    made, _ = propose_changes((), told, shelf, told.settings, "en", refusals=refused)
    assert [(change.key, change.from_, change.to) for change in made] == [
        ("--batch_size", "30", "24"),
        ("--steps", "1e3", "1000"),
        ("--size", "2,048", "2048"),
        ("--lr", "fast", "a plain number"),
        ("--size2", "8.5", "a whole number"),
    ]
    assert made[0].why == "It follows from the numbers that the failing message tells."


def told_alone(message: str, **fields: Any) -> list[tuple[str, str | None, str]]:
    """Give the options of a message that is pasted without anything else."""
    told = report(failed(text=message, body=message), **{"frameworks": [], **fields})
    return [(option.key, option.value, option.way) for option in own_values(told, library(spec()), ())]


def test_that_a_message_alone_names_the_option_and_its_value() -> None:
    """Where no line shows whose program it is; what a model's own configuration fixes is nothing to set."""
    rows: dict[str, list[tuple[str, str | None, str]]] = {
        "AssertionError: num_heads (52) must be divisible by mp_size (8)": [("mp_size", "4", "")],
        "ValueError: batch_size (30) must be divisible by num_parts (4)": [
            ("batch_size", "28", ""),
            ("num_parts", "2", ""),
        ],
        "ValueError: Prompt of 5000 tokens exceeds max_input_tokens 4096": [
            ("max_input_tokens", "5000", "up")
        ],
        "ValueError: not enough rows, please increase --num-rows": [("--num-rows", None, "up")],
        "ValueError: seq_len 8192 exceeds max_position_embeddings 4096": [],
        "ValueError: num_heads (52) is odd": [],
    }
    assert {text: told_alone(text) for text in rows} == rows
    assert not told_alone(next(iter(rows)), frameworks=[("verl", "")])
