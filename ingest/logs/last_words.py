"""What the ranks printed last that tell of no failure while the others wait for them."""

from __future__ import annotations

from ingest.logs import lines
from ingest.logs.context_lines import MAX_AROUND, last_rows
from ingest.logs.events import Event
from ingest.logs.scanner import Block

# So many ranks are told of, and so many of a log's last rows are looked through for those that it mixes.
MOST, LAST = 2, 4000


class LastWords:
    """The last row of each file that is one rank's, by its rank."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, bytes]] = {}

    def end_file(self, rank: int | None, block: Block) -> None:
        """Note the row that a file ends with."""
        if rank is not None:
            self._rows[rank] = last_rows(block)[-1]

    def of(self, root: Event | None, block: Block | None) -> list[tuple[int, bytes]]:
        """Give the numbered rows that the first silent ranks of the root printed last.

        In a file of their own, else among the last rows of the log, whose last part is `block`.
        """
        silent = root.silent[:MOST] if root is not None else ()
        found = {rank: self._rows[rank] for rank in silent if rank in self._rows}
        left = {str(rank): rank for rank in silent if rank not in found}
        if left and block is not None:
            rows = list(enumerate(block.data.split(b"\n"), block.line))
            for number, raw in reversed(rows[-LAST:]):
                rank = left.pop(lines.parse_line(raw, 0).rank, None)
                if rank is not None:
                    found[rank] = number, raw
                if not left:
                    break
        return [(number, raw[:MAX_AROUND]) for _, (number, raw) in sorted(found.items())]
