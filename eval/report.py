"""Print a run's figures to a terminal; `eval.page` writes them as HTML."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eval.figures import (
    COMPOSER,
    Run,
    cell,
    cost,
    counted,
    goal_mark,
    goal_text,
    retriever_columns,
    seconds,
    splits,
    systems,
    table,
)
from eval.page import page
from eval.vote_effects import COLUMNS, WORSENED, vote_effects, worsened

__all__ = ["Run", "page", "terminal"]

_STYLES = {"reached": "green", "not reached": "red", "": ""}


def terminal(run: Run, console: Console) -> None:
    """Print tables of metrics for each split, of the retrievers, and of time and tokens."""
    for split in splits(run):
        count = sum(incident.label.split == split for incident in run.incidents)
        made = _empty(f"{split}: {count} incidents, mean [95 % interval]", "metric", "goal", *systems(run))
        for row in table(run, split):
            cells = {name: Text(cell(row.means[name])) for name in systems(run)}
            if COMPOSER in cells:
                mark = goal_mark(row)
                told = f"{counted(row.means[COMPOSER], row.goal)} {mark}".rstrip()
                cells[COMPOSER] = Text(told, style=_STYLES[mark])
            made.add_row(row.words, goal_text(row), *cells.values())
        console.print(made)
    if run.rankings:
        console.print(_retrievers(run))
    costs = _empty("cost", "system", "median s per incident", "p95 s per incident", "tokens")
    for name in systems(run):
        found = cost(run.answers.get(name, ()))
        costs.add_row(Text(name), seconds(found.median), seconds(found.p95), str(found.tokens))
    console.print(costs)
    if effects := vote_effects(run):
        made = _empty("what a model's votes did to the answers of the rules", *COLUMNS)
        for effect in effects:
            made.add_row(*map(Text, effect.row))
        console.print(made)
    if rows := worsened(run):
        made = _empty("right answers that a vote set wrong", *WORSENED)
        for wrong in rows:
            made.add_row(*map(Text, wrong.row))
        console.print(made)
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    console.print(Text(f"started {run.started}, {run.seconds:.1f} s, {versions}", style="dim"))


def _empty(title: str, first: str, *columns: str) -> Table:
    made = Table(
        title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    made.add_column(first, overflow="fold")
    for column in columns:
        made.add_column(
            Text(column), overflow="fold", no_wrap=column == COMPOSER
        )  # its figure and mark stay on one line
    return made


def _retrievers(run: Run) -> Table:
    columns = retriever_columns(run)
    made = _empty(
        "retrievers: a case of an accepted cause among the first k, split test", "retriever", *columns
    )
    for name, means in run.rankings.items():
        made.add_row(Text(name), *(Text(counted(means[column])) for column in columns))
    return made
