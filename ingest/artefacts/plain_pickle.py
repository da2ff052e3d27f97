"""Read pickles that hold plain values alone, and run nothing.

A pickle is a program: its `GLOBAL` and `REDUCE` call what they like, and even the memo of Python's own
reader takes any index and allocates as far. Here only the opcodes are known that make strings, numbers,
lists, tuples and dicts (CPython's Lib/pickletools.py lists them); all others are refused. Time and memory
grow with the number of opcodes, which is bounded.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any

from corpus.message import Message
from ingest.errors import ArtefactError

# The largest buffer that is set in practice, 20,000 collectives, takes some two million.
MOST_OPERATIONS = 4_000_000

_LENGTHS = {1: "B", 2: "<H", 4: "<I", 8: "<Q"}


def load_plain(data: bytes, most: int = MOST_OPERATIONS) -> object:
    """Give the value that a pickle holds; at most `most` opcodes are read.

    Raises ArtefactError where it is cut or damaged, asks for code, or is larger than is read.
    """
    machine = _Machine(data)
    try:
        return machine.run(most)
    except (IndexError, struct.error, UnicodeDecodeError, TypeError, ValueError) as error:
        raise ArtefactError(Message("artefacts.pickle-damaged", place=machine.place)) from error


class _Machine:
    """The stack, the marks on it and the memo of one pickle; `place` is the byte that is read next."""

    def __init__(self, data: bytes) -> None:
        self.place = 0
        self._data = data
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: list[Any] = []

    def run(self, most: int) -> object:
        data, rows = self._data, _OPERATIONS
        for _ in range(most):
            code = data[self.place]
            self.place += 1
            if code == _STOP:
                return self._stack.pop()
            operation = rows.get(code)
            if operation is None:
                raise ArtefactError(Message("artefacts.pickle-runs-code", place=self.place - 1))
            operation(self)
        raise ArtefactError(Message("artefacts.too-many-values", most=most))

    def number(self, size: int) -> int:
        """Read an unsigned number of `size` bytes."""
        value: int = struct.unpack_from(_LENGTHS[size], self._data, self.place)[0]
        self.place += size
        return value

    def piece(self, size: int) -> bytes:
        """Read `size` bytes."""
        piece = self._data[self.place : self.place + size]
        if len(piece) < size:
            raise IndexError("the file ends in a value")
        self.place += size
        return piece

    def push(self, value: object) -> None:
        self._stack.append(value)

    def push_text(self, size: int) -> None:
        self._stack.append(self.piece(self.number(size)).decode("utf-8", "surrogatepass"))

    def push_signed(self, size: int) -> None:
        self._stack.append(int.from_bytes(self.piece(size), "little", signed=True))

    def push_float(self) -> None:
        self._stack.append(struct.unpack(">d", self.piece(8))[0])

    def mark(self) -> None:
        self._marks.append(len(self._stack))

    def marked(self) -> list[Any]:
        """Take what stands above the last mark."""
        begin = self._marks.pop()
        values = self._stack[begin:]
        del self._stack[begin:]
        return values

    def taken(self, count: int) -> list[Any]:
        """Take the last `count` values."""
        if len(self._stack) < count:
            raise IndexError("a value is missing")
        values = self._stack[-count:]
        del self._stack[-count:]
        return values

    def append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise TypeError("no list")
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        target = self._stack[-1]
        # Numbers as keys could be chosen so that all of them collide.
        if type(target) is not dict or len(values) % 2 or any(type(key) is not str for key in values[::2]):
            raise TypeError("no dict of strings")
        target.update(zip(values[::2], values[1::2], strict=True))

    def put(self, index: int) -> None:
        """Note the last value under an index; every writer counts them up from 0."""
        if index < len(self._memo):
            self._memo[index] = self._stack[-1]
        elif index == len(self._memo):
            self._memo.append(self._stack[-1])
        else:
            raise IndexError("no such place in the memo")

    def get(self, index: int) -> None:
        self._stack.append(self._memo[index])

    def memoize(self) -> None:
        self._memo.append(self._stack[-1])


_STOP = pickle.STOP[0]
_OPERATIONS: dict[int, Callable[[_Machine], object]] = {
    code[0]: operation
    for code, operation in (
        (pickle.PROTO, lambda machine: machine.piece(1)),
        (pickle.FRAME, lambda machine: machine.piece(8)),
        (pickle.MARK, _Machine.mark),
        (pickle.NONE, lambda machine: machine.push(None)),
        (pickle.NEWTRUE, lambda machine: machine.push(True)),
        (pickle.NEWFALSE, lambda machine: machine.push(False)),
        (pickle.BININT1, lambda machine: machine.push(machine.number(1))),
        (pickle.BININT2, lambda machine: machine.push(machine.number(2))),
        (pickle.BININT, lambda machine: machine.push_signed(4)),
        (pickle.LONG1, lambda machine: machine.push_signed(machine.number(1))),
        (pickle.BINFLOAT, _Machine.push_float),
        (pickle.BINUNICODE, lambda machine: machine.push_text(4)),
        (pickle.SHORT_BINUNICODE, lambda machine: machine.push_text(1)),
        (pickle.BINUNICODE8, lambda machine: machine.push_text(8)),
        (pickle.EMPTY_LIST, lambda machine: machine.push([])),
        (pickle.EMPTY_DICT, lambda machine: machine.push({})),
        (pickle.EMPTY_TUPLE, lambda machine: machine.push(())),
        (pickle.TUPLE, lambda machine: machine.push(tuple(machine.marked()))),
        (pickle.TUPLE1, lambda machine: machine.push(tuple(machine.taken(1)))),
        (pickle.TUPLE2, lambda machine: machine.push(tuple(machine.taken(2)))),
        (pickle.TUPLE3, lambda machine: machine.push(tuple(machine.taken(3)))),
        (pickle.APPEND, lambda machine: machine.append(machine.taken(1))),
        (pickle.APPENDS, lambda machine: machine.append(machine.marked())),
        (pickle.SETITEM, lambda machine: machine.set_items(machine.taken(2))),
        (pickle.SETITEMS, lambda machine: machine.set_items(machine.marked())),
        (pickle.BINPUT, lambda machine: machine.put(machine.number(1))),
        (pickle.LONG_BINPUT, lambda machine: machine.put(machine.number(4))),
        (pickle.BINGET, lambda machine: machine.get(machine.number(1))),
        (pickle.LONG_BINGET, lambda machine: machine.get(machine.number(4))),
        (pickle.MEMOIZE, _Machine.memoize),
    )
}
