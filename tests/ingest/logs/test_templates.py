"""A healthy run of the same job: what it prints too is no cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import BrokenTemplatesError
from ingest.logs import templates
from ingest.logs.inputs import jobs, sources
from ingest.logs.log_reading import NOVEL
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from ingest.logs.templates import FORMAT, Templates, checksum, checksums, is_saved
from tests.factories import OOM, RAY, STAMP, STRANGE, prefixed, steps, traceback
from tests.tables import each_row

Against = Callable[[str, str], CrashReport]
DISK = "OSError: [Errno 28] No space left on device\n"
REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused by 10.0.0.3:29500\n"


@pytest.fixture
def against(reader: Reader) -> Against:
    """Read a log against that of a healthy run."""

    def read(log: str, good: str) -> CrashReport:
        return reader.read(sources.from_text(log), reader.templates(sources.from_text(good)))

    return read


@each_row(
    ("first", "second", "same"),
    [
        (b"step 1 of 20", b"step 19 of 2000", True),
        (b"  row", b"row\r", True),
        (b"at 10:00:01 done", b"at 23:59:59 done", True),
        (b"saving shard a", b"saving shard b", False),
        (b"", b"   ", True),
        (b"100%", b"7%", True),
        (b"Step", b"step", False),
    ],
)
def test_a_template_is_a_line_without_its_digits(first: bytes, second: bytes, same: bool) -> None:
    """Counts, clocks and the space around do not matter; words do."""
    assert (checksum(first) == checksum(second)) is same


@given(rows=st.lists(st.text(st.sampled_from("ab 01\t\r日"), max_size=8), max_size=20))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_each_line_of_a_log_has_its_template(rows: list[str]) -> None:
    """Taken together or line by line, the checksums are the same."""
    data = "\n".join(rows).encode()
    assert set(checksums(data)) == {checksum(row) for row in data.split(b"\n")}


@given(
    numbers=st.frozensets(st.integers(0, 2**32 - 1), max_size=20),
    events=st.frozensets(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=9),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, numbers: frozenset[int], events: frozenset[tuple[str, str]]
) -> None:
    """The same templates come back, and their file is told from a log by its first bytes."""
    path, made = tmp_path_factory.mktemp("saved") / "good.json", Templates(numbers, events)
    made.save(path)
    assert templates.load(path) == made
    assert is_saved(path.read_bytes()[:64])


@each_row("head", [b"", b"{}", b'{"format": "other"}', b"step 1", b"\x1f\x8b\x08"])
def test_a_log_is_no_saved_file(head: bytes) -> None:
    """A healthy run's output is read as a log."""
    assert not is_saved(head)


@each_row(
    ("content", "told"),
    [
        ({"format": "whycrash.templates/2", "lines": [], "events": []}, f"this version reads {FORMAT}"),
        ({"format": FORMAT}, "no templates"),
        ({"format": FORMAT, "lines": ["x"], "events": []}, "no templates"),
        ({"format": FORMAT, "lines": [], "events": [["one"]]}, "no templates"),
        ({"format": FORMAT, "lines": 3, "events": []}, "no templates"),
        ([1, 2], "no templates"),
        ('{"format": "whycrash.templates/1", "lines": [1', "no templates"),
        (b"\xff\xfe", "no templates"),
        (None, "no templates"),
    ],
)
def test_a_file_that_holds_no_templates_is_told(content: object, told: str, tmp_path: Path) -> None:
    """Another version, a cut file or no file at all ends with a sentence that names it."""
    path = tmp_path / "good.json"
    if content is not None:
        raw = (
            content
            if isinstance(content, bytes)
            else (content if isinstance(content, str) else json.dumps(content)).encode()
        )
        path.write_bytes(raw)
    with pytest.raises(BrokenTemplatesError) as raised:
        templates.load(path)
    assert told in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "good",
    [REFUSED, REFUSED.replace("10.0.0.3:29500", "10.0.9.77:31000"), steps(1) + REFUSED * 3],
    ids=["same", "other-node", "amid-progress"],
)
def test_an_error_that_a_healthy_run_has_too_is_not_accused(against: Against, good: str) -> None:
    """Without the healthy run it would stand; with it, only what is new does."""
    log = REFUSED + DISK
    alone = against(log, "nothing\n")
    assert [event.usual for event in alone.events] == [False, False]
    assert "recovered" not in [event.role for event in alone.events]
    report = against(log, good)
    assert report.root is not None
    assert report.root.cause == "disk-full"
    assert [(event.line, event.usual, event.role) for event in report.events] == [
        (1, True, "recovered"),
        (2, False, "root"),
    ]


@pytest.mark.parametrize(
    "message", [OOM, STRANGE, "odd.Kind: of trouble"], ids=["known", "built-in", "unknown"]
)
def test_a_run_that_only_fails_as_a_healthy_one_has_no_root(against: Against, message: str) -> None:
    """A traceback that the healthy run survived is none of the failure."""
    report = against(steps(1) + traceback(message), traceback(message) + steps(1, 2, 3))
    assert (report.root, [event.usual for event in report.events]) == (None, [True])


def test_the_same_kind_with_another_message_stands(against: Against) -> None:
    """A healthy run that misses one key says nothing of another."""
    report = against(traceback("KeyError: 'reward'"), traceback("KeyError: 'cache'") + steps(1, 2, 3))
    assert report.root is not None
    assert not report.root.usual


@pytest.mark.parametrize("prefix", ["", RAY, STAMP])
def test_lines_that_the_healthy_run_has_none_like_are_novel(against: Against, prefix: str) -> None:
    """They come with their numbers, the last ones of the log, as they may be shown."""
    good = prefixed(prefix, "loading\n" + steps(1, 2, 3) + "saving to disk\n")
    bad = prefixed(
        prefix, "loading\n" + steps(1, 2) + "waiting for the gateway\n" + steps(3) + "the gateway is gone\n"
    )
    report = against(bad, good)
    assert [(line, text.removeprefix(prefix)) for line, text in report.novel] == [
        (4, "waiting for the gateway"),
        (6, "the gateway is gone"),
    ]


def test_of_many_novel_lines_the_last_are_kept(against: Against) -> None:
    """An answer shows a few."""
    report = against(
        "".join(f"{letter} is odd\n" for letter in "abcdefghijklmnopqrstuvwxyz"), "all is well\n"
    )
    assert [line for line, _ in report.novel] == list(range(27 - NOVEL, 27))


def test_without_a_healthy_run_nothing_is_novel(reader: Reader) -> None:
    """There is nothing to compare with."""
    report = reader.read(sources.from_text("a strange line\n" + DISK))
    assert report.novel == ()


def test_a_secret_in_a_novel_line_is_masked(against: Against) -> None:
    """They are shown in the answer."""
    token = "hf_" + "Ab" * 17
    report = against(f"using {token}\n" + DISK, "all is well\n")
    assert [line for line, _ in report.novel] == [1, 2]
    assert token not in repr(report)


def test_templates_are_of_all_files_of_a_healthy_run(reader: Reader, tmp_path: Path) -> None:
    """A folder is one run."""
    for name, text in {
        "rank0.log": "only zero says this\n" + REFUSED,
        "rank1.log": "only one says that\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    good = reader.templates(jobs.open_job(tmp_path))
    assert [
        good.has(row) for row in (b"only zero says this", b"only one says that", b"nobody says this")
    ] == [True, True, False]
    assert len(good.events) == 1
