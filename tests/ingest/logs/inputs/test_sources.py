"""Opening logs: what is readable is read, what is not is refused with a reason."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import (
    ArchiveInputError,
    BinaryInputError,
    BrokenArchiveError,
    EmptyInputError,
    FolderInputError,
    InputError,
    MissingInputError,
)
from ingest.logs.inputs import files, sources, streams
from ingest.logs.inputs.compression import CODECS, codec_of
from ingest.logs.inputs.members import JobLimits
from ingest.logs.inputs.sources import CHUNK, LogSource
from ingest.logs.inputs.streams import Decompressed
from ingest.logs.reader import Reader
from tests.factories import OOM, STRANGE, ReadLog, traceback
from tests.tables import each_row
from tests.waiting import PATIENCE


def bytes_of(source: LogSource) -> bytes:
    """Read a source to its end."""
    return b"".join(source.chunks())


def put(folder: Path, content: bytes, name: str = "job.log") -> Path:
    """Write a file."""
    (folder / name).write_bytes(content)
    return folder / name


@cache
@cache
def noise(lines: int) -> bytes:
    """Make text that gzip cannot make small."""
    state, rows = 1, []
    for number in range(lines):
        state = state * 6364136223846793005 + 1442695040888963407 & (2**64 - 1)
        rows.append(f"{number} loss {state:x}")
    return "\n".join(rows).encode() + b"\n"


@each_row(
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
        (zstandard.compress(b"packed\n"), b"packed\n"),
        (zstandard.compress(b"one\n") + zstandard.compress(b"two\n"), b"one\ntwo\n"),
        (b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstandard.compress(b"after\n"), b"after\n"),
        (lzma.compress(b"one\n") + bytes(8) + lzma.compress(b"two\n"), b"one\ntwo\n"),
        (bz2.compress(b"one\n") + bz2.compress(b"two\n"), b"one\ntwo\n"),
        (gzip.compress(b"padded\n") + bytes(500), b"padded\n"),
        ("训练开始：第一步\n显存不足\n".encode("gb18030") * 9, "训练开始：第一步\n显存不足\n".encode() * 9),
        (gzip.compress("显存不足\n".encode("gb18030") * 9), "显存不足\n".encode() * 9),
        ("显存不足 and UTF-8\n".encode() * 9, "显存不足 and UTF-8\n".encode() * 9),
        (
            "Größe für Übung: Straße\n".encode("latin-1") * 9,
            "Größe für Übung: Straße\n".encode("latin-1") * 9,
        ),
        (
            "Ошибка: не удалось открыть файл модели\n".encode("cp1251") * 9,
            "Ошибка: не удалось открыть файл модели\n".encode() * 9,
        ),
        (bytes(5 << 20) + b"after the hole\n", b"after the hole\n"),
        (b"BZh is how my line begins\n"[3:], b"BZh is how my line begins\n"[3:]),
        (b"GGUF model of this kind is not supported\n", b"GGUF model of this kind is not supported\n"),
    ],
    ids=[
        "plain",
        "no-newline",
        "gzip",
        "two-gzip-members",
        "invalid-utf-8",
        "utf-16",
        "utf-16-be",
        "stray-nul",
        "ansi",
        "blank",
        "zstd",
        "two-zstd-frames",
        "zstd-skippable",
        "two-xz-streams",
        "two-bzip2-streams",
        "padded-gzip",
        "gb18030",
        "gb18030-gzip",
        "chinese-utf-8",
        "latin-1",
        "cp1251",
        "hole",
        "words",
        "gguf-as-a-word",
    ],
)
def test_a_readable_file_gives_its_bytes(tmp_path: Path, content: bytes, expected: bytes) -> None:
    """Compression is told by content, not by name; UTF-16 becomes UTF-8."""
    assert bytes_of(sources.from_path(put(tmp_path, content))) == expected


@each_row(
    ("content", "error", "message"),
    [
        (b"", EmptyInputError, "is empty"),
        (gzip.compress(b""), EmptyInputError, "is empty"),
        (b"\xff\xfe", EmptyInputError, "is empty"),
        (b"\x7fELF\x02\x01\x01", BinaryInputError, "a compiled program"),
        (b"\x89PNG\r\n\x1a\n", BinaryInputError, "an image"),
        (b"PK\x03\x04data", ArchiveInputError, "a zip archive or a PyTorch checkpoint"),
        (b"PK\x05\x06" + bytes(18), BinaryInputError, "an empty zip archive"),
        (zstandard.compress(b""), EmptyInputError, "is empty"),
        (lzma.compress(b""), EmptyInputError, "is empty"),
        (bz2.compress(b""), EmptyInputError, "is empty"),
        (b"\x28\xb5\x2f\xfdzst", BrokenArchiveError, "zstd stream is cut"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 40, BrokenArchiveError, "zstd stream is damaged"),
        (b"\xfd7zXZ\x00", BrokenArchiveError, "xz stream is cut"),
        (b"BZh91AY&SY" + bytes(40), BrokenArchiveError, "bzip2 stream is damaged"),
        (b"BZh91AY", BinaryInputError, "a bzip2 archive"),
        (b"SQLite format 3\x00", BinaryInputError, "a database"),
        (b"\x80\x04\x95", BinaryInputError, "a pickle"),
        (b"%PDF-1.7", BinaryInputError, "a PDF"),
        (b"GGUF\x03\0\0\0\x25", BinaryInputError, "a model's weights"),
        (gzip.compress(b"\x7fELF\x02"), BinaryInputError, "a compiled program"),
        (bytes(range(8)) * 100, BinaryInputError, r"8\d % of its first bytes are control codes"),
        (b"\0\x01\x07\x12" * 300, BinaryInputError, "control codes"),
        (b"\x1f\x8bnot gzip at all", BrokenArchiveError, "gzip stream is damaged"),
        (gzip.compress(noise(50))[:12], BrokenArchiveError, "gzip stream is cut"),
        (b'\x40\x00\x00\x00\x00\x00\x00\x00{"__metadata__":{}}', BinaryInputError, "a model's weights"),
        (bytes(100_000), BinaryInputError, "100000 NUL bytes and has no line"),
    ],
)
def test_what_is_no_log_is_refused_with_its_kind(
    tmp_path: Path, content: bytes, error: type[InputError], message: str
) -> None:
    """The message names the file and says what it is."""
    path = put(tmp_path, content)
    with pytest.raises(error, match=rf"job\.log.*{message}"):
        bytes_of(sources.from_path(path))


@each_row(
    ("name", "error", "message"),
    [
        ("missing.log", MissingInputError, "There is no file"),
        (".", FolderInputError, "is a folder; give one log file"),
    ],
)
def test_a_path_that_is_no_file_is_refused(
    tmp_path: Path, name: str, error: type[InputError], message: str
) -> None:
    """A missing file and a folder are told apart."""
    with pytest.raises(error, match=message):
        sources.from_path(tmp_path / name)


Pack = Callable[[bytes], bytes]
PACKERS: dict[str, Pack] = {
    "gzip": partial(gzip.compress, compresslevel=5),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "xz": partial(lzma.compress, preset=0),
    "bzip2": bz2.compress,
}
packers = pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)


def threads() -> int:
    """Count the threads that decompress."""
    return sum(thread.name == "whycrash-decompress" for thread in threading.enumerate())


@packers
@pytest.mark.parametrize("kept", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999])
def test_a_cut_archive_gives_what_was_written(tmp_path: Path, pack: Pack, kept: float) -> None:
    """A killed job leaves a cut archive: nearly all that it holds is read, and the cut is told."""
    content = noise(60_000)
    packed = pack(content)
    source = sources.from_path(put(tmp_path, packed[: int(len(packed) * kept)]))
    try:
        found = bytes_of(source)
    except BrokenArchiveError:
        # bzip2 gives nothing of a block of 900 kB that is not whole.
        assert pack is PACKERS["bzip2"]
        assert len(content) * kept < 1_000_000
        return
    assert content.startswith(found)
    assert len(found) > kept * len(content) - (1_000_000 if pack is PACKERS["bzip2"] else 200_000)
    assert "cut" in str(source.omitted["damaged_archive"])


@packers
def test_a_damaged_archive_gives_its_first_part(tmp_path: Path, pack: Pack) -> None:
    """Flipped bytes end the reading.

    What stood well before them is not lost, and nothing is invented before it.
    """
    content = noise(150_000)
    packed = bytearray(pack(content))
    place = len(packed) * 3 // 4
    packed[place : place + 200] = bytes(200)
    source = sources.from_path(put(tmp_path, bytes(packed)))
    found = bytes_of(source)
    assert found[: len(content) // 2] == content[: len(content) // 2]
    assert "damaged" in str(source.omitted["damaged_archive"])


@packers
def test_what_follows_an_archive_is_told(tmp_path: Path, pack: Pack) -> None:
    """Bytes behind the last member are no log."""
    source = sources.from_path(put(tmp_path, pack(b"a line\n") + b"something else"))
    assert bytes_of(source) == b"a line\n"
    assert "follows the end" in str(source.omitted["damaged_archive"])


@packers
def test_a_stream_of_tiny_members_is_read(tmp_path: Path, pack: Pack) -> None:
    """A logger that flushes each line makes a member of it."""
    lines = [f"line {number}\n".encode() for number in range(3000)]
    assert bytes_of(sources.from_path(put(tmp_path, b"".join(map(pack, lines))))) == b"".join(lines)


@cache
def bomb(pack: Pack) -> bytes:
    """Pack twelve megabytes that become very small."""
    return pack(b"a\n" * (6 << 20))


@pytest.mark.long
@packers
def test_no_piece_is_a_bomb(pack: Pack) -> None:
    """Twelve megabytes from a few bytes come in pieces like everything else."""
    stream = io.BytesIO(bomb(pack))
    codec = codec_of(stream.getvalue()[:16])
    assert codec is not None
    unpacked = Decompressed(stream, codec, 10**9)
    sizes = []
    while piece := unpacked.read(CHUNK * 8):
        sizes.append(len(piece))
    unpacked.close()
    assert sum(sizes) == 12 << 20
    assert max(sizes) <= CHUNK


@packers
def test_a_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Pack) -> None:
    """A stream that unpacks to far more than logs do ends where that is seen."""
    monkeypatch.setattr(streams, "UNSUSPICIOUS", 2 << 20)
    source = sources.from_path(put(tmp_path, bomb(pack)))
    source.limits = JobLimits(ratio=10)
    assert len(bytes_of(source)) < 5 << 20
    assert "more than 10 times" in str(source.omitted["beyond_limit"])


@packers
@pytest.mark.parametrize("how", ["end", "early", "error", "never"])
def test_no_thread_and_no_file_stays(tmp_path: Path, pack: Pack, how: str) -> None:
    """Whether a log is read to its end, left early, or not read at all."""
    path = put(tmp_path, pack(noise(160_000)))
    before = len(list(Path("/proc/self/fd").iterdir()))
    source = sources.from_path(path)
    chunks = source.chunks()
    if how == "end":
        list(chunks)
    elif how == "never":
        source.close()
    else:
        next(chunks)
        next(chunks)
        assert threads() == 1
        if how == "early":
            chunks.close()  # type: ignore[attr-defined]
        else:
            with pytest.raises(KeyError):
                chunks.throw(KeyError("the reader failed"))  # type: ignore[attr-defined]
    assert threads() == 0
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_pipe_that_nobody_writes_to_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stops early waits a moment at most for the thread that waits for more."""
    monkeypatch.setattr(streams, "JOIN_TIMEOUT_S", 0.1)
    reading, writing = os.pipe()
    packed = gzip.compress(noise(160_000))
    writer = threading.Thread(target=os.write, args=(writing, packed[: len(packed) // 2]))
    writer.start()
    source = LogSource("pipe", files.GrowingFile(io.FileIO(reading)))
    chunks = source.chunks()
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    writer.join()
    os.close(writing)
    deadline = time.monotonic() + PATIENCE
    while threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() == 0


@packers
def test_a_compressed_pipe_is_read(tmp_path: Path, pack: Pack) -> None:
    """A shell's process substitution is a named pipe that can be read once."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = noise(60_000)
    writer = threading.Thread(target=pipe.write_bytes, args=(pack(content),))
    writer.start()
    assert bytes_of(sources.from_path(pipe)) == content
    writer.join()


def test_a_file_that_outgrows_its_reader_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written while a file is read counts, but reading never runs after its end."""
    monkeypatch.setattr(files, "GROWTH", 10 * CHUNK)
    path = put(tmp_path, b"first\n" * CHUNK)
    source = sources.from_path(path)
    size = 0
    with path.open("ab") as growing:
        for chunk in source.chunks():
            size += len(chunk)
            growing.write(b"again\n" * CHUNK)
            growing.flush()
    assert size == 16 * CHUNK
    assert "written to faster" in str(source.omitted["still_growing"])


def test_a_file_that_grows_for_a_while_is_read_to_its_end(tmp_path: Path) -> None:
    """Lines that come while the first are read are read, too, and nothing is said."""
    path = put(tmp_path, noise(60_000))
    source = sources.from_path(path)
    chunks = source.chunks()
    first = next(chunks)
    with path.open("ab") as growing:
        growing.write(b"the last words\n")
    assert (first + b"".join(chunks)).endswith(b"the last words\n")
    assert source.omitted == {}


@each_row(
    ("content", "message"),
    [(b"PK\x03\x04more", "a zip archive or a PyTorch checkpoint.*read from a file"), (None, "a tar archive")],
)
def test_an_archive_is_not_taken_for_one_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, message: str
) -> None:
    """From a path, from standard input, and compressed alike."""
    if content is None:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(put(tmp_path, b"text\n", "member.log"), "member.log")
        content = archive.getvalue()
    with pytest.raises(FolderInputError, match=message):
        sources.from_path(put(tmp_path, content))
    with pytest.raises(FolderInputError, match=message):
        bytes_of(sources.from_path(put(tmp_path, gzip.compress(content))))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(FolderInputError, match=message):
        sources.from_stdin()


@given(
    place=st.floats(0, 1),
    wrong=st.binary(min_size=1, max_size=40),
    name=st.sampled_from(sorted(PACKERS)),
    cut=st.floats(0, 1),
)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_damage_raises_nothing_but_input_errors(place: float, wrong: bytes, name: str, cut: float) -> None:
    """Whatever stands in a compressed stream, bytes or an InputError come out."""
    packed = PACKERS[name](noise(3000))
    start = int(place * len(packed))
    packed = packed[:start] + wrong + packed[start + len(wrong) :]
    source = LogSource("x", io.BytesIO(packed[: int(cut * len(packed)) or None]))
    with suppress(InputError):
        bytes_of(source)


@given(st.binary(max_size=200), st.sampled_from(["utf-16", "gb18030"]))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_transcoding_keeps_the_lines(tail: bytes, encoding: str) -> None:
    """A line's number in the text that comes out is its number in the file."""
    head = "训练开始了，显存不足，进程被杀掉。\n" * 40
    content = head.encode(encoding) + (tail if encoding == "gb18030" else tail[: len(tail) // 2 * 2])
    found = bytes_of(LogSource("x", io.BytesIO(content)))
    lines = content.count(b"\n") if encoding == "gb18030" else content.decode(encoding, "replace").count("\n")
    assert found.count(b"\n") == lines


@given(st.binary(max_size=300))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_any_bytes_are_a_log_or_an_input_error(content: bytes) -> None:
    """No first bytes break the telling of what a file is."""
    with suppress(InputError):
        bytes_of(LogSource("x", io.BytesIO(content)))


def test_every_codec_has_a_packer_here() -> None:
    """A form of compression that is added is tested."""
    assert {codec.name for codec in CODECS} == set(PACKERS)


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


@each_row("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
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
