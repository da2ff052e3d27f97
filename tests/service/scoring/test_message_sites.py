"""A last line without its calls is read with the place in a package's source that says it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from corpus.message_atlas import Site
from corpus.message_atlas import shipped as shipped_atlas
from ingest.logs.stacks.stack import Frame
from service.scoring.message_classifier import shipped
from service.scoring.message_evidence import message_votes
from tests.factories import ReadLog

# What PEFT's and Accelerate's own classes of settings refuse, in words that say nothing of settings.
LINES = (
    "ValueError: `num_groups` should be positive, got 8.",
    "ValueError: num_iterations must be >= 1, got 0",
)


def _given(site: Site) -> Site:
    return site


def test_that_the_place_of_a_message_tells_what_its_words_alone_do_not(read: ReadLog) -> None:
    for line in LINES:
        root = read(f"{line}\n").root
        assert root is not None
        assert root.cause is None
        site = shipped_atlas().look_up(root.body)[0].sites[0]
        assert not message_votes(root)
        assert list(message_votes(root, told_by=partial(_given, site))) == ["config-key-invalid"]


def test_that_calls_which_are_shown_count_before_any_place_of_the_words(read: ReadLog) -> None:
    root = read(f"{LINES[0]}\n").root
    assert root is not None
    called = replace(root, frames=(Frame("/job/train.py", 7, "main", "fit(groups)"),))

    def told() -> None:
        raise AssertionError("asked although the calls are there")

    message_votes(called, told_by=told)
    assert shipped().causes
