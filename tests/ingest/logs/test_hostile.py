"""Logs made to break the reader: odd numbers, endless digits, many ranks at once, escapes in commands."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from ingest.logs.facts import typed
from ingest.logs.inputs import sources
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from ingest.redaction.redactor import Redactor
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import triage

__all__ = ["triage"]

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity "
    "of 79.15 GiB of which 1.20 GiB is free."
)


def read(reader: Reader, text: str) -> CrashReport:
    """Read a log."""
    return reader.read(sources.from_text(text))


@each_row("text", ["2.50.", ".", "1.2.3", "9" * 5000, "1" * 400 + " GiB", "-", "1e999"])
def test_a_number_that_is_none_stays_text(text: str) -> None:
    """What only looks like a size or a duration is kept as it is written, and raises nothing."""
    fields = typed({"asked_gib": text, "timeout_s": text, "rank_n": text})
    assert set(fields) == {"asked_gib", "timeout_s", "rank_n"}


@each_row(
    "text",
    [
        f'Traceback (most recent call last):\n  File "a.py", line {"9" * 5000}, in f\nValueError: x\n',
        f"{OOM} [repeated {'9' * 5000}x across cluster]\n",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50. GiB\n",
    ],
)
def test_endless_digits_do_not_stop_the_reader(triage: Triage, text: str) -> None:
    """A report comes out, whatever the numbers are."""
    assert read(triage.reader, text).limits.lines == text.count("\n")


def test_redaction_is_linear() -> None:
    """Sixty thousand digits after the word token are looked through at once, not by every start."""
    assert Redactor().clean("token " + "0" * 60_000).endswith("0")


def test_tracebacks_of_many_ranks_stay_whole(triage: Triage) -> None:
    """Three hundred ranks print the same traceback line by line in turn: one event, each rank counted."""
    rows = [
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 3, in step',
        "    go()",
        "KeyError: 'text'",
    ]
    text = "".join(f"[rank{rank}]: {row}\n" for row in rows for rank in range(300))
    events = read(triage.reader, text).events
    assert [(event.count, event.exception, len(event.frames)) for event in events] == [(300, "KeyError", 1)]


def test_escapes_in_a_command_reach_no_setting(triage: Triage) -> None:
    """A setting's value has no control character and no mark of direction."""
    report = read(triage.reader, f"python3 -m verl.trainer.main_ppo rollout.x=0.9\x1bc\x9b31m\u202e\n{OOM}\n")
    assert all(item.value.isprintable() for item in report.settings)


def test_a_secret_hides_nowhere_in_names(triage: Triage, tmp_path: Path) -> None:
    """Function, exception, stream and file names are masked like any text."""
    token = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
    path = tmp_path / f"{token}.log"
    path.write_text(
        f'({token} pid=12) Traceback (most recent call last):\n({token} pid=12)   File "a.py", line 3, in '
        f"{token}\n"
        f"({token} pid=12) {OOM}\n",
        encoding="utf-8",
    )
    assert token not in repr(triage.reader.read(sources.from_path(path)))


def test_a_gzip_on_standard_input_is_read(triage: Triage, monkeypatch: pytest.MonkeyPatch) -> None:
    """`explain -` takes a compressed log too."""
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(gzip.compress(f"{OOM}\n".encode()))))  # type: ignore[type-var]
    monkeypatch.setattr(sys, "stdin", stream)
    assert triage.reader.read(sources.from_stdin()).root is not None
