"""Logs that are not whole, or not UTF-8: cut archives, holes of NUL bytes, wide encodings, pipes and
devices.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from ingest.errors import BinaryInputError, InputError, MissingInputError
from ingest.logs.inputs import files
from ingest.logs.inputs.encodings import HOLE
from ingest.logs.inputs.holes import Holes
from ingest.logs.inputs.jobs import JobSource, open_job
from ingest.logs.reader import Reader
from tests.factories import OOM, steps, traceback
from tests.ingest.logs.inputs.test_archives import tarred, zipped
from tests.ingest.logs.inputs.test_sources import noise
from tests.tables import each_row

CRASH = steps(1, 2, 3) + traceback(OOM)
CHINESE = "训练开始：第一步\n" + CRASH
HEALTHY = steps(*range(1, 2000)).encode() + noise(1500) + b"Training finished.\n"


def content_of(job: JobSource) -> bytes:
    """Read a job of one log."""
    return b"".join(chunk for part in job.parts() for chunk in part.chunks())


def put(folder: Path, content: bytes) -> Path:
    """Write a file whose name tells nothing."""
    (folder / "job.data").write_bytes(content)
    return folder / "job.data"


def test_a_log_says_the_same_in_every_encoding(tmp_path: Path, reader: Reader) -> None:
    """With and without a mark, either end first, two or four bytes a character: the same cause at the same
    line.
    """
    wide = [f"utf-{bits}-{end}" for bits in (16, 32) for end in ("le", "be")]
    marks = [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE]
    wrong = []
    for text in (CRASH, CHINESE, OOM + "\n", OOM):
        wanted = reader.read(open_job(put(tmp_path, text.encode()))).root
        assert wanted is not None
        forms = [
            *((name, text.encode(name)) for name in ("utf-8-sig", *wide)),
            *(("marked " + name, mark + text.encode(name)) for name, mark in zip(wide, marks, strict=True)),
        ]
        for name, content in (
            *forms,
            *((f"{name} packed", gzip.compress(content)) for name, content in forms),
        ):
            found = reader.read(open_job(put(tmp_path, content))).root
            if found is None or (found.cause, found.line, found.body) != (
                wanted.cause,
                wanted.line,
                wanted.body,
            ):
                wrong.append((text[:20], name, found))
    assert not wrong


def test_numbers_are_not_taken_for_wide_text(tmp_path: Path) -> None:
    """Tensors of small and of large integers hold NULs in every second or fourth byte, and are no log."""
    tables = {
        "bytes as int16": b"".join(number.to_bytes(2, "little") for number in range(32)) * 99,
        "ids as int32": b"".join((number * 7919 % 32000).to_bytes(4, "little") for number in range(4000)),
        "ids as int64": b"".join((number * 7919 % 128).to_bytes(8, "little") for number in range(4000)),
        "ids as uint16": b"".join((number * 7919 % 50000).to_bytes(2, "big") for number in range(4000)),
        "names and zeros": b"".join(b"rank\x01\x02" + bytes(58) for _ in range(400)),
    }
    read = []
    for name, content in tables.items():
        try:
            open_job(put(tmp_path, content))
            read.append(name)
        except BinaryInputError:
            pass
    assert not read


def test_a_configuration_beside_the_log_may_be_wide(tmp_path: Path) -> None:
    """Windows' editors save UTF-16; it is read, not shown as it is stored."""
    (tmp_path / "run.sh").write_bytes("torchrun train.py\n".encode("utf-16"))
    (tmp_path / "job.log").write_text(CRASH)
    assert [text for _, text in open_job(tmp_path).configs] == [b"torchrun train.py\n"]


HOLES = {
    "start": (b"\0" * 5000 + CRASH.encode(), "hole"),
    "short start": (b"\0" * 300 + CRASH.encode(), "hole"),
    "start, two chunks": (bytes(2_000_001) + CRASH.encode(), "hole"),
    "between lines": (steps(1).encode() + bytes(4096) + CRASH.encode(), "hole"),
    "over a chunk's end": (steps(1).encode() * 20_000 + bytes(3 << 20) + CRASH.encode(), "hole"),
    "inside a line": (b"step: 1 lo" + bytes(4096) + CRASH.encode(), "hole"),
    "end": (CRASH.encode() + bytes(4096), "hole_at_end"),
    "several": (bytes(99) + steps(1).encode() + bytes(99) + CRASH.encode() + bytes(2 << 20), "hole_at_end"),
    "start, UTF-16 big end first": (bytes(5000) + CRASH.encode("utf-16-be"), "hole"),
    "start, UTF-32 big end first": (bytes(5000) + CRASH.encode("utf-32-be"), "hole"),
    "middle, UTF-16": (steps(1).encode("utf-16") + bytes(5000) + CRASH.encode("utf-16-le"), "hole"),
}


def test_a_log_with_a_hole_is_read_and_the_hole_is_told(tmp_path: Path, reader: Reader) -> None:
    """Wherever NULs stand, the failure is found at the line that an editor shows, and `limits` says what is
    not there.
    """
    wrong = {}
    for name, (content, reason) in HOLES.items():
        for packed in (content, gzip.compress(content)):
            report = reader.read(open_job(put(tmp_path, packed)))
            rows = content.decode("utf-16" if "UTF-16" in name else "utf-8", "replace").split("\n")
            line = next((number for number, row in enumerate(rows, 1) if OOM in row), 0)
            told = (report.root.pattern, report.root.line) if report.root else None
            at = line if line else len(CRASH.splitlines())
            if (
                told != ("torch.cuda-oom", at)
                or tuple(report.limits.omitted) != (reason,)
                or not report.limits.truncated
            ):
                wrong[name] = (told, at, report.limits)
    assert not wrong


def test_a_sparse_file_is_read(tmp_path: Path, reader: Reader) -> None:
    """As the file system keeps what a writer left behind its cut: no block of the hole is on the disk."""
    path = tmp_path / "job.log"
    with path.open("wb") as log:
        log.seek(64 << 20)
        log.write(CRASH.encode())
    report = reader.read(open_job(path))
    assert (report.root and report.root.pattern, report.root and report.root.line) == (
        "torch.cuda-oom",
        len(CRASH.splitlines()),
    )
    assert str(64 << 20) in str(report.limits.omitted["hole"])
    assert not report.limits.cut


def test_holes_do_not_depend_on_where_chunks_end() -> None:
    """Cut anywhere, the same text comes out, and short runs of NULs stay."""
    text = (
        bytes(HOLE)
        + b"a\0b\n"
        + bytes(HOLE)
        + b"c"
        + bytes(HOLE)
        + b"d"
        + bytes(HOLE - 1)
        + b"e\n"
        + bytes(HOLE)
    )
    wanted = b"a\0b\nc\rd" + bytes(HOLE - 1) + b"e\n"
    wrong = []
    for size in range(1, len(text) + 1):
        holes = Holes()
        got = b"".join(holes.without(text[place : place + size] for place in range(0, len(text), size)))
        if (got, holes.count, holes.size, holes.is_at_end) != (wanted, 4, 4 * HOLE, True):
            wrong.append((size, got, holes))
    assert not wrong


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.compress,
    "tar": lambda text: tarred({"rank0.log": text, "rank1.log": text}),
    "tar.gz": lambda text: gzip.compress(tarred({"rank0.log": text, "rank1.log": text})),
    "tar.xz": lambda text: lzma.compress(tarred({"rank0.log": text, "rank1.log": text})),
    "gz in tar": lambda text: tarred({"rank0.log.gz": gzip.compress(text)}),
    "zip": lambda text: zipped({"rank0.log": text, "rank1.log": text}),
    "stored zip": lambda text: zipped({"rank0.log": text, "rank1.log": text}, zipfile.ZIP_STORED),
}


@pytest.mark.long
@each_row("name", PACKED, quick=4)
def test_a_cut_archive_is_never_a_whole_log(name: str, tmp_path: Path, reader: Reader) -> None:
    """Cut at any place it is read as far as it goes and said to be cut, or refused with a sentence.

    Never a traceback.
    """
    wrong = []
    packed = PACKED[name](HEALTHY)
    # A tar is padded with empty blocks, of which one marks its end.
    end = len(packed.rstrip(b"\0")) if "tar" in name and not name.startswith("tar.") else len(packed)
    for cut in (*(end * part // 16 for part in range(1, 16)), end - 300, end - 9, end - 1):
        try:
            limits = reader.read(open_job(put(tmp_path, packed[:cut]))).limits
        except InputError as error:
            if not str(error).rstrip().endswith((".", ")")) or len(str(error)) < 20:
                wrong.append((cut, str(error)))
        else:
            if not (limits.cut and limits.truncated):
                wrong.append((cut, str(limits)))
    assert not wrong


@pytest.mark.long
def test_a_cut_archive_gives_what_it_still_holds(tmp_path: Path, reader: Reader) -> None:
    """A failure before the cut is found, in every form that can be unpacked in part."""
    text = CRASH.encode() + noise(30_000)
    missed = []
    for name, pack in PACKED.items():
        packed = pack(text)
        if name == "bz2":
            continue  # a block of bzip2 is whole or nothing
        root = reader.read(open_job(put(tmp_path, packed[: len(packed) * 2 // 5]))).root
        if root is None or root.pattern != "torch.cuda-oom":
            missed.append(name)
    assert not missed


def test_an_archive_of_which_nothing_can_be_read_says_why(tmp_path: Path) -> None:
    """The sentence names the file and what is wrong with it."""
    for name, form in {"bz2": "bzip2", "zst": "zstd", "xz": "xz"}.items():
        with pytest.raises(
            InputError, match=rf"Nothing of .*job\.data can be read: the {form} stream is cut"
        ):
            content_of(open_job(put(tmp_path, PACKED[name](HEALTHY)[:20])))


def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be waited for without an end."""
    monkeypatch.setattr(files, "PIPE_TIMEOUT_S", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MissingInputError, match="Nothing came through the pipe"):
        open_job(tmp_path / "pipe")


def test_a_pipe_that_is_written_to_is_read(tmp_path: Path, reader: Reader) -> None:
    """As `whycrash explain <(ssh node cat job.log)` gives one."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(CRASH.encode(),))
    writer.start()
    root = reader.read(open_job(tmp_path / "pipe")).root
    writer.join()
    assert root is not None
    assert root.pattern == "torch.cuda-oom"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_device_is_refused(device: str) -> None:
    """It has no end, or nothing in it."""
    with pytest.raises(BinaryInputError, match="is a device"):
        open_job(Path(device))
