"""Files that tools write beside a log, told as lines of the job: what flight recorder dumps show.

Each line is a record of names and values, so that patterns find it as they find a program's own; it holds no
sentence. What a file is tells its content alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from contextlib import closing

from ingest.artefacts.file_heads import HEAD, is_dump
from ingest.artefacts.flight_recorder import MOST_BYTES, RankDump, read_dump
from ingest.artefacts.rank_table import RankRow, RankTable, Verdict, rank_table
from ingest.errors import ArtefactError, InputError
from ingest.logs.inputs.compression import codec_of
from ingest.logs.inputs.files import PeekedStream
from ingest.logs.inputs.members import ARTEFACT, LIMITS, Member, Skipped, kind_of
from ingest.logs.inputs.sources import LogSource
from ingest.logs.inputs.streams import Decompressed, Readable

# Of all dumps of a job together; a thousand ranks at the default size of the buffer.
MOST_OF_JOB = 1 << 30
MOST_DUMPS = 2048
# Rows of the table that are told; those of the first verdict's group come first.
MOST_ROWS = 64
MOST_NAMED = 16


def read_artefacts(members: Sequence[Member], skipped: Skipped) -> LogSource | None:
    """Read what tools wrote beside the logs; None where it tells nothing.

    What is damaged or no dump at all is noted as left out.
    """
    dumps: list[RankDump] = []
    left = MOST_OF_JOB
    for member in members:
        if left <= 0 or len(dumps) >= MOST_DUMPS:
            skipped.add("beyond_limit", member.label)
            continue
        try:
            data = _content(member)
            if not is_dump(data[:HEAD]):
                skipped.add("not_a_log" if kind_of(member.name) == ARTEFACT else "binary", member.label)
                continue
            left -= len(data)
            dumps.append(read_dump(data, member.name))
        except ArtefactError as error:
            skipped.add("damaged_dump", f"{member.label} ({error})")
        except (InputError, OSError):
            skipped.add("not_readable", member.label)
    rows = list(_rows(rank_table(dumps))) if dumps else []
    if not rows:
        return None
    text = "\n".join(rows) + "\n"
    return LogSource(f"flight recorder ({len(dumps)})", io.BytesIO(text.encode()))


def _content(member: Member) -> bytes:
    """Read a file that is no dump as far as tells that, a dump whole."""
    with closing(member.open()) as raw:
        stream: Readable = PeekedStream(raw)
        codec = codec_of(stream.head) if isinstance(stream, PeekedStream) else None
        stream = Decompressed(stream, codec, LIMITS.ratio) if codec else stream
        data = _piece(stream, HEAD)
        return data + _piece(stream, MOST_BYTES + 1 - HEAD) if is_dump(data) else data


def _piece(stream: Readable, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := stream.read(min(1 << 20, size - len(data)))):
        data += piece
    return data


def _rows(table: RankTable) -> Iterable[str]:
    """Give the first verdict as a record, and below it the rows of its group, the outliers first."""
    if not table.verdicts:
        return
    first = table.verdicts[0]
    yield _verdict(first)
    rows = [row for row in table.rows if (row.group, row.description) == (first.group, first.description)]
    rows.sort(key=lambda row: (row.rank not in first.outliers, row.rank))
    for row in rows[:MOST_ROWS]:
        yield _row(row)


def _verdict(verdict: Verdict) -> str:
    told = {
        "verdict": verdict.kind,
        "group": verdict.description or verdict.group,
        "op": verdict.operation,
        "seq": str(verdict.sequence),
        "ranks": _ranks(verdict.outliers),
        "others": _ranks(verdict.others),
        "no_dump": _ranks(verdict.missing),
        "expected": verdict.expected,
        "found": verdict.found,
        "delay_s": f"{verdict.delay_s:.1f}" if verdict.delay_s else "",
        "at": f"{verdict.call.file}:{verdict.call.line}" if verdict.call else "",
        "in": verdict.call.function if verdict.call else "",
    }
    return _record(told)


def _row(row: RankRow) -> str:
    last, call = row.last, row.last.own_call if row.last else None
    told = {
        "rank": str(row.rank),
        "enqueued": str(row.enqueued),
        "started": str(row.started),
        "completed": str(row.completed),
        "op": last.operation if last else "",
        "state": last.state if last else "",
        "at": f"{call.file}:{call.line}" if call else "",
        "in": call.function if call else "",
    }
    return _record(told)


def _record(told: dict[str, str]) -> str:
    """Write names and values; one that is not known is left out, and blanks in one are joined."""
    pairs = (f"{name}={''.join(value.split())}" for name, value in told.items() if value)
    return f"flight_recorder {' '.join(pairs)}"


def _ranks(ranks: Sequence[int]) -> str:
    more = ",..." if len(ranks) > MOST_NAMED else ""
    return ",".join(map(str, ranks[:MOST_NAMED])) + more
