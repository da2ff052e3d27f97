"""An answer as Markdown for a ticket: the conclusion, its proof, what to change, what else it may be."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.composition.diagnosis_view import ChangeView, DiagnosisView, as_written, percent

_TICKS = re.compile(r"`+")
# Code is kept, closed on its row; of the rest what would open a link, an image or a tag is written as text.
_CODE_OR_OPENING = re.compile(r"(?P<code>`[^`\n]+`)|[\[\]<\\]")
# Checks, and causes that it may be instead, which a ticket names.
_CHECKS, _OTHERS = 3, 2


def text(view: DiagnosisView) -> str:
    """Write an answer for a ticket, where nothing of a log is a link, an image or a tag."""
    return "\n\n".join(_parts(view)) + "\n"


def _parts(view: DiagnosisView) -> Iterator[str]:
    yield f"## {plainly(view.headline)}"
    known = (view.cause and f"`{view.cause}`", view.standing_words, view.end_known, *view.curve_words)
    if told := " · ".join(part for part in known if part):
        yield plainly(told)
    if view.root is not None:
        yield f"{view.root.place}:\n\n{fenced(view.proof)}"
    if view.first_changes:
        yield _list(view.words("changes"), [_change(change) for change in view.first_changes])
    elif view.steps:
        steps = (f"{_code(step.run)} — {plainly(step.why)}" for step in view.steps)
        yield _list(view.words("steps"), list(steps))
    if view.patch:
        yield fenced(view.patch.rstrip("\n"), "diff")
    elif view.command:
        yield fenced(view.command, "bash")
    if view.resume:
        yield plainly(view.resume) + (f"\n\n{fenced(view.resumes_with, 'bash')}" if view.resumes_with else "")
    if view.checks:
        yield _list(
            view.words("look" if view.checks_come_first else "checks"),
            list(map(plainly, view.checks[:_CHECKS])),
        )
    if view.names_cause and view.alternatives:
        others = (
            f"{percent(item.confidence)} % `{item.cause}`: {plainly(item.tell_apart)}"
            for item in view.alternatives[:_OTHERS]
        )
        yield _list(view.words("alternatives"), list(others))


def _change(change: ChangeView) -> str:
    was = change.was(mark=_code)
    told = [
        _code(as_written(change)) + (f" ({was})" if was else ""),
        plainly(change.why),
        plainly(change.costs),
    ]
    return " — ".join(part for part in told if part)


def plainly(text: str) -> str:
    """Write text so that nothing of it is a link, an image or a tag; code in it stays code."""
    return _CODE_OR_OPENING.sub(lambda found: found["code"] or f"\\{found[0]}", text)


def _list(title: str, rows: list[str]) -> str:
    return f"**{title}**\n\n" + "\n".join(f"- {row}" for row in rows)


def _code(plain: str) -> str:
    """Give text as code; what holds such marks itself is written as it is."""
    return plain if "`" in plain else f"`{plain}`"


def fenced(plain: str, name: str = "") -> str:
    """Give rows as a block that no row of theirs can end."""
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(plain)), default=0))
    return f"{fence}{name}\n{plain}\n{fence}"
