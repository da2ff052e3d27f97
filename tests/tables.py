"""A rule that holds for each row of a table is one test, which goes through all rows and names every one that
fails.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

# A row is shown by its values, each cut to so many characters.
_SHOWN = 60
# What the two tests of a table that takes long are told apart by.
_PART, _SAMPLE, _REST = "part_of_table", "sample", "rest"

Test = Callable[..., None]


class RowsFailedError(AssertionError):
    """Some rows of a table do not hold."""

    def __init__(self, rows: Sequence[str]) -> None:
        super().__init__("\n".join(rows))
        self.rows = rows


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], object] | None = None,
    quick: int = 0,
) -> Callable[[Test], Test]:
    """Call a test with each row, as `pytest.mark.parametrize` does, but as one test: thousands take long to
    collect.

    Each row has a `tmp_path` and a `monkeypatch` of its own; other fixtures are shared by all rows. With
    `quick`, about so many rows, evenly spread, are the test, and the others one more that takes long.
    """
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(row, len(given)) for row in rows]
    labels = _labels(table, ids)
    assert table, "a table without rows proves nothing"
    assert all(len(values) == len(given) for values, _ in table), "a row has a value for each name"
    assert quick < len(table), "the long part of a table has rows"
    sample = range(0, len(table), -(-len(table) // quick) if quick else 1)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            wrong: list[str] = []
            wanted = fixtures.pop(_PART, _SAMPLE) == _SAMPLE
            for number, (values, _) in enumerate(table):
                if (number in sample) != wanted:
                    continue
                row = dict(zip(given, values, strict=True))
                wrong += [f"[{labels[number]}] {text}" for text in _called(test, row, fixtures, number)]
            if wrong:
                raise RowsFailedError(wrong)

        signature = inspect.signature(test)
        left = [parameter for parameter in signature.parameters.values() if parameter.name not in given]
        if quick:
            left.append(inspect.Parameter(_PART, inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # what pytest asks for fixtures by
        parts = [_SAMPLE, pytest.param(_REST, marks=pytest.mark.long)]
        return pytest.mark.parametrize(_PART, parts)(run) if quick else run

    return decorate


def _values(row: Any, count: int) -> tuple[tuple[Any, ...], str | None]:
    if hasattr(row, "marks"):  # what pytest.param makes
        assert not row.marks, "a row cannot be skipped or expected to fail"
        return tuple(row.values), row.id
    return (tuple(row) if count > 1 else (row,)), None


def _labels(
    table: Sequence[tuple[tuple[Any, ...], str | None]], ids: Iterable[str] | Callable[[Any], object] | None
) -> list[str]:
    if ids is None:
        return [name or ", ".join(_short(repr(value)) for value in values) for values, name in table]
    if callable(ids):
        return [", ".join(str(ids(value)) for value in values) for values, _ in table]
    return list(map(str, ids))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _called(test: Test, row: dict[str, Any], fixtures: dict[str, Any], number: int) -> Sequence[str]:
    """Give what is wrong with a row."""
    own = dict(fixtures)
    if "tmp_path" in own:
        own["tmp_path"] = own["tmp_path"] / str(number)
        own["tmp_path"].mkdir()
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in own:
            own["monkeypatch"] = patch
        try:
            test(**own, **row)
        except RowsFailedError as error:
            return error.rows
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever is wrong with a row, the others are looked at
            return [_told(error, test)]
    return []


def _told(error: BaseException, test: Test) -> str:
    """Say where in the test it went wrong, and how."""
    file = inspect.getsourcefile(inspect.unwrap(test))
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file] or frames
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
    raised = (
        "" if own[-1] is frames[-1] else f" (raised at {Path(frames[-1].filename).name}:{frames[-1].lineno})"
    )
    return f"{place}: {type(error).__name__}: {str(error).strip()}{raised}".replace("\n", "\n    ")
