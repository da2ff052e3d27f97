"""Who did not come: the flight recorder dumps of a job's ranks side by side, and what they show.

Within a process group a sequence number names the same collective on all ranks. At the first one that did not
end, the ranks that called something else, called late or never called are the outliers; which side is the odd
one is told by majority, so that a wrong rank 0 does not make the others look wrong. A rank without a dump is
named and never blamed: its dump is missing, no more is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

from corpus import collectives
from ingest.artefacts.flight_recorder import Collective, RankDump
from ingest.logs.stacks.stack import Frame

# What PyTorch calls the group of all ranks.
WORLD = "default_pg"

Kind = Literal[
    "operations-differ",
    "sizes-differ",
    "types-differ",
    "order-differs",
    "never-called",
    "called-alone",
    "late",
    "not-completed",
    "dumps-missing",
]


@dataclass(frozen=True, slots=True)
class RankRow:
    """How far a rank came in a group: the numbers of what it called, started and completed last, 0 for none.

    `last` is its last call there, None without any.
    """

    rank: int
    group: str
    description: str
    enqueued: int
    started: int
    completed: int
    last: Collective | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the dumps of one group show.

    `outliers` are the ranks that did otherwise than `others`; empty where neither side has the majority.
    `found` is what the outliers called, and `call` where in the job's own code their last call stands.
    `delay_s` is how long after the first caller they came. `missing` are members of the group without a dump.
    """

    kind: Kind
    group: str
    description: str
    sequence: int
    operation: str
    outliers: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    expected: str = ""
    found: str = ""
    call: Frame | None = None
    delay_s: float = 0.0
    missing: tuple[int, ...] = ()
    since_ns: int = 0


@dataclass(frozen=True)
class Group:
    """The collectives of one process group, by rank and sequence number; one number may hold several."""

    name: str
    description: str
    members: tuple[int, ...]
    calls: Mapping[int, Mapping[int, tuple[Collective, ...]]]
    dumped: frozenset[int]

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Members without a dump."""
        return tuple(rank for rank in self.members if rank not in self.dumped)

    @cached_property
    def present(self) -> tuple[int, ...]:
        """Members with a dump."""
        return tuple(rank for rank in self.members if rank in self.dumped)

    @cached_property
    def begin(self) -> int:
        """The first number that no rank's buffer has lost yet."""
        return max((min(calls) for calls in self.calls.values() if calls), default=0)

    @cached_property
    def has_states(self) -> bool:
        """Tell whether it is recorded what ended; gloo leaves all calls at `scheduled`."""
        states = {
            call.state for calls in self.calls.values() for several in calls.values() for call in several
        }
        return not states.isdisjoint(("started", "completed"))

    def called(self, number: int) -> Mapping[int, tuple[Collective, ...]]:
        """Give what each rank called under a number, without those that did not."""
        return {rank: calls[number] for rank, calls in self.calls.items() if number in calls}

    def enqueued(self, rank: int) -> int:
        """Give the number of a rank's last collective, 0 without any."""
        return max(self.calls.get(rank, ()), default=0)


@dataclass(frozen=True)
class RankTable:
    """Rows of all ranks and groups, and the verdicts; the first verdict is what the others follow from."""

    rows: tuple[RankRow, ...]
    verdicts: tuple[Verdict, ...] = ()
    ranks: tuple[int, ...] = ()


def rank_table(dumps: Iterable[RankDump]) -> RankTable:
    """Compare the dumps of a job; of two dumps of one rank the one with the later call counts."""
    by_rank: dict[int, RankDump] = {}
    for dump in sorted(
        dumps, key=lambda dump: max((call.created_ns for call in dump.collectives), default=0)
    ):
        by_rank[dump.rank] = dump
    groups = tuple(_groups(by_rank))
    rows = tuple(_row(group, rank) for group in groups for rank in group.present)
    verdicts = [verdict for group in groups if (verdict := _verdict(group, by_rank))]
    return RankTable(rows, tuple(_ordered(verdicts, by_rank)), tuple(sorted(by_rank)))


def _groups(dumps: Mapping[int, RankDump]) -> Iterator[Group]:
    """Give each group of the dumps; groups of one name with other members are others."""
    found: dict[tuple[str, tuple[int, ...]], dict[int, dict[int, list[Collective]]]] = {}
    descriptions: dict[tuple[str, tuple[int, ...]], str] = {}
    for rank, dump in dumps.items():
        for call in dump.collectives:
            # Sends and receives are counted by pairs of ranks.
            if call.is_p2p or call.sequence <= 0:
                continue
            ranks = dump.members.get(call.group)
            if not ranks:
                # A group that the rank's own dump does not name is told by the others.
                told = (each.members.get(call.group, ()) for each in dumps.values())
                ranks = next((members for members in told if rank in members), ())
            key = (call.group, ranks)
            found.setdefault(key, {}).setdefault(rank, {}).setdefault(call.sequence, []).append(call)
            descriptions[key] = call.description
    for (name, members), calls in found.items():
        description = descriptions[name, members]
        known = set(members) | set(calls)
        if description == WORLD:
            # gloo names the groups' ranks under no name of theirs; all of them belong to the world.
            known |= {*dumps, *(rank for dump in dumps.values() for rank in dump.members.get("", ()))}
        numbered = {
            rank: {number: tuple(several) for number, several in numbers.items()}
            for rank, numbers in calls.items()
        }
        yield Group(name, description, tuple(sorted(known)), numbered, frozenset(dumps))


def _row(group: Group, rank: int) -> RankRow:
    calls = [call for several in group.calls.get(rank, {}).values() for call in several]
    begun = [call.sequence for call in calls if call.state in ("started", "completed")]
    ended = [call.sequence for call in calls if call.state == "completed"]
    last = max(calls, key=lambda call: call.sequence, default=None)
    return RankRow(
        rank,
        group.name,
        group.description,
        group.enqueued(rank),
        max(begun, default=0),
        max(ended, default=0),
        last,
    )


def _verdict(group: Group, dumps: Mapping[int, RankDump]) -> Verdict | None:
    """Give what the first collective shows that ranks disagree on, or that did not end."""
    numbers = sorted({number for calls in group.calls.values() for number in calls if number >= group.begin})
    for number in numbers:
        calls = group.called(number)
        if all(call.state == "completed" for several in calls.values() for call in several):
            continue
        if found := _mismatch(group, calls) or _absence(group, calls, dumps) or _lateness(group, calls):
            return _sure(group, found, numbers)
        if group.has_states:
            # Later ones wait for this one, however far each rank went on calling.
            return _unfinished(group, calls)
    last = group.called(numbers[-1]) if numbers else {}
    # gloo records no ends, but a job that stands still does so in its last call.
    if group.missing and not group.has_states and len(last) >= len(group.missing):
        return _unfinished(group, last)
    return None


def _sure(group: Group, found: Verdict, numbers: Sequence[int]) -> Verdict:
    """Give a verdict, or a later mismatch instead of a delay that nothing shows to have ended the job.

    Where no ends are recorded, ranks that called on after a delay may have waited it out.
    """
    if found.kind != "late" or group.has_states:
        return found
    later = (number for number in numbers if number > found.sequence)
    return next((told for number in later if (told := _mismatch(group, group.called(number)))), found)


def _mismatch(group: Group, calls: Mapping[int, Sequence[Collective]]) -> Verdict | None:
    """Compare what ranks called under one number: the operations, then shapes, then types."""
    for kind, shown in _COMPARED:
        said = {rank: shown(several) for rank, several in calls.items()}
        counts = Counter(said.values()).most_common()
        if len(counts) < 2:
            continue
        expected, most = counts[0]
        # Two halves accuse each other.
        is_tie = counts[1][1] == most
        outliers = tuple(sorted(rank for rank, words in said.items() if words != expected))
        found = said[outliers[0]]
        first = calls[outliers[0]][-1]
        return _of(
            group,
            kind,
            calls,
            outliers=() if is_tie else outliers,
            others=tuple(sorted(set(calls) - (set() if is_tie else set(outliers)))),
            expected=expected,
            found=found,
            call=None if is_tie else first.own_call,
        )
    return None


def _operations(calls: Sequence[Collective]) -> str:
    return ", ".join(call.operation for call in calls)


def _sides(calls: Sequence[Collective], name: Literal["shapes", "types"]) -> str:
    """Write what must be equal of a collective's arguments."""
    table = collectives.load()
    told: list[str] = []
    for call in calls:
        for side in table.equal_sides(call.operation):
            argument = call.given if side == "given" else call.result
            values = argument.shapes if name == "shapes" else argument.types
            text = ", ".join(str(list(value)) if isinstance(value, tuple) else value for value in values)
            if not told or told[-1] != text:
                told.append(text)
    return " -> ".join(told)


_COMPARED: tuple[tuple[Kind, Callable[[Sequence[Collective]], str]], ...] = (
    ("operations-differ", _operations),
    ("sizes-differ", partial(_sides, name="shapes")),
    ("types-differ", partial(_sides, name="types")),
)


def _absence(
    group: Group, calls: Mapping[int, Sequence[Collective]], dumps: Mapping[int, RankDump]
) -> Verdict | None:
    """Tell which ranks never came to a collective, or that only a few did."""
    number = next(iter(calls.values()))[0].sequence
    absent = tuple(rank for rank in group.present if group.enqueued(rank) < number)
    if not absent:
        return None
    callers = tuple(sorted(calls))
    is_alone = len(callers) < len(absent)
    outliers, others = (callers, absent) if is_alone else (absent, callers)
    last = calls[outliers[0]][-1] if is_alone else _last(dumps[outliers[0]])
    return _of(
        group,
        "called-alone" if is_alone else "never-called",
        calls,
        outliers=outliers,
        others=others,
        call=last.own_call if last else None,
    )


def _lateness(group: Group, calls: Mapping[int, Sequence[Collective]]) -> Verdict | None:
    """Tell which ranks came later than the others waited."""
    came = {rank: several[0].created_ns for rank, several in calls.items()}
    first = min(came.values())
    patience_ns = max(several[0].timeout_ms for several in calls.values()) * 1_000_000
    late = tuple(sorted(rank for rank, when in came.items() if when - first >= patience_ns))
    if not patience_ns or not first or not late:
        return None
    delay_s = (min(came[rank] for rank in late) - first) / 1e9
    others = tuple(sorted(set(calls) - set(late)))
    return _of(
        group, "late", calls, outliers=late, others=others, call=calls[late[0]][0].own_call, delay_s=delay_s
    )


def _unfinished(group: Group, calls: Mapping[int, Sequence[Collective]]) -> Verdict:
    """Tell of a collective that all ranks with dumps called alike and that did not end."""
    ended = {rank for rank, several in calls.items() if all(call.state == "completed" for call in several)}
    pending = tuple(sorted(set(calls) - ended))
    kind: Kind = "dumps-missing" if group.missing else "not-completed"
    is_odd = len(pending) < len(ended)
    return _of(
        group,
        kind,
        calls,
        outliers=pending if is_odd else (),
        others=tuple(sorted(ended)) if is_odd else pending,
    )


def _of(
    group: Group,
    kind: Kind,
    calls: Mapping[int, Sequence[Collective]],
    *,
    outliers: tuple[int, ...],
    others: tuple[int, ...],
    expected: str = "",
    found: str = "",
    call: Frame | None = None,
    delay_s: float = 0.0,
) -> Verdict:
    """Make a verdict on one number of a group; the operation is what most ranks called."""
    operation = Counter(_operations(several) for several in calls.values()).most_common(1)[0][0]
    created = [one.created_ns for several in calls.values() for one in several]
    return Verdict(
        kind=kind,
        group=group.name,
        description=group.description,
        sequence=next(iter(calls.values()))[0].sequence,
        operation=operation,
        outliers=outliers,
        others=others,
        expected=expected,
        found=found,
        call=call,
        delay_s=delay_s,
        missing=group.missing,
        since_ns=min(created),
    )


_RANKING: tuple[tuple[Kind, ...], ...] = (
    ("operations-differ", "sizes-differ", "types-differ"),
    ("never-called", "called-alone", "order-differs"),
    ("late",),
    ("not-completed",),
    ("dumps-missing",),
)


def _ordered(verdicts: Sequence[Verdict], dumps: Mapping[int, RankDump]) -> list[Verdict]:
    """Put first what the others follow from.

    A rank that never came to one group's collective since it waits in another group's is no cause. Where all
    wait for each other so, the groups were called in different orders.
    """
    stuck = {(verdict.group, verdict.sequence) for verdict in verdicts}
    # Whose last call is one of the open collectives.
    waiting = {
        rank
        for rank, dump in dumps.items()
        if (last := _last(dump)) is not None
        and last.state != "completed"
        and (last.group, last.sequence) in stuck
    }
    freed = [_without(verdict, waiting | _held(verdict, dumps), dumps) for verdict in verdicts]
    ordered = sorted(
        freed,
        key=lambda verdict: (
            _is_consequence(verdict, waiting),
            next(place for place, kinds in enumerate(_RANKING) if verdict.kind in kinds),
            verdict.since_ns,
        ),
    )
    if not ordered or not _is_consequence(ordered[0], waiting):
        return ordered
    first = ordered[0]
    everyone = tuple(sorted({*first.outliers, *first.others}))
    return [replace(first, kind="order-differs", outliers=(), others=everyone, call=None), *ordered]


def _held(verdict: Verdict, dumps: Mapping[int, RankDump]) -> set[int]:
    """Give the ranks that wait in a group of which nobody else left a call: no verdict tells of it."""
    return {
        rank
        for rank, dump in dumps.items()
        if (last := _last(dump)) is not None
        and last.state == "scheduled"
        and last.group != verdict.group
        and last.group in dump.unfinished
    }


def _last(dump: RankDump) -> Collective | None:
    """Give what a rank called last, in any group."""
    return max(dump.collectives, key=lambda call: call.created_ns, default=None)


def _absent(verdict: Verdict) -> tuple[int, ...]:
    """Give the ranks that a verdict says did not call."""
    if verdict.kind == "called-alone":
        return verdict.others
    return verdict.outliers if verdict.kind == "never-called" else ()


def _is_consequence(verdict: Verdict, waiting: Set[int]) -> bool:
    absent = _absent(verdict)
    return bool(absent) and waiting >= set(absent)


def _without(verdict: Verdict, waiting: Set[int], dumps: Mapping[int, RankDump]) -> Verdict:
    """Take those ranks out of a verdict that did not call because they wait elsewhere, if others remain."""
    absent = _absent(verdict)
    free = tuple(rank for rank in absent if rank not in waiting)
    if not free or len(free) == len(absent):
        return verdict
    callers = verdict.outliers if verdict.kind == "called-alone" else verdict.others
    last = _last(dumps[free[0]])
    return replace(
        verdict, kind="never-called", outliers=free, others=callers, call=last.own_call if last else None
    )
