"""What redaction costs is bounded by a text's bytes, whatever they are.

Beyond that, rows are masked unread.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from time import process_time

import pytest

from eval.bench.redact import INCIDENTS
from ingest.redaction import budget, prefilter
from ingest.redaction.redactor import Redactor
from ingest.redaction.table import KINDS
from tests.ingest import planted_names
from tests.ingest.redaction import planted

SIZE = 40 << 10
TRIES = 4
# From how many times the cost of usual logs on a text is looked at: of rows that are read in linear time the
# slowest cost about 250 times as much, a plain quadratic expression 400 times and more at this size.
LOOKED_AT = 50
# How many times its cost per byte may be that of a quarter of it: linear is 1, quadratic is 4.
GROWTH = 2.2
# What is hostile beside the rules' own rows: names without values, again and again.
HOSTILE = (
    "cookie: ",
    "curl ",
    "password: ",
    "token",
    "A_KEY",
    "name: secret\nvalue",
    "bob@example.com",
    "-----BEGIN PRIVATE KEY-----",
    "kind: Secret",
    "data:",
    "'name': 'password'",
    "echo ",
    "eyJa.",
    "://a:",
    "%41",
    "password is",
    "wandb",
    "A" * 64,
    "\x1b[0mkey=",
    "--api-key \\",
)


def _usual() -> bytes:
    logs = sorted(INCIDENTS.glob("*/log.txt"))
    return b"".join(path.read_bytes() for path in logs)[: 1 << 20]


def _seconds(data: bytes) -> float:
    began = process_time()
    assert sum(map(len, Redactor().stream([data]))) > 0
    return process_time() - began


def _rows() -> Iterator[tuple[str, str]]:
    """Yield each rule's example row, and what is hostile."""
    found = {item.kind: item.text for item in (*planted.secrets(), *planted_names.secrets())}
    found |= {f"{number} {kind.name}": kind.starts[0] for number, kind in enumerate(KINDS) if kind.starts}
    yield from found.items()
    yield from ((text, text) for text in HOSTILE)


def _filled(row: str) -> bytes:
    data = row.encode("utf-8", "surrogatepass")
    return data * (SIZE // len(data) + 1)


@pytest.fixture(autouse=True)
def _nothing_to_begin_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what each text may spend beside what its bytes earn: it is a constant, and a rate is asked
    for.
    """
    monkeypatch.setattr(budget, "FLOOR", 0)
    monkeypatch.setattr(prefilter, "ROWS", 0)


def _too_slow(texts: dict[str, bytes]) -> dict[str, float]:
    """Give the texts whose cost grows faster than their bytes, each time of some tries.

    With how many times a byte of the whole costs what a byte of its first quarter does: a text is held
    against itself, so that a faster reading of usual logs makes no other text slow.
    """
    usual = _usual()
    _seconds(usual)
    base = min(_seconds(usual) for _ in range(3)) / len(usual)
    slow = {name: 0.0 for name, text in texts.items() if _seconds(text) / len(text) / base > LOOKED_AT}
    for _ in range(TRIES):
        slow = {name: times for name in slow if (times := _growth(texts[name])) > GROWTH}
    return slow


def _growth(text: bytes) -> float:
    part = text[: len(text) // 4]
    return (_seconds(text) / len(text)) / (_seconds(part) / len(part))


@pytest.mark.long
def test_that_each_rule_on_its_own_rows_costs_linear_time() -> None:
    """Below each other and behind each other."""
    assert not _too_slow(
        {f"{name} {end!r}": _filled(row + end) for name, row in _rows() for end in ("\n", " ")}
    )


@pytest.mark.long
def test_that_pairs_of_rules_cost_linear_time() -> None:
    """A row of the one below a row of the other; drawn from all pairs, and all pairs of what is hostile."""
    rows = list(_rows())
    pairs = [*list(combinations(rows, 2))[::97], *combinations([(text, text) for text in HOSTILE], 2)]
    assert not _too_slow(
        {f"{one[0]} + {other[0]}": _filled(f"{one[1]}\n{other[1]}\n") for one, other in pairs}
    )


def test_what_is_not_read_is_masked() -> None:
    """A secret far behind what the budget lasts for is not shown, and rows keep their number."""
    text = "cookie: \n" * 60_000 + "cookie: session=abcdef0123456789\nend\n" + "cookie: \n" * 10
    cleaned = Redactor().clean(text)
    assert "abcdef" not in cleaned
    assert cleaned.count("\n") == text.count("\n")


def test_what_holds_nothing_stays_among_rows_that_are_not_read() -> None:
    """An error among rows of which each holds a cookie is what the log is about.

    A row's own beginning stays as well.
    """
    rows = [
        f'10.0.{number % 250}.7 - "GET /v1/x?id={number} HTTP/1.1" 200 Cookie: '
        f"session={number * 7919:016x}; theme=dark"
        for number in range(20_000)
    ]
    error = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 79.10 GiB"
    )
    places = (5_000, 12_000, 20_000)
    for place in places:
        rows.insert(place, error)
    cleaned = Redactor().rows(rows)
    assert sum(row == error for row in cleaned) == len(places)
    assert all(f"id={number} " in cleaned[number] for number in range(4_000))
    assert "session=0" not in "".join(cleaned)
