"""Read what NCCL's RAS tells of a job's communicators: text of `ncclras`, and the JSON of newer versions.

NCCL counts the operations of each kind that a rank launched on a communicator. Where the job stands, who
launched fewer than most did not come, and who alone launched another kind called something else. Formats of
NCCL 2.24 to 2.32, src/ras/client_support.cc.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from corpus.message import Message
from ingest.artefacts.rank_table import RankRow, RankTable, Verdict
from ingest.errors import ArtefactError
from ingest.logs.lines import printable

MOST_BYTES = 64 << 20
_MOST_GROUPS, _MOST_RANKS, _LONGEST = 10_000, 200_000, 100

_GROUP = re.compile(r"^#(?P<name>\d{1,6}-\d{1,6}) \([0-9a-f]{1,16}\) (?P<kind>MISMATCH|INCOMPLETE|ERROR)")
_OPERATION = re.compile(r"^\s+Communicator ranks have different (?P<operation>\w{1,30}) operation counts")
_LAUNCHED = r"(?:launched up to operation (?P<count>\d{1,18})|not launched any operations)"
_SEVERAL = re.compile(rf"^\s+(?P<number>\d{{1,7}}) ranks have {_LAUNCHED}")
_ONE = re.compile(rf"^\s+Rank (?P<rank>\d{{1,7}}) has {_LAUNCHED}")
_LISTED = re.compile(r"^\s+Rank (?P<rank>\d{1,7}) -- ")
_DEAD = re.compile(r"^\s+Process (?P<pid>\d{1,9}) on node (?P<host>\S{1,100}) managing GPU")
_MANAGED = re.compile(r"managed by process (?P<pid>\d{1,9}) on node (?P<host>\S{1,100})")


@dataclass(frozen=True, slots=True)
class GoneProcess:
    """A process that RAS does not reach; `rank` is -1 where it is not told."""

    rank: int
    host: str
    pid: int
    is_dead: bool


@dataclass
class Communicator:
    """How many operations of each kind each rank launched; empty for kinds that all launched alike."""

    name: str
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RasStatus:
    """What one query of RAS gave."""

    communicators: Sequence[Communicator]
    gone: Sequence[GoneProcess]


def read_ras(data: bytes) -> RasStatus:
    """Read an answer of RAS; raises ArtefactError where it is damaged or too large."""
    if len(data) > MOST_BYTES:
        raise ArtefactError(Message("artefacts.too-large", megabytes=MOST_BYTES >> 20))
    text = data.decode("utf-8", "replace")
    return _of_json(text) if text.lstrip()[:1] == "{" else _of_text(text)


def ras_table(status: RasStatus) -> RankTable:
    """Compare the ranks of each communicator; the verdict of the clearest one stands first."""
    verdicts = [verdict for found in status.communicators if (verdict := _verdict(found)) is not None]
    # A rank that called something else explains what others miss, and few say it more clearly than many.
    verdicts.sort(key=lambda verdict: (verdict.kind != "operations-differ", len(verdict.outliers)))
    rows = [
        RankRow(rank, found.name, "", count, count, 0, None)
        for verdict in verdicts[:1]
        for found in status.communicators
        if found.name == verdict.group
        for rank, count in found.counts.get(verdict.operation, {}).items()
    ]
    return RankTable(tuple(rows), tuple(verdicts), tuple(row.rank for row in rows))


def _verdict(found: Communicator) -> Verdict | None:
    behind: dict[str, set[int]] = {}
    ahead: dict[str, set[int]] = {}
    most: dict[str, int] = {}
    for operation, counts in found.counts.items():
        numbers = Counter(counts.values())
        # Of two halves the one that came further is what the other misses.
        most[operation] = max(numbers, key=lambda number: (numbers[number], number))
        behind[operation] = {rank for rank, count in counts.items() if count < most[operation]}
        ahead[operation] = {rank for rank, count in counts.items() if count > most[operation]}
    wrong = next(
        (
            (expected, called, both)
            for expected, late in behind.items()
            for called, early in ahead.items()
            if (both := late & early)
        ),
        None,
    )
    if wrong is not None:
        expected, called, both = wrong
        return _verdict_of(found, "operations-differ", expected, both, most[expected], expected, called)
    late = min((ranks for ranks in behind.values() if ranks), key=len, default=None)
    if late is not None:
        operation = next(name for name, ranks in behind.items() if ranks == late)
        missed = min(found.counts[operation][rank] for rank in late) + 1
        return _verdict_of(found, "never-called", operation, late, missed)
    early = min((ranks for ranks in ahead.values() if ranks), key=len, default=None)
    if early is None:
        return None
    operation = next(name for name, ranks in ahead.items() if ranks == early)
    return _verdict_of(found, "called-alone", operation, early, most[operation] + 1)


def _verdict_of(
    found: Communicator,
    kind: str,
    operation: str,
    outliers: set[int],
    sequence: int,
    expected: str = "",
    called: str = "",
) -> Verdict:
    others = sorted(found.counts[operation].keys() - outliers)
    return Verdict(
        kind,  # type: ignore[arg-type]  # one of three kinds, each written out above
        found.name,
        "",
        sequence,
        operation,
        tuple(sorted(outliers)),
        tuple(others),
        expected,
        called,
        missing=found.missing,
    )


def _of_json(text: str) -> RasStatus:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtefactError(Message("artefacts.json-damaged")) from error
    groups: list[Communicator] = []
    gone: dict[tuple[str, int], GoneProcess] = {}
    left = _MOST_RANKS
    for document in _dicts(value.get("communicators"), _MOST_GROUPS):
        ranks, missing = _dicts(document.get("ranks"), left), _dicts(document.get("missing_ranks"), left)
        left -= len(ranks) + len(missing)
        absent = tuple(_number(rank.get("rank")) for rank in missing)
        found = Communicator(_text(document.get("hash")) or "?", missing=absent)
        for rank in ranks:
            counts = rank.get("collective_counts")
            for operation, count in counts.items() if isinstance(counts, dict) else ():
                found.counts.setdefault(_text(operation), {})[_number(rank.get("rank"))] = _number(count)
        # What all launched alike tells nothing.
        found.counts = {name: by for name, by in found.counts.items() if len(set(by.values())) > 1}
        groups.append(found)
        for rank in missing:
            state = rank.get("status")
            state = state if isinstance(state, dict) else {}
            if state.get("considered_dead") is True or state.get("unresponsive") is True:
                process = GoneProcess(
                    _number(rank.get("rank")),
                    _text(rank.get("host")),
                    _number(rank.get("pid")),
                    state.get("considered_dead") is True,
                )
                gone.setdefault((process.host, process.pid), process)
    return RasStatus(groups, list(gone.values()))


@dataclass
class _TextReader:
    """The communicators and processes of an answer as text, row by row; `kind` is the part it stands in."""

    groups: dict[str, Communicator] = field(default_factory=dict)
    gone: dict[tuple[str, int], GoneProcess] = field(default_factory=dict)
    kind: str = ""
    group: Communicator = field(default_factory=lambda: Communicator(""))
    operation: str = ""
    count: int = 0
    left: int = _MOST_RANKS

    def read(self, row: str) -> None:
        if group := _GROUP.match(row):
            self.kind, self.operation = group["kind"], ""
            self.group = self.groups.setdefault(group["name"], Communicator(group["name"]))
        elif row.strip() == "DEAD":
            self.kind = "DEAD"
        elif self.kind == "DEAD" and (dead := _DEAD.match(row)):
            process = GoneProcess(-1, dead["host"], int(dead["pid"]), True)
            self.gone[process.host, process.pid] = process
        elif self.kind == "INCOMPLETE" and (listed := _LISTED.match(row)):
            rank = int(listed["rank"])
            self.group.missing += (rank,)
            if managed := _MANAGED.search(row):
                key = managed["host"], int(managed["pid"])
                self.gone[key] = GoneProcess(rank, *key, key in self.gone and self.gone[key].is_dead)
        elif self.kind == "MISMATCH" and (different := _OPERATION.match(row)):
            self.operation = different["operation"]
            self.group.counts[self.operation] = {}
        elif self.kind == "MISMATCH" and self.operation:
            self._count(self.group.counts[self.operation], row)

    def _count(self, counts: dict[int, int], row: str) -> None:
        """Note what ranks launched; those that are only counted as numbers below 0."""
        if several := _SEVERAL.match(row):
            self.count = int(several["count"] or 0)
            number = min(int(several["number"]), self.left)
            self.left -= number
            counts.update(dict.fromkeys(range(-len(counts) - number, -len(counts)), self.count))
        elif one := _ONE.match(row):
            counts[int(one["rank"])] = int(one["count"] or 0)
        elif listed := _LISTED.match(row):
            counts[int(listed["rank"])] = self.count


def _of_text(text: str) -> RasStatus:
    reader = _TextReader()
    for row in text.splitlines():
        reader.read(row)
    for found in reader.groups.values():
        found.counts = {name: _named(by) for name, by in found.counts.items()}
    return RasStatus(list(reader.groups.values()), list(reader.gone.values()))


def _named(counts: Mapping[int, int]) -> dict[int, int]:
    """Give each rank its count: who is not listed launched what was counted of the others."""
    listed = {rank: count for rank, count in counts.items() if rank >= 0}
    unnamed = Counter(count for rank, count in counts.items() if rank < 0)
    unnamed -= Counter(listed.values()) & unnamed
    free = (rank for rank in range(_MOST_RANKS + len(listed)) if rank not in listed)
    return listed | dict(zip(free, unnamed.elements(), strict=False))


def gone_records(status: RasStatus) -> Iterator[str]:
    """Tell the processes that are not reached as records of names and values."""
    for process in sorted(status.gone, key=lambda process: (not process.is_dead, process.rank))[:64]:
        rank = f" rank={process.rank}" if process.rank >= 0 else ""
        state = "dead" if process.is_dead else "unreachable"
        yield f"nccl_ras process={state}{rank} host={process.host} pid={process.pid}"


def _dicts(value: object, most: int) -> list[dict[str, object]]:
    return (
        [item for item in value[: max(0, most)] if isinstance(item, dict)] if isinstance(value, list) else []
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else 0


def _text(value: object) -> str:
    return "".join(printable(value[:_LONGEST]).split()) if isinstance(value, str) else ""
