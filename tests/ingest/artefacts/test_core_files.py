"""A core file's notes tell how a process died, and nothing of its memory is read."""

from __future__ import annotations

import gzip
import resource
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ingest.artefacts.core_files import CoreNotes, core_record, read_core
from ingest.artefacts.file_heads import HEAD, artefact_kind
from ingest.errors import ArtefactError
from ingest.logs.inputs.jobs import open_job
from ingest.logs.reader import Reader
from tests.tables import each_row

STEPS = "step 1 loss 2.5\nstep 2 loss 2.25\n"
CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")
FAULTS = "import ctypes; ctypes.string_at(0x10)"


def a_note(order: str, kind: int, content: bytes) -> bytes:
    """Give a note of the name CORE."""
    filled = content + b"\0" * (-len(content) % 4)
    return struct.pack(f"{order}III", 5, len(content), kind) + b"CORE\0\0\0\0" + filled


def a_core(order: str = "<", number: int = 11, code: int = 1, at: int = 0x7F10, sender: int = 0) -> bytes:
    """Give a core file of an x86-64 process, of notes alone; `order` is that of its bytes."""
    registers = struct.pack(f"{order}17Q", *[0] * 16, at)
    status = struct.pack(f"{order}iiihh", number, 0, 0, number, 0).ljust(112, b"\0") + registers
    process = struct.pack(f"{order}24xi", 99).ljust(40, b"\0") + b"python3".ljust(16, b"\0")
    process += b"python3 train.py --api-key sk-abcdefghijklmnopqrstuvwxyz123456".ljust(80, b"\0")
    told = struct.pack(f"{order}i", sender) if sender else struct.pack(f"{order}Q", 0x10)
    mapped = struct.pack(f"{order}QQ", 2, 4096)
    mapped += struct.pack(f"{order}6Q", 0x1000, 0x2000, 0, 0x7F00, 0x8000, 0)
    mapped += b"/usr/bin/python3\0/opt/env/lib/libnccl.so.2\0"
    notes = a_note(order, 1, status) + a_note(order, 3, process)
    notes += a_note(order, 0x53494749, struct.pack(f"{order}iiii", number, 0, code, 0) + told.ljust(8, b"\0"))
    notes += a_note(order, 0x46494C45, mapped)
    head = b"\x7fELF" + bytes((2, 1 if order == "<" else 2, 1)) + b"\0" * 9
    head += struct.pack(f"{order}HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return head + struct.pack(f"{order}IIQQQQQQ", 4, 0, 120, 0, 0, len(notes), 0, 4) + notes


@each_row(
    ("data", "found"),
    [
        (a_core(), ("SIGSEGV", "python3", "libnccl.so.2", 0x10, 0)),
        (a_core(">"), ("SIGSEGV", "python3", "libnccl.so.2", 0x10, 0)),
        (a_core(number=7, at=0x9999), ("SIGBUS", "python3", "", 0x10, 0)),
        (a_core(number=6, code=-6, sender=99), ("SIGABRT", "python3", "libnccl.so.2", None, 0)),
        (a_core(number=3, code=0, sender=41), ("SIGQUIT", "python3", "libnccl.so.2", None, 41)),
    ],
)
def test_what_the_notes_tell(data: bytes, found: tuple[str, str, str, int | None, int]) -> None:
    """Signal, program, the library of the failing instruction, the touched address and who sent it."""
    notes = read_core(data)
    assert (notes.signal, notes.program, notes.library, notes.address, notes.sender) == found


def test_a_damaged_core_gets_a_sentence() -> None:
    """Cut anywhere, or with a byte turned, it is read as far as it goes or refused; it never fails."""
    whole = a_core()
    for place in range(64, len(whole), 7):
        for data in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            with suppress(ArtefactError):
                assert isinstance(read_core(data), CoreNotes)
    with pytest.raises(ArtefactError, match="core file is cut"):
        read_core(whole[:100])


@each_row("place", [32, 64 + 8, 64 + 32])
def test_places_beyond_the_file_get_a_sentence(place: int) -> None:
    """Of the headers and of the notes, and how long those are: as large as the format can say."""
    whole = bytearray(a_core())
    for number in (2**64 - 1, 2**63, 2**32):
        struct.pack_into("<Q", whole, place, number)
        with suppress(ArtefactError):
            assert isinstance(read_core(bytes(whole)), CoreNotes)


def test_headers_that_name_the_same_notes_are_read_once() -> None:
    """However many there are: each would list the mapped files anew."""
    whole = bytearray(a_core())
    struct.pack_into("<HH", whole, 54, 0, 60_000)
    with pytest.raises(ArtefactError):
        read_core(bytes(whole))


def test_other_files_of_the_format_are_no_cores() -> None:
    """A program or library is none, nor a core of 32 bits, whose notes have other places."""
    program = a_core()[:16] + struct.pack("<H", 2) + a_core()[18:]
    assert artefact_kind(a_core()[:HEAD]) == "core"
    assert artefact_kind(program) is None
    assert artefact_kind(b"\x7fELF\x01" + a_core()[5:]) is None


@pytest.mark.parametrize("packed", [False, True])
def test_a_core_beside_a_log_that_only_stops_decides(tmp_path: Path, reader: Reader, *, packed: bool) -> None:
    """It is known by its content, packed or not; a secret among the program's arguments is masked."""
    (tmp_path / "train.log").write_text(STEPS, encoding="utf-8")
    name, data = ("dump.gz", gzip.compress(a_core())) if packed else ("core.4711", a_core())
    (tmp_path / name).write_bytes(data)
    root = reader.read(open_job(tmp_path)).root
    assert root is not None
    assert (root.cause, root.pattern) == ("native-crash", "core.fault")
    assert "libnccl.so.2" in root.text
    assert "abcdefghijklmnopqrstuvwxyz" not in root.text


def test_a_real_core(tmp_path: Path) -> None:
    """The kernel of this machine writes what is read."""
    if CORE_PATTERN.read_text(encoding="utf-8").startswith(("|", "/")):
        pytest.skip("this machine's core files go elsewhere")

    def may_dump() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)

    command = [sys.executable, "-c", FAULTS]
    subprocess.run(command, cwd=tmp_path, preexec_fn=may_dump, check=False)
    made = next(tmp_path.glob("core*"), None)
    if made is None or not made.stat().st_size:
        pytest.skip("this machine allows no core files")
    notes = read_core(made.read_bytes())
    assert (notes.signal, notes.address) == ("SIGSEGV", 0x10)
    assert notes.library.startswith("lib")
    assert core_record(notes).startswith("core_file signal=SIGSEGV program=python")
