"""Triage one log: read, retrieve, compose, patch. The one place where the parts meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from corpus import library, log_patterns
from corpus.library import Library
from corpus.schema import Language
from ingest import embedder, pipeline
from ingest.embedder import Embedder
from ingest.errors import BrokenTemplatesError, EmptyInputError
from ingest.index import Index
from ingest.logs import templates
from ingest.logs.configs import launch
from ingest.logs.configs.launch import Setting
from ingest.logs.inputs import jobs
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.sources import LogSource
from ingest.logs.lines import printable
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport, Limits
from ingest.logs.templates import Templates
from ingest.pipeline import IndexPlaces
from ingest.redaction.redactor import Redactor
from service.composition import reasons
from service.composition.composer import compose, language_of
from service.llm.stages import Stage
from service.llm.triage_context import TriageContext
from service.patching import patches
from service.patching.patches import ConfigFile
from service.patching.target import PatchTarget
from service.remediation.changes import is_guidance
from service.schemas.diagnosis import Diagnosis, Dropped, Outcome, ProposedChange
from service.scoring.retrieval import Retriever
from service.settings import Settings
from service.telemetry.snapshot import Snapshot

if TYPE_CHECKING:
    from service.llm.conversation import Conversation

Report = Callable[[str, int, int], None]
Taking = Callable[[CrashReport], Snapshot]

MAX_CONFIG_BYTES = 1 << 20


def no_progress(stage: str, done: int, total: int) -> None:
    """Take progress and show nothing."""


class Triage:
    """Holds what triages share: corpus, patterns, index, model. Opened once, used for many logs."""

    def __init__(self, settings: Settings, report: Report = no_progress) -> None:
        self._settings = settings
        self._report = report

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
        return embedder.open_embedder(self._settings.embedding_model, self._settings.home)

    @property
    def index_places(self) -> IndexPlaces:
        """Where the index is kept besides the home, and where many logs are read."""
        return IndexPlaces(self._settings.chroma_url, self._settings.ray_address, self._settings.workers)

    @cached_property
    def index(self) -> Index:
        """The search index; built first where there is none or it is of another corpus or model."""
        name = self._settings.embedding_model or embedder.DEFAULT_NAME
        found = pipeline.opened(self._settings.home, name, self.index_places)
        return (
            found
            or pipeline.refresh(self._settings.home, self.embedder, self._report, self.index_places).index
        )

    @cached_property
    def retriever(self) -> Retriever:
        """The search over all of it."""
        return Retriever(self.library, self.index, self.embedder)

    def healthy_templates(self, path: Path) -> Templates:
        """Read what a healthy run prints: its output, or the templates that were saved of it."""
        if path.is_file() and templates.is_saved(_head(path)):
            return templates.load(path)
        found = self.reader.templates(jobs.open_job(path))
        if found.failed_at:
            raise BrokenTemplatesError(
                f"{path} is no healthy run: it failed itself, at line {found.failed_at}. Give a run that "
                "ended well."
            )
        return found

    def explain(
        self,
        source: LogSource | JobSource,
        language: str = "",
        files: Sequence[ConfigFile] = (),
        good: Templates | None = None,
        telemetry: Snapshot | Taking | None = None,
        outcome: Outcome | None = None,
    ) -> Diagnosis:
        """Answer for one job's output; raises InputError where it cannot be read.

        `good` is what a healthy run of the same job prints; without `files`, configs that lie beside the logs
        are used.
        `telemetry` is a snapshot of the machine, or what takes one once it is known when the job died.
        `outcome` is how
        the job ended, as far as the caller knows.
        """
        return self.explain_report(*self.read(source, language, files, good, outcome), telemetry, outcome)

    def answer(
        self,
        source: LogSource | JobSource,
        language: str = "",
        files: Sequence[ConfigFile] = (),
        good: Templates | None = None,
        telemetry: Snapshot | Taking | None = None,
        outcome: Outcome | None = None,
    ) -> Iterator[Stage]:
        """Answer in stages: the rules' own answer at once, then what the configured model makes of it.

        The last stage is always a Final; without a model, or with one that fails, it is the first answer.
        """
        return self.stages(self.open(source, language, files, good, telemetry, outcome))

    def open(
        self,
        source: LogSource | JobSource,
        language: str = "",
        files: Sequence[ConfigFile] = (),
        good: Templates | None = None,
        telemetry: Snapshot | Taking | None = None,
        outcome: Outcome | None = None,
    ) -> TriageContext:
        """Answer for one job's output as `explain` does, and keep what further answers need."""
        return self.diagnose(*self.read(source, language, files, good, outcome), telemetry, outcome)

    def stages(self, triage_context: TriageContext) -> Iterator[Stage]:
        """Answer an inquiry in stages, as `answer` does."""
        # Imported here: without a model, an answer must not wait for what only a model needs.
        from service.llm import chain

        return chain.answer_in_stages(self, triage_context, self._settings)

    def prompt(self, triage_context: TriageContext) -> str:
        """Give exactly what a model would be sent, for a person to read; nothing is sent."""
        from service.llm import chain

        return chain.render_prompt(self, triage_context, self._settings)

    def conversation(self, triage_context: TriageContext, with_model: bool = True) -> Conversation:
        """Begin a conversation about an inquiry, with the configured model where there is one.

        Raises ModelSetupError.
        """
        from service.llm import conversation, models

        settings = self._settings
        model = models.open_model(settings) if with_model else None
        return conversation.Conversation(
            self, triage_context, self._near, model, settings.model_deadline, settings.model_tokens
        )

    def _near(self, words: str) -> list[str]:
        return [item.owner for item in self.retriever.search(words) if item.kind == "case"]

    def read(
        self,
        source: LogSource | JobSource,
        language: str = "",
        files: Sequence[ConfigFile] = (),
        good: Templates | None = None,
        outcome: Outcome | None = None,
    ) -> tuple[CrashReport, str, Sequence[ConfigFile], dict[str, float]]:
        """Read one job's output; gives what `inquire` takes. Raises InputError where it cannot be read."""
        started = perf_counter()
        report = self._read(source, good, failed=outcome is not None and outcome.end == "failed")
        if not files and isinstance(source, JobSource):
            files = [_config(name, raw) for name, raw in source.configs]
        return report, language, files, {"scan": round(1000 * (perf_counter() - started), 2)}

    def _read(self, source: LogSource | JobSource, good: Templates | None, *, failed: bool) -> CrashReport:
        try:
            return self.reader.read(source, good, failed=failed)
        except EmptyInputError:
            # A job that is killed before its first word has printed nothing; that it failed is known all the
            # same.
            if not failed:
                raise
            return CrashReport(Redactor().clean(printable(source.name)), (), None, (), (), (), Limits(0, 0))

    def explain_report(
        self,
        report: CrashReport,
        language: str = "",
        files: Sequence[ConfigFile] = (),
        timings: dict[str, float] | None = None,
        telemetry: Snapshot | Taking | None = None,
        outcome: Outcome | None = None,
    ) -> Diagnosis:
        """Answer for a log that is read already."""
        return self.diagnose(report, language, files, timings, telemetry, outcome).first

    def diagnose(
        self,
        report: CrashReport,
        language: str = "",
        files: Sequence[ConfigFile] = (),
        timings: dict[str, float] | None = None,
        telemetry: Snapshot | Taking | None = None,
        outcome: Outcome | None = None,
    ) -> TriageContext:
        """Answer for a log that is read already, and keep what further answers need."""
        started = perf_counter()
        retrieval = self.retriever.retrieve(report)
        spent = dict(timings or {}) | {"retrieve": round(1000 * (perf_counter() - started), 2)}
        own = tuple(setting for file in files for setting in _settings(file))
        report = replace(
            report, launches=tuple(f"{Redactor().clean(file.text)}\n{file.name}" for file in files)
        )
        spoken = language_of(report, language or self._settings.lang)
        snapshot = telemetry(report) if callable(telemetry) else telemetry
        answer = compose(report, retrieval, self.library, spoken, own, telemetry=snapshot, outcome=outcome)
        answer = answer.model_copy(update={"timings_ms": spent | answer.timings_ms})
        return TriageContext(
            report,
            retrieval,
            spoken,
            own,
            tuple(files),
            self._patched(answer, files, report, spoken),
            snapshot,
            outcome,
        )

    def decide_cause(self, triage_context: TriageContext, cause: str) -> Diagnosis:
        """Answer an inquiry whose two causes both fit for one of them."""
        answer = compose(
            triage_context.report,
            triage_context.retrieval,
            self.library,
            triage_context.language,
            triage_context.own,
            cause,
            triage_context.telemetry,
            triage_context.outcome,
        )
        answer = answer.model_copy(
            update={"id": triage_context.first.id, "timings_ms": triage_context.first.timings_ms}
        )
        return self._patched(answer, triage_context.files, triage_context.report, triage_context.language)

    def repatch(self, triage_context: TriageContext, answer: Diagnosis) -> Diagnosis:
        """Make the patch anew for an answer whose changes are others than the first one's."""
        made = self._patched(
            answer.model_copy(update={"patch": None}),
            triage_context.files,
            triage_context.report,
            triage_context.language,
        )
        # What could not be patched the first time is told once.
        engine = made.engine.model_copy(update={"dropped": tuple(dict.fromkeys(made.engine.dropped))})
        return made.model_copy(update={"engine": engine})

    def _patched(
        self, answer: Diagnosis, files: Sequence[ConfigFile], report: CrashReport, language: Language
    ) -> Diagnosis:
        files = files or _shown(report)
        if not files:
            return answer
        changes = self._writable_first(answer.changes, files, report)
        diffs, left_out, _ = self.first_step(changes, files, report)
        clean = Redactor().clean
        dropped = reasons.translate_reasons(
            [Dropped(what=clean(item.what), why=clean(item.why)) for item in left_out], language
        )
        engine = answer.engine.model_copy(update={"dropped": (*answer.engine.dropped, *dropped)})
        return answer.model_copy(
            update={"changes": changes, "patch": clean("".join(diffs)) or None, "engine": engine}
        )

    def _writable_first(
        self, changes: Sequence[ProposedChange], files: Sequence[ConfigFile], report: CrashReport
    ) -> tuple[ProposedChange, ...]:
        """Put first, of the changes that are as good as the first one, one that can be written into the files."""
        each = group_steps(changes)
        equals = [step for step in each if step[0].tier == each[0][0].tier and step[0].purpose == "cure"]
        chosen = next((step for step in equals if any(self._diffs(step, files, report)[0])), None)
        ordered = each if chosen is None else [chosen, *(step for step in each if step is not chosen)]
        return tuple(change for step in ordered for change in step)

    def _diffs(
        self, step: Sequence[ProposedChange], files: Sequence[ConfigFile], report: CrashReport
    ) -> tuple[list[str], list[Dropped]]:
        targets = self.patch_targets(step, report)
        return patches.patch_files(files, targets) if targets else ([], [])

    def first_step(
        self, changes: Sequence[ProposedChange], files: Sequence[ConfigFile], report: CrashReport
    ) -> tuple[list[str], list[Dropped], list[PatchTarget]]:
        """Patch the files by the remedy that is shown first: its diffs, what was left out, its targets.

        Never by another one: who takes the patch expects what the answer puts first. What only helps to find
        out is none.
        """
        step = next(iter(group_steps(changes)), [])
        if not step or step[0].purpose != "cure":
            return [], [], []
        diffs, left_out = self._diffs(step, files, report)
        return diffs, left_out, self.patch_targets(step, report) if any(diffs) else []

    def patch_targets(self, changes: Sequence[ProposedChange], report: CrashReport) -> list[PatchTarget]:
        """Give what the job's files must say for the changes that can be written into one."""
        return [target for change in changes if (target := self._target(change, report))]

    def _target(self, change: ProposedChange, report: CrashReport) -> PatchTarget | None:
        """Give what a file must say for a change that was checked; guidance in words is nothing to write."""
        if is_guidance(change.to) or (change.status != "verified" and change.kind != "package"):
            return None
        version = report.version(change.framework)
        spec = self.library.setting(change.framework, change.key, version)
        names = dict.fromkeys((change.key, *self.library.names(change.framework, change.key, version)))
        return PatchTarget(
            change.framework,
            change.kind,
            tuple(names),
            change.to,
            spec.spelled if spec else "",
            change.replaces,
            spec.commands if spec else (),
        )


def group_steps(changes: Sequence[ProposedChange]) -> list[list[ProposedChange]]:
    """Put changes that are one step together: what goes with another, and siblings that get the same value."""
    found: list[list[ProposedChange]] = []
    for change in changes:
        home = next((step for step in found if _belongs(change, step[0])), None)
        if home is None:
            found.append([change])
        else:
            home.append(change)
    return found


def _belongs(change: ProposedChange, first: ProposedChange) -> bool:
    if change.goes_with is not None:
        return change.goes_with == first.key
    same = (change.framework, change.from_case, str(change.to)) == (
        first.framework,
        first.from_case,
        str(first.to),
    )
    parent = first.key.rpartition(".")[0]
    return same and bool(parent) and change.key.rpartition(".")[0] == parent


def _shown(report: CrashReport) -> list[ConfigFile]:
    """Give the command that the log shows as a file, for want of the job's own."""
    line, text = report.command
    return (
        [ConfigFile(f"command-at-line-{report.place(line).line}.sh", text)]
        if line and "[redacted:" not in text
        else []
    )


def _settings(file: ConfigFile) -> list[Setting]:
    clean = Redactor().value
    return [
        Setting(item.key, clean(item.key, item.value), 0, item.spelled)
        for item in launch.from_file(file.text, file.name)
    ]


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(64)


def read_config(path: Path) -> ConfigFile:
    """Read one of the job's own files, bounded."""
    with path.open("rb") as stream:
        return _config(path.name, stream.read(MAX_CONFIG_BYTES))


def _config(name: str, raw: bytes) -> ConfigFile:
    try:
        return ConfigFile(name, raw.decode())
    except UnicodeDecodeError:
        return ConfigFile(name, raw.decode("utf-8", "replace"), exact=False)
