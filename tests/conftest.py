"""What all tests share: no network, a home of their own, and one compiled table of patterns."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path

import hypothesis
import pytest
from pytest_socket import socket_allow_hosts
from xdist.remote import Producer

from corpus import log_patterns
from corpus.log_patterns import PatternTable
from ingest import pipeline
from ingest.documents import Document
from ingest.logs.inputs.sources import LogSource
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from ingest.redaction import prefilter
from service.settings import Settings
from tests import machine, warm
from tests.factories import ReadLog
from tests.order import TESTS, FamilyScheduling, longest_first
from tests.ui import fork_server

# Made examples are the same in each run, and none fails because the machine was busy.
hypothesis.settings.register_profile("tests", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("tests")

_HOME = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests a home, and let processes that they start be interrupted, also in a shell's background,
    which ignores ctrl-C.
    """
    if not hasattr(config, "workerinput"):  # a worker of xdist has its surroundings from who started it
        config.stash[_HOME] = machine.move_in()
    # A worker holds millions of objects of knowledge: to walk through them often is a tenth of its time.
    gc.set_threshold(100_000, 20, 20)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run one file more than there are cores: much of the time goes by waiting for a clock or a browser."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FamilyScheduling:
    """Give files that share a server, or the code's syntax trees, to one worker."""
    return FamilyScheduling(config, log)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the files of tests where nobody has, each worker its share: else each of them compiles all."""
    config = session.config
    is_whole = [Path(name).name for name in config.args] == config.getini("testpaths")
    if is_whole and hasattr(config, "workerinput") and not sys.dont_write_bytecode:
        number, count = (
            int(config.workerinput["workerid"].removeprefix("gw")),
            config.workerinput["workercount"],
        )
        for path in sorted(TESTS.rglob("test_*.py"))[number::count]:
            # What is wrong with a file is told where it is collected.
            with suppress(Exception, pytest.skip.Exception):
                import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the files that take longest begun first."""
    items[:] = longest_first(items)


def pytest_collection_finish() -> None:
    """Take what was imported and collected out of the garbage collector's sight: none of it is garbage."""
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a test wrote into a user's home."""
    if _HOME in session.config.stash and (left := machine.left_behind(session.config.stash[_HOME])):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        raise pytest.UsageError(f"a test left in the home of the user: {', '.join(left)}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Delete the home."""
    if _HOME in config.stash:
        machine.move_out(config.stash[_HOME])


@pytest.fixture(autouse=True)
def _loopback_only() -> None:
    """Let no test reach beyond this machine; pytest-socket lifts it after each test."""
    socket_allow_hosts(["127.0.0.1", "::1"], allow_unix_socket=True)


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep what finds secrets compiled, for all workers and for the processes that fork commands."""
    folder = warm.shared_folder(tmp_path_factory) / "warm" / "cache"
    prefilter.save_prefilter(folder)
    os.environ[fork_server.COMPILED] = str(folder)
    return folder


@pytest.fixture(scope="session")
def table() -> PatternTable:
    """The real patterns."""
    return log_patterns.load()


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Read with the real patterns, which are compiled once for all workers."""
    return warm.reader_at(warm.shared_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def pattern_cache(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the real patterns lie compiled; not to be written to."""
    return warm.shared_folder(tmp_path_factory) / "warm" / "cache"


@pytest.fixture(scope="session")
def read(reader: Reader) -> ReadLog:
    """Read a log that is at hand with the real patterns."""

    def from_log(log: str | bytes) -> CrashReport:
        raw = log.encode() if isinstance(log, str) else log
        return reader.read(LogSource("log", io.BytesIO(raw)))

    return from_log


@pytest.fixture
def small_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Index a few cases only: the whole corpus takes seconds for each home."""
    few = _few_cases()
    monkeypatch.setattr(pipeline, "cases", lambda _cache: iter(few))


@cache
def _few_cases() -> list[Document]:
    return list(islice(pipeline.cases(), 60))


@pytest.fixture
def make_settings(tmp_path: Path) -> Callable[..., Settings]:
    """Make settings with a home of this test alone and the embedder that needs no model."""

    def make(**fields: str) -> Settings:
        return Settings(home=tmp_path / "home", **{"embedding_model": "hash", **fields})

    return make


@pytest.fixture
def home(make_settings: Callable[..., Settings]) -> Path:
    """A folder for the index that does not exist yet."""
    return make_settings().home
