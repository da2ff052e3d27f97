"""Take in many logs at once, with all cores or a Ray cluster, so that a killed run goes on where it stopped.

Logs are read by a worker pool, on Ray where it is installed and the logs are many, else on processes of this
machine: a log that kills or hangs its reader takes nothing else along. What was read is on disk part by part.
Then the vectors are made, of each crash once, in batches of like length.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import cast

from corpus import library, log_patterns
from ingest import ingest_tasks, worker_programs
from ingest.embedder import DEFAULT_NAME, Vectors
from ingest.errors import PoolLostError
from ingest.index import Compute, Report
from ingest.ingest_tasks import IngestedContent, IngestTask
from ingest.stored_parts import RowParts
from ingest.workers.messages import PoolEvent, TaskAnswered, TaskDied, TaskLate, TaskReturned
from ingest.workers.pool import Pool
from ingest.workers.process import WorkerProgram
from ingest.workers.processes import open_processes
from ingest.workers.ray_pool import RayPool

# From so many logs on, starting a pool pays for itself, and from so many on, starting Ray.
FROM = 300
RAY_FROM = 2000
# Logs that a worker has: one that it reads, and one ahead.
DEPTH = 2
# Seconds for a log beside those for its size.
LOG_TIMEOUT = 120.0
BYTES_PER_SECOND = 1_000_000
# Seconds for the vectors of one step, and how often a step may end its worker.
EMBEDDING = 600.0
MAX_DEATHS = 3
# Seconds after which a pool is looked after where nothing happens.
TURN = 1.0


class BulkReader:
    """Reads logs with several workers; `ray_address` names a cluster, and is empty for this machine.

    `with_ray` is for those who know better than the number of logs does; `log_timeout` is the seconds that a
    log may take besides those for its size.
    """

    def __init__(
        self,
        home: Path,
        ray_address: str = "",
        workers: int = 0,
        *,
        with_ray: bool | None = None,
        log_timeout: float = LOG_TIMEOUT,
    ) -> None:
        self._home = home
        self._address = ray_address
        self._workers = workers or os.cpu_count() or 1
        self._with_ray = with_ray
        self._log_timeout = log_timeout
        self._parts = RowParts(home, parts_key())

    def ingested(self, tasks: Sequence[IngestTask], report: Report) -> list[IngestedContent]:
        """Take in logs and give what came of them in the order of the ingest tasks.

        Besides files, reports how many crashes were found in them, and megabytes. Raises SearchIndexError
        where another run takes logs in for the same home.
        """
        with self._parts.alone():
            return self._ingest_left(tasks, report)

    def _ingest_left(self, tasks: Sequence[IngestTask], report: Report) -> list[IngestedContent]:
        done = self._resumed(tasks)
        left = [ingest_task for ingest_task in tasks if ingest_task.file not in done]
        sizes = {ingest_task.file: ingest_task.bytes for ingest_task in tasks}
        size, total = sum(sizes[file] for file in done), sum(sizes.values())
        crashes = sum(bool(made.documents) for made in done.values())
        working = _contents(self._opened(len(left)), left, self._log_timeout)
        try:
            for made in working:
                done[made.file] = made
                self._parts.add({"stamp": task_id(Path(made.file)), "intake": made.record()})
                size += sizes[made.file]
                crashes += bool(made.documents)
                report("crashes", crashes, crashes)
                report("megabytes", size >> 20, total >> 20)
                report("files", len(done), len(tasks))
        finally:
            working.close()
            self._parts.flush()
        return [done[ingest_task.file] for ingest_task in tasks]

    def _opened(self, count: int) -> Pool:
        """Open the pool for so many logs."""
        program = WorkerProgram(worker_programs.LogHandler, (self._home / "cache",))
        is_for_ray = self._with_ray and count > 0
        if self._with_ray is None and find_spec("ray") is not None:
            is_for_ray = count >= (FROM if self._address else RAY_FROM)
        if is_for_ray:
            return RayPool(program, self._address, 0 if self._address else self._workers, depth=DEPTH)
        return open_processes(program, min(self._workers, max(1, count)), "ingest-worker", depth=DEPTH)

    def finish(self) -> None:
        """Forget the parts: the index that they were for stands."""
        self._parts.clear()

    def _resumed(self, tasks: Sequence[IngestTask]) -> dict[str, IngestedContent]:
        known = {ingest_task.file: ingest_task for ingest_task in tasks}
        found: dict[str, IngestedContent] = {}
        for row in self._parts.load():
            made = ingest_tasks.restored(row["intake"])
            # What was unchanged for one index may be new for the one that stands now.
            task = known.get(made.file)
            if task is None or made.team != task.team or (made.unchanged and made.content != task.known):
                continue
            if row["stamp"] == task_id(Path(made.file)):
                found[made.file] = made
        return found

    def compute(self, model: str) -> Compute | None:
        """Give what makes vectors with a cluster's cores; None on one machine, whose threads do as well."""
        if not self._address or self._with_ray is False or find_spec("ray") is None:
            return None

        def vectors(steps: Iterable[Sequence[str]]) -> Iterator[Vectors]:
            setting = "" if model == DEFAULT_NAME else model
            program = WorkerProgram(worker_programs.EmbeddingHandler, (setting, self._home))
            return _embedded(RayPool(program, self._address, depth=DEPTH), steps)

        return vectors


def _contents(pool: Pool, tasks: Sequence[IngestTask], log_timeout: float) -> Generator[IngestedContent]:
    """Take in files, in the order in which they are read; ends the pool.

    One that ends its reader twice, or takes too long, has no hash, so that the next run tries it again.
    """
    waiting = deque(tasks)
    under_way: dict[str, IngestTask] = {}
    died: set[str] = set()
    try:
        while waiting or under_way:
            while waiting and pool.capacity:
                task = waiting.popleft()
                under_way[task.file] = task
                pool.submit(task.file, task, log_timeout + task.bytes / BYTES_PER_SECOND)
            for event in pool.events(TURN):
                task = under_way.pop(event.key)
                content = _content(event, task, event.key in died)
                if content is not None:
                    yield content
                    continue
                waiting.appendleft(task)
                # It may have been the process that somebody ended, and not the log.
                died.update([event.key] if isinstance(event, TaskDied) else [])
    finally:
        pool.close()


def _content(event: PoolEvent, task: IngestTask, has_died: bool) -> IngestedContent | None:
    """Give what became of a file; None where it is to be tried again, as after a first death."""
    if isinstance(event, TaskAnswered):
        return cast("IngestedContent", event.answer)
    if isinstance(event, TaskLate):
        reason = f"reading it took longer than {event.seconds:.0f} seconds"
    elif isinstance(event, TaskDied) and has_died:
        reason = f"the process that read it ended ({event.reason})"
    else:
        return None
    return IngestedContent(task.file, reason=f"{task.file}: {reason}")


def _embedded(pool: Pool, steps: Iterable[Sequence[str]]) -> Iterator[Vectors]:
    """Give the vectors of each step's texts, in their order; ends the pool.

    Raises PoolLostError where a step ends worker after worker.
    """
    left = ((str(place), texts) for place, texts in enumerate(steps))
    # The next step, unless there is none, behind those that lost their worker.
    waiting = deque(islice(left, 1))
    under_way: dict[str, Sequence[str]] = {}
    deaths: Counter[str] = Counter()
    early: dict[str, Vectors] = {}
    following = count()
    wanted = str(next(following))
    try:
        while waiting or under_way:
            while waiting and pool.capacity:
                key, texts = waiting.popleft()
                under_way[key] = texts
                pool.submit(key, texts, EMBEDDING)
                waiting.extend(() if waiting else islice(left, 1))
            for event in pool.events(TURN):
                texts = under_way.pop(event.key)
                if isinstance(event, TaskAnswered):
                    early[event.key] = cast("Vectors", event.answer)
                    continue
                deaths[event.key] += not isinstance(event, TaskReturned)
                if deaths[event.key] >= MAX_DEATHS:
                    raise PoolLostError("The workers that make vectors end one after the other.")
                waiting.appendleft((event.key, texts))
            while wanted in early:
                yield early.pop(wanted)
                wanted = str(next(following))
    finally:
        pool.close()


def task_id(path: Path) -> list[int]:
    """Give what changes when a log or its label does, without reading them; empty where it is gone."""
    found: list[int] = []
    for part in (path, ingest_tasks.label_path(path)):
        if part is None:
            continue
        try:
            facts = part.stat()
        except OSError:
            return []
        found += [facts.st_size, facts.st_mtime_ns]
    return found


def parts_key() -> str:
    """Name what logs are read with: parts of another corpus or other patterns do not count."""
    return hashlib.sha256(f"{library.digest()} {log_patterns.digest()}".encode()).hexdigest()[:16]


def sized(ingest_task: IngestTask) -> IngestTask:
    """Fill in the file's size; 0 where it cannot be had."""
    try:
        return replace(ingest_task, bytes=Path(ingest_task.file).stat().st_size)
    except OSError:
        return ingest_task
