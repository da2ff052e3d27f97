"""Tell what dumps show as records of names and values, so that patterns find it as they find a program's own.

A record holds no sentence; `flight_recorder` and `stacks` name what it was read from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingest.artefacts.rank_table import RankRow, RankTable, Verdict
from ingest.artefacts.stack_table import StackVerdict, Stand
from ingest.logs.stacks.stack import Frame

# Rows of a table that are told; those of the first verdict come first.
MOST_ROWS = 64
MOST_NAMED = 16


def rank_records(table: RankTable) -> Iterable[str]:
    """Give the first verdict as a record, and below it the rows of its group, the outliers first."""
    if not table.verdicts:
        return
    first = table.verdicts[0]
    yield _rank_verdict(first)
    rows = [row for row in table.rows if (row.group, row.description) == (first.group, first.description)]
    rows.sort(key=lambda row: (row.rank not in first.outliers, row.rank))
    for row in rows[:MOST_ROWS]:
        yield _rank_row(row)


def _rank_verdict(verdict: Verdict) -> str:
    told = {
        "verdict": verdict.kind,
        "group": verdict.description or verdict.group,
        "op": verdict.operation,
        "seq": str(verdict.sequence),
        "ranks": _listed(verdict.outliers),
        "others": _listed(verdict.others),
        "no_dump": _listed(verdict.missing),
        "expected": verdict.expected,
        "found": verdict.found,
        "delay_s": f"{verdict.delay_s:.1f}" if verdict.delay_s else "",
        **_place(verdict.call),
    }
    return _record("flight_recorder", told)


def _rank_row(row: RankRow) -> str:
    last = row.last
    told = {
        "rank": str(row.rank),
        "enqueued": str(row.enqueued),
        "started": str(row.started),
        "completed": str(row.completed),
        "op": last.operation if last else "",
        "state": last.state if last else "",
        **_place(last.own_call if last else None),
    }
    return _record("flight_recorder", told)


def stack_records(verdict: StackVerdict) -> Iterable[str]:
    """Give the verdict as a record, and below it where each process stands, the outliers first."""
    every = (*verdict.outliers, *verdict.others)
    by_rank = all(stand.process.rank >= 0 for stand in every)
    first, other = (verdict.outliers or verdict.others)[0], verdict.others[0]
    told = {
        "verdict": verdict.kind,
        "of": str(len(every)),
        "ranks" if by_rank else "processes": _named(verdict.outliers),
        "others": _named(verdict.others),
        "count": str(len(verdict.others)),
        "op": other.operation or first.operation,
        "found": first.operation if verdict.outliers else "",
        "waits_at": _place(other.own)["at"] if verdict.outliers else "",
        "doing": first.activity,
        **_place(first.own or first.inner),
        "inner": f"{first.inner.file}:{first.inner.function}",
        "no_dump": _listed(verdict.missing),
    }
    yield _record("stacks", told)
    for stand in every[:MOST_ROWS]:
        yield _stand_row(stand)


def _stand_row(stand: Stand) -> str:
    process = stand.process
    told = {
        "rank": str(process.rank) if process.rank >= 0 else "",
        "pid": str(process.pid) if process.pid else "",
        "host": process.host,
        "doing": stand.activity,
        "op": stand.operation,
        **_place(stand.own),
        "inner": f"{stand.inner.file}:{stand.inner.function}",
    }
    return _record("stacks", told)


def _place(call: Frame | None) -> dict[str, str]:
    return {"at": f"{call.file}:{call.line}" if call else "", "in": call.function if call else ""}


def _record(kind: str, told: dict[str, str]) -> str:
    """Write names and values; one that is not known is left out, and blanks in one are joined."""
    pairs = (f"{name}={''.join(value.split())}" for name, value in told.items() if value)
    return f"{kind} {' '.join(pairs)}"


def _named(stands: Sequence[Stand]) -> str:
    """Name processes by their ranks, or by host and number, or by the file that shows them."""
    names = []
    for process in (stand.process for stand in stands[:MOST_NAMED]):
        host = f"{process.host}/" if process.host else ""
        names.append(
            str(process.rank)
            if process.rank >= 0
            else f"{host}{process.pid}"
            if process.pid
            else process.source
        )
    return ",".join(names) + (",..." if len(stands) > MOST_NAMED else "")


def _listed(ranks: Sequence[int]) -> str:
    more = ",..." if len(ranks) > MOST_NAMED else ""
    return ",".join(map(str, ranks[:MOST_NAMED])) + more
