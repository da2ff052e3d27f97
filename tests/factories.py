"""Makers of what tests need: logs of known shape, events, documents, cases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from corpus import library
from corpus.library import Library
from ingest.documents import Document
from ingest.logs.events import Event
from ingest.logs.report import CrashReport

ReadLog = Callable[[str | bytes], CrashReport]

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU 0 has a total capacity of 79.15 GiB of which 1.25 GiB is free."
)
# A message that no pattern knows, so that only its traceback makes it an event.
STRANGE = "ValueError: the moon is in the wrong house"

RAY = "(WorkerDict pid=4242, ip=10.0.0.3) "
TORCHRUN = "[rank3]: "
SLURM = "3: "
CRI = "2025-03-02T10:00:00.123456789Z stderr F "
STAMP = "2025-03-02 10:00:00,123 "


@cache
def whole_corpus() -> Library:
    """Load the corpus that ships, once for all whose tables name what is in it."""
    return library.load()


def silent(stage: str, done: int, total: int) -> None:
    """Take progress and show nothing."""


def traceback(exception: str, function: str = "step", code: str = "loss = self.model(batch)") -> str:
    """Write a Python traceback of two frames; the exception's line is the sixth."""
    return (
        "Traceback (most recent call last):\n"
        '  File "/job/train.py", line 30, in main\n'
        "    trainer.fit()\n"
        f'  File "/job/trainer.py", line 55, in {function}\n'
        f"    {code}\n"
        f"{exception}\n"
    )


def prefixed(prefix: str, text: str) -> str:
    """Put a prefix before every line."""
    return "".join(f"{prefix}{row}\n" for row in text.splitlines())


def interleaved(*texts: str) -> str:
    """Mix logs of equal length line by line, as processes that print at the same time do."""
    return "".join(
        row for rows in zip(*(text.splitlines(keepends=True) for text in texts), strict=True) for row in rows
    )


def steps(*numbers: int) -> str:
    """Write a progress line a step, as verl prints it."""
    return "".join(f"step:{number} - actor/pg_loss:0.1 - perf/throughput:812.4\n" for number in numbers)


def event(line: int, **fields: Any) -> Event:
    """Make an event of an error that states its cause; fields override."""
    made: dict[str, Any] = {
        "pattern": "x.error",
        "kind": "error",
        "pattern_role": "origin",
        "text": "boom",
        "body": "boom",
        "cause": "gpu-oom-training",
        "strength": "states",
        "last": line,
    }
    return Event(line=line, **{**made, **fields})


def document(name: str, text: str, **fields: Any) -> Document:
    """Make a case's document."""
    made: dict[str, Any] = {"kind": "case", "owner": name, "title": name, "language": "en"}
    return Document(id=f"case:{name}", text=text, **{**made, **fields})


CASE = """\
id: ray/disk-full
title: {en: "The disk is full", zh: "磁盘已满"}
cause: disk-full
action: change-environment
frameworks: {ray: ">=2.0"}
signatures: {any: ["pattern:ray.*"]}
changes:
  - {framework: ray, kind: flag, key: --temp-dir, to: /big, why: {en: "more room", zh: "空间更大"}}
sources:
  - {url: "https://example.org/1", kind: issue, says: confirmed}
"""
BODY = "## en\n### What you see\nNo room.\n\n### What to do\nMove it.\n\n## zh\n### 现象\n没有空间。\n"


def case_file(front: str = CASE, body: str = BODY) -> str:
    """Write a case file."""
    return f"---\n{front}---\n{body}"
