"""Makers of batches: a home that is ready, logs of known crashes, an engine in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from service.batches.batches import BatchService
from service.batches.journal import JobEnded, journal_of
from service.persistence.store import Store
from service.schemas.records import JobPlace, JobRecord, JobSpec
from service.settings import Settings
from tests.factories import traceback
from tests.pipes import reader_of as reader_of
from tests.waiting import until

ROOT = Path(__file__).parents[3]
LETTERS = "abcdefghij"


def home_at(folder: Path, warm: Path) -> Path:
    """Make a home of its own that shares index and compiled patterns, which nothing writes to."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("index", "cache"):
        if not (folder / name).exists():
            (folder / name).symlink_to(warm / name)
    return folder


def settings_at(folder: Path, warm: Path, **fields: Any) -> Settings:
    """Make settings of a home that is ready, with one worker."""
    return Settings(
        home=home_at(folder, warm), embedding_model="hash", **{"workers": 1, "ray_from": 100_000, **fields}
    )


def word(number: int) -> str:
    """Spell a number in letters: numbers do not tell one crash from another."""
    return "".join(LETTERS[int(digit)] for digit in str(number))


def crash(number: int) -> str:
    """Write a log of a crash that differs from those of other numbers."""
    return "step 1 loss 0.5\n" + traceback(
        f"ValueError: the {word(number)} is no such thing", function=f"load_{word(number)}"
    )


def write(folder: Path, texts: Iterable[str]) -> list[JobSpec]:
    """Write logs, a job for each."""
    folder.mkdir(parents=True, exist_ok=True)
    specs = []
    for number, text in enumerate(texts, 1):
        path = folder / f"job-{number}.log"
        path.write_text(text, encoding="utf-8")
        specs.append(spec(path))
    return specs


def spec(*paths: Path, **fields: Any) -> JobSpec:
    """Make a job of files."""
    return JobSpec(name=paths[0].name, place=JobPlace(paths=tuple(map(str, paths))), **fields)


def pipe(path: Path) -> JobSpec:
    """Make a job whose log is a pipe that nobody writes to: whoever reads it waits for ever."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return spec(path)


def accepted(settings: Settings, store: Store, specs: Iterable[JobSpec], **fields: Any) -> str:
    """Have a batch accepted; gives its id."""
    return BatchService(settings, store).accept("a batch", "folder", specs, **fields).id


def jobs(store: Store, batch: str) -> list[JobRecord]:
    """Give all jobs of a batch."""
    return list(store.batches.jobs(batch, limit=100_000)[0])


def states(store: Store, batch: str) -> dict[str, int]:
    """Count a batch's jobs by their state."""
    return {state: count for state, count in store.batches.get(batch).counts.items() if count}


def ends(settings: Settings, batch: str) -> Counter[int]:
    """Count how often the journal tells of each job's end."""
    return Counter(
        entry.number for entry in journal_of(settings.home, batch).entries() if isinstance(entry, JobEnded)
    )


def surroundings() -> dict[str, str]:
    """Give the environment without what other tests of this process set for a Ray of theirs.

    Where Ray keeps files counts.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RAY_") or name == "RAY_TMPDIR"
    }


@contextmanager
def engine_process(
    settings: Settings, batch: str = "", within: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Run an engine in a process of its own; it is ended at the end, whatever it does.

    `within` are the words of a command that runs it elsewhere.
    """
    names = ("home", "embedding_model", "workers", "ray_from", "ray_address", "request_deadline")
    environment = {f"WHYCRASH_{name.upper()}": str(getattr(settings, name)) for name in names}
    environment["WHYCRASH_DATABASE"] = settings.database.get_secret_value()
    command = [*within, sys.executable, "-m", "tests.service.batches.program", batch]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        # A worker that is not gone yet would take the log that is written for the next engine's.
        until(lambda: not session_members(process.pid), "the workers of the killed engine are gone")


def session_members(session: int) -> list[int]:
    """Give the processes of a session of which a thread still runs."""
    found = []
    for number in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        with suppress(OSError):
            states = [
                row.split()[1]
                for task in Path(f"/proc/{number}/task").iterdir()
                for row in (task / "status").read_text().splitlines()
                if row.startswith("State:")
            ]
            if os.getsid(number) == session and set(states) - {"Z", "X"}:
                found.append(number)
    return found
