"""`whycrash batch`: many jobs in, one results file out.

Told again with the same one, it goes on where it stopped.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from corpus.message import Message, message_id
from ingest.logs.lines import printable
from service.batches import results
from service.batches.batches import BatchService, open_store
from service.batches.engine import BatchEngine
from service.batches.executor_slots import OPENERS, Opener, SlotName
from service.batches.page import page
from service.batches.sources.found import NO_JOBS, NO_JOBS_BUT_LOST, shown_path
from service.batches.sources.spool import open_spool
from service.batches.summary import JobName
from service.batches.trend import BatchSummaries
from service.monitoring.known_jobs import KnownJobs
from service.persistence.spool import free_bytes
from service.persistence.store import Store
from service.pipeline.triage import Triage
from service.schemas.errors import InvalidRequestError, NotFoundError
from service.schemas.records import BatchOptions, BatchRecord, JobRecord, SourceKind
from service.settings import Settings
from service.signals.starting import signals
from ui.cli.batch_sources import READERS, BatchArguments, SourceQuestion, kind_of, since_of
from ui.cli.codes import EXPLAINED, HEALTHY, UNKNOWN
from ui.cli.console import check_language, err, language, load_settings, out, progress
from ui.cli.summary import render

STOPPED = 130
# Seconds between two lines of progress where no terminal shows a bar.
EVERY = 10.0
_LANGUAGES: Mapping[str, Literal["en", "zh"]] = {"en": "en", "zh": "zh"}


def run(wanted: BatchArguments) -> int:
    """Triage a batch, write its results, and give the exit code."""
    check_language(wanted.lang)
    kind = kind_of(wanted)
    since_of(wanted.since, datetime.now(UTC))
    settings = load_settings()
    if wanted.workers:
        settings = replace(settings, workers=wanted.workers)
    if not wanted.out.absolute().parent.is_dir():
        raise InvalidRequestError(Message("errors.no-folder-out", parent=wanted.out.absolute().parent))
    if wanted.out.exists():
        raise InvalidRequestError(Message("errors.whole-give-another-out", out=wanted.out))
    with signals("batch"), open_store(settings) as store:
        batches = BatchService(settings, store)
        known = KnownJobs(settings.home, f"batch {kind} {wanted.address} {wanted.query} {wanted.job_label}")
        try:
            record = _begun(wanted, store) or _begin(wanted, kind, batches, settings, known)
        except InvalidRequestError as error:
            if not wanted.new or message_id(str(error)) not in (NO_JOBS, NO_JOBS_BUT_LOST):
                raise
            err().print(str(error), markup=False)
            return HEALTHY
        if record.state == "running":
            try:
                _work(record, settings, store)
            except KeyboardInterrupt:
                err().print("Stopped. The same command goes on from here.", markup=False)
                return STOPPED
        code = _written(wanted, store.batches.get(record.id), settings, store)
        if wanted.new:
            known.add_all(_answered(record, store))
        return code


def _answered(record: BatchRecord, store: Store) -> Iterator[str]:
    """Give by which their source knows the jobs that have an answer; what failed is tried again."""
    for job in store.batches.results(record.id):
        if job.state == "done" and (key := store.batches.job(job.id).place.source_key):
            yield key


# Begin, go on, work.


def _begun(wanted: BatchArguments, store: Store) -> BatchRecord | None:
    """Give the batch of an earlier, broken run of the same command; None where there is none."""
    try:
        record = store.batches.get(wanted.part.read_text(encoding="utf-8").strip())
    except (FileNotFoundError, NotFoundError):
        return None  # none, or one that was killed before its batch was whole
    if record.caller != wanted.caller:
        raise InvalidRequestError(Message("errors.another-batch-not-ended", part=wanted.part))
    err().print(
        f"Going on with the batch of {record.created.astimezone():%Y-%m-%d %H:%M}: {_over(record)} of "
        f"{record.total} jobs are done and skipped; "
        "logs that came since are not in it.",
        markup=False,
    )
    return record


def _over(record: BatchRecord) -> int:
    return sum(record.counts.get(state, 0) for state in ("done", "failed", "cancelled"))


def _begin(
    wanted: BatchArguments, kind: SourceKind, batches: BatchService, settings: Settings, known: KnownJobs
) -> BatchRecord:
    batch = batches.begin()
    # With it, the same command finds its batch again.
    wanted.part.write_text(f"{batch}\n", encoding="utf-8")
    places = wanted.paths or wanted.pods
    name = wanted.name or shown_path(wanted.address or kind)
    if places and not wanted.name:
        name = places[0].absolute().name if len(places) == 1 else f"{len(places)} files"
    try:
        spool = open_spool(batches.spool(batch), settings)
        found = READERS[kind](SourceQuestion(wanted, spool, settings, known if wanted.new else ()))
        for reason, told in found.left_out.items():
            err().print(
                f"left out, {reason.replace('_', ' ')}: {printable(str(told))}", markup=False, style="dim"
            )
        options = BatchOptions(language=_LANGUAGES.get(wanted.lang, ""))
        return batches.accept(
            name, kind, found.specs, options, wanted.caller, batch=batch, left_out=found.left_out
        )
    except BaseException:
        batches.discard(batch)
        wanted.part.unlink(missing_ok=True)
        raise


def _work(record: BatchRecord, settings: Settings, store: Store) -> None:
    with progress() as report:
        # Here rather than in the workers, which show nothing.
        _ = Triage(settings, report).index
    # One machine needs no Ray; a cluster does.
    openers: Mapping[SlotName, Opener] = OPENERS if settings.ray_address else {"local": OPENERS["local"]}
    with _watching(record) as watch:
        BatchEngine(settings, store, batch=record.id, watch=watch, openers=openers).run()


class _BatchProgress:
    """The causes so far, and how fast it goes."""

    def __init__(self) -> None:
        self._causes: Counter[str] = Counter()
        self._of: dict[str, str] = {}
        self._began = time.monotonic()
        self.jobs = 0

    def add(self, job: JobRecord) -> None:
        """Count a job that has ended."""
        self.jobs += 1
        if job.diagnosis is not None:
            self._of[job.id] = job.diagnosis.cause or "no failure"
        cause = "no answer" if job.state == "failed" else self._of.get(job.same_as or job.id)
        if cause:
            self._causes[cause] += 1

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.jobs / max(time.monotonic() - self._began, 1e-3)

    def __str__(self) -> str:
        """Name the most frequent causes."""
        return ", ".join(f"{cause} {count}" for cause, count in self._causes.most_common(4))


@contextmanager
def _watching(record: BatchRecord) -> Iterator[Callable[[JobRecord], None]]:
    """Show a bar on a terminal, else a line now and then."""
    told = _BatchProgress()
    over = _over(record)
    if err().is_terminal:
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[causes]}", markup=False),
        )
        with Progress(*columns, console=err(), transient=True) as bar:
            task = bar.add_task("", total=record.total, completed=over, rate="", causes="")

            def shown(job: JobRecord) -> None:
                told.add(job)
                bar.update(task, advance=1, rate=f"{told.rate:.1f}/s", causes=str(told))

            yield shown
        return
    last = time.monotonic()

    def printed(job: JobRecord) -> None:
        nonlocal last
        told.add(job)
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            err().print(f"{over + told.jobs} of {record.total} jobs, {told.rate:.1f}/s: {told}", markup=False)

    yield printed


# What came of it.


def _written(wanted: BatchArguments, record: BatchRecord, settings: Settings, store: Store) -> int:
    lookup = store.batches.job
    spoken = language(wanted.lang or settings.lang)
    if wanted.csv:
        _whole(wanted.csv, results.csv_lines(store.batches.results(record.id), lookup, spoken))
    summaries = BatchSummaries(settings, store)
    summary = summaries.of(record.id, spoken)

    def place(job: JobName) -> Path | None:
        # None where the output was copied, or is on no disk of this machine.
        kept = lookup(job.id).place
        return Path(kept.paths[0]).absolute() if kept.paths and not kept.spooled else None

    if wanted.html:
        beside = wanted.html.absolute().parent

        def address(job: JobName) -> str:
            path = place(job)
            return quote(os.path.relpath(path, beside)) if path else ""

        _whole(wanted.html, [page(summary, summaries.trend(record.id, spoken), address)])
    _whole(wanted.out, results.json_lines(store.batches.results(record.id), lookup, spoken))
    wanted.part.unlink(missing_ok=True)
    render(summary, out(), place)
    files = ", ".join(str(path) for path in (wanted.out, wanted.csv, wanted.html) if path)
    out().print(Text(f"\n{files}", style="dim"))
    if summary.untriaged:
        return UNKNOWN
    return EXPLAINED if summary.died.jobs else HEALTHY


def _whole(path: Path, texts: Iterable[str]) -> None:
    """Write a file that is there whole or not at all; raises DiskFullError."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with free_bytes(), part.open("w", encoding="utf-8", newline="") as file:
            file.writelines(texts)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
