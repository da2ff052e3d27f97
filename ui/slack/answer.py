"""A diagnosis as a message of Slack: the conclusion, the line that proves it, the first change, then buttons.

The rest stands in a second message, which a button asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from corpus.message import words
from corpus.schema import Language
from service.composition.diagnosis_view import (
    ChangeView,
    DiagnosisView,
    as_written,
    diagnosis_view,
    source_words,
)
from service.schemas.diagnosis import CaseHit, Diagnosis
from service.schemas.records import CrashNote, Recurrence
from service.settings import Settings
from ui.slack.fitting import AnswerPiece, fit
from ui.slack.mrkdwn import (
    BULLET,
    Block,
    clip,
    code,
    context,
    escape,
    from_markdown,
    header,
    length,
    link,
    plain,
    section,
)
from ui.slack.wording import say

# What the buttons' clicks are told apart by.
RIGHT, WRONG, PATCH, OPEN = "whycrash_right", "whycrash_wrong", "whycrash_patch", "whycrash_open"
MORE = "whycrash_more"
_NOTIFICATION = 300
_LINE = 400
# Characters of the first message, which a channel reads in passing; of the parts that frame it, so many.
SHORT = 1_900
_HEADLINE, _STANDING, _SEEN, _NOTE, _NOTES = 240, 240, 100, 160, 2
# Of a path the end tells most.
_SOURCE = 60
# Of the line that proves it, and of any other part of the first message; together they always get so many.
_PROOF, _PART, _LEAST = 320, 480, 600
_ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to
_CASE_MARK = re.compile(r"\s?\[case:[^\]\s]+\]")
_LOOPBACK = ("127.", "localhost", "::1")


@dataclass(frozen=True)
class SlackMessage:
    """What is posted: `text` is what a notification and a screen reader say.

    `triage` is whose answer it is.
    """

    text: str
    blocks: list[Block] = field(default_factory=list)
    triage: str | None = None


@dataclass(frozen=True)
class AnswerExtras:
    """What comes with an answer: a model's paragraphs, notes on how it was made, earlier crashes."""

    said: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    model: str = ""
    seen: Recurrence | None = None


def answer(diagnosis: Diagnosis, settings: Settings, extras: AnswerExtras = AnswerExtras()) -> SlackMessage:
    """Lay out the first message: under 2,000 characters, with a button for what it leaves out."""
    view = diagnosis_view(diagnosis)
    page = page_of(settings, diagnosis.id)
    notes = [*extras.notes, *([diagnosis.engine.note] if diagnosis.engine.note else [])]
    head = [
        header(clip(view.headline, _HEADLINE)),
        *_standing(view, diagnosis.source),
        *_seen(extras.seen, settings, view.language),
    ]
    foot = [context(from_markdown(clip(note, _NOTE))) for note in notes[:_NOTES]]
    pieces = [*_leading(view, extras)]
    several = (
        view.evidence,
        view.changes,
        view.checks,
        view.guesses,
        view.looks,
        view.alternatives,
        view.cited,
    )
    # The whole answer says more than this message.
    has_more = any(len(part) > 1 for part in several) or len(paragraphs(view.unquoted)) > 1
    buttons = _buttons(diagnosis, page, view.language, has_more=has_more)
    fitted, _ = fit(pieces, most=max(SHORT - length([*head, *foot, buttons]), _LEAST))
    return SlackMessage(
        escape(clip(view.headline, _NOTIFICATION)), [*head, *fitted, *foot, buttons], diagnosis.id
    )


def whole(diagnosis: Diagnosis, settings: Settings, extras: AnswerExtras = AnswerExtras()) -> SlackMessage:
    """Lay out the whole answer: under 12,000 characters and 50 blocks, what matters least left out."""
    view = diagnosis_view(diagnosis)
    fitted, left = fit([piece for part in _PARTS for piece in part(view, extras)])
    page = page_of(settings, diagnosis.id)
    notes = [view.words("redacted", count=view.redactions)] if view.redactions else []
    if left:
        notes.append(say("cut-see" if page else "cut", view.language, count=left))
    blocks = [header(view.headline), *fitted, *(context(from_markdown(note)) for note in notes)]
    return SlackMessage(escape(clip(view.headline, _NOTIFICATION)), blocks, diagnosis.id)


def turn(text: str, diagnosis: Diagnosis, settings: Settings) -> SlackMessage:
    """Lay out the answer to a follow-up question."""
    language = diagnosis.language
    pieces = [AnswerPiece("", 100 - place, _prose(part)) for place, part in enumerate(paragraphs(text))]
    fitted, left = fit([*pieces, *_changes(diagnosis_view(diagnosis), AnswerExtras())])
    notes = [context(say("cut", language, count=left))] if left else []
    buttons = _buttons(diagnosis, page_of(settings, diagnosis.id), language, has_more=True)
    return SlackMessage(escape(clip(text, _NOTIFICATION)), [*fitted, *notes, buttons], diagnosis.id)


def text_message(text: str) -> SlackMessage:
    """Lay out one sentence."""
    return SlackMessage(clip(from_markdown(text), _NOTIFICATION), [section(from_markdown(text))])


def hits_message(cases: Sequence[CaseHit], language: Language) -> SlackMessage:
    """Lay out what a search found."""
    if not cases:
        return text_message(say("nothing-found", language))
    title = words("diagnosis.cases", language)
    pieces = [AnswerPiece(title, 50 - place, _case(item)) for place, item in enumerate(cases)]
    return SlackMessage(title, fit(pieces)[0])


def page_of(settings: Settings, triage: str) -> str:
    """Give the address of a triage's page; empty where people at other machines could not reach it."""
    if settings.public_url:
        return f"{settings.public_url.rstrip('/')}/?triage={triage}"
    if settings.host in _ANY_ADDRESS or settings.host.startswith(_LOOPBACK):
        return ""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}/?triage={triage}"


def _prose(text: str) -> str:
    """Give a paragraph without the marks of its cases, which are listed below it by their titles."""
    return from_markdown(_CASE_MARK.sub("", text))


def paragraphs(text: str) -> list[str]:
    """Split Markdown into its paragraphs."""
    return [part for part in (part.strip() for part in text.split("\n\n")) if part]


def _standing(view: DiagnosisView, source: str) -> list[Block]:
    parts = (
        code(" ".join(source.split())[-_SOURCE:]) if source else "",
        view.standing_words,
        say(f"do-{view.action}", view.language),
        escape(view.ended),
    )
    shown = " · ".join(part for part in parts if part)
    return [context(clip(shown, _STANDING))] if shown else []


def _leading(view: DiagnosisView, extras: AnswerExtras) -> Iterator[AnswerPiece]:
    """Give what one reads before all else: the proof, the first change, what a model says.

    Where nothing can be changed: why, and what to look at first.
    """
    if view.root is not None:
        proof = f"{_where(view.root.file, view.root.line)}  {clip(view.proof or view.root.text, _PROOF)}"
        yield AnswerPiece(view.words("evidence"), 95, proof, is_log=True)
    for change in view.changes[:1]:
        yield AnswerPiece(say("change", view.language), 90, clip(_change(change), _PART))
    if not view.changes:
        first, *after = [*paragraphs(view.unquoted), ""]
        # A paragraph that introduces a list is nothing without it.
        shown = f"{first}\n{after[0]}" if first.endswith((":", "：")) else first
        if shown:
            yield AnswerPiece("", 80, clip(_prose(shown), _PART))
        for place, text in enumerate(view.checks[:2]):
            check = f"{BULLET}{clip(_prose(text), _PART)}"
            yield AnswerPiece(view.checks_title, 75 - place, check)
    for place, (title, text) in enumerate(_said(view, extras)):
        yield AnswerPiece(title, 70 - place, clip(text, _PART))


def _said(view: DiagnosisView, extras: AnswerExtras) -> list[tuple[str, str]]:
    """Give a model's paragraphs, each with its heading: of the whole answer, else those that came so far."""
    given = paragraphs(view.model_explanation)
    title = view.words("model", model=escape(view.model if given else extras.model))
    return [(title, _prose(text)) for text in given or extras.said]


def _where(file: str | None, line: int) -> str:
    return f"{file}:{line}" if file else f"L{line}"


def _seen(seen: Recurrence | None, settings: Settings, language: Language) -> list[Block]:
    """Tell how often the same crash was here before, how it stands, and what was said to have cured it."""
    if seen is None:
        return []
    count = say("seen-once" if seen.times == 1 else "seen-times", language, count=f"{seen.times:,}")
    last = seen.last.date().isoformat()
    page = page_of(settings, seen.triage)
    parts = [
        f"*{count}*",
        say("seen-last", language, last=link(page, last) if page else last, job=code(clip(seen.job, 60))),
        *crash_state(seen.note, language, is_back=seen.is_back),
        say("seen-fix", language, fix=escape(clip(seen.fix, _SEEN))) if seen.fix else "",
    ]
    return [context(" · ".join(part for part in parts if part))]


def crash_state(note: CrashNote | None, language: Language, *, is_back: bool) -> list[str]:
    """Say what a person noted of a crash: its state, what fixed it, who looks after it."""
    if note is None:
        return []
    fixed_by = escape(clip(note.fixed_by, _SEEN)) if note.state == "fixed" else ""
    return [
        say("crash-back" if is_back else f"crash-{note.state}", language),
        say("crash-by", language, fix=fixed_by) if fixed_by else "",
        say("crash-of", language, owner=escape(note.owner)) if note.owner else "",
    ]


def _changes(view: DiagnosisView, _extras: AnswerExtras) -> Iterator[AnswerPiece]:
    for place, change in enumerate(view.changes):
        yield AnswerPiece(say("change", view.language), 90 - 4 * place, _change(change))
    for place, change in enumerate(view.guesses):
        yield AnswerPiece(view.words("guesses"), 47 - 4 * place, _change(change))
    for place, change in enumerate(view.looks):
        yield AnswerPiece(view.words("find-out"), 45 - 4 * place, _change(change))


def _change(change: ChangeView) -> str:
    head = code(as_written(change))
    if was := change.was(mark=code):
        head += f" ({was})"
    rows = [f"{head}  {escape(', '.join(change.frameworks))}", from_markdown(change.why)]
    if change.costs:
        rows.append(from_markdown(say("costs", change.language, costs=change.costs)))
    rows.append(change.doubt)
    return "\n".join(row for row in rows if row)


def _why(view: DiagnosisView, extras: AnswerExtras) -> Iterator[AnswerPiece]:
    """Give the explanation by the rules, then the model's."""
    for place, text in enumerate(paragraphs(view.unquoted)):
        yield AnswerPiece(view.words("why"), 80 - 3 * place, _prose(text))
    for place, (title, text) in enumerate(_said(view, extras)):
        yield AnswerPiece(title, 70 - place / 10, text)


_ROLES = {"root": 88.0, "context": 60.0, "collateral": 50.0}


def _evidence(view: DiagnosisView, _extras: AnswerExtras) -> Iterator[AnswerPiece]:
    """Give the lines that prove it, the places of the sources that say them, what the machine tells."""
    for place, item in enumerate(view.evidence):
        line = f"{_where(item.file, item.line)}  {clip(item.text, _LINE)}"
        yield AnswerPiece(view.words("evidence"), _ROLES[item.role] - place, line, is_log=True)
    for place, source in enumerate(view.sources[:2]):
        told = source_words(source, view.language)
        text = link(source.url, told) if source.url else escape(told)
        yield AnswerPiece(view.words("sources"), 35 - place, f"{BULLET}{text}")
    if view.telemetry.says != "not available" and view.telemetry.why:
        text = f"{say(view.telemetry.says, view.language)}: {view.telemetry.why}"
        yield AnswerPiece(say("machine", view.language), 65, from_markdown(text))


def _further(view: DiagnosisView, _extras: AnswerExtras) -> Iterator[AnswerPiece]:
    """Give the other causes, what to look at, and the cases that are cited."""
    for place, item in enumerate(view.alternatives if view.names_cause else ()):
        text = f"{BULLET}{code(item.cause)}: {from_markdown(item.tell_apart)}"
        yield AnswerPiece(view.words("alternatives"), 40 - place, text)
    for place, text in enumerate(view.checks):
        yield AnswerPiece(view.checks_title, 55 - place, f"{BULLET}{from_markdown(text)}")
    for place, case in enumerate(view.cited[:5]):
        yield AnswerPiece(view.words("cases"), 30 - place, _case(case))


def _case(item: CaseHit) -> str:
    title = link(item.urls[0], item.title or item.id) if item.urls else escape(item.title or item.id)
    return f"{BULLET}{title}  {code(item.id)}" + (f"\n{escape(clip(item.fix, _LINE))}" if item.fix else "")


# In the order of reading.
_PARTS = (_changes, _why, _evidence, _further)


def _buttons(diagnosis: Diagnosis, page: str, language: Language, *, has_more: bool) -> Block:
    judged = "cause" if diagnosis.verdict == "diagnosed" else "answer"
    rows: list[tuple[str, str, dict[str, str]]] = [("more", MORE, {})] if has_more else []
    if diagnosis.patch:
        rows.append(("patch", PATCH, {}))
    rows += [(f"right-{judged}", RIGHT, {}), (f"wrong-{judged}", WRONG, {})]
    if page:
        rows.append(("open", OPEN, {"url": page}))
    made = [
        {
            "type": "button",
            "text": plain(say(name, language)),
            "action_id": action,
            "value": diagnosis.id,
            **more,
        }
        for name, action, more in rows
    ]
    return {"type": "actions", "elements": made}
