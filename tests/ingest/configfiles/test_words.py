"""A word of a script: read run by run, as it would be sign by sign."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest

from ingest.configfiles.shell import words
from ingest.configfiles.shell.words import Quote, Word

SIGNS = "ab=,{}.$ \\'\"`\n"


def _all(cases: Sequence[tuple[str, dict[int, int], Quote]]) -> list[Word]:
    return [words.word(text, 1, len(text) - 1, spans.items(), quote) for text, spans, quote in cases]


def test_runs_are_read_as_their_signs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)  # noqa: S311 - made words
    cases: list[tuple[str, dict[int, int], Quote]] = []
    for _ in range(400):
        text = "".join(dice.choices(SIGNS, k=dice.randint(2, 24)))
        begins = dice.sample(range(len(text)), min(len(text), dice.randrange(4)))
        spans = {begin: min(len(text), begin + dice.randint(1, 4)) for begin in begins}
        quotes: tuple[Quote, ...] = ("", "'", '"', "<<")
        cases.append((text, spans, dice.choice(quotes)))
    by_runs = _all(cases)
    monkeypatch.setattr(words, "_RUNS", dict.fromkeys(words._RUNS, re.compile(r"(?!)")))
    assert by_runs == _all(cases)
