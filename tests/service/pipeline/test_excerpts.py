"""Excerpts: the lines that are kept have their numbers, and a log put together again has each at its own."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.logs import line_ranges
from ingest.logs.inputs import jobs
from ingest.logs.inputs.sources import LogSource, from_text
from ingest.logs.reader import Reader
from service.pipeline import excerpts
from service.schemas.records import Excerpt, LineRange

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 79.10 GiB of which 1.00 GiB is free."
)
STEP = "words that say nothing {}"


def kept(reader: Reader, path: Path) -> Excerpt:
    """Read a log and keep what is kept of it."""
    return excerpts.make_excerpt(reader.read(jobs.open_job(path)), jobs.open_job(path))


def numbered(excerpt: Excerpt) -> dict[int, str]:
    """Give all lines by number."""
    return {
        stretch.begin + place: text
        for stretch in excerpt.stretches
        for place, text in enumerate(stretch.lines)
    }


@given(
    text=st.lists(st.text("ab\r\t ", max_size=6), min_size=1, max_size=30).map("\n".join),
    cuts=st.lists(st.integers(1, 7), min_size=1, max_size=20),
    spans=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 5)), max_size=4),
)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_that_lines_are_those_of_a_plain_split_however_the_bytes_come(
    text: str, cuts: list[int], spans: list[tuple[int, int]]
) -> None:
    raw = text.encode()
    wanted = line_ranges.merge_ranges((begin, begin + more) for begin, more in spans)
    chunks, place = [], 0
    for cut in cuts * (len(raw) + 1):
        chunks.append(raw[place : place + cut])
        place += cut
        if place >= len(raw):
            break
    plain = raw.split(b"\n")
    plain = plain[:-1] if plain[-1] == b"" else plain
    numbers = {number for begin, end in wanted for number in range(begin, end + 1)}
    expected = {number: line for number, line in enumerate(plain, 1) if number in numbers}
    assert line_ranges.read_lines(chunks, wanted) == expected


def test_that_a_short_log_is_kept_whole(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"start\n\x1b[31m{OOM}\x1b[0m\nend\n", encoding="utf-8")
    excerpt = kept(reader, path)
    assert excerpt.whole
    assert numbered(excerpt) == {1: "start", 2: OOM, 3: "end"}


def test_that_of_a_long_log_the_root_its_surroundings_and_the_end_are_kept(
    reader: Reader, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    rows = [STEP.format(number) for number in range(1, 30_001)]
    rows[9_999] = OOM
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    excerpt = kept(reader, path)
    found = numbered(excerpt)
    assert not excerpt.whole
    assert found[10_000] == OOM
    assert found[9_990] == STEP.format(9_990)
    assert found[30_000] == STEP.format(30_000)
    assert len(found) <= excerpts.MAX_LINES
    assert all(found[number] == rows[number - 1] for number in found)


def test_that_a_log_put_together_again_has_the_same_root_at_the_same_line(
    reader: Reader, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    rows = [STEP.format(number) for number in range(1, 30_001)]
    rows[20_000] = OOM
    path.write_text("\n".join(rows), encoding="utf-8")
    again = reader.read(excerpts.restore_excerpt(kept(reader, path), "log"))
    assert again.root is not None
    assert again.root.line == 20_001
    assert again.source == "log"


def test_that_the_files_of_a_job_stay_apart(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("fine\n" * 3, encoding="utf-8")
    (tmp_path / "rank1.log").write_text(f"fine\n{OOM}\n", encoding="utf-8")
    excerpt = kept(reader, tmp_path)
    assert [(stretch.file, stretch.begin) for stretch in excerpt.stretches] == [
        ("rank0.log", 1),
        ("rank1.log", 1),
    ]
    again = reader.read(excerpts.restore_excerpt(excerpt, "job"))
    assert again.root is not None
    assert str(again.place(again.root.line)) == "rank1.log:L2"


def test_that_secrets_are_masked_in_what_is_kept(reader: Reader, tmp_path: Path) -> None:
    secret = "hf_" + "aB3" * 12
    path = tmp_path / "log"
    path.write_text(f"login with {secret}\n{OOM}\n", encoding="utf-8")
    assert secret not in kept(reader, path).model_dump_json()


def test_that_a_secret_over_the_rim_of_what_is_kept_is_masked(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "log"
    rows = [STEP.format(number) for number in range(1, 30_001)]
    rows[9_999] = OOM
    first = 10_000 - excerpts.AROUND_ROOT[0]
    body = "aB3+" * 16
    rows[first - 3 : first + 1] = [
        "-----BEGIN RSA PRIVATE KEY-----",
        body,
        body,
        "-----END RSA PRIVATE KEY-----",
    ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    excerpt = kept(reader, path)
    assert min(numbered(excerpt)) >= first
    assert "aB3+aB3+" not in excerpt.model_dump_json()


def test_that_a_secret_across_the_end_of_what_is_shown_of_a_row_is_masked(
    reader: Reader, tmp_path: Path
) -> None:
    """Masked first, then cut: half a secret tells nobody that it is one.

    And masks before it do not let it be seen either.
    """
    path = tmp_path / "log"
    secret = ".".join(("correct", "horse", "9", "battery"))
    ends = (
        line_ranges.WIDEST,
        6000,
        8192,
        4 * line_ranges.WIDEST,
        4 * line_ranges.WIDEST + line_ranges.BEYOND,
    )
    leads = ("", f"--api-token {'aB3' * 90}")
    rows = [
        f"{lead} {'x' * (end - len(lead) - back)} --db-password {secret}"
        for lead in leads
        for end in ends
        for back in (18, 22, 30)
    ]
    path.write_text("\n".join([*rows, OOM]) + "\n", encoding="utf-8")
    shown = kept(reader, path).model_dump_json()
    report = reader.read(jobs.open_job(path))
    assert "correct" not in shown
    assert "correct" not in repr((report.surroundings, report.tail, report.events))


def test_that_an_endless_line_is_cut() -> None:
    found = line_ranges.read_lines([b"x" * 100_000 for _ in range(50)], [(1, 1)])
    assert len(found[1]) <= 4 * line_ranges.WIDEST + line_ranges.BEYOND


def test_that_direction_marks_and_carriage_returns_do_not_reach_a_page(
    reader: Reader, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_bytes(f"10%\r50%\r100%\nname ‮txt.exe\n{OOM}\n".encode())
    assert numbered(kept(reader, path))[1] == "100%"
    assert "‮" not in numbered(kept(reader, path))[2]


def test_that_a_source_that_is_gone_leaves_what_was_read(reader: Reader) -> None:
    report = reader.read(from_text(f"{OOM}\n"))
    gone = LogSource("log", io.BytesIO(b""))
    assert not excerpts.make_excerpt(report, jobs.JobSource("log", single=gone)).whole


def test_that_the_gaps_of_many_files_are_not_in_memory_at_once() -> None:
    stretches = tuple(
        LineRange(file=f"rank{number}.log", begin=2_000_000, lines=("RuntimeError: boom",))
        for number in range(50)
    )
    tracemalloc.start()
    job = excerpts.restore_excerpt(Excerpt(stretches=stretches), "job")
    lines = [sum(chunk.count(b"\n") for chunk in part.chunks()) for part in job.parts()]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lines == [2_000_000] * 50
    assert most < 20 << 20
