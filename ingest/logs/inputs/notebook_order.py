"""Which cells of a notebook tell of a state that is past: its file keeps the order of the page, not of time.

A cell keeps what it printed when it was run last. The kernel counts what it runs, so that the counts tell the
order, as far as they were saved and the kernel was not started anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# Code that is shorter is in many cells.
LEAST = 8
_INTERRUPT = "KeyboardInterrupt"
# What may differ between two runs of one cell: what is named by a text is other work.
_VALUE = re.compile(r"\b\d[\w.]*|#.*|\s+")


@dataclass(frozen=True)
class _Cell:
    place: int
    count: int
    failed: bool
    was_run: bool
    code: str
    interrupted: bool = False

    def is_before(self, other: _Cell) -> bool:
        """Tell whether a cell was run before another one; by the file's order where they have no counts."""
        if self.count and other.count:
            return self.count < other.count
        return self.place < other.place


def past_cells(notebook: object) -> frozenset[int]:
    """Give the cells, by place, whose outputs are past.

    A failure is where the same code, whatever its values, was run to a good end later, and an interruption
    where anything failed later: who interrupts a cell goes on with others. What stands below a failure, but
    was run before it, is no progress after it.
    """
    cells = list(_cells_of(notebook))
    good = _last_good_runs(cells)
    recovered = {cell.place for cell in cells if cell.failed and _is_cured(cell, good.get(cell.code, ()))}
    failed = [cell for cell in cells if cell.failed and not cell.interrupted]
    recovered |= {cell.place for cell in cells if cell.interrupted and any(map(cell.is_before, failed))}
    past, last = set(recovered), 0
    for cell in cells:
        # A failure that nothing cured stays: a kernel that was started anew counts from one again.
        if 0 < cell.count < last and not cell.failed:
            past.add(cell.place)
        elif cell.failed and cell.place not in recovered:
            last = cell.count
    return frozenset(past)


def _last_good_runs(cells: Sequence[_Cell]) -> Mapping[str, Sequence[_Cell]]:
    """Give, of each code, the last runs that ended well: by count, by place, and of those without a count."""
    runs: dict[str, list[_Cell]] = {}
    for cell in cells:
        if cell.was_run and not cell.failed and len(cell.code) >= LEAST:
            runs.setdefault(cell.code, []).append(cell)
    # A file may have very many cells of one code: a failure needs to be held against the last alone.
    return {
        code: (
            max(same, key=lambda cell: cell.count),
            same[-1],
            *[cell for cell in reversed(same) if not cell.count][:1],
        )
        for code, same in runs.items()
    }


def _is_cured(failed: _Cell, last: Sequence[_Cell]) -> bool:
    return any(map(failed.is_before, last))


def _cells_of(notebook: object) -> Iterator[_Cell]:
    sheets = notebook.get("worksheets") if isinstance(notebook, Mapping) else None
    place = 0
    for sheet in (notebook, *(sheets if isinstance(sheets, list) else ())):
        cells = sheet.get("cells") if isinstance(sheet, Mapping) else None
        for cell in cells if isinstance(cells, list) else ():
            if isinstance(cell, Mapping):
                yield _cell(place, cell)
            place += 1


def _cell(place: int, cell: Mapping[object, object]) -> _Cell:
    held = cell.get("outputs")
    outputs = held if isinstance(held, list) else []
    kinds = (
        [each.get("output_type") for each in outputs if isinstance(each, Mapping)]
        if isinstance(outputs, list)
        else []
    )
    count = cell.get("execution_count") or cell.get("prompt_number")
    source = cell.get("source", cell.get("input", ""))
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    is_code = cell.get("cell_type") == "code"
    return _Cell(
        place,
        count if is_code and isinstance(count, int) else 0,
        "error" in kinds or "pyerr" in kinds,
        is_code and bool(count or kinds),
        _VALUE.sub("", text),
        any(isinstance(each, Mapping) and each.get("ename") == _INTERRUPT for each in outputs),
    )
