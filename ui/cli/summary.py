"""A batch's summary on a terminal: what died, what to change first, the causes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from corpus.message import words
from corpus.schema import Language
from service.batches.page import number
from service.batches.summary import CrashGroup, JobName, Summary
from service.composition import shortening
from service.composition.diagnosis_view import as_written, likely_words
from ui import sentences

# Causes, and crashes below them, that are listed; the others are in the results.
MAX_ROWS = 15
MAX_CRASHES = 12
# Jobs of one crash that are named, and characters of a failing line, more where it names something later.
_NAMED = 4
_PROOF, _LONG_PROOF = 160, 300
_FIGURES = ("jobs", "gpu_hours", "crashes")
# How much of the terminal's width the reason of a job without an answer takes at most.
_REASON = 0.6
# Gives where a job's output lies, None where that is on no disk of this machine.
JobPath = Callable[[JobName], Path | None]


def render(summary: Summary, console: Console, path: JobPath = lambda _: None) -> None:
    """Print a summary for a person: what died, what to change first, the causes, and crash by crash."""
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
        line.append(as_written(best), style="bold green")
        line.append(f"  [{best.framework}] " + _label("saves", language, jobs=number(best.jobs)), style="dim")
        console.print(line)
    console.print()
    if summary.causes:
        console.print(_causes(summary, language))
    crashes = (crash for group in summary.causes for crash in group.groups)
    for crash in islice(crashes, MAX_CRASHES):
        _print_crash(crash, summary, console, path)
    if (more := summary.crashes - MAX_CRASHES) > 0:
        console.print(Text("\n" + _label("more-crashes", language, n=number(more)), style="dim"))
    _print_others(summary, console, path)


def _print_others(summary: Summary, console: Console, path: JobPath) -> None:
    """Print the jobs that ended well, those whose end was not seen, and why others have no answer."""
    language = summary.language
    for name, jobs, named in (
        ("well", summary.healthy, summary.healthy_jobs),
        ("without-end", summary.open_ends, summary.open_jobs),
    ):
        if named:
            line = Text("\n" + _label(name, language), style="bold")
            console.print(line.append_text(_names(named, jobs, language, path)))
    if summary.failures:
        table = _table(["jobs", "failures", "example"], language)
        table.columns[1].max_width = int(_REASON * console.width)
        for failure in summary.failures:
            table.add_row(
                number(failure.jobs),
                Text(sentences.worded("", failure.error, summary.language)),
                Text(failure.example.name, style="dim"),
            )
        console.print()
        console.print(table)


def _print_crash(crash: CrashGroup, summary: Summary, console: Console, path: JobPath) -> None:
    """Print a crash: what happened, how sure, the line that says so, what to do first, its jobs."""
    language = summary.language
    likely = likely_words(crash.confidence, crash.verdict, language)
    console.print()
    console.print(Text(crash.headline, style="bold").append(f"  {likely}" if likely else "", style="dim"))
    rows = (
        [Text(shortening.proof(crash.proof, _PROOF, _LONG_PROOF), style="bright_black")]
        if crash.proof
        else []
    )
    if crash.change:
        rows.append(Text(f"→ {as_written(crash.change)}", style="green"))
    elif crash.step:
        rows.append(Text(f"→ {crash.step}"))
    cost = [_label("job-count-one" if crash.jobs == 1 else "job-count", language, n=number(crash.jobs))]
    if crash.gpu_hours is not None:
        cost.append(_label("hour-count", language, hours=number(crash.gpu_hours)))
    jobs = Text(_comma(language).join(cost) + ("：" if language == "zh" else ": "), style="dim")
    rows.append(
        jobs.append_text(_names(crash.members or (crash.representative,), crash.jobs, language, path))
    )
    for row in rows:
        console.print(Padding(row, (0, 0, 0, 2), expand=False))


def _names(named: Sequence[JobName], jobs: int, language: Language, path: JobPath) -> Text:
    """Name a few jobs, each linked to its output where a terminal can open it, and count the others."""
    parts = []
    for job in named[:_NAMED]:
        place = path(job)
        parts.append(Text(job.name, Style(dim=True, link=place.as_uri() if place else None)))
    if (more := jobs - len(parts)) > 0:
        parts.append(Text(_label("more-jobs", language, n=number(more)), style="dim"))
    return Text(_comma(language)).join(parts)


def _comma(language: Language) -> str:
    return "、" if language == "zh" else ", "


def _label(name: str, language: Language, **values: object) -> str:
    return words(f"cli.summary-{name.replace('_', '-')}", language, **values)


def _table(heads: Sequence[str], language: Language) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for head in heads:
        is_figure = head in _FIGURES
        # A row a cause, whose name is never cut.
        table.add_column(
            _label(head, language),
            justify="right" if is_figure else "left",
            no_wrap=is_figure,
            overflow="fold",
        )
    return table


def _causes(summary: Summary, language: Language) -> Table:
    hours = summary.died.gpu_hours is not None
    table = _table(["jobs", *(["gpu_hours"] if hours else []), "crashes", "cause"], language)
    for group in summary.causes[:MAX_ROWS]:
        table.add_row(
            number(group.jobs),
            *([number(group.gpu_hours)] if hours else []),
            number(group.crashes),
            Text(group.title),
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
