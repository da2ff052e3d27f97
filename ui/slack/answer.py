"""A diagnosis as a message of Slack: the conclusion first, what to change, why, the proof, then buttons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from corpus.schema import Language
from service.composition import phrases
from service.schemas.diagnosis import CaseHit, Diagnosis, ProposedChange
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
    link,
    plain,
    section,
)
from ui.slack.wording import say

# What the buttons' clicks are told apart by.
RIGHT, WRONG, PATCH, OPEN = "whycrash_right", "whycrash_wrong", "whycrash_patch", "whycrash_open"
_NOTIFICATION = 300
_LINE = 400
_ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to
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
    """What comes with an answer: a model's paragraphs so far, and notes on how the answer was made."""

    said: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    model: str = ""


def answer(diagnosis: Diagnosis, settings: Settings, extras: AnswerExtras = AnswerExtras()) -> SlackMessage:
    """Lay out an answer: under 12,000 characters and 50 blocks, what matters least left out and counted."""
    language = diagnosis.language
    fitted, left = fit([piece for part in _PARTS for piece in part(diagnosis, extras, language)])
    page = page_of(settings, diagnosis.id)
    notes = [*extras.notes]
    if diagnosis.engine.note:
        notes.append(diagnosis.engine.note)
    if diagnosis.redactions:
        notes.append(say("redacted", language, count=diagnosis.redactions))
    if left:
        notes.append(say("cut-see" if page else "cut", language, count=left))
    blocks = [header(diagnosis.headline), *_standing(diagnosis, language), *fitted]
    blocks += [context(from_markdown(clip(note, _LINE))) for note in notes[:6]]
    return SlackMessage(
        escape(clip(diagnosis.headline, _NOTIFICATION)),
        [*blocks, _buttons(diagnosis, page, language)],
        diagnosis.id,
    )


def turn(text: str, diagnosis: Diagnosis, settings: Settings) -> SlackMessage:
    """Lay out the answer to a follow-up question."""
    language = diagnosis.language
    pieces = [
        AnswerPiece("", 100 - place, from_markdown(part)) for place, part in enumerate(paragraphs(text))
    ]
    changes = list(_changes(diagnosis, AnswerExtras(), language))
    fitted, left = fit([*pieces, *changes])
    notes = [context(say("cut", language, count=left))] if left else []
    buttons = _buttons(diagnosis, page_of(settings, diagnosis.id), language)
    return SlackMessage(escape(clip(text, _NOTIFICATION)), [*fitted, *notes, buttons], diagnosis.id)


def told(text: str) -> SlackMessage:
    """Lay out one sentence."""
    return SlackMessage(clip(from_markdown(text), _NOTIFICATION), [section(from_markdown(text))])


def found(cases: Sequence[CaseHit], language: Language) -> SlackMessage:
    """Lay out what a search found."""
    if not cases:
        return told(say("nothing-found", language))
    pieces = [
        AnswerPiece(say("cases", language), 50 - place, _case(item)) for place, item in enumerate(cases)
    ]
    return SlackMessage(say("cases", language), fit(pieces)[0])


def page_of(settings: Settings, triage: str) -> str:
    """Give the address of a triage's page; empty where people at other machines could not reach it."""
    if settings.public_url:
        return f"{settings.public_url.rstrip('/')}/?triage={triage}"
    if settings.host in _ANY_ADDRESS or settings.host.startswith(_LOOPBACK):
        return ""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}/?triage={triage}"


def paragraphs(text: str) -> list[str]:
    """Split Markdown into its paragraphs."""
    return [part for part in (part.strip() for part in text.split("\n\n")) if part]


def _standing(diagnosis: Diagnosis, language: Language) -> list[Block]:
    is_named = diagnosis.cause and diagnosis.verdict in ("diagnosed", "ambiguous")
    parts = [
        code(diagnosis.cause) if is_named and diagnosis.cause else "",
        say("end" if diagnosis.rests_on_end else diagnosis.standing, language),
    ]
    parts.append(say(f"do-{diagnosis.action}", language))
    parts.append(escape(phrases.outcome(diagnosis.outcome, language)))
    shown = " · ".join(part for part in parts if part)
    return [context(shown)] if shown else []


def _model(diagnosis: Diagnosis, extras: AnswerExtras, language: Language) -> Iterator[AnswerPiece]:
    whole = paragraphs(diagnosis.engine.model_explanation)
    title = say("model", language, model=escape(diagnosis.engine.name if whole else extras.model))
    for place, text in enumerate(whole or extras.said):
        yield AnswerPiece(title, 70 - place / 10, from_markdown(text))


def _changes(diagnosis: Diagnosis, _extras: AnswerExtras, language: Language) -> Iterator[AnswerPiece]:
    for place, change in enumerate(diagnosis.changes):
        yield AnswerPiece(say("change", language), 90 - 4 * place, _change(change, language))


def _change(change: ProposedChange, language: Language) -> str:
    head = code(f"{change.key} = {change.to}")
    if change.from_ is not None:
        head += f" ({say('was', language, value=code(change.from_))})"
    rows = [f"{head}  {escape(change.framework)}", from_markdown(change.why)]
    if change.costs:
        rows.append(from_markdown(say("costs", language, costs=change.costs)))
    if change.status == "unverified" and change.kind not in ("package", "command"):
        rows.append(say("unverified", language))
    return "\n".join(row for row in rows if row)


def _why(diagnosis: Diagnosis, _extras: AnswerExtras, language: Language) -> Iterator[AnswerPiece]:
    for place, text in enumerate(paragraphs(diagnosis.explanation)):
        yield AnswerPiece(say("why", language), 80 - 3 * place, from_markdown(text))


_ROLES = {"root": 88.0, "context": 60.0, "collateral": 50.0}


def _evidence(diagnosis: Diagnosis, _extras: AnswerExtras, language: Language) -> Iterator[AnswerPiece]:
    for place, item in enumerate(diagnosis.evidence):
        where = f"{item.file}:{item.line}" if item.file else f"L{item.line}"
        line = f"{where}  {clip(item.text, _LINE)}"
        yield AnswerPiece(say("evidence", language), _ROLES[item.role] - place, line, is_log=True)


def _machine(diagnosis: Diagnosis, _extras: AnswerExtras, language: Language) -> Iterator[AnswerPiece]:
    if diagnosis.telemetry.says != "not available" and diagnosis.telemetry.why:
        text = f"{say(diagnosis.telemetry.says, language)}: {diagnosis.telemetry.why}"
        yield AnswerPiece(say("machine", language), 65, from_markdown(text))


def _alternatives(diagnosis: Diagnosis, _extras: AnswerExtras, language: Language) -> Iterator[AnswerPiece]:
    if diagnosis.verdict in ("diagnosed", "ambiguous"):
        for place, item in enumerate(diagnosis.alternatives):
            yield AnswerPiece(
                say("else", language),
                40 - place,
                f"{BULLET}{code(item.cause)}: {from_markdown(item.tell_apart)}",
            )


def _checks(diagnosis: Diagnosis, _extras: AnswerExtras, language: Language) -> Iterator[AnswerPiece]:
    for place, text in enumerate(diagnosis.checks):
        yield AnswerPiece(say("checks", language), 55 - place, f"{BULLET}{from_markdown(text)}")


def _cases(diagnosis: Diagnosis, _extras: AnswerExtras, language: Language) -> Iterator[AnswerPiece]:
    cited = [item for item in diagnosis.cases if f"[case:{item.id}]" in diagnosis.explanation]
    for place, item in enumerate(cited[:5]):
        yield AnswerPiece(say("cases", language), 30 - place, _case(item))


def _case(item: CaseHit) -> str:
    title = link(item.urls[0], item.title or item.id) if item.urls else escape(item.title or item.id)
    return f"{BULLET}{title}  {code(item.id)}" + (f"\n{escape(clip(item.fix, _LINE))}" if item.fix else "")


# In the order of reading.
_PARTS = (_changes, _why, _model, _evidence, _machine, _alternatives, _checks, _cases)


def _buttons(diagnosis: Diagnosis, page: str, language: Language) -> Block:
    rows: list[tuple[str, str, dict[str, str]]] = [("right", RIGHT, {}), ("wrong", WRONG, {})]
    if diagnosis.patch:
        rows.append(("patch", PATCH, {}))
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
