"""Jobs of a batch answered a second, with one worker process and with two, and the memory.

The logs are those of the labelled incidents, filled up with healthy output before them to SIZE bytes. In
every second one the functions of tracebacks are renamed, so that it is a crash of its own; the others are
duplicates.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import statistics
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

import psutil
from rich.table import Table

from eval import incidents
from eval.bench.mixed import DIALECTS, SEED
from service.batches.batches import BatchService, open_store
from service.batches.engine import BatchEngine
from service.schemas.records import JobPlace, JobRecord, JobSpec
from service.settings import Settings, load_settings

# Factor of the number of jobs, such as 0.1 on a shared machine.
SCALE = float(os.environ.get("WHYCRASH_BENCH_SCALE", "1"))
JOBS = 10_000
SIZE = 100_000
GOAL = 30
GOAL_RATIO = 1.7
LETTERS = "abcdefghij"
# Number of different blocks of healthy output.
FILLINGS = 16
EVERY = 1.0
_FUNCTION = re.compile(r'(?m)^(.*File ".*", line \d+, in )(\w+)')


@dataclass
class BatchRun:
    """One run: times at which jobs ended (s), samples of the memory of engine and workers (MiB).

    `engine_seconds` is the engine's processor time, `answered` the jobs that are not duplicates.
    """

    ends: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    engine_seconds: float = 0.0
    answered: int = 0

    def note_end(self, job: JobRecord) -> None:
        """Note that a job ended now."""
        self.ends.append(monotonic())
        self.answered += job.same_as is None

    @property
    def per_second(self) -> float:
        """Jobs a second from the first end to the last, so without loading."""
        return (len(self.ends) - 1) / max(self.ends[-1] - self.ends[0], 1e-9)

    def quarter(self, number: int) -> float:
        """Median memory (MiB) of the first quarter of the run (`number` 0), else of the last."""
        size = max(1, len(self.memory) // 4)
        return statistics.median(self.memory[:size] if number == 0 else self.memory[-size:])


def run() -> Table:
    """Write the logs, run the batch with one worker and with two, and give the table."""
    count = max(20, int(JOBS * SCALE))
    with tempfile.TemporaryDirectory(prefix="whycrash-bench-") as folder:
        specs = write(Path(folder) / "logs", count)
        runs = {workers: _worked(Path(folder) / f"home-{workers}", specs, workers) for workers in (1, 2)}
    ratio = runs[2].per_second / runs[1].per_second
    title = (
        f"{count} jobs of {SIZE / 1000:.0f} kB on processes of this machine; two workers are {ratio:.2f} "
        f"times one (goal {GOAL_RATIO})"
    )
    table = Table(title=title)
    for column in (
        "workers",
        f"jobs/s (goal {GOAL})",
        "answered",
        "same crash",
        "engine ms/job",
        "MiB at first",
        "MiB at last",
    ):
        table.add_column(column, justify="right")
    for workers, watched in runs.items():
        jobs = len(watched.ends)
        table.add_row(
            str(workers),
            f"{watched.per_second:.1f}",
            str(watched.answered),
            str(jobs - watched.answered),
            f"{1000 * watched.engine_seconds / jobs:.2f}",
            f"{watched.quarter(0):.0f}",
            f"{watched.quarter(3):.0f}",
        )
    return table


def write(folder: Path, count: int) -> list[JobSpec]:
    """Write `count` logs and give a job for each."""
    folder.mkdir(parents=True)
    dice = random.Random(SEED)  # noqa: S311 - made logs, no secret
    texts = [incident.text for incident in incidents.load() if len(incident.text) < SIZE]
    fillings = [_filling(dice) for _ in range(FILLINGS)]
    return [
        _job(folder / f"job-{number:05d}.log", texts[number % len(texts)], fillings, number)
        for number in range(count)
    ]


def _job(path: Path, text: str, fillings: Sequence[str], number: int) -> JobSpec:
    # The same filling for the same incident, so that its duplicates are duplicates.
    filling = fillings[len(text) % len(fillings)]
    if number % 2:
        text = own_crash(text, number)
    kept = filling[: filling.rfind("\n", 0, max(1, SIZE - len(text))) + 1]
    path.write_text(kept + text, encoding="utf-8")
    return JobSpec(name=path.name, place=JobPlace(paths=(str(path),)))


def own_crash(text: str, number: int) -> str:
    """Rename the functions of a log's tracebacks, so that it is a crash of its own."""
    word = "".join(LETTERS[int(digit)] for digit in str(number))
    return _FUNCTION.sub(rf"\g<1>\g<2>_{word}", text)


def _filling(dice: random.Random) -> str:
    # One job prints in the formats of two frameworks.
    chosen = dice.sample(DIALECTS, 2)
    lines: list[str] = []
    size = 0
    while size < SIZE:
        lines.append(dice.choice(chosen)(dice, len(lines)))
        size += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


def _worked(home: Path, specs: Sequence[JobSpec], workers: int) -> BatchRun:
    settings = _settings(home, workers)
    watched = BatchRun()
    with open_store(settings) as store:
        batch = BatchService(settings, store).accept("bench", "folder", specs).id
        engine = BatchEngine(settings, store, batch=batch, watch=watched.note_end)
        before = _spent()
        over = threading.Event()

        def sample() -> None:
            while not over.wait(EVERY):
                watched.memory.append(sum(_resident()) / (1 << 20))

        sampler = threading.Thread(target=sample)
        sampler.start()
        engine.run()
        over.set()
        sampler.join()
        watched.engine_seconds = _spent() - before
    shutil.rmtree(home)
    return watched


def _settings(home: Path, workers: int) -> Settings:
    """Give settings with a home that has the configured model and index and an empty database."""
    settings = load_settings()
    home.mkdir()
    for name in ("index", "models", "cache"):
        (home / name).symlink_to(settings.home / name)
    return replace(settings, home=home, workers=workers, ray_from=10 * JOBS)


def _spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _resident() -> Iterator[int]:
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        try:
            yield process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
