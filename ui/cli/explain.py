"""`whycrash explain`: one log in, one diagnosis out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from corpus.message import Message, in_language, words
from corpus.schema import Language
from ingest.errors import MissingInputError
from ingest.logs.inputs import jobs
from ingest.logs.inputs.jobs import JobSource
from service.composition.diagnosis_view import (
    ChangeView,
    DiagnosisView,
    as_written,
    diagnosis_view,
    source_words,
)
from service.llm.stages import DraftStage, LookStage
from service.llm.stages import TextStage as Said
from service.llm.triage_context import TriageContext
from service.patching.application import name_in_repository
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import Diagnosis, Outcome
from service.schemas.errors import InvalidRequestError
from service.telemetry.opening import open_telemetry
from ui.cli.codes import EXPLAINED, HEALTHY, UNKNOWN
from ui.cli.console import check_language, load_settings, out, progress
from ui.cli.patches import offer_edits, write_patch

_CODES = {"diagnosed": EXPLAINED, "ambiguous": EXPLAINED, "unknown": UNKNOWN, "no-failure": HEALTHY}
_STYLES = {
    "diagnosed": "bold red",
    "ambiguous": "bold yellow",
    "unknown": "bold yellow",
    "open-end": "bold yellow",
    "no-failure": "bold green",
}
_CODE = re.compile(r"(`[^`\n]*`)")


def run(
    logs: list[str],
    *,
    as_json: bool,
    lang: str,
    configs: list[Path],
    good: Path | None = None,
    telemetry: str = "",
    model: bool = True,
    show_prompt: bool = False,
    outcome: Outcome | None = None,
    patch: Path | None = None,
    apply: bool = False,
) -> int:
    """Explain one job and give the exit code."""
    check_language(lang)
    settings = load_settings()
    if apply and "-" in logs:
        raise InvalidRequestError(Message("errors.apply-needs-answer"))
    source = _opened(logs, configs)
    files = [read_config(path, name_in_repository(path)) for path in configs]
    machine = open_telemetry(telemetry, settings) if telemetry else None
    with progress() as report:
        triage = Triage(settings, report)
        triage.open_embedder_ahead()
        templates = triage.healthy_templates(good) if good else None
        read = triage.read(source, lang, files, templates, outcome)
        # Standard input is read once; of that, a model sees what the report holds.
        again = None if logs == ["-"] else partial(jobs.open_jobs, [Path(log) for log in logs])
        triage_context = triage.diagnose(replace(read, reopen=again), machine)
    if show_prompt:
        sys.stdout.write(triage.prompt(triage_context) + "\n")
        return EXPLAINED
    final = (
        spoken(triage, triage_context, None if as_json else out(), settings.model)
        if model and settings.model
        else triage_context.first
    )
    if as_json:
        sys.stdout.write(final.to_json(indent=2) + "\n")
    elif final is triage_context.first:
        render(final, out())
    if patch is not None:
        write_patch(final, patch)
    if apply:
        offer_edits(triage_context.edits_of(final), final, settings.home)
    return _CODES[final.verdict]


def _opened(logs: list[str], configs: list[Path]) -> JobSource:
    """Open the job's output; raises MissingInputError where it or a configuration is not there."""
    if "-" in logs and len(logs) > 1:
        raise MissingInputError(Message("errors.standard-input-job-own"))
    if not all(logs):
        # A path without a name would be the current folder.
        raise MissingInputError(Message("errors.log-name-empty-variable"))
    source = jobs.open_stdin() if logs == ["-"] else jobs.open_jobs([Path(log) for log in logs])
    for path in configs:
        if not path.is_file():
            raise MissingInputError(
                Message("errors.folder-give-file", path=path)
                if path.is_dir()
                else Message("errors.no-file", path=path)
            )
    return source


def outcome_of(exit_code: int | None, signal: str, state: str) -> Outcome | None:
    """Make the outcome of a command's options.

    Raises InvalidRequestError where one is no exit code, signal or state.
    """
    try:
        return Outcome.model_validate({"exit_code": exit_code, "signal": signal, "state": state}).if_given
    except ValidationError as error:
        field, told = error.errors()[0]["loc"][0], error.errors()[0]["msg"]
        raise InvalidRequestError(
            f"--{str(field).replace('_', '-')}: {told.removeprefix('Value error, ')}."
        ) from error


def spoken(
    triage: Triage, triage_context: TriageContext, console: Console | None, model: str = ""
) -> Diagnosis:
    """Print the first answer, then the model's words as they come, then what they changed.

    Gives the final answer.
    """
    final = triage_context.first
    said = False
    for stage in triage.explain(triage_context):
        if isinstance(stage, Said):
            if console is not None:
                console.print(
                    Text(
                        ""
                        if said
                        else f"\n{words('diagnosis.model', triage_context.first.language, model=model)}:",
                        style="bold",
                    )
                )
                console.print(_markdown(stage.text))
            said = True
        elif isinstance(stage, LookStage):
            if console is not None:
                told = in_language(stage.step.found, triage_context.first.language)
                console.print(Text(f"  {told}", style="dim"))
        else:
            final = stage.diagnosis
            if console is not None and isinstance(stage, DraftStage):
                render(final, console)
    if console is not None and (changed := _changed(triage_context.first, final)):
        console.print()
        console.print(changed)
    # Another object than the first answer, so that the caller knows it printed.
    return final.model_copy()


def _style(view: DiagnosisView) -> str:
    return _STYLES[view.verdict]


def _say(name: str, language: Language, **values: object) -> str:
    return words(f"cli.{name}", language, **values)


def _changed(first: Diagnosis, final: Diagnosis) -> Group | None:
    """Tell what the model's answer changed, and what became of it."""
    rows: list[RenderableType] = []
    view = diagnosis_view(final, first.language)
    if final.cause != first.cause or final.verdict != first.verdict:
        rows += [Text(view.headline, style=_style(view)), Text(f"{final.cause}", style="dim")]
    if [change.key for change in final.changes] != [change.key for change in first.changes]:
        rows += _changes(view)
    if final.engine.note:
        rows.append(Text(final.engine.note, style="dim"))
    dropped = len(final.engine.dropped) - len(first.engine.dropped)
    if dropped > 0:
        rows.append(Text(_say("dropped", first.language, n=dropped), style="dim"))
    return Group(*rows) if rows else None


def _head(view: DiagnosisView) -> Group:
    rows = [Text(view.headline, style=_style(view))]
    if view.cause:
        named = " · ".join(part for part in (view.cause, view.standing_words) if part)
        rows.append(Text(named, style="dim"))
    if view.ended:
        rows.append(Text(view.ended, style="dim"))
    if view.root is not None and view.changes:
        # One row: the whole line stands among the evidence.
        proof = Text(f"{view.root.place}  ", style="cyan", no_wrap=True, overflow="ellipsis")
        rows.append(proof.append(view.root.text, style="dim"))
    return Group(*rows)


def render(diagnosis: Diagnosis, console: Console) -> None:
    """Print a diagnosis for a person: the conclusion, its line, what to change, then why, and the proof."""
    view = diagnosis_view(diagnosis)
    console.print(_head(view))
    for row in _changes(view):
        console.print()
        console.print(row)
    _print_to_use(view, console)
    if view.steps:
        console.print()
        console.print(Group(_title(view, "steps"), *_steps(view)))
    console.print()
    if view.changes or view.steps:
        console.print(_title(view, "why"))
    console.print(_markdown(view.explanation))
    if view.model_explanation:
        console.print(Text(f"\n{view.words('model', model=view.model)}:", style="bold"))
        console.print(_markdown(view.model_explanation))
    for block in (_evidence(view), _sources(view), _lists(view)):
        if block:
            console.print()
            console.print(Group(*block))
    if view.redactions:
        console.print(Text(view.words("redacted", count=view.redactions), style="dim"))


def _print_to_use(view: DiagnosisView, console: Console) -> None:
    """Print the patch and the command as they are, whatever the terminal's width: they are to be used."""
    for name, diff in (("patch", view.patch), ("suggestion", view.suggestion)):
        if diff:
            console.print()
            console.print(_title(view, name))
            for line in diff.rstrip("\n").split("\n"):
                style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
                console.print(Text(line, style=style), soft_wrap=True)
    if view.command:
        console.print()
        console.print(_title(view, "command"))
        console.print(Text(view.command), soft_wrap=True)


def _markdown(text: str) -> RenderableType:
    # Imported here: its parser is a slow import, and what prints JSON needs none.
    from rich.markdown import Markdown

    # Log text inside the explanation is data; HTML and links in it are shown as written.
    parts = _CODE.split(text)
    return Markdown(
        "".join(
            part if _CODE.fullmatch(part) else part.replace("<", "&lt;").replace("](", "]\\(")
            for part in parts
        )
    )


def _title(view: DiagnosisView, name: str) -> Text:
    return Text(view.words(name), style="bold")


def _evidence(view: DiagnosisView) -> list[RenderableType]:
    if not view.evidence:
        return []
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(justify="right", style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for item in view.evidence:
        table.add_row(item.place, Text(item.text[:300]).append(f"  — {item.why}", style="dim"))
    return [_title(view, "evidence"), table]


def _sources(view: DiagnosisView) -> list[RenderableType]:
    if not view.sources:
        return []
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(justify="right", style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for place in view.sources:
        told = Text(source_words(place, view.language))
        table.add_row(place.place, told.append(f"\n{place.url}", style="dim") if place.url else told)
    return [_title(view, "sources"), table]


def _changes(view: DiagnosisView) -> list[RenderableType]:
    """Give what may cure, and what helps to find out more, as a block each; nothing where there is none."""
    blocks = ((_say("changes", view.language), view.changes), (view.words("find-out"), view.looks))
    return [
        Group(Text(title, style="bold"), *(row for change in changes for row in _change(change)))
        for title, changes in blocks
        if changes
    ]


def _change(change: ChangeView) -> Iterator[RenderableType]:
    was = change.was()
    head = Text(f"  {as_written(change)}" + (f"  ({was})" if was else ""), style="bold green")
    yield head.append(f"  [{', '.join((*change.owners, change.kind_words))}]", style="dim")
    costs = f"{_say('costs', change.language)}: {change.costs}" if change.costs else ""
    yield Padding(Text(change.why), (0, 0, 0, 4))
    for text, style in ((costs, "dim"), (change.doubt, "yellow")):
        if text:
            yield Padding(Text(text, style=style), (0, 0, 0, 4))


def _steps(view: DiagnosisView) -> Iterator[RenderableType]:
    """Give the steps with their numbers, the one that acts in another colour and with its costs."""
    for number, step in enumerate(view.steps, 1):
        head = Text(f"  {number}. ").append(step.run, style="bold yellow" if step.acts else "cyan")
        yield head
        yield Padding(Text(step.why, style="dim"), (0, 0, 0, 5))
        if step.costs:
            costs = f"{_say('costs', view.language)}: {step.costs}"
            yield Padding(Text(costs, style="dim"), (0, 0, 0, 5))


def _lists(view: DiagnosisView) -> list[RenderableType]:
    rows: list[RenderableType] = []
    if view.alternatives and view.names_cause:
        texts = [Text(f"  - {item.cause}: {item.tell_apart}") for item in view.alternatives]
        rows += [_title(view, "alternatives"), *texts]
    if view.checks:
        title = "look" if view.verdict in ("no-failure", "open-end") else "checks"
        rows += [_title(view, title), *(Text(f"  - {check}") for check in view.checks)]
    if view.verdict == "diagnosed":
        rows += [Text(f"  {item.id}  {' '.join(item.urls[:2])}", style="dim") for item in view.cited[:3]]
    return rows
