"""A batch's summary on a terminal: what died, what to change first, the causes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from corpus.message import words
from corpus.schema import Language
from service.batches.page import number
from service.batches.summary import CrashGroup, Summary
from service.composition.diagnosis_view import in_words, likely_words
from ui import sentences

# Causes that are listed; the others are in the results.
MAX_ROWS = 15
_FIGURES = ("jobs", "gpu_hours", "crashes")
# How much of the terminal's width a column of words takes at most.
_SHARES = {"cause": 0.35, "change": 0.38, "example": 0.16, "failures": 0.6}
# A narrower terminal has no room for examples.
NARROW = 110


def render(summary: Summary, console: Console) -> None:
    """Print a summary for a person: what died, what to change first, the causes."""
    language = summary.language
    died = summary.died
    told = [
        _label(
            "died",
            language,
            died=number(died.jobs),
            jobs=number(summary.jobs),
            crashes=number(summary.crashes),
        )
    ]
    if died.gpu_hours is not None:
        told.append(_label("hours", language, hours=number(died.gpu_hours)))
    for name, count in (
        ("healthy", summary.healthy),
        ("open_ends", summary.open_ends),
        ("untriaged", summary.untriaged),
    ):
        if count:
            told.append(_label(name, language, n=number(count)))
    console.print(Text((_label("and", language)).join(told), style="bold"))
    if best := summary.best_saving:
        line = Text(_label("first", language))
        line.append(in_words(best, " = "), style="bold green")
        line.append(f"  [{best.framework}] " + _label("saves", language, jobs=number(best.jobs)), style="dim")
        console.print(line)
    console.print()
    if summary.causes:
        console.print(_causes(summary, language, console.width))
        for group in summary.causes[:MAX_ROWS]:
            _print_crash(group.groups[0], summary, console)
    if summary.failures:
        table = _table(["jobs", "failures", "example"], language, console.width)
        for failure in summary.failures:
            table.add_row(
                number(failure.jobs),
                Text(sentences.worded("", failure.error, summary.language)),
                Text(failure.example.name, style="dim"),
            )
        console.print(table)


def _print_crash(crash: CrashGroup, summary: Summary, console: Console) -> None:
    """Print a cause's costliest crash: what happened, how sure, the line that says so, the job."""
    likely = likely_words(crash.confidence, crash.verdict, summary.language)
    console.print()
    console.print(Text(crash.headline, style="bold").append(f"  {likely}" if likely else "", style="dim"))
    if crash.proof:
        console.print(Text(f"  {crash.proof}", style="bright_black"))
    if crash.change:
        console.print(Text(f"  {in_words(crash.change, ' = ')}", style="green"))
    console.print(Text(f"  {crash.representative.name}", style="dim"))


def _label(name: str, language: Language, **values: object) -> str:
    return words(f"cli.summary-{name.replace('_', '-')}", language, **values)


def _table(heads: Sequence[str], language: Language, width: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for head in heads:
        if head in _FIGURES:
            table.add_column(_label(head, language), justify="right", no_wrap=True)
        else:
            # A row a cause: what does not fit is in the files. A cause's name is never cut.
            is_cause = head == "cause"
            table.add_column(
                _label(head, language),
                overflow="fold" if is_cause else "ellipsis",
                no_wrap=not is_cause,
                max_width=int(_SHARES[head] * width),
            )
    return table


def _causes(summary: Summary, language: Language, width: int) -> Table:
    hours = summary.died.gpu_hours is not None
    table = _table(
        [
            "jobs",
            *(["gpu_hours"] if hours else []),
            "crashes",
            "cause",
            "change",
            *(["example"] if width >= NARROW else []),
        ],
        language,
        width,
    )
    for group in summary.causes[:MAX_ROWS]:
        top = group.groups[0]
        change = in_words(top.change) if top.change else ""
        example = [Text(top.representative.name, style="dim")] if width >= NARROW else []
        table.add_row(
            number(group.jobs),
            *([number(group.gpu_hours)] if hours else []),
            number(group.crashes),
            Text(group.title),
            Text(change, style="green"),
            *example,
        )
    if more := summary.causes[MAX_ROWS:]:
        figures = [
            number(sum(group.jobs for group in more)),
            *([number(sum(group.gpu_hours or 0 for group in more))] if hours else []),
        ]
        table.add_row(
            *figures,
            number(sum(group.crashes for group in more)),
            Text(_label("more", language, n=len(more)), style="dim"),
        )
    return table
