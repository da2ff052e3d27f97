"""Read what the notes of a Linux core file say: the signal, the program and the library that it ended in.

The format: elf(5), and fs/binfmt_elf.c of Linux for the notes, which the kernel writes before any memory. No
memory of the process is read, so that nothing of its data is seen.
"""

from __future__ import annotations

import signal
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from corpus.message import Message
from ingest.artefacts.file_heads import core_order
from ingest.errors import ArtefactError
from ingest.logs.lines import printable

# So much of a file holds its notes; those of the thread that failed, and the mapped files, come first.
MOST_BYTES = 16 << 20
_MOST_HEADERS, _MOST_NOTES, _MOST_FILES = 65_535, 100_000, 50_000
_LONGEST = 200

# A program header of 64 bits, in bytes, and the kind of one that holds notes.
_HEADER, _NOTE_SEGMENT = 56, 4
# Kinds of notes of the name "CORE" (include/uapi/linux/elf.h).
_STATUS, _PROCESS, _SIGNAL, _FILES = 1, 3, 0x53494749, 0x46494C45
# Where a process's registers hold the address of the instruction, in bytes from the registers' begin, by
# machine (EM_X86_64: `rip` of user_regs_struct; EM_AARCH64: `pc` of user_pt_regs).
_COUNTER = {62: 16 * 8, 183: 32 * 8}
# Before the registers of elf_prstatus of 64 bits: signal, masks, four process ids, four times.
_REGISTERS = 112
# elf_prpsinfo of 64 bits: the process id, and at its end the name of 16 bytes and the arguments of 80.
_PID, _NAME, _ARGUMENTS, _PROCESS_SIZE = 24, 40, 56, 136
# siginfo_t: number, errno, code, and from byte 16 what the code tells.
_SIGNAL_SIZE = 24
_FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


@dataclass(frozen=True)
class CoreNotes:
    """What a core file tells: 0 and empty where a note is missing.

    `address` is what a fault of memory touched, None for signals that another process sent; `library` is the
    mapped file that holds the failing instruction, `sender` the process that sent the signal.
    """

    signal: str
    program: str
    arguments: str
    library: str
    address: int | None
    sender: int


def read_core(data: bytes) -> CoreNotes:
    """Read the notes of a core file's first bytes; raises ArtefactError where they are cut or damaged."""
    order = core_order(data)
    if order is None:
        raise ArtefactError(Message("artefacts.core-damaged"))
    notes = _Notes(order)
    try:
        machine = struct.unpack_from(f"{order}H", data, 18)[0]
        notes.counter_at = _COUNTER.get(machine)
        for kind, note in _notes(data, order):
            notes.add(kind, note)
    except (struct.error, ValueError) as error:
        raise ArtefactError(Message("artefacts.core-damaged")) from error
    if not notes.number and not notes.program:
        raise ArtefactError(Message("artefacts.core-damaged"))
    return notes.told()


@dataclass
class _Notes:
    """What the notes have told so far; `counter` is the address of the failing instruction."""

    order: str
    counter_at: int | None = None
    number: int = 0
    counter: int | None = None
    pid: int = 0
    program: str = ""
    arguments: str = ""
    address: int | None = None
    sender: int = 0
    files: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, kind: int, note: bytes) -> None:
        """Take a note; of those of threads only the first, whose thread failed."""
        if kind == _STATUS and not self.number and len(note) >= _REGISTERS:
            self._add_status(note)
        elif kind == _PROCESS and len(note) >= _PROCESS_SIZE:
            self.pid = struct.unpack_from(f"{self.order}i", note, _PID)[0]
            self.program, self.arguments = (
                _text(note[_NAME:_ARGUMENTS]),
                _text(note[_ARGUMENTS:_PROCESS_SIZE]),
            )
        elif kind == _SIGNAL and len(note) >= _SIGNAL_SIZE:
            self._add_signal(note)
        elif kind == _FILES and not self.files:
            self.files += _mapped(note, self.order)

    def _add_status(self, note: bytes) -> None:
        (told,), (current,) = (
            struct.unpack_from(f"{self.order}i", note),
            struct.unpack_from(f"{self.order}h", note, 12),
        )
        self.number = current or told
        if self.counter_at is not None and len(note) >= _REGISTERS + self.counter_at + 8:
            self.counter = struct.unpack_from(f"{self.order}Q", note, _REGISTERS + self.counter_at)[0]

    def _add_signal(self, note: bytes) -> None:
        number, _, code = struct.unpack_from(f"{self.order}iii", note)
        self.number = self.number or number
        # A code above 0 is the kernel's own, and what follows is the address that was touched.
        if code > 0 and number in _FAULTS:
            self.address = struct.unpack_from(f"{self.order}Q", note, 16)[0]
        elif code <= 0:
            self.sender = struct.unpack_from(f"{self.order}i", note, 16)[0]

    def told(self) -> CoreNotes:
        """Give what the notes tell together."""
        sender = self.sender if self.sender != self.pid else 0
        library = _holding(self.files, self.counter)
        return CoreNotes(
            _signal_name(self.number), self.program, self.arguments, library, self.address, sender
        )


def core_record(notes: CoreNotes) -> str:
    """Give the notes as a record of names and values."""
    told = {
        "signal": notes.signal,
        "program": "_".join(notes.program.split()),
        "library": "_".join(notes.library.split()),
        "address": "" if notes.address is None else f"0x{notes.address:x}",
        "sender": str(notes.sender) if notes.sender else "",
        "arguments": notes.arguments,
    }
    # The arguments stand last and keep their blanks, by which a secret among them is known.
    return "core_file " + " ".join(
        f"{name}={printable(value)[:_LONGEST]}" for name, value in told.items() if value
    )


def _notes(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Give kind and content of the notes of a core of 64 bits that are named CORE."""
    begin, size, count = struct.unpack_from(f"{order}Q14xHH", data, 32)
    # A place beyond the file's end may be larger than `struct` takes.
    if size != _HEADER or begin > len(data):
        return
    left = _MOST_NOTES
    for number in range(min(count, _MOST_HEADERS)):
        kind, offset, length = struct.unpack_from(f"{order}I4xQ16xQ", data, begin + number * size)
        if kind != _NOTE_SEGMENT:
            continue
        place, end = offset, min(offset + length, len(data))
        while place + 12 <= end and left > 0:
            left -= 1
            named, filled, note = struct.unpack_from(f"{order}III", data, place)
            name = place + 12
            content = name + (named + 3) // 4 * 4
            if data[name : name + named].rstrip(b"\0") == b"CORE":
                yield note, data[content : min(content + filled, end)]
            place = content + (filled + 3) // 4 * 4


def _mapped(note: bytes, order: str) -> Iterator[tuple[int, int, str]]:
    """Give begin and end of each mapped file's addresses, and its path."""
    count = struct.unpack_from(f"{order}Q", note)[0]
    if not 0 < count <= _MOST_FILES:
        return
    names = note[16 + 24 * count :].split(b"\0")
    for number, name in zip(range(count), names, strict=False):
        begin, end = struct.unpack_from(f"{order}QQ", note, 16 + 24 * number)
        yield begin, end, name.decode("utf-8", "replace")


def _holding(files: list[tuple[int, int, str]], counter: int | None) -> str:
    if counter is None:
        return ""
    path = next((path for begin, end, path in files if begin <= counter < end), "")
    return PurePosixPath(path).name


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace").strip()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number) if number else ""
