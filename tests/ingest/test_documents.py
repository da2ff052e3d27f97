"""Documents: the pieces that are searched."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from corpus.library import parse_case
from ingest.documents import CHUNK_CHARACTERS, frame_path, of_case, of_report, pieces
from tests.factories import OOM, RAY, ReadLog, case_file, document, prefixed, steps, traceback
from tests.tables import each_row


@given(text=st.text(alphabet="ab。. \n", max_size=400), limit=st.integers(5, 60))
def test_pieces_hold_all_words_within_their_bound(text: str, limit: int) -> None:
    """Nothing is lost, nothing doubled, no piece is too long or blank."""
    found = list(pieces(text, limit))
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(piece.strip() and len(piece) <= limit for piece in found)


@each_row(
    ("text", "expected"),
    [
        ("one. two.", ["one. two."]),
        ("a first paragraph\n\na second one\n", ["a first paragraph", "a second one"]),
        ("A sentence here. Another one here.", ["A sentence here.", "Another one here."]),
        (
            "这是第一句话，比较长一些。这是第二句话，也比较长。",
            ["这是第一句话，比较长一些。", "这是第二句话，也比较长。"],
        ),
        ("x" * 45, ["x" * 20, "x" * 20, "x" * 5]),
        ("  \n\n ", []),
    ],
)
def test_text_is_cut_where_thoughts_end(text: str, expected: list[str]) -> None:
    """Paragraph, then sentence, and only then anywhere."""
    assert list(pieces(text, 20)) == expected


def test_a_case_gives_its_sections_in_both_languages() -> None:
    """Each piece names its case, cause and language; the last section also carries the settings' names."""
    case = parse_case(case_file(), Path("disk-full.md"))
    found = list(of_case(case))
    assert [(one.language, one.title, one.text) for one in found] == [
        ("en", "The disk is full", "No room."),
        ("en", "The disk is full", "Move it.\n--temp-dir"),
        ("zh", "磁盘已满", "没有空间。\n--temp-dir"),
    ]
    assert {(one.kind, one.owner, one.cause) for one in found} == {("case", "ray/disk-full", "disk-full")}
    assert len({one.id for one in found}) == 3


def test_a_report_is_one_document_of_what_matters(read: ReadLog) -> None:
    """Root line, exception, calls and facts; never the log around them."""
    made = of_report(
        read("the quick brown fox\n" + prefixed(RAY, traceback(OOM))),
        "job/nightly",
        "/logs/a.log",
        "gpu-oom-training",
        "smaller batch",
    )
    assert made is not None
    assert (made.kind, made.owner, made.cause, made.fix, made.origin) == (
        "report",
        "job/nightly",
        "gpu-oom-training",
        "smaller batch",
        "/logs/a.log",
    )
    for part in (OOM, "main > step", "free_gib=1.25"):
        assert part in made.text
    assert "brown fox" not in made.text
    assert len(made.text) < 2 * CHUNK_CHARACTERS


def test_a_healthy_log_makes_no_document(read: ReadLog) -> None:
    """There is nothing to remember."""
    report = read(steps(1, 2, 3))
    assert of_report(report, "job/x", "/x") is None
    assert frame_path(report) == ""


def test_the_same_crash_in_two_files_is_two_documents(read: ReadLog) -> None:
    """The id follows the file, the fingerprint is shared."""
    report = read(traceback(OOM))
    first, second = (of_report(report, "job/x", origin) for origin in ("/a", "/b"))
    assert first is not None
    assert second is not None
    assert first.id != second.id
    assert first.heading == second.heading == report.fingerprint


@each_row(("change", "same"), [({}, True), ({"cause": "x"}, True), ({"title": "other"}, False)])
def test_the_digest_follows_what_is_embedded(change: dict[str, str], same: bool) -> None:
    """A vector stays good as long as title and text are the same."""
    assert (document("a", "text").digest == document("a", "text", **change).digest) is same
    assert document("a", "text").digest != document("a", "texts").digest
