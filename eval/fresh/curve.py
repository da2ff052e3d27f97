"""Draw the score of each round at first sight, and write its table into the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eval import charts
from eval.errors import EvalError
from eval.fresh.rounds import Figure, FirstSight
from eval.fresh.scoring import FIGURES

PAGE = Path("docs/evaluation.md")
PLOT = Path("docs/first-sight.svg")
BEGIN, END = "<!-- first sight -->", "<!-- end of first sight -->"
_STYLE = """
:root { --ink: #1b1d21; --soft: #5a6069; --line: #dcdfe4; --c1: #1d5fbf; --c2: #b35a00; --c3: #0f8a6d;
  --c4: #8e44ad; --c5: #b38600; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a6adb8; --line: #343a44;
  --c1: #7db1ff; --c2: #f2a65a; --c3: #4cc9a4; --c4: #c99bea; --c5: #e0b93f; } }
text { font: 12px system-ui, "Noto Sans", sans-serif; fill: var(--ink); }
.small { font-size: 11px; fill: var(--soft); }
.rule { stroke: var(--line); }
.line { stroke-width: 2; }
.c1 { fill: var(--c1); stroke: var(--c1); } .c2 { fill: var(--c2); stroke: var(--c2); }
.c3 { fill: var(--c3); stroke: var(--c3); } .c4 { fill: var(--c4); stroke: var(--c4); }
.c5 { fill: var(--c5); stroke: var(--c5); }
"""
# What the curve shows, with the colour's class; the other figures stand in the table.
_CURVES = {"cause_top1": "c1", "setting": "c2", "first_change": "c3", "healthy": "c4", "abstained": "c5"}


def plot(scores: Sequence[FirstSight]) -> str:
    """Draw the curve as an SVG file of its own."""
    words = dict(FIGURES)
    curves = {
        words[name]: [
            (score.round, figure.value)
            for score in scores
            if (figure := score.figures.get(name)) is not None and figure.value is not None
        ]
        for name in _CURVES
    }
    colours = {words[name]: colour for name, colour in _CURVES.items()}
    return str(charts.learning_curve(curves, colours, _STYLE)) + "\n"


def table(scores: Sequence[FirstSight]) -> str:
    """Write the figures of all rounds as a table of Markdown."""
    heads = [f"round {score.round} ({len(score.answers)} logs, {score.scored})" for score in scores]
    rows = [
        [words, *(cell(score.figures.get(name)) for score in scores)]
        for name, words in FIGURES
        if any((found := score.figures.get(name)) is not None and found.count for score in scores)
    ]
    lines = [["figure", *heads], ["---"] * (len(heads) + 1), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def cell(figure: Figure | None) -> str:
    """Write a figure with its interval and the number of logs."""
    if figure is None or figure.value is None:
        return "-"
    return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}] of {figure.count}"


def written(text: str, scores: Sequence[FirstSight]) -> str:
    """Give a page with its table renewed; raises EvalError where the page has no place for it."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise EvalError(f"the page has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table(scores)}{END}{after}"
