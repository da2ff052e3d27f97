"""Tell what dumps show as records of names and values, so that patterns find it as they find a program's own.

A record holds no sentence; `flight_recorder`, `stacks` and `memory_snapshot` name what it was read from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingest.artefacts.memory_snapshot import CardMemory, Holder
from ingest.artefacts.metric_series import Curve
from ingest.artefacts.rank_table import RankRow, RankTable, Verdict
from ingest.artefacts.stack_table import ProcessPosition, StackVerdict
from ingest.logs.curves import LoggedCurve
from ingest.logs.stacks.stack import Frame

# Rows of a table that are told; those of the first verdict come first.
MOST_ROWS = 64
MOST_NAMED = 16


def rank_records(table: RankTable, source: str = "flight_recorder") -> Iterable[str]:
    """Give the first verdict as a record, and below it the rows of its group, the outliers first.

    `source` names what the table was made of.
    """
    if not table.verdicts:
        return
    first = table.verdicts[0]
    yield _rank_verdict(first, source)
    rows = [row for row in table.rows if (row.group, row.description) == (first.group, first.description)]
    rows.sort(key=lambda row: (row.rank not in first.outliers, row.rank))
    for row in rows[:MOST_ROWS]:
        yield _rank_row(row, source)


def _rank_verdict(verdict: Verdict, source: str) -> str:
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
    return _record(source, told)


def _rank_row(row: RankRow, source: str) -> str:
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
    return _record(source, told)


def stack_records(verdict: StackVerdict) -> Iterable[str]:
    """Give the verdict as a record, and below it where each process stands, the outliers first."""
    every = (*verdict.outliers, *verdict.others)
    by_rank = all(position.process.rank >= 0 for position in every)
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
    for position in every[:MOST_ROWS]:
        yield _position_row(position)


def memory_records(cards: Sequence[CardMemory]) -> Iterable[str]:
    """Give what the first card's memory shows as a record, and below it who held most of it."""
    card = cards[0]
    verdict = "growth" if card.growing else "fragmented" if card.is_fragmented else "full"
    holder = card.growing or (card.holders[0] if card.holders else None)
    yield _record(
        "memory_snapshot",
        {
            "verdict": verdict if card.asked else f"{verdict}-no-failure",
            "device": str(card.device),
            "asked": _size(card.asked) if card.asked else "",
            "free": _size(card.free) if card.asked else "",
            "allocated": _size(card.allocated),
            "idle": _size(card.idle),
            "largest_idle": _size(card.largest_idle),
            **_place(card.asked_by),
            "held": _size(holder.size) if holder else "",
            "blocks": str(holder.blocks) if holder else "",
            "holder": _place(holder.call)["at"] if holder else "",
            "module": holder.module if holder else "",
        },
    )
    for each in card.holders[:MOST_NAMED]:
        yield _holder_row(each, card.allocated)


def curve_records(curves: Iterable[Curve]) -> Iterable[str]:
    """Give a record for each number that stayed no finite one to its last step, the earliest first."""
    broken = sorted((curve for curve in curves if curve.broken), key=lambda curve: curve.broken_from)
    for curve in broken[:MOST_NAMED]:
        told = {
            "name": curve.name,
            "nan_from": str(curve.broken_from),
            "last_step": str(curve.last_step),
            "nan_points": str(curve.broken),
            "points": str(curve.points),
            "before": f"{curve.before:.6g}" if curve.before is not None else "",
        }
        yield _record("curve", told)


def course_records(curves: Iterable[LoggedCurve]) -> Iterable[str]:
    """Give a record for each number that went wrong while it stayed finite, the earliest first."""
    wrong = [(curve, curve.since) for curve in curves if curve.since and curve.finding != "broken"]
    for curve, since in sorted(wrong, key=lambda pair: pair[1].step):
        told = {
            "kind": curve.name,
            f"{curve.finding}_from": f"{since.step:.0f}",
            "last_step": f"{curve.points[-1].step:.0f}",
            "points": str(len(curve.points)),
            "before": f"{curve.before:.6g}" if curve.before is not None else "",
            "value": f"{since.value:.6g}",
        }
        yield _record("curve", told)


def _holder_row(holder: Holder, allocated: int) -> str:
    told = {
        "held": _size(holder.size),
        "share": f"{holder.size / max(1, allocated):.3f}",
        "blocks": str(holder.blocks),
        **_place(holder.call),
        "module": holder.module,
    }
    return _record("memory_snapshot", told)


def _size(size: int) -> str:
    """Write bytes as PyTorch's messages do, without the blank."""
    return f"{size / (1 << 30):.2f}GiB" if size >= 1 << 28 else f"{size / (1 << 20):.2f}MiB"


def _position_row(position: ProcessPosition) -> str:
    process = position.process
    told = {
        "rank": str(process.rank) if process.rank >= 0 else "",
        "pid": str(process.pid) if process.pid else "",
        "host": process.host,
        "doing": position.activity,
        "op": position.operation,
        **_place(position.own),
        "inner": f"{position.inner.file}:{position.inner.function}",
    }
    return _record("stacks", told)


def _place(call: Frame | None) -> dict[str, str]:
    return {"at": f"{call.file}:{call.line}" if call else "", "in": call.function if call else ""}


def _record(kind: str, told: dict[str, str]) -> str:
    """Write names and values; one that is not known is left out, and blanks in one are joined."""
    pairs = (f"{name}={''.join(value.split())}" for name, value in told.items() if value)
    return f"{kind} {' '.join(pairs)}"


def _named(positions: Sequence[ProcessPosition]) -> str:
    """Name processes by their ranks, or by host and number, or by the file that shows them."""
    names = []
    for process in (position.process for position in positions[:MOST_NAMED]):
        host = f"{process.host}/" if process.host else ""
        names.append(
            str(process.rank)
            if process.rank >= 0
            else f"{host}{process.pid}"
            if process.pid
            else process.source
        )
    return ",".join(names) + (",..." if len(positions) > MOST_NAMED else "")


def _listed(ranks: Sequence[int]) -> str:
    more = ",..." if len(ranks) > MOST_NAMED else ""
    return ",".join(map(str, ranks[:MOST_NAMED])) + more
