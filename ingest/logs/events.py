"""Events: notable lines, the same one over many ranks and repetitions held as one with a count."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from corpus.log_patterns import Handler, Kind, PatternRole, Tells
from corpus.schema import Strength
from ingest.logs.facts import Value
from ingest.logs.stacks.own_calls import own_call
from ingest.logs.stacks.tracebacks import Frame

CascadeRole = Literal["root", "collateral", "recovered", "teardown"]
# The pattern and the wording that events of one group share.
GroupKey = tuple[str, str]

# Behind a row that stands for several: python/ray/_private/ray_logging.
_LATE = "x across cluster]"
_MASKS = (
    (re.compile(r" ?\[repeated \d+x across cluster\].*$"), ""),
    (re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b"), "<id>"),
    (re.compile(r"(?<![\w.])(?:/[\w.@+-]+){2,}"), "<path>"),
    (re.compile(r"\d+(?:\.\d+)*"), "<n>"),
)
# How a row names the rank that prints it; two writers may have met on one row.
_LABEL = re.compile(r"\[(?:rank|default)(\d{1,5})\]")
_NAMED = re.compile(r"[( ]rank=(\d{1,5})\b|\[(?:PG [^\]]{1,80}? )?R(?:ank|ANK)[ :]?(\d{1,5})\]")
_FILE = re.compile(r"(?:^|[/_.-])rank[_-]?(\d{1,5})(?=[/_.-]|$)|/attempt_\d+/(\d{1,5})/")
_STRENGTH = {"states": 3, "suggests": 2, "hints": 1}
_ROLE = {"origin": 2, "wrapper": 0, "collateral": 1, "none": 0}


@lru_cache(256)
def masked(text: str) -> str:
    """Replace numbers, addresses and paths, so that the same message of other ranks reads the same."""
    for expression, mark in _MASKS:
        text = expression.sub(mark, text)
    return text[:300]


@dataclass(frozen=True, slots=True)
class Event:
    """A failure's line, or many alike.

    `line`, `source`, `time` are those of the first; `count`, `last` and `last_time` (empty where the last
    was only counted) cover all; `sources` names up to 64 streams, `ranks` every rank that said it,
    `missing` those of the job that did not, and of these `silent` those that tell of no other failure
    either. `usual` tells that a healthy run of the same job says it too, `lived_on` that its program goes
    on below with what it did above, `earlier_run` that a run said it which ended before the file's last one
    began. `pattern_role` is what such lines are as a rule, `role` what this one is here. `handler` and
    `leads_to` are the pattern's, `tells` that of all patterns of the
    line. `linked` tells that its traceback came of the one above it, `handled` that another came of its
    own, `passing` that its program may have gone on after it, `lasting` that it fails the job where it
    holds to the last step, `final` that a launcher or shell says so of a program's end, `outright` that it
    says its cause in so many words, `last_word` that the log ends with it. `rest` are the lines below a
    message that does not say the reason itself. `announces`, `calm` and `logged` are those of its traceback;
    what a logger calls an error is logged too. `default_cause` is what its exception means where nothing else
    tells it.
    """

    pattern: str
    kind: Kind
    pattern_role: PatternRole
    line: int
    text: str
    body: str
    cause: str | None = None
    strength: Strength = "hints"
    source: str = ""
    rank: str = ""
    time: str = ""
    exception: str = ""
    frames: tuple[Frame, ...] = ()
    remote: str = ""
    facts: Mapping[str, Value] = field(default_factory=dict)
    frameworks: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    traceback: int = 0
    linked: bool = False
    handled: bool = False
    passing: bool = False
    lasting: bool = False
    final: bool = False
    outright: bool = False
    last_word: bool = False
    rest: str = ""
    announces: bool = False
    calm: int = 0
    logged: bool = False
    count: int = 1
    last: int = 0
    last_time: str = ""
    sources: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    usual: bool = False
    lived_on: bool = False
    earlier_run: bool = False
    role: CascadeRole = "collateral"
    handler: Handler | None = None
    tells: tuple[Tells, ...] = ()
    leads_to: str = ""
    default_cause: str | None = None

    @property
    def weight(self) -> tuple[int, int]:
        """Order events by how much they say of the cause."""
        return _ROLE[self.pattern_role], _STRENGTH[self.strength] if self.cause else 0


class Told(NamedTuple):
    """What of a failure's line is kept where its group is known: who said it, and when."""

    kind: Kind
    line: int
    text: str
    source: str
    rank: str
    time: str


@dataclass(slots=True)
class _Group:
    """Events of one group while a log goes by: the first of them, and what the later ones change of it."""

    first: Event
    told: Event
    frames: tuple[Frame, ...]
    count: int
    last: int
    last_time: str
    sources: dict[str, None]

    @classmethod
    def of(cls, event: Event) -> _Group:
        sources = dict.fromkeys((event.source,) if event.source else ())
        return cls(event, event, event.frames, event.count, event.line, event.time, sources)

    @property
    def event(self) -> Event:
        """Give the group as one event."""
        told = self.told
        return replace(
            self.first,
            count=self.count,
            last=self.last,
            last_time=self.last_time,
            sources=tuple(self.sources),
            frames=self.frames,
            exception=told.exception,
            remote=told.remote,
            traceback=told.traceback,
            linked=told.linked,
        )


class EventLog:
    """Gather events, grouped; when there are too many kinds, the ones that say least are dropped.

    `file` is the rank whose file is read, as its name tells it; None of others.
    """

    LIMIT = 3000
    SOURCES = 64

    def __init__(self) -> None:
        self._groups: dict[GroupKey, _Group] = {}
        self._ranks: dict[GroupKey, set[int]] = {}
        self._heard: set[int] = set()
        self._all_heard = True
        self.file: int | None = None
        self.omitted = 0

    def begin(self, name: str) -> None:
        """Begin a file, which may be that of one rank."""
        match = _FILE.search(name)
        self.file = int(match[1] or match[2]) if match else None

    def add(self, event: Event) -> GroupKey:
        """Take in one event; give the group that it is in now."""
        key = (event.pattern, masked(event.body))
        told = Told(event.kind, event.line, event.text, event.source, event.rank, event.time)
        known = self._groups.get(key)
        if known is None:
            self._hear(key, told)
            self._groups[key] = _Group.of(event)
            if len(self._groups) > self.LIMIT:
                self._cut()
            return key
        if not known.frames and event.frames:
            # A first sight without its traceback takes a later one's frames: the same failure told twice.
            known.told, known.frames = event, event.frames
        is_further_out = event.linked or event.kind == "kill"
        if (
            is_further_out
            and event.line > known.first.line
            and own_call(known.frames) is None
            and own_call(event.frames)
        ):
            # Raised once more of itself, further out, or met by the main process after its workers: there the
            # calls of the job's own code show.
            known.frames = event.frames
        return self.add_again(key, told, event.count)

    def add_again(self, key: GroupKey, told: Told, count: int = 1) -> GroupKey:
        """Take in one more line of a group that is there, which stands for so many; give the group."""
        self._hear(key, told)
        known = self._groups[key]
        if told.source and len(known.sources) < self.SOURCES:
            known.sources.setdefault(told.source)
        known.count += count
        # Ray tells late, and together, what its processes said before; whoever has failed says so himself.
        is_late = _LATE in told.text and known.first.pattern_role == "collateral"
        if told.line >= known.last and not is_late:
            known.last, known.last_time = told.line, told.time
        return key

    def _hear(self, key: GroupKey, told: Told) -> None:
        """Note the ranks that a row comes from, by its number, its labels, its message and its stream."""
        is_ranked = told.rank.isdecimal()
        labels = _labels(told.text) if is_ranked or told.kind != "warning" else []
        if is_ranked:
            self._ranks.setdefault(key, set()).update((int(told.rank), *labels))
        if told.kind == "warning":
            return
        if is_ranked:
            self._heard.add(int(told.rank))
        self._heard.update(labels)
        text, source = told.text, told.source
        # Of the two each name of a rank holds one.
        if "R" in text or "rank=" in text or "rank=" in source or "R" in source:
            said = _NAMED.finditer(f"{text}\n {source}")
            self._heard.update(int(match[1] or match[2]) for match in said)
        if self.file is not None:
            self._heard.add(self.file)

    def holds(self, key: GroupKey) -> bool:
        """Tell whether a group is there (and was not cut)."""
        return key in self._groups

    def holds_from_above(self, key: GroupKey, line: int) -> bool:
        """Tell whether a group is there and began above a line."""
        known = self._groups.get(key)
        return known is not None and known.first.line < line

    def only_counts(self, key: GroupKey, kind: Kind, frames: Sequence[Frame], *, is_linked: bool) -> bool:
        """Tell whether one more event of a group, of such a kind and such calls, would only be counted."""
        known = self._groups.get(key)
        if known is None:
            return False
        return not frames or bool(known.frames and not is_linked and kind != "kill")

    def begins_in(self, key: GroupKey, line: int) -> bool:
        """Tell whether a line is the first one of a group."""
        known = self._groups.get(key)
        return known is not None and known.first.line == line

    def repeat(self, key: GroupKey, line: int, count: int) -> None:
        """Count lines that repeat a group's, the latest of them at `line`."""
        known = self._groups.get(key)
        # Of what was only counted, nobody looked who said it.
        self._all_heard = self._all_heard and known is not None and known.first.kind == "warning"
        if known is None:
            self.omitted += count
        else:
            known.count += count
            if line > known.last:
                known.last, known.last_time = line, ""
            self._ranks.pop(key, None)

    def _cut(self) -> None:
        # By weight, then by place: an early line is never dropped because later ones are many.
        ranked = sorted(
            self._groups.items(),
            key=lambda item: (tuple(-part for part in item[1].first.weight), item[1].first.line),
        )
        keep = self.LIMIT * 3 // 4
        self.omitted += sum(group.count for _, group in ranked[keep:])
        self._groups = dict(sorted(ranked[:keep], key=lambda item: item[1].first.line))
        self._ranks = {key: ranks for key, ranks in self._ranks.items() if key in self._groups}

    def first_after(self, line: int) -> int | None:
        """Give the first line of the first event from a line on; None where there is none."""
        lines = (group.first.line for group in self._groups.values())
        return min((each for each in lines if each >= line), default=None)

    def fails_from(self, line: int, besides: Container[str] = ()) -> bool:
        """Tell whether anything failed from a line on.

        A warning did not, and patterns `besides` do not count.
        """
        return any(
            group.last >= line and group.first.kind != "warning" and group.first.pattern not in besides
            for group in self._groups.values()
        )

    def lasting(self) -> list[tuple[GroupKey, str]]:
        """Give the groups that fail the job where they last to the end, each with its first row."""
        return [(key, group.first.text) for key, group in self._groups.items() if group.first.lasting]

    def let_go(self, key: GroupKey) -> None:
        """Have a group not last: its run went on without it."""
        group = self._groups[key]
        group.first = replace(group.first, lasting=False)

    @property
    def groups(self) -> frozenset[GroupKey]:
        """What tells the groups apart."""
        return frozenset(self._groups)

    def all(self, world: int = 0, usual: Container[GroupKey] = ()) -> tuple[Event, ...]:
        """Give the events by their first line.

        `world` is how many ranks the job has, as far as is known; `usual` holds the groups of a healthy run.
        """
        found = (
            self._with_ranks(key, group.event, world, key in usual) for key, group in self._groups.items()
        )
        return tuple(sorted(found, key=lambda event: event.line))

    def _with_ranks(self, key: GroupKey, event: Event, world: int, usual: bool) -> Event:
        ranks = self._ranks.get(key, set())
        if not ranks and not usual:
            return event
        missing = missing_ranks(ranks, world)
        silent = tuple(rank for rank in missing if rank not in self._heard) if self._all_heard else ()
        return replace(event, ranks=tuple(sorted(ranks)), missing=missing, silent=silent, usual=usual)


def missing_ranks(seen: Iterable[int], world: int) -> tuple[int, ...]:
    """Give the ranks of a job that are not among those seen; none where half or more are not."""
    there = sorted({rank for rank in seen if rank < world})
    if world <= len(there) or 2 * len(there) <= world:
        return ()
    return tuple(sorted(set(range(world)) - set(there)))


def _labels(text: str) -> list[int]:
    """Give the ranks that label a row: more than one where two writers met on it."""
    if "[rank" not in text and "[default" not in text:
        return []
    return [int(match[1]) for match in _LABEL.finditer(text)]
