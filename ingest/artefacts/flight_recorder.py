"""Read PyTorch's flight recorder dumps: which collectives a rank called, in what order, how far each came.

A dump is a pickle or JSON, of PyTorch 2.2 (a bare list of entries) to the newest (version 2.10 of the
format), and of the back ends that took the format over; torch/csrc/distributed/c10d/FlightRecorder*.hpp
writes it. Which rank wrote a dump stands nowhere but in the file's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corpus.message import Message
from ingest.artefacts.file_heads import PICKLES
from ingest.artefacts.plain_pickle import load_plain
from ingest.errors import ArtefactError
from ingest.logs.lines import printable
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame

# A buffer of 20,000 entries, ten times the default, is some 30 MB.
MOST_BYTES = 32 << 20
# JSON makes three times as many values of a byte as a dump's pickle.
MOST_JSON_BYTES = 16 << 20
MOST_ENTRIES = 20_000
# Of all groups of a dump together.
_MOST_RANKS = 500_000
_MOST_TENSORS, _MOST_DIMENSIONS, _MOST_CALLS = 32, 8, 64
_LONGEST = 300

_RANK = re.compile(r"rank[_-]?(\d{1,6})(?!.*rank[_-]?\d)|(\d{1,6})$", re.IGNORECASE)
_ENDING = re.compile(r"\.(?:json|pickle|pkl|gz|zst|xz|bz2|trace|dump|bin)$", re.IGNORECASE)
_NUMBERS = re.compile(r"\d{1,6}")

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """The tensors that a collective was called with, or gives: a shape and a type each."""

    shapes: tuple[Shape, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collective:
    """One call of a collective on one rank.

    `sequence` counts the collectives of the group, from 1. `state` is `scheduled`, `started` or `completed`;
    gloo leaves all at `scheduled`. `calls` are the stack, outermost first; `created_ns` is the wall clock's.
    """

    group: str
    description: str
    sequence: int
    operation: str
    state: str
    given: TensorArgument
    result: TensorArgument
    created_ns: int = 0
    timeout_ms: int = 0
    is_p2p: bool = False
    calls: tuple[Frame, ...] = ()

    @property
    def own_call(self) -> Frame | None:
        """The innermost call in the job's own code."""
        return next((call for call in reversed(self.calls) if call.line and is_own(call)), None)


@dataclass(frozen=True, slots=True)
class RankDump:
    """What one rank recorded. `members` are the ranks of each group, by its name, where the dump tells.

    `unfinished` names the groups whose last collective had not ended.
    """

    rank: int
    source: str
    version: str
    members: Mapping[str, tuple[int, ...]]
    collectives: tuple[Collective, ...]
    omitted: int = 0
    unfinished: frozenset[str] = frozenset()


def rank_in(name: str) -> int | None:
    """Give the rank that a file's name ends with, as `nccl_trace_rank_3` or `rank3.json`; None without."""
    last = name.rsplit("/", 1)[-1]
    while (shorter := _ENDING.sub("", last)) != last:
        last = shorter
    found = _RANK.search(last)
    return int(found[1] or found[2]) if found else None


def read_dump(data: bytes, name: str) -> RankDump:
    """Read a dump; raises ArtefactError where it is none, is damaged or hostile, or its rank is not known."""
    is_pickle = data.startswith(PICKLES)
    most = MOST_BYTES if is_pickle else MOST_JSON_BYTES
    if len(data) > most:
        raise ArtefactError(Message("artefacts.too-large", megabytes=most >> 20))
    try:
        value = load_plain(data) if is_pickle else json.loads(data)
    except (ValueError, RecursionError) as error:  # of JSON: what is wrong with a pickle its reader tells
        raise ArtefactError(Message("artefacts.json-damaged")) from error
    dump = value if isinstance(value, dict) else {"entries": value}
    entries = dump.get("entries", [])
    if not isinstance(entries, list) or not ("entries" in dump or "pg_config" in dump):
        raise ArtefactError(Message("artefacts.no-dump"))
    rank = _number(dump.get("rank"), -1) if "rank" in dump else rank_in(name)
    if rank is None or rank < 0:
        raise ArtefactError(Message("artefacts.no-rank"))
    kept = entries[-MOST_ENTRIES:]
    collectives = tuple(_collective(entry) for entry in kept if isinstance(entry, dict))
    if kept and not collectives:
        raise ArtefactError(Message("artefacts.no-dump"))
    return RankDump(
        rank,
        printable(name)[:_LONGEST],
        _text(dump.get("version")),
        _members(dump.get("pg_config")),
        collectives,
        len(entries) - len(collectives),
        _unfinished(dump.get("pg_status")),
    )


def _unfinished(status: object) -> frozenset[str]:
    """Name the groups that were given more than has ended."""
    groups = status if isinstance(status, dict) else {}
    return frozenset(
        _text(name)
        for name, group in groups.items()
        if isinstance(group, dict)
        and _number(group.get("last_enqueued_collective"), -1)
        > _number(group.get("last_completed_collective"), -1)
    )


def _collective(entry: Mapping[str, object]) -> Collective:
    # Until 2.3 a group had a name alone; before, its number.
    group = entry.get("process_group", entry.get("pg_name", entry.get("pg_id")))
    parts = [_text(part) for part in group[:2]] if isinstance(group, list | tuple) else [_text(group)]
    is_p2p = entry.get("is_p2p") is True
    counted = entry.get("p2p_seq_id") if is_p2p else entry.get("collective_seq_id")
    return Collective(
        group=parts[0] if parts else "",
        description=parts[1] if len(parts) > 1 else "",
        sequence=_number(entry.get("seq_id") if counted is None else counted),
        operation=_text(entry.get("profiling_name")).partition(":")[2] or _text(entry.get("profiling_name")),
        state=_text(entry.get("state")),
        given=_argument(entry, "input"),
        result=_argument(entry, "output"),
        created_ns=_number(entry.get("time_created_ns")),
        timeout_ms=_number(entry.get("timeout_ms")),
        is_p2p=is_p2p,
        calls=_calls(entry.get("frames")),
    )


def _argument(entry: Mapping[str, object], side: str) -> TensorArgument:
    shapes = _list(entry.get(f"{side}_sizes"), _MOST_TENSORS)
    types = _list(entry.get(f"{side}_dtypes"), _MOST_TENSORS)
    return TensorArgument(
        tuple(tuple(map(_number, _list(shape, _MOST_DIMENSIONS))) for shape in shapes),
        tuple(map(_text, types)),
    )


def _calls(frames: object) -> tuple[Frame, ...]:
    """Give the stack outermost first; a dump has it the other way around, and JSON none."""
    return tuple(
        Frame(_text(frame.get("filename")), _number(frame.get("line")), _text(frame.get("name")))
        for frame in reversed(_list(frames, _MOST_CALLS))
        if isinstance(frame, dict)
    )


def _members(config: object) -> Mapping[str, tuple[int, ...]]:
    """Give the ranks of each group; they stand as text, `[0, 1, 2]`, or as a list."""
    groups = config if isinstance(config, dict) else {}
    members: dict[str, tuple[int, ...]] = {}
    left = _MOST_RANKS
    for name, group in groups.items():
        ranks = group.get("ranks") if isinstance(group, dict) else None
        listed = _NUMBERS.findall(ranks[: 8 * left]) if isinstance(ranks, str) else _list(ranks, left)
        members[_text(name)] = tuple(sorted({_number(rank) for rank in listed}))
        left -= len(listed)
        if left <= 0:
            break
    return members


def _list(value: object, most: int) -> Sequence[object]:
    """Give a list's first items: a pickle's memo may repeat a long one in every entry."""
    return value[:most] if isinstance(value, list | tuple) else ()


def _number(value: object, default: int = 0) -> int:
    if isinstance(value, str) and _NUMBERS.fullmatch(value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _text(value: object) -> str:
    """Give a string as it may be shown, or a number's digits."""
    return printable(str(value)[:_LONGEST]) if isinstance(value, str | int) else ""
