"""Triage one log: read, diagnose, explain. The one place where the parts meet."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from corpus import library, log_patterns
from corpus.library import Library
from corpus.message import Message
from ingest import embedder, pipeline
from ingest.embedder import Embedder
from ingest.errors import BrokenTemplatesError, EmptyInputError, InputError
from ingest.index import Index
from ingest.logs import templates
from ingest.logs.configs import launch
from ingest.logs.configs.launch import Setting
from ingest.logs.frameworks import with_forks
from ingest.logs.inputs import jobs
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.sources import LogSource
from ingest.logs.lines import printable
from ingest.logs.reader import Reader
from ingest.logs.refinement import refine_by_files
from ingest.logs.report import CrashReport, Limits
from ingest.logs.templates import Templates
from ingest.pipeline import IndexPlaces
from ingest.redaction.redactor import Redactor
from ingest.source_code.failing_source import read_source
from ingest.source_code.source_roots import FilesAtHand, SourceRoots
from service.composition.composer import language_of
from service.llm.stages import Stage
from service.llm.triage_context import TriageContext, answer_by_rules
from service.patching.patches import ConfigFile
from service.patching.used_files import by_use, is_record, of_run
from service.pipeline.cell_frames import with_cells
from service.schemas.confirmations import ConfirmedCause
from service.schemas.diagnosis import Outcome
from service.scoring.assessment import assess
from service.scoring.retrieval import Retriever
from service.settings import Settings
from service.signals import tracing
from service.telemetry.snapshot import Snapshot

if TYPE_CHECKING:
    from service.llm.conversation import Conversation

Report = Callable[[str, int, int], None]
Taking = Callable[[CrashReport], Snapshot]

MAX_CONFIG_BYTES = 1 << 20
# How much of a file tells whether it holds saved templates.
_HEAD_BYTES = 64


def no_progress(stage: str, done: int, total: int) -> None:
    """Take progress and show nothing."""


@dataclass(frozen=True)
class ReadJob:
    """One job's output, read: what is diagnosed.

    `language` is the one that the answer is wanted in, empty for that of the log; `files` are the job's own
    configs; `outcome` is how the job ended, as far as the caller knows; `timings_ms` is what reading took;
    `known` is what persons confirmed of crashes before, the latest first; `reopen` opens the output anew for
    a model that looks into it, None where it is not at hand any more; `roots` are the folders below which
    code may be read that its traceback names, None where none may. `team` is the one that asks: of the
    write-ups and past crashes under search it finds its own beside everybody's.
    """

    report: CrashReport
    language: str = ""
    files: tuple[ConfigFile, ...] = ()
    outcome: Outcome | None = None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    known: tuple[ConfirmedCause, ...] = ()
    reopen: Callable[[], JobSource | LogSource] | None = None
    roots: SourceRoots | None = None
    team: str = ""


class Triage:
    """Holds what triages share: corpus, patterns, index, model. Opened once, used for many logs.

    A log is read, then diagnosed by rules, then, where a model is set, explained with it.
    """

    def __init__(self, settings: Settings, report: Report = no_progress) -> None:
        self._settings = settings
        self._report = report
        self._opening: Future[Embedder] | None = None

    def open_embedder_ahead(self) -> None:
        """Begin to open an exported embedding model, most of which runs beside what Python does meanwhile.

        A model that has to be exported first is left to `embedder`, which is asked where progress is shown.
        """
        if embedder.exported(self._settings.embedding_model, self._settings.home):
            thread = ThreadPoolExecutor(1, "embedder")
            self._opening = thread.submit(self._open_embedder)
            thread.shutdown(wait=False)

    @cached_property
    def library(self) -> Library:
        """The corpus."""
        return library.load(cache=self._settings.home / "cache")

    @cached_property
    def reader(self) -> Reader:
        """The reader of logs."""
        cache = self._settings.home / "cache"
        return Reader(log_patterns.load(cache=cache), cache)

    @cached_property
    def embedder(self) -> Embedder:
        """The embedding model; exported on first use."""
        return self._opening.result() if self._opening else self._open_embedder()

    def _open_embedder(self) -> Embedder:
        return embedder.open_embedder(self._settings.embedding_model, self._settings.home)

    @property
    def index_places(self) -> IndexPlaces:
        """Where the index is kept besides the home, and where many logs are read."""
        return IndexPlaces(self._settings.chroma_url, self._settings.ray_address, self._settings.workers)

    @cached_property
    def index(self) -> Index:
        """The search index; built first where there is none or it is of another corpus or model."""
        return (
            self.current_index()
            or pipeline.refresh(self._settings.home, self.embedder, self._report, self.index_places).index
        )

    def current_index(self) -> Index | None:
        """Open the search index; gives None where it is to be built first."""
        name = self._settings.embedding_model or embedder.DEFAULT_NAME
        return pipeline.opened(self._settings.home, name, self.index_places)

    @cached_property
    def retriever(self) -> Retriever:
        """The search over all of it."""
        return Retriever(self.library, self.index, self.embedder)

    def healthy_templates(self, path: Path) -> Templates:
        """Read what a healthy run prints: its output, or the templates that were saved of it."""
        if path.is_file():
            with path.open("rb") as stream:
                if templates.is_saved(stream.read(_HEAD_BYTES)):
                    return templates.load(path)
        found = self.reader.templates(jobs.open_job(path))
        if found.failed_at:
            raise BrokenTemplatesError(
                Message("errors.no-healthy-run-failed", path=path, failed_at=found.failed_at)
            )
        return found

    def read(
        self,
        source: LogSource | JobSource,
        language: str = "",
        files: Sequence[ConfigFile] = (),
        good: Templates | None = None,
        outcome: Outcome | None = None,
    ) -> ReadJob:
        """Read one job's output; raises InputError where it cannot be read.

        `good` is what a healthy run of the same job prints; without `files`, configs that lie beside the logs
        are used. `outcome` is how the job ended, as far as the caller knows.
        """
        started = perf_counter()
        failed = outcome is not None and outcome.end == "failed"
        try:
            with tracing.span("read") as span:
                report = self.reader.read(source, good, failed=failed)
                span.add(
                    {"whycrash.log.bytes": report.limits.bytes, "whycrash.log.lines": report.limits.lines}
                )
        except EmptyInputError:
            # A job that is killed before its first word has printed nothing; that it failed is known all the
            # same.
            if not failed:
                raise
            name = Redactor().clean(printable(source.name))
            report = CrashReport(name, (), None, (), (), (), Limits(0, 0))
        if not files and isinstance(source, JobSource):
            files = [_config(name, raw) for name, raw in source.configs]
        files = with_notebooks(source, files)
        spent = {"scan": round(1000 * (perf_counter() - started), 2)}
        return ReadJob(report, language, tuple(files), outcome, spent)

    def diagnose(self, job: ReadJob, telemetry: Snapshot | Taking | None = None) -> TriageContext:
        """Answer by rules for a job that is read, and keep what further answers need.

        `telemetry` is a snapshot of the machine, or what takes one once it is known when the job died.
        """
        started = perf_counter()
        read = with_cells(job.report, job.files)
        files = by_use(job.files, read)
        used = of_run(files, read)
        own = [setting for file in used if not is_record(file) for setting in _settings(file)]
        kept = [setting for file in used if is_record(file) for setting in _settings(file)]
        texts = tuple(f"{Redactor().clean(file.text)}\n{file.name}" for file in files)
        shown = with_forks(job.report.frameworks, texts)
        report = replace(read, launches=texts, frameworks=shown)
        # What the code says of the root's calls: the machine's where it may be read, else the job's own.
        if report.root is not None and report.root.frames:
            roots = job.roots or FilesAtHand({file.name: file.text for file in files})
            report = replace(report, failing_source=read_source(report.root.frames, roots, report.root.body))
        report = refine_by_files(report, self.reader.table, own)
        with tracing.span("retrieve"):
            retrieval = self.retriever.retrieve(report, job.team)
        spent = {"retrieve": round(1000 * (perf_counter() - started), 2)}
        language = language_of(report, job.language or self._settings.lang)
        snapshot = telemetry(report) if callable(telemetry) else telemetry
        started = perf_counter()
        with tracing.span("assess"):
            assessment = assess(report, retrieval, self.library, own, snapshot, job.outcome, job.known, kept)
        with tracing.span("compose") as span:
            first = answer_by_rules(assessment, self.library, language, files)
            span.add({"whycrash.verdict": first.verdict, "whycrash.cause": first.cause or ""})
        spent["compose"] = round(1000 * (perf_counter() - started), 2)
        first = first.model_copy(update={"timings_ms": {**job.timings_ms, **spent}})
        return TriageContext(
            assessment, self.library, language, files, first, job.reopen, self._near_cases, self._fails_alone
        )

    def explain(self, triage_context: TriageContext, batch: str = "") -> Iterator[Stage]:
        """Answer in stages: the rules' own answer at once, then what the configured model makes of it.

        The last stage is always a Final; without a model, or with one that fails, it is the first answer.
        `batch` names the batch whose budget is spent, if any.
        """
        # Imported here: without a model, an answer must not wait for what only a model needs.
        from service.llm import chain

        return chain.answer_in_stages(triage_context, self._settings, batch)

    def _fails_alone(self, line: str) -> bool:
        """Tell whether a line is read as a failure where nothing else is known of its job."""
        try:
            return self.reader.read(LogSource("line", io.BytesIO(line.encode()))).root is not None
        except InputError:
            return False

    def _near_cases(self, words: str) -> list[str]:
        return [item.owner for item in self.retriever.search(words) if item.kind == "case"]

    def prompt(self, triage_context: TriageContext) -> str:
        """Give exactly what a model would be sent, for a person to read; nothing is sent."""
        from service.llm import chain

        return chain.render_prompt(triage_context, self._settings)

    def conversation(self, triage_context: TriageContext, with_model: bool = True) -> Conversation:
        """Begin a conversation about an answer, with the configured model where there is one.

        Raises ModelSetupError.
        """
        from service.llm import conversation, investigation, models, spending

        settings = self._settings
        return conversation.Conversation(
            triage_context,
            self._near_cases,
            models.open_models(settings) if with_model else (),
            settings.model_deadline,
            settings.model_tokens,
            investigation.LookLimits(settings.model_calls, settings.model_calls_deadline),
            spending.open_spending(settings),
        )


def _settings(file: ConfigFile) -> list[Setting]:
    clean = Redactor().value
    return [
        Setting(
            item.key,
            clean(item.key, item.value),
            0,
            item.spelled,
            file=file.name,
            scope=item.place.scope if item.place else "",
            row=item.place.line if item.place else 0,
        )
        for item in launch.from_file(file.text, file.name)
    ]


def with_notebooks(source: LogSource | JobSource, files: Sequence[ConfigFile]) -> list[ConfigFile]:
    """Give the job's files with the notebooks that were read as its output: they are also its program."""
    names = {file.name for file in files}
    own = [_config(name, raw) for name, raw in source.notebooks if name not in names]
    # Of one that was cut off the cells are not at hand.
    return [*(file for file in own if file.notebook), *files]


def read_config(path: Path, name: str = "") -> ConfigFile:
    """Read one of the job's own files, bounded; it goes by its own name where none is given."""
    with path.open("rb") as stream:
        return _config(name or path.name, stream.read(MAX_CONFIG_BYTES), path)


def _config(name: str, raw: bytes, path: Path | None = None) -> ConfigFile:
    try:
        return ConfigFile.of(name, raw.decode(), path=path)
    except UnicodeDecodeError:
        return ConfigFile.of(name, raw.decode("utf-8", "replace"), exact=False, path=path)
