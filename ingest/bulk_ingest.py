"""Take in many logs at once, with all cores or a Ray cluster, so that a killed run goes on where it stopped.

Logs are read by a pool, each worker with patterns that it compiled once; Ray Data runs the pool where Ray is
installed, threads of this process do elsewhere. What was read is on disk part by part. Then the vectors are
made, of each crash once, in batches of like length.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from threading import local
from typing import Any

from corpus import library, log_patterns
from ingest import embedder, ingest_tasks, sockets
from ingest.embedder import DEFAULT_NAME, Vectors
from ingest.index import Compute, Report
from ingest.ingest_tasks import IngestedContent, IngestTask
from ingest.stored_parts import RowParts
from ingest.subprocess_reader import SubprocessReader

# From so many logs on, starting a pool pays for itself, and from so many on, starting Ray.
FROM = 300
RAY_FROM = 2000
# Logs that a worker of Ray's is given at a time; what it holds is lost when its machine is.
BATCH = 16
# What of a local Ray's memory its object store may take, bytes: paths go in, crashes of a kilobyte come out.
OBJECTS = 200 << 20


class BulkReader:
    """Reads logs with several workers; `ray_address` names a cluster, and is empty for this machine.

    `with_ray` is for those who know better than the number of logs does.
    """

    def __init__(
        self, home: Path, ray_address: str = "", workers: int = 0, *, with_ray: bool | None = None
    ) -> None:
        self._home = home
        self._address = ray_address
        self._workers = workers or os.cpu_count() or 1
        self._with_ray = with_ray
        self._parts = RowParts(home, parts_key())

    def ingested(self, tasks: Sequence[IngestTask], report: Report) -> list[IngestedContent]:
        """Take in logs and give what came of them in the order of the ingest tasks.

        Besides files, reports how many crashes were found in them, and megabytes. Raises SearchIndexError
        where another run takes logs in for the same home.
        """
        with self._parts.alone():
            return self._taken(tasks, report)

    def _taken(self, tasks: Sequence[IngestTask], report: Report) -> list[IngestedContent]:
        done = self._resumed(tasks)
        left = [ingest_task for ingest_task in tasks if ingest_task.file not in done]
        sizes = {ingest_task.file: ingest_task.bytes for ingest_task in tasks}
        size, total = sum(sizes[file] for file in done), sum(sizes.values())
        crashes = sum(bool(made.documents) for made in done.values())
        working = self._on_ray(left) if self._is_for_ray(len(left)) else self._on_threads(left)
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

    def _is_for_ray(self, count: int) -> bool:
        if self._with_ray is not None:
            return self._with_ray and count > 0
        return find_spec("ray") is not None and (count >= RAY_FROM or (bool(self._address) and count >= FROM))

    def finish(self) -> None:
        """Forget the parts: the index that they were for stands."""
        self._parts.clear()

    def _resumed(self, tasks: Sequence[IngestTask]) -> dict[str, IngestedContent]:
        known = {ingest_task.file: ingest_task.known for ingest_task in tasks}
        found: dict[str, IngestedContent] = {}
        for row in self._parts.load():
            made = ingest_tasks.restored(row["intake"])
            # What was unchanged for one index may be new for the one that stands now.
            still = made.file in known and (not made.unchanged or made.content == known[made.file])
            if still and row["stamp"] == task_id(Path(made.file)):
                found[made.file] = made
        return found

    def _on_threads(self, tasks: Sequence[IngestTask]) -> Generator[IngestedContent]:
        """Read with a process beside each thread."""
        own = local()
        readers: list[SubprocessReader] = []

        def take(ingest_task: IngestTask) -> IngestedContent:
            if not hasattr(own, "reader"):
                own.reader = SubprocessReader(self._home / "cache")
                readers.append(own.reader)
            made: IngestedContent = own.reader.read(ingest_task)
            return made

        pool = ThreadPoolExecutor(self._workers)
        try:
            yield from _as_they_finish(
                (pool.submit(take, ingest_task) for ingest_task in tasks), 2 * self._workers
            )
        finally:
            pool.shutdown(cancel_futures=True)
            for reader in readers:
                reader.close()

    def _on_ray(self, tasks: Sequence[IngestTask]) -> Generator[IngestedContent]:
        """Read with a pool of Ray's actors, a process beside each."""
        with _ray(self._address, self._workers) as started:
            rows = [{"errand": json.dumps(asdict(ingest_task))} for ingest_task in tasks]
            blocks = max(1, min(len(rows) // BATCH, 4000))
            found = started.data.from_items(rows, override_num_blocks=blocks).map_batches(
                _ReadActor,
                batch_size=BATCH,
                fn_constructor_args=[str(self._home / "cache")],
                compute=started.data.ActorPoolStrategy(size=self._size(started)),
                num_cpus=1,
            )
            for row in found.iter_rows():
                yield ingest_tasks.restored(json.loads(row["intake"]))

    def _size(self, started: Any) -> int:
        """Give the number of actors: the cluster's cores where one is named."""
        return max(1, int(started.cluster_resources().get("CPU", 1))) if self._address else self._workers

    def compute(self, model: str) -> Compute | None:
        """Give what makes vectors with a cluster's cores; None on one machine, whose threads do as well."""
        if not self._address or self._with_ray is False or find_spec("ray") is None:
            return None

        def vectors(steps: Iterable[Sequence[str]]) -> Iterator[Vectors]:
            with _ray(self._address, self._workers) as started:
                yield from _embedded(started, steps, model, self._home, self._size(started))

        return vectors


def _as_they_finish(futures: Iterator[Future[IngestedContent]], most: int) -> Iterator[IngestedContent]:
    """Give results as they come, `most` of them under way: one log that hangs must not delay the others."""
    waiting = set(islice(futures, most))
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in done)
        waiting.update(islice(futures, most - len(waiting)))


class _ReadActor:
    """An actor that reads logs, in a process beside it."""

    def __init__(self, cache: str) -> None:
        self._reader = SubprocessReader(Path(cache))

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """Take in a batch."""
        made = (self._reader.read(IngestTask(**json.loads(ingest_task))) for ingest_task in batch["errand"])
        return {"intake": [json.dumps(item.record()) for item in made]}


class _EmbedActor:
    """An actor that holds the model, and computes with one thread."""

    def __init__(self, model: str, home: str) -> None:
        self._embedder = embedder.open_embedder("" if model == DEFAULT_NAME else model, Path(home), threads=1)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Embed the lists of texts of a batch."""
        return {
            "place": list(batch["place"]),
            "vectors": [self._embedder.embed(json.loads(texts)) for texts in batch["texts"]],
        }


def _embedded(
    started: Any, steps: Iterable[Sequence[str]], model: str, home: Path, size: int
) -> Iterator[Vectors]:
    rows = [{"place": place, "texts": json.dumps(list(texts))} for place, texts in enumerate(steps)]
    found = started.data.from_items(rows, override_num_blocks=max(1, len(rows))).map_batches(
        _EmbedActor,
        batch_size=1,
        fn_constructor_args=[model, str(home)],
        compute=started.data.ActorPoolStrategy(size=size),
        num_cpus=1,
    )
    early: dict[int, Vectors] = {}
    following = 0
    for row in found.iter_rows():
        early[row["place"]] = row["vectors"]
        while following in early:
            yield early.pop(following)
            following += 1


@contextmanager
def _ray(address: str, workers: int) -> Iterator[Any]:
    """Give Ray, connected to a cluster or started on this machine for as long as it is needed."""
    # Nothing is told to anybody outside, and Ray's ports, which are open to the network, answer nobody
    # without a token.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray's own processes write into the terminal what only its makers can read; what matters comes as an
    # exception.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    folder = ""
    if not address:
        # One token for the life of this process: Ray reads it once.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ.pop("RAY_ADDRESS", None)
    # Imported here: it takes seconds, and only many logs need it.
    import ray
    import ray.data

    mine = not ray.is_initialized()
    if mine:
        usual: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        folder = "" if address else sockets.new_folder("wc")
        here: dict[str, Any] = {
            "num_cpus": workers,
            "include_dashboard": False,
            "object_store_memory": OBJECTS,
            "_temp_dir": folder,
        }
        ray.init(**usual, **({"address": address} if address else here))
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        if mine:
            ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


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
