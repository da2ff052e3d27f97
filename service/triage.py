"""Triage one log: read, retrieve, compose, patch. The one place where the parts meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter

from corpus import library
from corpus.library import Library
from ingest import embedder, index, pipeline
from ingest.embedder import Embedder
from ingest.index import Index
from ingest.logs import launch, patterns
from ingest.logs.launch import Setting
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from ingest.logs.sources import LogSource
from ingest.redact import Redactor
from service.diagnosis import Diagnosis, Dropped, Engine, ProposedChange
from service.patching import script
from service.reasoning.composer import compose, language_of
from service.retrieval import Retriever
from service.settings import Settings

Report = Callable[[str, int, int], None]

MAX_CONFIG_BYTES = 1 << 20
SCRIPT_SUFFIXES = frozenset({".sh", ".bash", ".sbatch", ".job", ".slurm", ".txt", ""})


def silent(stage: str, done: int, total: int) -> None:
    """Take progress and show nothing."""


@dataclass(frozen=True)
class ConfigFile:
    """One of the job's own files; `exact` is False where its bytes are no UTF-8, so that no patch would apply."""

    name: str
    text: str
    exact: bool = True


class Triage:
    """Holds what triages share: corpus, patterns, index, model. Opened once, used for many logs."""

    def __init__(self, settings: Settings, report: Report = silent) -> None:
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
        return Reader(patterns.load(cache=cache), cache)

    @cached_property
    def embedder(self) -> Embedder:
        """The embedding model; exported on first use."""
        return embedder.open_embedder(self._settings.embedding_model, self._settings.home)

    @cached_property
    def index(self) -> Index:
        """The search index; built first where there is none or it is of another corpus or model."""
        found = index.current(self._settings.home)
        name = self._settings.embedding_model or embedder.DEFAULT_NAME
        if found is not None and pipeline.is_current(found, name):
            return found
        return pipeline.refresh(self._settings.home, self.embedder, self._report).index

    @cached_property
    def retriever(self) -> Retriever:
        """The search over all of it."""
        return Retriever(self.library, self.index, self.embedder)

    def explain(self, source: LogSource, language: str = "", files: Sequence[ConfigFile] = ()) -> Diagnosis:
        """Answer for one log; raises InputError where the log cannot be read."""
        started = perf_counter()
        report = self.reader.read(source)
        scanned = perf_counter()
        return self.explain_report(report, language, files, {"scan": round(1000 * (scanned - started), 2)})

    def explain_report(
        self, report: CrashReport, language: str = "", files: Sequence[ConfigFile] = (), timings: dict[str, float] | None = None
    ) -> Diagnosis:
        """Answer for a log that is read already."""
        started = perf_counter()
        retrieval = self.retriever.retrieve(report)
        spent = dict(timings or {}) | {"retrieve": round(1000 * (perf_counter() - started), 2)}
        own = [setting for file in files for setting in _settings(file)]
        answer = compose(report, retrieval, self.library, language_of(report, language or self._settings.lang), own)
        answer = answer.model_copy(update={"timings_ms": spent | answer.timings_ms})
        return _patched(answer, files)


def _settings(file: ConfigFile) -> list[Setting]:
    clean = Redactor().value
    return [Setting(item.key, clean(item.key, item.value), 0, item.spelled) for item in launch.from_file(file.text)]


def read_config(path: Path) -> ConfigFile:
    """Read one of the job's own files, bounded."""
    with path.open("rb") as stream:
        raw = stream.read(MAX_CONFIG_BYTES)
    try:
        return ConfigFile(path.name, raw.decode())
    except UnicodeDecodeError:
        return ConfigFile(path.name, raw.decode("utf-8", "replace"), exact=False)


def _patched(answer: Diagnosis, files: Sequence[ConfigFile]) -> Diagnosis:
    verified: list[ProposedChange] = [change for change in answer.changes if change.status == "verified"]
    if not files or not verified:
        return answer
    clean = Redactor().clean
    diffs: list[str] = []
    left_out: list[Dropped] = []
    for file in files:
        if Path(file.name).suffix not in SCRIPT_SUFFIXES:
            left_out.append(Dropped(what=f"patch of {file.name}", why="only launch scripts are patched so far"))
            continue
        if not file.exact:
            left_out.append(Dropped(what=f"patch of {file.name}", why="the file is no UTF-8 text"))
            continue
        result = script.patch(file.text, file.name, verified)
        diffs.append(clean(result.diff))
        left_out.extend(Dropped(what=clean(item.what), why=clean(item.why)) for item in result.left_out)
    engine = Engine(name=answer.engine.name, dropped=(*answer.engine.dropped, *left_out))
    return answer.model_copy(update={"patch": "".join(diffs) or None, "engine": engine})
