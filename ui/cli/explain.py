"""`whycrash explain`: one log in, one diagnosis out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from corpus.message import Message, in_language, words
from ingest.errors import MissingInputError
from ingest.logs.inputs import jobs
from ingest.logs.inputs.jobs import JobSource
from ingest.source_code.source_roots import given_roots
from service.composition.diagnosis_view import diagnosis_view
from service.llm.stages import DraftStage, LookStage
from service.llm.stages import TextStage as Said
from service.llm.triage_context import TriageContext
from service.patching.application import name_in_repository
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import Diagnosis, Outcome
from service.schemas.errors import InvalidRequestError
from service.telemetry.opening import open_telemetry
from ui.cli.answer import changes, markdown, render, style
from ui.cli.codes import EXPLAINED, HEALTHY, UNKNOWN
from ui.cli.console import check_language, load_settings, out, progress
from ui.cli.patches import offer_edits, write_patch

_CODES = {"diagnosed": EXPLAINED, "ambiguous": EXPLAINED, "unknown": UNKNOWN, "no-failure": HEALTHY}


def run(
    logs: list[str],
    *,
    as_json: bool,
    lang: str,
    configs: list[Path],
    sources: Sequence[Path] = (),
    good: Path | None = None,
    telemetry: str = "",
    model: bool = True,
    show_prompt: bool = False,
    outcome: Outcome | None = None,
    patch: Path | None = None,
    apply: bool = False,
    full: bool = False,
) -> int:
    """Explain one job and give the exit code."""
    check_language(lang)
    settings = load_settings()
    if apply and "-" in logs:
        raise InvalidRequestError(Message("errors.apply-needs-answer"))
    source = _opened(logs, configs)
    if lost := next((folder for folder in sources if not folder.is_dir()), None):
        raise MissingInputError(Message("errors.no-source-folder", path=lost))
    roots = given_roots(sources) if sources else None
    files = [read_config(path, name_in_repository(path)) for path in configs]
    machine = open_telemetry(telemetry, settings) if telemetry else None
    with progress() as report:
        triage = Triage(settings, report)
        triage.open_embedder_ahead()
        templates = triage.healthy_templates(good) if good else None
        read = triage.read(source, lang, files, templates, outcome)
        # Standard input is read once; of that, a model sees what the report holds.
        again = None if logs == ["-"] else partial(jobs.open_jobs, [Path(log) for log in logs])
        triage_context = triage.diagnose(replace(read, reopen=again, roots=roots), machine)
    if show_prompt:
        sys.stdout.write(triage.prompt(triage_context) + "\n")
        return EXPLAINED
    final = (
        spoken(triage, triage_context, None if as_json else out(), settings.model, full=full)
        if model and settings.model
        else triage_context.first
    )
    if as_json:
        sys.stdout.write(final.to_json(indent=2) + "\n")
    elif final is triage_context.first:
        render(final, out(), full=full)
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


def spoken(
    triage: Triage,
    triage_context: TriageContext,
    console: Console | None,
    model: str = "",
    *,
    full: bool = False,
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
                console.print(markdown(stage.text))
            said = True
        elif isinstance(stage, LookStage):
            if console is not None:
                told = in_language(stage.step.found, triage_context.first.language)
                console.print(Text(f"  {told}", style="dim"))
        else:
            final = stage.diagnosis
            if console is not None and isinstance(stage, DraftStage):
                render(final, console, full=full)
    if console is not None and (changed := _changed(triage_context.first, final)):
        console.print()
        console.print(changed)
    # Another object than the first answer, so that the caller knows it printed.
    return final.model_copy()


def _changed(first: Diagnosis, final: Diagnosis) -> Group | None:
    """Tell what the model's answer changed, and what became of it."""
    rows: list[RenderableType] = []
    view = diagnosis_view(final, first.language)
    if final.cause != first.cause or final.verdict != first.verdict:
        rows += [Text(view.headline, style=style(view)), Text(f"{final.cause}", style="dim")]
    if [change.key for change in final.changes] != [change.key for change in first.changes]:
        rows += changes(view)
    if final.engine.note:
        rows.append(Text(final.engine.note, style="dim"))
    dropped = len(final.engine.dropped) - len(first.engine.dropped)
    if dropped > 0:
        rows.append(Text(words("cli.dropped", first.language, n=dropped), style="dim"))
    return Group(*rows) if rows else None
