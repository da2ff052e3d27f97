"""HTML for wrong answers: label, answer, and the lines of the log around the labelled and the named root."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eval.figures import WrongAnswer
from ingest.redaction.redactor import Redactor
from service.html.markup import EMPTY, Html, element, folded, join

AROUND = 3
WIDEST = 200
# Characters of a line that are redacted and shown from; a line may be megabytes long.
_LOOKED_AT = 4000


@dataclass(frozen=True)
class Quoted:
    """A redacted line of a log, its number (from 1), and whether the label or the answer names it as root."""

    number: int
    text: str
    labelled: bool
    named: bool


def category(name: str, items: Sequence[WrongAnswer]) -> Html:
    """Give a category's wrong answers as a collapsed section with their count."""
    counts = Counter(item.incident.label.split for item in items)
    split_counts = ", ".join(f"{count} {split}" for split, count in counts.items())
    return folded(join(name, element("span", split_counts)), *map(article, items))


def article(item: WrongAnswer) -> Html:
    """Give one wrong answer as an article."""
    label = item.incident.label
    tags = f"{label.split} · {label.kind} · {label.language}"
    return element("article", element("h3", label.id, element("span", tags)), _facts(item), _lines(item))


def _facts(item: WrongAnswer) -> Html:
    label, answer = item.incident.label, item.answer
    labelled_changes = (
        _change(change.framework, change.key, "" if change.to is None else str(change.to))
        for change in label.changes
    )
    rows = {
        "labelled": _causes(label.causes, label.verdict),
        "named": _causes(answer.causes[:1], answer.verdict),
        "other candidates": _list(map(_code, answer.causes[1:])),
        "confidence": "" if answer.confidence is None else f"{answer.confidence:.2f}",
        "headline": answer.headline,
        "labelled changes": _list(labelled_changes),
        "proposed changes": _list(_change(*change) for change in answer.changes or ()),
        "traps": _list(label.traps, "; "),
    }
    return element(
        "dl", *(join(element("dt", name), element("dd", words)) for name, words in rows.items() if words)
    )


def _code(words: str) -> Html:
    return element("code", words)


def _list(words: Iterable[str], between: str = ", ") -> Html:
    return join(*words, between=between)


def _causes(causes: Sequence[str], verdict: str) -> Html:
    return join(_list(map(_code, causes)), f" ({verdict})" if causes else verdict)


def _change(framework: str, key: str, value: str) -> Html:
    return join(framework, " ", _code(f"{key}={value}" if value else key))


def excerpt(lines: Sequence[str], labelled: Sequence[int], named: Sequence[int]) -> list[Quoted]:
    """Give the lines around the first labelled root line and around the first named one, redacted."""
    centres = (*labelled[:1], *named[:1])
    numbers = {near for centre in centres for near in range(centre - AROUND, centre + AROUND + 1)}
    quoted = []
    for number in sorted(number for number in numbers if 0 < number <= len(lines)):
        clean = Redactor().clean(lines[number - 1][:_LOOKED_AT])
        shown = clean if len(clean) <= WIDEST else f"{clean[: WIDEST - 1]}…"
        quoted.append(Quoted(number, shown, number in labelled, number in named[:1]))
    return quoted


def _lines(item: WrongAnswer) -> Html:
    labelled, named = item.incident.label.root_lines, item.answer.lines or ()
    quoted = excerpt(item.incident.lines, labelled, named)
    if not quoted:
        return EMPTY
    caption = f"Labelled root: {_numbers(labelled)}; pointed at: {_numbers(named[:1])}"
    rows = (_rows(row, before) for before, row in zip([None, *quoted], quoted, strict=False))
    return element("table", element("caption", caption), element("tbody", *rows), class_="log")


def _numbers(lines: Sequence[int]) -> str:
    return f"line {', '.join(map(str, lines))}" if lines else "none"


def _rows(row: Quoted, before: Quoted | None) -> Html:
    gap = before is not None and row.number > before.number + 1
    why = " + ".join(word for word, applies in (("root", row.labelled), ("named", row.named)) if applies)
    shown = element(
        "tr",
        element("th", str(row.number), scope="row"),
        element("td", why, class_="why"),
        element("td", row.text, class_="row"),
        class_="hit" if why else None,
    )
    return join(element("tr", element("td", "⋯", colspan=3), class_="soft"), shown) if gap else shown
