"""`whycrash explain`: one log in, one diagnosis out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console, Group
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from corpus.message import Message, words
from corpus.schema import Language
from ingest.errors import MissingInputError
from ingest.logs.inputs import jobs
from service.composition import phrases
from service.llm.stages import DraftStage
from service.llm.stages import TextStage as Said
from service.llm.triage_context import TriageContext
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import Diagnosis, Outcome, ProposedChange
from service.schemas.errors import InvalidRequestError
from service.telemetry.opening import open_telemetry
from ui.cli.codes import EXPLAINED, HEALTHY, UNKNOWN
from ui.cli.console import check_language, load_settings, out, progress

_CODES = {"diagnosed": EXPLAINED, "ambiguous": EXPLAINED, "unknown": UNKNOWN, "no-failure": HEALTHY}
_STYLES = {
    "diagnosed": "bold red",
    "ambiguous": "bold yellow",
    "unknown": "bold yellow",
    "no-failure": "bold yellow",
}
_ENDED_WELL = "bold green"


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
) -> int:
    """Explain one job and give the exit code."""
    check_language(lang)
    settings = load_settings()
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
    files = [read_config(path) for path in configs]
    machine = open_telemetry(telemetry, settings) if telemetry else None
    with progress() as report:
        triage = Triage(settings, report)
        templates = triage.healthy_templates(good) if good else None
        triage_context = triage.diagnose(triage.read(source, lang, files, templates, outcome), machine)
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
    return _CODES[final.verdict]


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
                        "" if said else f"\n{_say('model', triage_context.first.language, model=model)}:",
                        style="bold",
                    )
                )
                console.print(Markdown(_safe(stage.text)))
            said = True
        else:
            final = stage.diagnosis
            if console is not None and isinstance(stage, DraftStage):
                render(final, console)
    if console is not None:
        _print(_changed(triage_context.first, final), console)
    # Another object than the first answer, so that the caller knows it printed.
    return final.model_copy()


def _style(diagnosis: Diagnosis) -> str:
    return _ENDED_WELL if diagnosis.ended_well else _STYLES[diagnosis.verdict]


def _say(name: str, language: Language, **values: object) -> str:
    return words(f"cli.{name}", language, **values)


def _changed(first: Diagnosis, final: Diagnosis) -> Group | None:
    """Tell what the model's answer changed, and what became of it."""
    rows: list[object] = []
    if final.cause != first.cause or final.verdict != first.verdict:
        rows += [Text(final.headline, style=_style(final)), Text(f"{final.cause}", style="dim")]
    if [change.key for change in final.changes] != [change.key for change in first.changes]:
        rows.append(_changes(final, first.language))
    if final.engine.note:
        rows.append(Text(final.engine.note, style="dim"))
    dropped = len(final.engine.dropped) - len(first.engine.dropped)
    if dropped > 0:
        rows.append(Text(_say("dropped", first.language, n=dropped), style="dim"))
    return Group(*rows) if rows else None  # type: ignore[arg-type]  # all are renderables


def render(diagnosis: Diagnosis, console: Console) -> None:
    """Print a diagnosis for a person: the conclusion and its line, what to change, why, and the proof."""
    language = diagnosis.language
    console.print(Text(diagnosis.headline, style=_style(diagnosis)))
    standing = _say(f"standing-{'end' if diagnosis.rests_on_end else diagnosis.standing}", language)
    if diagnosis.cause and diagnosis.verdict != "unknown":
        console.print(Text(" · ".join(part for part in (diagnosis.cause, standing) if part), style="dim"))
    if ending := phrases.outcome(diagnosis.outcome, language):
        console.print(Text(ending, style="dim"))
    # One row: the whole line stands among the evidence.
    root = next((item for item in diagnosis.evidence if item.role == "root"), None)
    if root is not None and diagnosis.changes:
        place = f"{root.file}:L{root.line}" if root.file else f"L{root.line}"
        # One row: the whole line stands among the evidence.
        console.print(
            Text(f"{place}  ", style="cyan").append(root.text, style="dim"), no_wrap=True, overflow="ellipsis"
        )
    _print(_changes(diagnosis, language), console)
    _print_patch(diagnosis, language, console)
    if diagnosis.changes:
        console.print()
        console.print(Text(_say("why", language), style="bold"))
    else:
        console.print()
    console.print(Markdown(_safe(diagnosis.explanation)))
    if said := diagnosis.engine.model_explanation:
        console.print(Text(f"\n{_say('model', language, model=diagnosis.engine.name)}:", style="bold"))
        console.print(Markdown(_safe(said)))
    _print(_evidence(diagnosis, language), console)
    _print(_lists(diagnosis, language), console)
    if diagnosis.redactions:
        console.print(Text(_say("redacted", language, n=diagnosis.redactions), style="dim"))


def _safe(markdown: str) -> str:
    # Log text inside the explanation is data; HTML and links in it are shown as written.
    parts = _CODE.split(markdown)
    return "".join(
        part if _CODE.fullmatch(part) else part.replace("<", "&lt;").replace("](", "]\\(") for part in parts
    )


def _titled(name: str, language: Language, *rows: object) -> Group:
    return Group(Text(_say(name, language), style="bold"), *rows)  # type: ignore[arg-type]


def _evidence(diagnosis: Diagnosis, language: Language) -> Group | None:
    if not diagnosis.evidence:
        return None
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(justify="right", style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for item in diagnosis.evidence:
        text = Text(item.text[:300])
        text.append(f"  — {item.why}", style="dim")
        table.add_row(f"{item.file}:L{item.line}" if item.file else f"L{item.line}", text)
    return _titled("evidence", language, table)


def _changes(diagnosis: Diagnosis, language: Language) -> Group | None:
    if not diagnosis.changes:
        return None
    return _titled("changes", language, *(_change(change, language) for change in diagnosis.changes))


def _change(change: ProposedChange, language: Language) -> Group:
    value = f"{change.key} = {change.to}" + (
        f"  ({_say('was', language)} {change.from_})" if change.from_ is not None else ""
    )
    head = Text(f"  {value}", style="bold green")
    named = dict.fromkeys(
        (
            *([] if change.framework == change.kind else [change.framework]),
            _say(f"kind-{change.kind}", language),
        )
    )
    head.append(f"  [{', '.join(named)}]", style="dim")
    rows: list[object] = [head, Padding(Text(change.why), (0, 0, 0, 4))]
    if change.costs:
        rows.append(Padding(Text(f"{_say('costs', language)}: {change.costs}", style="dim"), (0, 0, 0, 4)))
    if change.status == "unverified" and change.kind not in ("package", "command"):
        rows.append(Padding(Text(_say("unverified", language), style="yellow"), (0, 0, 0, 4)))
    return Group(*rows)  # type: ignore[arg-type]


def _print(block: Group | None, console: Console) -> None:
    if block is not None:
        console.print()
        console.print(block)


def _print_patch(diagnosis: Diagnosis, language: Language, console: Console) -> None:
    """Print the patch as it is, whatever the terminal's width: it is to be piped into `git apply`."""
    if not diagnosis.patch:
        return
    console.print()
    console.print(Text(_say("patch", language), style="bold"))
    for row in diagnosis.patch.rstrip("\n").split("\n"):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(row[:1], "")
        console.print(Text(row, style=style), soft_wrap=True)


def _lists(diagnosis: Diagnosis, language: Language) -> Group | None:
    rows: list[object] = []
    if diagnosis.alternatives and diagnosis.verdict in ("diagnosed", "ambiguous"):
        texts = [Text(f"  - {item.cause}: {item.tell_apart}") for item in diagnosis.alternatives]
        rows += [Text(_say("alternatives", language), style="bold"), *texts]
    if diagnosis.checks:
        rows += [
            Text(_say("checks" if diagnosis.cause else "look", language), style="bold"),
            *(Text(f"  - {check}") for check in diagnosis.checks),
        ]
    if diagnosis.verdict == "diagnosed" and diagnosis.cases:
        shown = [item for item in diagnosis.cases if f"[case:{item.id}]" in diagnosis.explanation][:3]
        rows += [Text(f"  {item.id}  {' '.join(item.urls[:2])}", style="dim") for item in shown]
    return Group(*rows) if rows else None  # type: ignore[arg-type]
