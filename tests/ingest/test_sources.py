"""Opening logs: what is readable is read, what is not is refused with a reason."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from ingest.errors import (
    BinaryInputError,
    BrokenArchiveError,
    EmptyInputError,
    FolderInputError,
    InputError,
    MissingInputError,
)
from ingest.logs import sources
from ingest.logs.reader import Reader
from ingest.logs.sources import CHUNK, LogSource
from tests.factories import OOM, STRANGE, ReadLog, traceback


def bytes_of(source: LogSource) -> bytes:
    """Read a source to its end."""
    return b"".join(source.chunks())


def put(folder: Path, content: bytes, name: str = "job.log") -> Path:
    """Write a file."""
    (folder / name).write_bytes(content)
    return folder / name


def noise(lines: int) -> bytes:
    """Make text that gzip cannot make small."""
    state, rows = 1, []
    for number in range(lines):
        state = state * 6364136223846793005 + 1442695040888963407 & (2**64 - 1)
        rows.append(f"{number} loss {state:x}")
    return "\n".join(rows).encode() + b"\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"plain\ntext\n", b"plain\ntext\n"),
        (b"no newline", b"no newline"),
        (gzip.compress(b"packed\n"), b"packed\n"),
        (gzip.compress(b"one\n") + gzip.compress(b"two\n"), b"one\ntwo\n"),
        (b"caf\xe9 \xff\xfe invalid UTF-8\n", b"caf\xe9 \xff\xfe invalid UTF-8\n"),
        ("Windows says: 内存\n".encode("utf-16"), "Windows says: 内存\n".encode()),
        (b"\xfe\xff" + "big end first\n".encode("utf-16-be"), b"big end first\n"),
        (b"a stray \x00 in a longer line of text\n" * 30, b"a stray \x00 in a longer line of text\n" * 30),
        (b"\x1b[31mred\x1b[0m\n" * 200, b"\x1b[31mred\x1b[0m\n" * 200),
        (b"\n", b"\n"),
    ],
    ids=["plain", "no-newline", "gzip", "two-gzip-members", "invalid-utf-8", "utf-16", "utf-16-be", "stray-nul", "ansi", "blank"],
)
def test_a_readable_file_gives_its_bytes(tmp_path: Path, content: bytes, expected: bytes) -> None:
    """Compression is told by content, not by name; UTF-16 becomes UTF-8."""
    assert bytes_of(sources.from_path(put(tmp_path, content))) == expected


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", EmptyInputError, "is empty"),
        (gzip.compress(b""), EmptyInputError, "is empty"),
        (b"\xff\xfe", EmptyInputError, "is empty"),
        (b"\x7fELF\x02\x01\x01", BinaryInputError, "a compiled program"),
        (b"\x89PNG\r\n\x1a\n", BinaryInputError, "an image"),
        (b"PK\x03\x04data", BinaryInputError, "a zip archive or a PyTorch checkpoint"),
        (b"\x28\xb5\x2f\xfdzst", BinaryInputError, "a zstd archive"),
        (b"\xfd7zXZ\x00", BinaryInputError, "an xz archive"),
        (b"BZh91AY", BinaryInputError, "a bzip2 archive"),
        (b"SQLite format 3\x00", BinaryInputError, "a database"),
        (b"\x80\x04\x95", BinaryInputError, "a pickle"),
        (b"%PDF-1.7", BinaryInputError, "a PDF"),
        (gzip.compress(b"\x7fELF\x02"), BinaryInputError, "a compiled program"),
        (bytes(range(8)) * 100, BinaryInputError, r"8\d % of its first bytes are control codes"),
        ("UTF-16 without a mark\n".encode("utf-16-le"), BinaryInputError, "control codes"),
        (b"\x1f\x8bnot gzip at all", BrokenArchiveError, "no readable gzip"),
        (gzip.compress(noise(50))[:12], BrokenArchiveError, "no readable gzip"),
    ],
)
def test_what_is_no_log_is_refused_with_its_kind(
    tmp_path: Path, content: bytes, error: type[InputError], message: str
) -> None:
    """The message names the file and says what it is."""
    path = put(tmp_path, content)
    with pytest.raises(error, match=rf"job\.log.*{message}"):
        bytes_of(sources.from_path(path))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [("missing.log", MissingInputError, "There is no file"), (".", FolderInputError, "is a folder; give one log file")],
)
def test_a_path_that_is_no_file_is_refused(tmp_path: Path, name: str, error: type[InputError], message: str) -> None:
    """A missing file and a folder are told apart."""
    with pytest.raises(error, match=message):
        sources.from_path(tmp_path / name)


@pytest.mark.parametrize("kept", [0.5, 0.9, 0.999])
def test_a_cut_archive_gives_what_was_written(tmp_path: Path, kept: float) -> None:
    """A killed job leaves a cut archive: nearly all that it holds is read, and the cut is told."""
    content = noise(40_000)
    packed = gzip.compress(content)
    source = sources.from_path(put(tmp_path, packed[: int(len(packed) * kept)]))
    found = bytes_of(source)
    assert content.startswith(found)
    assert len(found) > (kept - 0.1) * len(content)
    assert "damaged_archive" in source.omitted


def test_an_archive_damaged_in_its_middle_gives_its_first_part(tmp_path: Path) -> None:
    """Flipped bytes end the reading, they do not lose what stood before."""
    content = noise(80_000)
    packed = bytearray(gzip.compress(content))
    middle = len(packed) // 2
    packed[middle : middle + 200] = bytes(200)
    source = sources.from_path(put(tmp_path, bytes(packed)))
    assert bytes_of(source)[: len(content) // 4] == content[: len(content) // 4]
    assert "damaged_archive" in source.omitted


def test_a_whole_archive_is_not_called_damaged(tmp_path: Path) -> None:
    """Nothing is omitted where nothing is missing."""
    source = sources.from_path(put(tmp_path, gzip.compress(noise(60_000))))
    assert bytes_of(source) == noise(60_000)
    assert source.omitted == {}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_chunks_are_bounded(tmp_path: Path, pack: type[bytes]) -> None:
    """A large log never comes as one piece."""
    sizes = [len(chunk) for chunk in sources.from_path(put(tmp_path, pack(noise(150_000)))).chunks()]
    assert len(sizes) > 2
    assert max(sizes) <= CHUNK


def test_utf_16_is_decoded_across_chunks() -> None:
    """A character that two chunks share is one character."""
    text = "记录 𝔘 line\n" * 1000

    class Odd(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 777))

    assert bytes_of(LogSource("x", Odd(text.encode("utf-16")))) == text.encode()


def test_text_at_hand_keeps_bytes_that_are_no_text() -> None:
    """What came as undecodable bytes goes out as the same bytes."""
    text = b"a \xff b".decode("utf-8", "surrogateescape")
    assert bytes_of(sources.from_text(text)) == b"a \xff b"


def test_a_cut_archive_is_told_in_the_report(tmp_path: Path, reader: Reader) -> None:
    """The report says that it is not whole, and still names the failure."""
    packed = gzip.compress(traceback(OOM).encode() + noise(40_000))
    report = reader.read(sources.from_path(put(tmp_path, packed[: len(packed) // 2])))
    assert report.root is not None
    assert report.root.pattern == "torch.cuda-oom"
    assert report.limits.truncated
    assert "damaged_archive" in report.limits.omitted


def test_a_mark_at_the_start_does_not_hide_the_first_line(read: ReadLog) -> None:
    """Editors of Windows begin UTF-8 with a byte order mark; the line after it still counts."""
    report = read(b"\xef\xbb\xbf" + traceback(STRANGE).encode())
    assert report.root is not None
    assert (report.root.exception, report.root.line) == ("ValueError", 6)
