"""The list of past triages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from corpus.library import Library
from corpus.message import is_chinese
from corpus.schema import Language
from ingest.logs.lines import message_of
from service.app.triage_service import Page
from service.composition import shortening
from service.composition.diagnosis_view import DOUBTFUL, shown_verdict
from service.composition.phrases import phrase
from service.html.markup import EMPTY, Html, element, join, visible
from service.schemas.diagnosis import Diagnosis
from service.schemas.records import BatchRecord, Crash, CrashNote, TriageRecord
from ui import sentences
from ui.chat.words import named, say


def render(
    page: Page, crashes: Mapping[str, Crash], library: Library, language: Language, now: datetime
) -> Html:
    """Render a page of past triages with what is known of their crashes, and the button for the next one."""
    if not page.items:
        return element("p", say("no-history", language), class_="hint")
    more = (
        element(
            "button",
            say("more", language),
            type="button",
            class_="small",
            data_do="more",
            data_after=page.next,
        )
        if page.next
        else None
    )
    return join(
        element("ul", *(_item(record, crashes, library, language, now) for record in page.items)), more
    )


def batches(records: Sequence[BatchRecord], language: Language, now: datetime) -> Html:
    """Render the latest batches, each with how far it is; nothing where there is none."""
    if not records:
        return EMPTY
    return element("ul", *(_batch(record, language, now) for record in records), class_="batches")


def _batch(record: BatchRecord, language: Language, now: datetime) -> Html:
    words = "batch-jobs-so-far" if record.state == "running" else "batch-jobs"
    over = record.total - record.counts.get("queued", 0) - record.counts.get("running", 0)
    told = say(words, language, over=f"{over:,}", jobs=f"{record.total:,}")
    return element(
        "li",
        element(
            "a",
            element("span", record.name or record.id, class_="told"),
            element("span", f"{told} · {ago(record.created, now, language)}", class_="by"),
            href=f"?batch={record.id}",
            data_do="open-batch",
            data_batch=record.id,
        ),
    )


def _item(
    record: TriageRecord, crashes: Mapping[str, Crash], library: Library, language: Language, now: datetime
) -> Html:
    diagnosis = record.diagnosis
    told = conclusion(diagnosis, library, language) if diagnosis is not None else _without(record, language)
    kind = f"t-{record.state}"
    if diagnosis is not None:
        is_doubtful = diagnosis.verdict == "diagnosed" and diagnosis.confidence < DOUBTFUL
        kind = f"v-{shown_verdict(diagnosis)}" + (" doubtful" if is_doubtful else "")
    crash = crashes.get(diagnosis.fingerprint) if diagnosis is not None else None
    state = f" · {say('state-running', language)}" if record.state == "running" else ""
    return element(
        "li",
        element(
            "a",
            element("span", told.replace("`", ""), class_="told"),
            element(
                "span",
                f"{named(record.source, language)[-60:]} · {ago(record.created, now, language)}{state}",
                class_="by",
            ),
            _standing(crash, language) if crash is not None else None,
            href=f"?triage={record.id}",
            data_do="open",
            data_triage=record.id,
            class_=kind,
        ),
    )


def conclusion(diagnosis: Diagnosis, library: Library, language: Language) -> str:
    """Give an answer's headline; in other words than the reader's, its verdict or cause and the proof.

    Opening the triage tells all of it anew in the reader's language.
    """
    if is_chinese(diagnosis.headline) == (language == "zh"):
        return diagnosis.headline
    cause = library.causes.get(diagnosis.cause or "") if diagnosis.verdict == "diagnosed" else None
    title = cause.title.to(language) if cause else say(f"verdict-{shown_verdict(diagnosis)}", language)
    proof = "" if diagnosis.root is None else shortening.without_ids(message_of(diagnosis.root.text))
    return phrase("headline-case", language, title=title, told=proof) if proof else title


def _standing(crash: Crash, language: Language) -> Html | None:
    """Tell of a crash that came more than once, or that somebody noted something of, how it stands."""
    often = say("crash-times", language, count=f"{crash.times:,}") if crash.times > 1 else ""
    parts = [part for part in (often, *crash_words(crash.note, language, is_back=crash.is_back)) if part]
    if not parts:
        return None
    kind = "back" if crash.is_back else crash.note.state if crash.note else "open"
    return element("span", " · ".join(parts), class_=f"crash c-{kind}")


def crash_words(note: CrashNote | None, language: Language, *, is_back: bool) -> list[str]:
    """Say what a person noted of a crash: its state, what fixed it, who looks after it."""
    if note is None:
        return []
    fixed_by = note.fixed_by if note.state == "fixed" else ""
    return [
        say("crash-back" if is_back else f"crash-{note.state}", language),
        say("crash-by", language, fix=visible(fixed_by)) if fixed_by else "",
        say("crash-of", language, owner=visible(note.owner)) if note.owner else "",
    ]


def _without(record: TriageRecord, language: Language) -> str:
    """Give what stands for the headline of a triage that has none."""
    if record.state == "done":
        return named(record.source, language)
    error = (
        f": {sentences.worded('', record.error, language)}"
        if record.state == "failed" and record.error
        else ""
    )
    return say(f"state-{record.state}", language) + (
        error.replace(": ", "：", 1) if language == "zh" else error
    )


def ago(then: datetime, now: datetime, language: Language) -> str:
    """Tell how long ago a moment is; after a month, the date."""
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    minutes = int((now - then).total_seconds() // 60)
    if minutes < 1:
        return say("just-now", language)
    if minutes < 60:
        return say("minutes-ago", language, count=minutes)
    if minutes < 24 * 60:
        return say("hours-ago", language, count=minutes // 60)
    if minutes < 30 * 24 * 60:
        return say("days-ago", language, count=minutes // (24 * 60))
    return then.date().isoformat()
