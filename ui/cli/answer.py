"""A diagnosis on a terminal: what one acts on in one screen, or all of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from corpus.message import words
from corpus.schema import Language
from service.composition import shortening
from service.composition.diagnosis_view import (
    ChangeView,
    DiagnosisView,
    as_written,
    diagnosis_view,
    source_words,
    statement_words,
)
from service.composition.phrases import phrase
from service.patching.commands import LOGGED
from service.schemas.diagnosis import Diagnosis, ProcedureStep

_STYLES = {
    "diagnosed": "bold red",
    "ambiguous": "bold yellow",
    "unknown": "bold yellow",
    "open-end": "bold yellow",
    "no-failure": "bold green",
}
_CELLS = shortening.Measure(cell_len, set_cell_size)
_CODE = re.compile(r"(`[^`\n]*`)")
# The rows of a screen, and of each part of a short answer at the most.
_SCREEN = 30
# Of the proof where the rest fills the screen, as a rule, and where it names something further on.
_ROWS_LEAST_PROOF, _ROWS_PROOF, _ROWS_LONG_PROOF = 2, 3, 6
_ROWS_HAPPENED = 3
_ROWS_MEANS = 3
_ROWS_UNKNOWN = 6
_ROWS_MODEL = 6
_ROWS_ADVICE = 5
# Beside changes, which come first.
_ROWS_BESIDE = 3
_VALUES = 3
_ROWS_WHY = 4
_ROWS_WHOLE_PATCH, _ROWS_PATCH = 16, 8
# A row more is not worth a note that it is left out.
_SLACK = 1
_ROWS_COMMAND = 4
# Rows of the proof, of the patch, and of each row of it: as much as there is room for.
_TRIED = (
    (_ROWS_LONG_PROOF, _ROWS_WHOLE_PATCH, 2),
    (_ROWS_LONG_PROOF, _ROWS_PATCH, 2),
    (_ROWS_PROOF, _ROWS_PATCH, 2),
    (_ROWS_PROOF, _ROWS_PATCH, 1),
    (_ROWS_LEAST_PROOF, _ROWS_PATCH, 1),
)
_CHANGES = 3
_STEPS = 3
_CHECKS = 3
_CURVES = 2
# What is less likely is no reason to look elsewhere first.
_LIKELY = 0.1


def style(view: DiagnosisView) -> str:
    """Give the colour of a conclusion; one that may well be wrong is amber."""
    return "bold yellow" if view.is_doubtful else _STYLES[view.verdict]


def _head(view: DiagnosisView, width: int, rows_of_proof: int = _ROWS_PROOF) -> Group:
    rows = [Text(view.headline, style=style(view))]
    if view.cause:
        named = " · ".join(part for part in (view.cause, view.standing_words) if part)
        rows.append(Text(named, style="dim"))
    if view.end_known:
        rows.append(Text(view.end_known, style="dim"))
    rows += [Text(words, style="dim") for words in view.curve_words[:_CURVES]]
    if view.root is not None:
        # The whole line stands among the evidence.
        taken = len(view.root.place) + 6
        usual, most = (rows * width - taken for rows in (min(_ROWS_PROOF, rows_of_proof), rows_of_proof))
        message = shortening.proof(view.proof, usual, most, _CELLS)
        proof = Text(f"{view.root.place}  ", style="cyan").append(message, style="bright_black")
        rows.append(proof)
    return Group(*rows)


def render(diagnosis: Diagnosis, console: Console, *, full: bool = False) -> None:
    """Print a diagnosis for a person: what one acts on in a screen, or with `full` all that there is."""
    view = diagnosis_view(diagnosis)
    if full:
        console.print(_head(view, console.width))
        _print_full(view, console)
        if console.is_terminal:
            # What stands above may have scrolled away.
            console.print()
            console.print(_head(view, console.width))
    else:
        _print_short(view, console)


@dataclass(frozen=True)
class _Block:
    """Rows that are printed together, below an empty one.

    Below its `rows` stand those that are to be used as they are, `whole`: no width wraps them. One that
    `goes_on` has no empty row above. Of the blocks that have a number in `spare`, that with the highest goes
    first where a screen has no room for all.
    """

    rows: Sequence[RenderableType]
    whole: Sequence[Text] = ()
    goes_on: bool = False
    spare: int = 0

    def height(self, console: Console) -> int:
        """Count its rows on a console, the empty one included."""
        above = 0 if self.goes_on else 1
        # A terminal wraps what is printed whole.
        whole = sum(max(1, -(-cell_len(row.plain) // console.width)) for row in self.whole)
        return above + whole + sum(len(console.render_lines(row, pad=False)) for row in self.rows)

    def print(self, console: Console) -> None:
        """Print it."""
        if not self.goes_on:
            console.print()
        for row in self.rows:
            console.print(row)
        for row in self.whole:
            console.print(row, soft_wrap=True)


def _print_short(view: DiagnosisView, console: Console) -> None:
    """Print what one acts on: what happened, the first change with its patch or the steps, one check."""
    for rows_of_proof, rows_of_patch, rows_each in _TRIED:
        head = _head(view, console.width, rows_of_proof)
        blocks = list(_short_blocks(view, console.width, rows_of_patch, rows_each))
        if rows_of_patch < _ROWS_WHOLE_PATCH:
            blocks = _fitting(blocks, head, console)
        if _height(head, blocks, console) <= _SCREEN:
            break
    console.print(head)
    for block in blocks:
        block.print(console)


def _fitting(blocks: Iterable[_Block], head: RenderableType, console: Console) -> list[_Block]:
    """Leave out of what can be spared as much as a screen has no room for."""
    kept = list(blocks)
    while _height(head, kept, console) > _SCREEN:
        spare = max(reversed(kept), key=lambda block: block.spare)
        if not spare.spare:
            break
        kept.remove(spare)
    return kept


def _shortened(text: str, most: int) -> str:
    return shortening.shortened(text, most, _CELLS)


def _height(head: RenderableType, blocks: Iterable[_Block], console: Console) -> int:
    return len(console.render_lines(head, pad=False)) + sum(block.height(console) for block in blocks)


def _short_blocks(view: DiagnosisView, width: int, rows_of_patch: int, rows_each: int) -> Iterator[_Block]:
    """Give the parts of a short answer, in their order."""
    most = _ROWS_HAPPENED if view.names_cause else _ROWS_UNKNOWN
    if happened := _shortened(_closed_up(view.happened, view.language), most * width):
        yield _Block([markdown(happened)], spare=4 if view.names_cause else 0)
    # That a file is not as it ran is told however little room there is.
    parts: tuple[tuple[Literal["why", "since"], int], ...] = (("why", 2), ("since", 0))
    for part, spare in parts:
        if told := _shortened(view.part(part), _ROWS_MEANS * width):
            yield _Block([markdown(told)], spare=spare)
    if view.changes:
        yield from _short_changes(view, width)
    elif not view.steps and (advice := _shortened(view.part("do"), _ROWS_ADVICE * width)):
        yield _Block([Text(phrase("do", view.language), style="bold"), markdown(advice)])
    yield from _to_use(view, _Room(rows_of_patch, rows_each * width, _ROWS_COMMAND * width))
    if view.steps and not view.patch:
        yield _Block([_title(view, "steps"), *_short_steps(view)])
    if (view.changes or view.steps) and (advice := _shortened(view.part("do"), _ROWS_BESIDE * width)):
        yield _Block([Text(phrase("do", view.language), style="bold"), markdown(advice)], spare=5)
    yield from _values(view)
    yield from _short_checks(view)
    yield from _resume(view)
    if alternatives := _alternatives(view, width):
        yield _Block(alternatives, spare=0 if view.is_doubtful else 7)
    if view.model_explanation:
        said = _shortened(view.model_explanation, _ROWS_MODEL * width)
        yield _Block([Text(f"{view.words('model', model=view.model)}:", style="bold"), markdown(said)])
    yield _Block([Text(_say("full", view.language), style="dim")])


def _short_changes(view: DiagnosisView, width: int) -> Iterator[_Block]:
    """Give the first change with its reason, the others in a row each."""
    first = view.changes[0]
    # What was just said is not said again.
    is_told = first.why.replace("`", "") in view.part("why").replace("`", "")
    first = replace(first, why="" if is_told else _shortened(first.why, _ROWS_WHY * width))
    yield _Block([Text(view.words("changes"), style="bold"), *_change(first)])
    # What the patch below makes is told as well, however little room there is.
    made = {change.key for change in view.first_changes} if view.patch else set()
    others = view.changes[1:_CHANGES]
    for is_made, spare in ((True, 0), (False, 1)):
        chosen = [change for change in others if (change.key in made) == is_made]
        yield _Block(
            [row for change in chosen for row in list(_change(change))[:1]], goes_on=True, spare=spare
        )


def _values(view: DiagnosisView) -> Iterator[_Block]:
    """Give the nearest rows of the job's own files that made what the failing statement is given."""
    rows = view.part("values").strip().split("\n")[:_VALUES]
    if rows != [""]:
        yield _Block(
            [Text(phrase("values", view.language), style="bold"), markdown("\n".join(rows))], spare=3
        )


def _resume(view: DiagnosisView) -> Iterator[_Block]:
    """Say from which checkpoint the job can go on, and give what to write for that in a row of its own."""
    if view.resume:
        said = view.words("resume-how", resume=view.resume) if view.resumes_with else view.resume
        command = [Text(f"  {view.resumes_with}")] if view.resumes_with else []
        yield _Block([markdown(said)], command, spare=3)


def _closed_up(text: str, language: Language) -> str:
    """Put short paragraphs that follow one another into one; a list and what announces it stay apart."""
    closed: list[str] = []
    for part in text.split("\n\n"):
        follows = closed and not closed[-1].startswith("-") and not closed[-1].endswith((":", "："))
        if follows and not part.startswith("-") and not part.endswith((":", "：")):
            closed[-1] += ("" if language == "zh" else " ") + part
        else:
            closed.append(part)
    return "\n\n".join(closed)


def _short_steps(view: DiagnosisView) -> Iterator[RenderableType]:
    """Give the first looks and the step that acts; beside a change, why and the cost of that alone."""
    looks = [step for step in view.steps if not step.acts]
    acts = [step for step in view.steps if step.acts]
    shown = [*looks[: _STEPS - len(acts[:1])], *acts[:1]]
    for number, step in enumerate(shown, 1):
        rows = list(_step(view, number, step))
        yield from rows if step.acts or not view.changes else rows[:1]


def _short_checks(view: DiagnosisView) -> Iterator[_Block]:
    """Give the first check; several where looking closer is all that there is to do."""
    most = _CHECKS if view.checks_come_first and not view.steps else 1
    if not view.checks or (view.steps and not view.patch):
        return
    first, *others = (_item("-", Text(check)) for check in view.checks[:most])
    # Before one acts on a doubtful answer, what tells it from the others is worth more than more advice.
    spare = (3 if view.is_doubtful else 6) if view.changes or view.steps else 0
    yield _Block([Text(view.checks_title, style="bold"), first], spare=spare)
    for row in others:
        yield _Block([row], goes_on=True, spare=6)


def _alternatives(view: DiagnosisView, width: int) -> list[RenderableType]:
    """Give the causes that may be it instead, with how likely each is."""
    likely = [item for item in view.alternatives if item.confidence >= _LIKELY]
    if not likely or not view.names_cause:
        return []
    rows = [
        _item(f"{item.confidence:.0%}", Text(_shortened(f"{item.cause}: {item.tell_apart}", 2 * width - 8)))
        for item in likely[:2]
    ]
    return [_title(view, "alternatives"), *rows]


def _print_full(view: DiagnosisView, console: Console) -> None:
    """Print all of a diagnosis: what to change, then why, and the proof."""
    for row in changes(view):
        console.print()
        console.print(row)
    for part in _to_use(view):
        part.print(console)
    if view.steps:
        console.print()
        steps = (row for number, step in enumerate(view.steps, 1) for row in _step(view, number, step))
        console.print(Group(_title(view, "steps"), *steps))
    for part in _resume(view):
        part.print(console)
    console.print()
    if view.changes or view.steps:
        console.print(_title(view, "why"))
    console.print(markdown(view.explanation))
    if view.model_explanation:
        console.print(Text(f"\n{view.words('model', model=view.model)}:", style="bold"))
        console.print(markdown(view.model_explanation))
    for block in (*_proofs(view), _lists(view)):
        if block:
            console.print()
            console.print(Group(*block))
    for told in _last_rows(view):
        console.print(Text(told, style="dim"), soft_wrap=True)


class _Room(NamedTuple):
    """How much of a screen what is to be used may take: a diff's rows, and columns of a row or a command."""

    rows: int
    columns: int
    command: int


def _to_use(view: DiagnosisView, room: _Room | None = None) -> Iterator[_Block]:
    """Give the patch and the command as they are, whatever the terminal's width: they are to be used.

    Where there is only so much room, a diff is cut, and a command that is longer is left out, as it is where
    a patch makes the change. A patch of a command that only the log has applies to no file: the command takes
    its place.
    """
    fits = room is None or len(view.command or "") <= room.command
    patch = None if view.command and fits and LOGGED.search(view.patch or "") else view.patch
    for name, diff in (("patch", patch), ("suggestion", view.suggestion)):
        rows = [
            Text(line, style={"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""))
            for line in (diff or "").rstrip("\n").split("\n")
        ]
        if diff:
            yield _Block([_title(view, name)], [*_diff_rows(view, rows, room)])
    if view.command and fits and (room is None or not patch):
        yield _Block([_title(view, "command")], [Text(view.command)])


def _diff_rows(view: DiagnosisView, rows: Sequence[Text], room: _Room | None) -> Iterator[Text]:
    """Cut a diff to its room, with a note that it was; what stays as it is goes first."""
    if room is None:
        yield from rows
        return
    is_cut = len(rows) > room.rows + _SLACK
    shown = [row for row in rows if not row.plain.startswith(" ")][: room.rows] if is_cut else [*rows]
    is_long = any(cell_len(row.plain) > room.columns for row in shown)
    yield from _around_changes(shown, room.columns) if is_long else shown
    if len(shown) < len(rows):
        yield Text(_say("more-rows", view.language, count=len(rows) - len(shown)), style="dim")
    elif is_long:
        yield Text(_say("cut-rows", view.language), style="dim")


def _around_changes(rows: Sequence[Text], most: int) -> list[Text]:
    """Cut the long rows of a diff to what differs between the one that goes and the one that comes."""
    gone = [row.plain for row in rows if row.plain.startswith("-") and not row.plain.startswith("---")]
    come = [row.plain for row in rows if row.plain.startswith("+") and not row.plain.startswith("+++")]
    partner = dict(zip(gone, come, strict=False)) | dict(zip(come, gone, strict=False))
    return [
        row
        if cell_len(row.plain) <= most
        else Text(_differing(row.plain, partner.get(row.plain, ""), most), row.style)
        for row in rows
    ]


def _differing(row: str, other: str, most: int) -> str:
    """Give the sign of a diff's row, and of the rest what begins a little before it differs from another."""
    pairs = enumerate(zip(row[1:], other[1:], strict=False))
    same = next((place for place, (one, two) in pairs if one != two), 0)
    begin = max(1, row.rfind(" ", 0, max(1, same - most // 4)) + 1)
    # Its sign and the marks of what is cut take a column each.
    most -= 3
    shown = set_cell_size(row[begin:], most) if cell_len(row[begin:]) > most else row[begin:]
    before, after = "…" if begin > 1 else "", "…" if len(shown) < len(row[begin:]) else ""
    return f"{row[0]}{before}{shown}{after}"


def markdown(text: str) -> RenderableType:
    """Lay out an explanation."""
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


def _proofs(view: DiagnosisView) -> Iterator[list[RenderableType]]:
    """Give what an answer rests on, each below its title: lines of the log, statements, source code."""
    if view.evidence:
        rows = (
            (item.place, Text(item.text[:300]).append(f"  — {item.why}", style="dim"))
            for item in view.evidence
        )
        yield [_title(view, "evidence"), _beside_places(rows)]
    if told := [Text(row) for read in view.statements for row in statement_words(read, view.language)]:
        yield [_title(view, "statements"), *told]
    if view.sources:
        rows = (
            (
                place.place,
                Text(source_words(place, view.language)).append(f"\n{place.url}" if place.url else "", "dim"),
            )
            for place in view.sources
        )
        yield [_title(view, "sources"), _beside_places(rows)]


def _beside_places(rows: Iterable[tuple[str, Text]]) -> Table:
    """Lay texts out beside the log's lines that they are about."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(justify="right", style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def changes(view: DiagnosisView) -> list[RenderableType]:
    """Give what may cure, what is guessed, and what helps to find out more, each as a block."""
    blocks = (
        (view.words("changes"), view.changes),
        (view.words("guesses"), view.guesses),
        (view.words("find-out"), view.looks),
    )
    return [
        Group(Text(title, style="bold"), *(row for change in changes for row in _change(change)))
        for title, changes in blocks
        if changes
    ]


def _change(change: ChangeView) -> Iterator[RenderableType]:
    was = change.was()
    head = Text(as_written(change) + (f"  ({was})" if was else ""), style="bold green")
    head.append(f"  [{', '.join((*change.owners, change.kind_words))}]", style="dim")
    yield Padding(head, (0, 0, 0, 2), expand=False)
    costs = f"{_say('costs', change.language)}: {change.costs}" if change.costs else ""
    for text, colour in ((change.why, ""), (costs, "dim"), (change.doubt, "yellow")):
        if text:
            yield Padding(Text(text, style=colour), (0, 0, 0, 4))


def _step(view: DiagnosisView, number: int, step: ProcedureStep) -> Iterator[RenderableType]:
    yield _item(f"{number}.", Text(step.run, style="bold yellow" if step.acts else "cyan"))
    yield Padding(Text(step.why, style="dim"), (0, 0, 0, 5))
    if step.costs:
        costs = f"{_say('costs', view.language)}: {step.costs}"
        yield Padding(Text(costs, style="dim"), (0, 0, 0, 5))


def _last_rows(view: DiagnosisView) -> Iterator[str]:
    """Give the cases with their addresses, which no row's end may cut, and what was masked."""
    for item in view.cited[:3] if view.verdict == "diagnosed" else ():
        yield f"  {item.id}"
        yield from (f"    {url}" for url in item.urls[:2])
    if view.redactions:
        yield view.words("redacted", count=view.redactions)


def _lists(view: DiagnosisView) -> list[RenderableType]:
    rows: list[RenderableType] = []
    if view.alternatives and view.names_cause:
        texts = [
            _item(f"{item.confidence:.0%}", Text(f"{item.cause}: {item.tell_apart}"))
            for item in view.alternatives
        ]
        rows += [_title(view, "alternatives"), *texts]
    if view.checks:
        rows += [Text(view.checks_title, style="bold"), *(_item("-", Text(check)) for check in view.checks)]
    return rows


def _item(mark: str, text: Text) -> Padding:
    """Lay out an item of a list, whose further rows stand below its first."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column()
    # An address or a path that is longer than the row is not cut.
    table.add_column(overflow="fold")
    table.add_row(mark, text)
    return Padding(table, (0, 0, 0, 2), expand=False)


def _say(name: str, language: Language, **values: object) -> str:
    return words(f"cli.{name}", language, **values)
