"""`whycrash doctor`: what is installed, found and reachable, each with its mend."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from rich.text import Text

from corpus import library, log_patterns
from corpus.errors import CorpusError
from ingest import default_model, embedder, index, pipeline
from ingest.errors import IngestError
from ingest.extras import advice
from ingest.pipeline import IndexPlaces
from service.schemas.errors import ServiceError
from service.settings import Settings
from ui.cli.codes import EXPLAINED, MISUSE
from ui.cli.console import load_settings, out

_PACKAGES = ("hyperscan", "onnxruntime", "bm25s", "jieba", "sqlalchemy")
# What only some of the faces need: missing, it ends those alone.
_FACES = {
    "fastapi": "the API",
    "gradio": "the chat page",
    "slack-bolt": "Slack",
    "ray": "batches and ingestion on Ray",
    "mcp": "coding assistants",
    "langchain": "a chat model",
    "chromadb": "vectors on a Chroma server",
    "psycopg": "the database in PostgreSQL",
    "sentence-transformers": "other embedding models",
}
_NEEDED_BYTES = 1 << 30


@dataclass(frozen=True)
class Finding:
    """One thing looked at; `mend` is empty where all is well."""

    what: str
    state: str
    mend: str = ""


def run() -> int:
    """Look at everything, print it, and give the exit code."""
    console = out()
    broken = 0
    for finding in findings(load_settings()):
        broken += bool(finding.mend)
        mark, style = ("!", "bold red") if finding.mend else ("✓", "green")
        console.print(Text.assemble((f"{mark} ", style), (f"{finding.what}: ", "bold"), finding.state))
        if finding.mend:
            console.print(Text(f"    {finding.mend}", style="yellow"))
    return MISUSE if broken else EXPLAINED


def findings(settings: Settings) -> Iterator[Finding]:
    """Look at each thing in turn."""
    yield Finding("python", platform.python_version())
    for package in _PACKAGES:
        try:
            yield Finding(package, version(package))
        except PackageNotFoundError:
            yield Finding(package, "not installed", f"`pip install {package}` adds it")
    for package, face in _FACES.items():
        try:
            yield Finding(face, f"{package} {version(package)}")
        except PackageNotFoundError:
            yield Finding(face, f"not to be had. {advice(package)}")
    yield _guarded("corpus", _corpus)
    yield _guarded("embedding model", lambda: _model(settings))
    yield _guarded("index", lambda: _index(settings))
    yield _guarded("database", lambda: _database(settings))
    if settings.chroma_url:
        yield _guarded("chroma server", lambda: _chroma(settings))
    place = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    mend = f"free some space or set WHYCRASH_HOME elsewhere; {place} is full" if free < _NEEDED_BYTES else ""
    disk = Finding("disk", f"{free / 2**30:.1f} GiB free at {place}", mend)
    yield disk
    yield _guarded("network", lambda: _network(settings))


def _database(settings: Settings) -> Finding:
    """Open it, where there is one: a look must make nothing."""
    # Imported here: SQLAlchemy is slow to load, and the checks above are to be seen first.
    from service.persistence.database import NAME
    from service.persistence.store import Store

    if not settings.database.get_secret_value() and not (settings.home / NAME).exists():
        return Finding("database", f"none yet; `whycrash serve` makes {settings.home / NAME}")
    with Store.open(settings) as store:
        wrong = store.check()
        return Finding("database", store.place if not wrong else "cannot be used", wrong)


def _chroma(settings: Settings) -> Finding:
    name = settings.embedding_model or embedder.DEFAULT_NAME
    found = pipeline.opened(settings.home, name, IndexPlaces(settings.chroma_url))
    note = found.note if found else ""
    return Finding("chroma server", settings.chroma_url if not note else "gives no answer", note)


def _guarded(what: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except (CorpusError, IngestError, ServiceError, OSError) as error:
        return Finding(what, "cannot be used", str(error))


def _network(settings: Settings) -> Finding:
    """Say who is asked over the network; nobody without a model. The model is set up, not called."""
    others = [f"search vectors go to {settings.chroma_url}"] if settings.chroma_url else []
    if settings.slack_bot_token.get_secret_value():
        others.append("redacted answers go to Slack")
    if not settings.model:
        return Finding("network", "; ".join(others) or "not used: every answer is made on this machine")
    # Imported here: it loads what only a model needs.
    from service.llm.models import open_models
    from service.llm.spending import open_spending

    open_models(settings)
    open_spending(settings)
    told = [f"redacted parts of a log go to {settings.model} at {settings.model_base_url or 'its provider'}"]
    if settings.model_fallback:
        place = settings.model_fallback_base_url or "its provider"
        told.append(f"where that fails, to {settings.model_fallback} at {place}")
    return Finding("network", "; ".join([*told, *others]))


def _corpus() -> Finding:
    loaded, table = library.load(), log_patterns.load()
    return Finding(
        "corpus",
        f"{len(loaded.cases)} cases, {len(loaded.causes)} causes, {len(loaded.specs)} settings, "
        f"{len(table.rows)} patterns",
    )


def _model(settings: Settings) -> Finding:
    name = settings.embedding_model or embedder.DEFAULT_NAME
    if name == embedder.HASHED:
        return Finding("embedding model", "hashed words (no model)")
    if not settings.embedding_model:
        default_model.folder()
    ready = embedder.exported(settings.embedding_model, settings.home)
    return Finding(
        "embedding model", f"{name}, {'exported for onnxruntime' if ready else 'exported on first use'}"
    )


def _index(settings: Settings) -> Finding:
    found = index.current(settings.home)
    if found is None:
        return Finding(
            "index", f"none yet under {settings.home}; built on first use, or now by `whycrash ingest`"
        )
    name = settings.embedding_model or embedder.DEFAULT_NAME
    fresh = (
        "up to date"
        if pipeline.is_current(found, name)
        else "of another corpus or model; rebuilt on next use"
    )
    return Finding("index", f"{found.manifest.documents} documents, {fresh}")
