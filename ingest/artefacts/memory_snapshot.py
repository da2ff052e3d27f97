"""Read PyTorch's snapshots of GPU memory: who held what when a request failed, what lay idle, what grew.

`torch.cuda.memory._dump_snapshot` and the observers of an out of memory write them as a pickle;
torch/cuda/memory.py lists the fields, torch/cuda/_memory_viz.py those of older versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from corpus.message import Message
from ingest.artefacts.plain_pickle import load_plain
from ingest.errors import ArtefactError
from ingest.logs.lines import printable
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame

# A hundred thousand entries, whose stacks share the calls, take some five million opcodes.
MOST_BYTES = 128 << 20
MOST_OPERATIONS = 8_000_000
# Of one snapshot, together.
_MOST_BLOCKS, _MOST_ENTRIES, _MOST_CALLS, _MOST_DEVICES = 1_000_000, 1_000_000, 64, 64
_LONGEST = 300
# What grows is allocated in at least so many of the equal parts of the recorded time, and never freed.
_PARTS, _GROWS_IN, _LEAST_BLOCKS = 8, 6, 8
# So many entries show how the memory in use went.
_COURSE, _GIB = 256, 1 << 30
# Calls of the allocator and of autograd name nobody.
_PLUMBING = (
    "torch/nn/modules/",
    "torch/nn/functional.py",
    "torch/utils/",
    "torch/autograd/",
    "torch/_ops.py",
    "??",
)


@dataclass(frozen=True, slots=True)
class Holder:
    """Memory in use that one call allocated: the job's own, or the innermost of Python's."""

    call: Frame
    module: str
    size: int
    blocks: int


@dataclass(frozen=True, slots=True)
class CardMemory:
    """What a snapshot tells of one card, in bytes.

    `asked` is the request that failed, 0 where none did; `free` what the card still had then. `idle` is
    reserved and not in use, `largest_idle` its largest piece. `growing` is the holder whose memory rose all
    along the trace. `course` is what was in use along the trace, in GiB, at so many of its entries.
    """

    device: int
    asked: int
    free: int
    reserved: int
    allocated: int
    idle: int
    largest_idle: int
    asked_by: Frame | None
    holders: tuple[Holder, ...]
    growing: Holder | None
    course: Mapping[int, float]

    @property
    def is_fragmented(self) -> bool:
        """Tell whether what lay idle would have been enough, had it been one piece."""
        return 0 < self.asked <= self.idle and self.largest_idle < self.asked


def read_snapshot(data: bytes) -> list[CardMemory]:
    """Give what a snapshot tells of each card; the one whose request failed stands first.

    Raises ArtefactError where it is damaged, too large, or holds no memory.
    """
    if len(data) > MOST_BYTES:
        raise ArtefactError(Message("artefacts.too-large", megabytes=MOST_BYTES >> 20))
    value = load_plain(data, MOST_OPERATIONS)
    # The first versions dumped the list of segments alone.
    snapshot = value if isinstance(value, dict) else {"segments": value}
    segments = _dicts(snapshot.get("segments"), _MOST_BLOCKS)
    traces = snapshot.get("device_traces")
    traces = traces[:_MOST_DEVICES] if isinstance(traces, list) else []
    devices = sorted({_number(segment.get("device")) for segment in segments})[:_MOST_DEVICES]
    devices += [place for place, trace in enumerate(traces) if trace and place not in devices]
    cards = [
        _card(
            device,
            [segment for segment in segments if _number(segment.get("device")) == device],
            _dicts(traces[device], _MOST_ENTRIES) if device < len(traces) else [],
        )
        for device in devices
    ]
    if not any(card.reserved or card.asked for card in cards):
        raise ArtefactError(Message("artefacts.no-memory"))
    return sorted(cards, key=lambda card: (card.asked == 0, -card.allocated))


def _card(
    device: int, segments: Sequence[Mapping[str, object]], trace: Sequence[Mapping[str, object]]
) -> CardMemory:
    blocks = [block for segment in segments for block in _dicts(segment.get("blocks"), _MOST_BLOCKS)]
    used = [block for block in blocks if block.get("state") == "active_allocated"]
    idle = [_number(block.get("size")) for block in blocks if block.get("state") == "inactive"]
    failed = next((entry for entry in reversed(trace) if entry.get("action") == "oom"), {})
    calls = _calls(failed)
    allocated = sum(_number(block.get("size")) for block in used)
    return CardMemory(
        device,
        _number(failed.get("size")),
        _number(failed.get("device_free")),
        sum(_number(segment.get("total_size")) for segment in segments),
        allocated,
        sum(idle),
        max(idle, default=0),
        _holding_call(calls),
        tuple(_holders(used)),
        _growing(trace),
        _course(trace, allocated),
    )


def _course(trace: Sequence[Mapping[str, object]], allocated: int) -> dict[int, float]:
    """Give the memory in use at entries of the trace, at the end of which `allocated` bytes are."""
    signs = {"alloc": 1, "free_requested": -1, "free": -1}
    changes = [signs.get(str(entry.get("action")), 0) * _number(entry.get("size")) for entry in trace]
    course = list(accumulate(changes, initial=allocated - sum(changes)))[1:]
    distance = max(1, len(course) // _COURSE)
    places = [*range(0, len(course), distance), len(course) - 1] if any(changes) else []
    return {place: max(0, course[place]) / _GIB for place in places}


def _holders(used: Sequence[Mapping[str, object]]) -> Iterator[Holder]:
    """Group blocks in use by the call that allocated them, the largest first."""
    sizes: Counter[tuple[Frame, str]] = Counter()
    counts: Counter[tuple[Frame, str]] = Counter()
    for block in used:
        calls = _calls(block)
        if call := _holding_call(calls):
            key = (call, _module(calls))
            sizes[key] += _number(block.get("size"))
            counts[key] += 1
    for (call, module), size in sizes.most_common():
        yield Holder(call, module, size, counts[call, module])


def _growing(trace: Sequence[Mapping[str, object]]) -> Holder | None:
    """Give the call whose memory is still in use and was allocated all along the trace, the largest."""
    live: dict[int, tuple[int, Mapping[str, object]]] = {}
    for place, entry in enumerate(trace):
        address = _number(entry.get("addr"))
        if entry.get("action") == "alloc":
            live[address] = (place, entry)
        elif entry.get("action") in ("free_requested", "free_completed", "free"):
            live.pop(address, None)
    parts: dict[tuple[Frame, str], set[int]] = {}
    sizes: Counter[tuple[Frame, str]] = Counter()
    counts: Counter[tuple[Frame, str]] = Counter()
    for place, entry in live.values():
        calls = _calls(entry)
        if call := _holding_call(calls):
            key = (call, _module(calls))
            parts.setdefault(key, set()).add(place * _PARTS // len(trace))
            sizes[key] += _number(entry.get("size"))
            counts[key] += 1
    for (call, module), size in sizes.most_common():
        if len(parts[call, module]) >= _GROWS_IN and counts[call, module] >= _LEAST_BLOCKS:
            return Holder(call, module, size, counts[call, module])
    return None


def _calls(item: Mapping[str, object]) -> tuple[Frame, ...]:
    """Give the calls of Python in an item's stack, innermost first; those of C++ have no file of Python's."""
    frames = item.get("frames")
    if "frames" not in item and (history := _dicts(item.get("history"), 1)):
        frames = history[0].get("frames")  # where a block's stood until 2.0
    return tuple(
        Frame(_text(frame.get("filename")), _number(frame.get("line")), _text(frame.get("name")))
        for frame in _dicts(frames, _MOST_CALLS)
        if _text(frame.get("filename")).endswith(".py") or ".py:" in _text(frame.get("filename"))
    )


def _holding_call(calls: Sequence[Frame]) -> Frame | None:
    """Give the innermost call of the job's own, else the innermost that is no plumbing, else any."""
    own = next((call for call in calls if is_own(call)), None)
    telling = (call for call in calls if not any(part in call.file for part in _PLUMBING))
    return own or next(telling, calls[0] if calls else None)


def _module(calls: Sequence[Frame]) -> str:
    """Name the module whose forward pass allocated: its file, without the folders above its package."""
    forward = next(
        (
            call
            for call in calls
            if call.function.startswith("forward") and not any(part in call.file for part in _PLUMBING)
        ),
        None,
    )
    return forward.file.rpartition("-packages/")[2] if forward else ""


def _dicts(value: object, most: int) -> list[dict[str, object]]:
    """Give a list's first dicts: a pickle's memo may repeat a long one in every entry."""
    return (
        [item for item in value[:most] if isinstance(item, dict)] if isinstance(value, list | tuple) else []
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64 else 0


def _text(value: object) -> str:
    return printable(value[:_LONGEST]) if isinstance(value, str) else ""
