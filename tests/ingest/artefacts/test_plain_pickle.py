"""Pickles are read without running anything, in bounded time and memory."""

from __future__ import annotations

import os
import pickle
import struct
import tracemalloc
from collections import OrderedDict
from pathlib import Path

import pytest

from ingest.artefacts.plain_pickle import load_plain
from ingest.errors import ArtefactError
from tests.tables import each_row

VALUES = {
    "text": ["a", "\u6a21\u578b", "x" * 300, "y" * 70_000],
    "numbers": (0, 255, 65_535, -1, 1 << 40, 2.5, True, False, None),
    "nested": {
        "entries": [{"frames": [{"line": 3}], "process_group": ("0", "default_pg")}] * 400,
        "empty": (),
    },
}


@each_row("protocol", [2, 3, 4, 5])
def test_plain_values_come_back_as_python_wrote_them(protocol: int) -> None:
    """Whatever protocol a tool packed a dump with."""
    assert load_plain(pickle.dumps(VALUES, protocol)) == VALUES


class Hostile:
    """A value whose pickle calls a program."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@each_row("protocol", [2, 4])
def test_no_code_of_a_pickle_is_run(protocol: int, tmp_path: Path) -> None:
    """A call is refused before it is made, and the message says so."""
    made = tmp_path / "made"
    with pytest.raises(ArtefactError, match="more than plain values"):
        load_plain(pickle.dumps({"entries": [Hostile(made)]}, protocol))
    assert not made.exists()


_HUGE_INDEX = b"\x80\x02]r" + struct.pack("<I", 0xFFFFFFFF) + b"."
_HUGE_TEXT = b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"."


@each_row(
    "data, told",
    [
        (pickle.dumps(OrderedDict(a=1), 2), "more than plain values"),
        (b"\x80\x02cos\nsystem\n.", "more than plain values"),
        (b"\x80\x04\x95" + bytes(8) + b"\x8c\x02os\x8c\x06system\x93.", "more than plain values"),
        (b"\x80\x02Ptest\n.", "more than plain values"),
        (b"\x80\x02\x82\x01.", "more than plain values"),
        (_HUGE_INDEX, "cut or damaged"),
        (_HUGE_TEXT, "cut or damaged"),
        (b"\x80\x02.", "cut or damaged"),
        (b"\x80\x02K\x01K\x02a.", "cut or damaged"),
        (b"\x80\x02}K\x01K\x02s.", "cut or damaged"),
        (b"\x80\x02X\x02\x00\x00\x00\xff\xff.", "cut or damaged"),
        (b"\x80\x02u.", "cut or damaged"),
        (b"\x80\x02h\x05.", "cut or damaged"),
    ],
)
def test_what_is_no_plain_value_is_refused_in_a_sentence(data: bytes, told: str) -> None:
    with pytest.raises(ArtefactError, match=told):
        load_plain(data)


def test_a_pickle_that_is_cut_anywhere_is_refused() -> None:
    data = pickle.dumps(VALUES["nested"], 2)
    whole = []
    for size in range(len(data)):
        try:
            load_plain(data[:size])
            whole.append(size)
        except ArtefactError:
            pass
    assert whole == []


def test_deep_nesting_and_many_values_end_in_a_sentence() -> None:
    """A megabyte of opening brackets takes neither the stack nor more than the values that are allowed."""
    tracemalloc.start()
    for opening in (b"]", b"(", b"}", b"]q\x00h\x00a"):
        with pytest.raises(ArtefactError, match="more than 100000 values"):
            load_plain(b"\x80\x02" + opening * 1_000_000, most=100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20
    value = load_plain(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".")
    assert isinstance(value, list)
    assert len(value) == 1
