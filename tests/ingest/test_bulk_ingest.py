"""Taking in many logs: the same as one by one, and through everything that may happen meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingest import bulk_ingest, ingest_tasks, pipeline
from ingest.bulk_ingest import BulkReader
from ingest.embedder import HashEmbedder
from ingest.errors import SearchIndexError
from ingest.ingest_tasks import IngestedContent, IngestTask
from ingest.logs.reader import Reader
from ingest.stored_parts import RowParts
from tests.factories import OOM, STRANGE, silent, steps, traceback
from tests.pipes import holders, reader_of
from tests.waiting import until

# Ray's own packages warn where they are imported.
RAY_WARNINGS = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)
KINDS = (
    lambda number: traceback(OOM.replace("2.00", f"{number}.25")),
    lambda number: steps(1, 2, number) + traceback(STRANGE),
    lambda number: traceback(f"KeyError: 'shard-{number}'", function=f"load_{number % 3}"),
    lambda number: steps(number, number + 1),
    lambda _: "",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, pattern_cache: Path) -> Path:
    """A home whose patterns are compiled already."""
    return compiled_home(tmp_path_factory.mktemp("home"), pattern_cache)


def compiled_home(folder: Path, pattern_cache: Path) -> Path:
    """Give a folder the compiled patterns: each process of a pool would take ten seconds to compile them."""
    folder.mkdir(exist_ok=True)
    (folder / "cache").symlink_to(pattern_cache)
    return folder


def collection(folder: Path, count: int) -> list[IngestTask]:
    """Write logs of several kinds, some without a failure, some empty, and give them as ingest tasks."""
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"job-{number:04d}.log").write_text(KINDS[number % len(KINDS)](number))
    return [bulk_ingest.sized(IngestTask(str(path), "report")) for path in sorted(folder.iterdir())]


def pool(home: Path, *, with_ray: bool = False) -> BulkReader:
    """Make a pool of two workers."""
    return BulkReader(home, workers=2, with_ray=with_ray)


@RAY_WARNINGS
@pytest.mark.parametrize(
    "with_ray", [False, pytest.param(True, marks=pytest.mark.long)], ids=["processes", "ray"]
)
def test_a_pool_gives_what_one_by_one_does(
    tmp_path: Path, home: Path, reader: Reader, with_ray: bool
) -> None:
    """The same documents and reasons in the same order, whoever read them."""
    tasks = collection(tmp_path / "logs", 60)
    told: list[tuple[str, int, int]] = []
    made = pool(home, with_ray=with_ray)
    assert made.ingested(tasks, lambda *row: told.append(row)) == [
        ingest_tasks.ingest_file(ingest_task, reader) for ingest_task in tasks
    ]
    assert [done for stage, done, _ in told if stage == "files"] == list(range(1, 61))
    assert {stage for stage, _, _ in told} == {"files", "crashes", "megabytes"}
    made.finish()


@pytest.mark.long
def test_many_logs_make_the_same_index_as_few(
    tmp_path: Path, reader: Reader, pattern_cache: Path, small_corpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether there are enough for a pool does not show in the documents."""
    collection(tmp_path / "logs", 40)

    def indexed(home: Path) -> pipeline.IngestOutcome:
        return pipeline.ingest(
            home, HashEmbedder(), silent, notes=[], logs=[tmp_path / "logs"], reader=reader
        )

    few = indexed(tmp_path / "few")
    monkeypatch.setattr(bulk_ingest, "FROM", 10)
    home = compiled_home(tmp_path / "pooled", pattern_cache)
    pooled = indexed(home)
    assert pooled.index.documents == few.index.documents
    assert (pooled.added, pooled.skipped) == (few.added, few.skipped)
    again = indexed(home)
    assert (again.unchanged, again.rebuilt) == (40, False)
    assert not list((tmp_path / "pooled/index/parts").rglob("*.jsonl"))


@pytest.mark.long
def test_a_run_that_is_killed_goes_on_where_it_stopped(tmp_path: Path, home: Path, reader: Reader) -> None:
    """`kill -9` in the middle: what was read is not read again, and the end is the same."""
    tasks = collection(tmp_path / "logs", 30)
    wanted = [ingest_tasks.ingest_file(ingest_task, reader) for ingest_task in tasks]
    code = (
        "import os, signal, sys; from pathlib import Path; from ingest import bulk_ingest, stored_parts\n"
        "from ingest.ingest_tasks import IngestTask as Task\n"
        # Of a part that is written since it is due, however slow the machine is, nothing is to be seen here.
        "stored_parts.ROWS, stored_parts.SECONDS = 5, 1e9\n"
        "paths = sorted(Path(sys.argv[2]).iterdir())\n"
        "tasks = [bulk_ingest.sized(Task(str(path), 'report')) for path in paths]\n"
        "stop = lambda stage, done, total: done == 18 and stage == 'files' and os.kill(os.getpid(), "
        "signal.SIGKILL)\n"
        "bulk_ingest.BulkReader(Path(sys.argv[1]), workers=2, with_ray=False).ingested(tasks, stop)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(home), str(tmp_path / "logs")], check=False)
    assert done.returncode == -signal.SIGKILL
    # What another run reads anew would now be something else: the files keep their stamps and lose their
    # text.
    kept = {row["intake"]["file"] for row in RowParts(home, bulk_ingest.parts_key()).load()}
    assert len(kept) == 15
    for path in map(Path, kept):
        facts = path.stat()
        path.write_bytes(b" " * facts.st_size)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    made = pool(home)
    assert made.ingested(tasks, silent) == wanted
    made.finish()


def test_a_log_that_changed_since_is_read_again(tmp_path: Path, home: Path) -> None:
    """So is one whose label did."""
    tasks = collection(tmp_path / "logs", 6)
    first = pool(home).ingested(tasks, silent)
    Path(tasks[0].file).write_text(traceback("RuntimeError: another one"))
    (tmp_path / "logs/job-0001.yaml").write_text("cause: gpu-oom-rollout\n")
    made = pool(home)
    second = made.ingested(tasks, silent)
    made.finish()
    assert [one == other for one, other in zip(first, second, strict=True)] == [
        False,
        False,
        True,
        True,
        True,
        True,
    ]


def test_a_part_that_cannot_be_read_counts_for_nothing(tmp_path: Path) -> None:
    """Nor does one of other patterns."""
    rows = RowParts(tmp_path, "key")
    rows.add({"a": 1})
    rows.flush()
    (part,) = (tmp_path / "index/parts").rglob("*.jsonl")
    part.with_name("torn.jsonl").write_text('{"a": 2')
    assert list(RowParts(tmp_path, "key").load()) == [{"a": 1}]
    assert list(RowParts(tmp_path, "other").load()) == []
    rows.clear()
    assert list(RowParts(tmp_path, "key").load()) == []


def test_two_runs_for_one_home_do_not_mix(tmp_path: Path) -> None:
    """The second says what to do; it takes nothing of the first one's away."""
    first, second = RowParts(tmp_path, "key"), RowParts(tmp_path, "key")
    with first.alone():
        first.add({"a": 1})
        first.flush()
        with (
            pytest.raises(SearchIndexError, match=rf"Another run takes logs in under {tmp_path}; wait"),
            second.alone(),
        ):
            pass
        second.clear()
        assert list(first.load()) == [{"a": 1}]
    second.clear()
    assert list(first.load()) == []


@pytest.fixture
def stuck(tmp_path: Path) -> IngestTask:
    """A log that never ends to be read: a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "stuck.log")
    return IngestTask(str(tmp_path / "stuck.log"), "report")


def kill_reader(path: Path, instead: str | None = None) -> None:
    """Kill the process that reads a pipe, once it does; `instead` is then the log in the pipe's place."""
    process, handle = reader_of(path)
    if instead is not None:
        path.with_suffix(".new").write_text(instead)
        path.with_suffix(".new").replace(path)
    os.kill(process, signal.SIGKILL)
    # While it is not gone, it would be taken for the reader that comes after it.
    until(lambda: process not in holders(path), "the killed reader is gone")
    os.close(handle)


def alone(home: Path, **fields: float) -> BulkReader:
    """Make a pool of one worker."""
    return BulkReader(home, workers=1, with_ray=False, **fields)  # type: ignore[arg-type]


@pytest.mark.long
def test_a_log_that_hangs_its_reader_is_left_out(tmp_path: Path, home: Path, stuck: IngestTask) -> None:
    """After a time that goes by its size; the reader after it is a new one."""
    (tmp_path / "good.log").write_text(traceback(OOM))
    reader = alone(home, log_timeout=2.0)
    left_out, taken_in = reader.ingested([stuck, IngestTask(str(tmp_path / "good.log"), "report")], silent)
    reader.finish()
    assert left_out == IngestedContent(
        stuck.file, reason=f"{stuck.file}: reading it took longer than 2 seconds"
    )
    assert len(taken_in.documents) == 1


@contextmanager
def being_read(reader: BulkReader, task: IngestTask) -> Iterator[list[IngestedContent]]:
    """Have a log read meanwhile; gives what comes of it in the end."""
    contents: list[IngestedContent] = []
    thread = threading.Thread(target=lambda: contents.extend(reader.ingested([task], silent)))
    thread.start()
    yield contents
    thread.join()
    reader.finish()


@pytest.mark.long
def test_a_log_that_ends_its_reader_twice_is_left_out(home: Path, stuck: IngestTask) -> None:
    """The reason tells how the process ended."""
    with being_read(alone(home), stuck) as contents:
        kill_reader(Path(stuck.file))
        kill_reader(Path(stuck.file))
    assert contents == [
        IngestedContent(stuck.file, reason=f"{stuck.file}: the process that read it ended (signal 9)")
    ]


@pytest.mark.long
def test_a_reader_that_is_killed_once_is_started_again(home: Path, stuck: IngestTask) -> None:
    """The log it had was not at fault."""
    with being_read(alone(home), stuck) as contents:
        kill_reader(Path(stuck.file), traceback(OOM))
    assert [len(content.documents) for content in contents] == [1]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, home: Path) -> None:
    """It is no part of what was taken in, so that the next run tries again."""
    reader = alone(home)
    (made,) = reader.ingested([IngestTask(str(tmp_path / "gone.log"), "report")], silent)
    reader.finish()
    assert (made.content, made.documents, "No such file" in made.reason) == ("", (), True)
