"""Who stands elsewhere: the stacks of a job's processes side by side.

In a job that hangs most ranks wait for one another. Those that do not are who they wait for; where all wait,
they may wait in different places. A process beside the ranks, such as a launcher, is none of them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from corpus import stack_activities
from ingest.artefacts.stack_dumps import ProcessStacks
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame

Kind = Literal[
    "elsewhere",  # most wait for others, a few do something
    "waits-alone",  # a few wait for others, most do something
    "different-collectives",  # all wait, in different collectives
    "different-waits",  # all wait, some for the card or for a single peer
    "same-wait",  # all wait in one place
    "apart",  # nobody waits for others, and a few stand elsewhere
    "same-place",  # all do the same
]
# Between two ranks alone: others may rightly wait in another one meanwhile.
_BETWEEN_TWO = frozenset(
    {"send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object", "recv_object"}
)


@dataclass(frozen=True, slots=True)
class ProcessPosition:
    """Where one process stands: what it does, by which call, and where in the job's own code.

    `operation` is the collective that it waits in. `inner` is the innermost call.
    """

    process: ProcessStacks
    activity: str
    waits: bool
    operation: str
    own: Frame | None
    inner: Frame

    @property
    def place(self) -> tuple[str, str]:
        """What is compared between ranks: the operation, and where in the job's own code, or the call."""
        call = self.own or self.inner
        return self.operation or self.activity, f"{call.file}:{call.line}:{call.function}"


@dataclass(frozen=True, slots=True)
class StackVerdict:
    """What the stacks of all processes show; `outliers` stand otherwise than `others`."""

    kind: Kind
    outliers: tuple[ProcessPosition, ...]
    others: tuple[ProcessPosition, ...]
    missing: tuple[int, ...] = ()


def process_positions(processes: Iterable[ProcessStacks]) -> tuple[ProcessPosition, ...]:
    """Tell where each process stands, without helpers; of several looks at one the last one counts."""
    found: dict[tuple[int, str, int], ProcessPosition] = {}
    for process in processes:
        position = _position_of(process)
        if position is None:
            continue
        by_rank = process.rank >= 0
        source = "" if by_rank or process.pid else process.source
        found[process.rank, f"{process.host}/{source}", 0 if by_rank else process.pid] = position
    return tuple(sorted(found.values(), key=lambda position: (position.process.rank, position.process.pid)))


def _position_of(process: ProcessStacks) -> ProcessPosition | None:
    thread = process.main
    if thread is None:
        return None
    table = stack_activities.load()
    calls = thread.calls
    activity, place = table.of([(call.file, call.function) for call in calls])
    if activity is not None and activity.helper:
        return None
    own = next((call for call in reversed(calls) if call.line and _is_own(call)), None)
    named = calls[place].function if activity and activity.waits else ""
    return ProcessPosition(
        process,
        activity.name if activity else "",
        activity is not None and activity.waits,
        _operation(calls, place) if named else "",
        own,
        next((call for call in reversed(calls) if call.line), calls[-1]),
    )


def _operation(calls: Sequence[Frame], place: int) -> str:
    """Name the collective: of the calls into the library that follow each other, the outermost.

    Above it wrappers only measure and log, below it native calls wait for what Python called.
    """
    table = stack_activities.load()
    waiting, _ = table.of([(calls[place].file, calls[place].function)])
    rows = [table.of([(call.file, call.function)])[0] for call in calls[: place + 1]]
    python = [at for at, row in enumerate(rows) if row is waiting and calls[at].file.endswith(".py")]
    place = python[-1] if python else place
    while place > 0 and (before := calls[place - 1]):
        if rows[place - 1] is not waiting or before.file != calls[place].file:
            break
        place -= 1
    return calls[place].function.rpartition(".")[2].rpartition("::")[2]


def _is_own(call: Frame) -> bool:
    """Tell whether a call is in the job's own code; py-spy cuts paths short, also those of Python."""
    first = call.file.partition("/")[0].removesuffix(".py")
    is_short = not call.file.startswith("/")
    if is_short and (first in sys.stdlib_module_names or first.startswith("<")):
        return False
    return is_own(call) and not stack_activities.load().knows_package(call.file)


def stack_verdict(found: Sequence[ProcessPosition]) -> StackVerdict | None:
    """Compare where all processes stand; None without any."""
    if not found:
        return None
    ranks = {position.process.rank for position in found if position.process.rank >= 0}
    # Those below the highest that has a stack, and that have none themselves.
    missing = tuple(sorted(set(range(max(ranks) + 1)) - ranks)) if len(ranks) > 1 else ()
    waiting = tuple(position for position in found if position.waits)
    busy = tuple(position for position in found if not position.waits)
    if waiting and busy:
        if len(busy) <= len(waiting):
            return StackVerdict("elsewhere", busy, waiting, missing)
        return StackVerdict("waits-alone", waiting, busy, missing)
    outliers, others = _split(found, lambda position: position.place)
    if not outliers and len({position.place for position in found}) == 1:
        return StackVerdict("same-wait" if waiting else "same-place", (), others, missing)
    if not waiting:
        return StackVerdict("apart", outliers, others, missing)
    operations = {position.operation for position in found}
    is_sure = all(position.activity == "collective" for position in found) and not operations & _BETWEEN_TWO
    return StackVerdict("different-collectives" if is_sure else "different-waits", outliers, others, missing)


def _split(
    found: Sequence[ProcessPosition], key: Callable[[ProcessPosition], object]
) -> tuple[tuple[ProcessPosition, ...], tuple[ProcessPosition, ...]]:
    """Tell who stands otherwise than the majority; nobody does where there is none."""
    counts = Counter(map(key, found)).most_common()
    if len(counts) < 2 or counts[0][1] * 2 <= len(found):
        return (), tuple(found)
    most = counts[0][0]
    return (
        tuple(position for position in found if key(position) != most),
        tuple(position for position in found if key(position) == most),
    )
