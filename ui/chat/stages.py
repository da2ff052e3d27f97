"""The stages of a triage in one line, and what went wrong where it failed."""

from __future__ import annotations

from collections.abc import Iterator

from corpus.message import in_language
from corpus.schema import Language
from service.html.markup import EMPTY, Html, element, join
from ui import sentences
from ui.chat.view import TriageView
from ui.chat.words import counted, named, say

_UNITS = ("B", "kB", "MB", "GB", "TB")


def size(count: float) -> str:
    """Give a number of bytes for a person."""
    place = 0
    while count >= 1000 and place < len(_UNITS) - 1:
        count, place = count / 1000, place + 1
    return f"{count:.0f} {_UNITS[place]}" if place == 0 or count >= 100 else f"{count:.1f} {_UNITS[place]}"


def render(view: TriageView) -> Html:
    """Render what was done so far and what is being done."""
    if view.failed is not None and view.diagnosis is None:
        return trouble(view)
    rows = [*_done(view), *_doing(view)]
    if not rows:
        return EMPTY
    name = element("span", named(view.name, view.language), class_="source") if view.name else None
    busy = view.state in ("waiting", "running") and not view.is_elsewhere
    return join(
        element("div", name, element("ol", *rows), class_="stages busy" if busy else "stages"),
        trouble(view) if view.failed is not None else None,
    )


def _done(view: TriageView) -> Iterator[Html]:
    language, read = view.language, view.read
    diagnosis = view.diagnosis
    if read is not None:
        yield _row(_amount(read.bytes, read.lines, read.truncated, language))
        yield _row(counted("stage-events", "stage-event", read.events, language), "ok more")
    elif diagnosis is not None:
        yield _row(
            _amount(diagnosis.limits.bytes, diagnosis.limits.lines, diagnosis.limits.truncated, language)
        )
    cases = view.cases if view.cases is not None else diagnosis.cases if diagnosis is not None else None
    if cases is not None:
        yield _row(counted("stage-cases", "stage-case", len(cases), language), "ok more")
    if diagnosis is not None:
        sources = diagnosis.telemetry.sources or (read.telemetry if read is not None else ())
        told = (
            say("stage-telemetry", language, sources=", ".join(sources))
            if sources
            else say("stage-no-telemetry", language)
        )
        yield _row(told, "ok more" if sources else "none more")
        if view.state == "done":
            yield from (_row(in_language(step.found, language), "ok more") for step in diagnosis.engine.trace)
            yield _row(_engine(view))


def _amount(count: int, lines: int, truncated: bool, language: Language) -> str:
    told = say("stage-read", language, size=size(count), lines=f"{lines:,}")
    return f"{told} {say('stage-part', language)}" if truncated else told


def _engine(view: TriageView) -> str:
    diagnosis = view.diagnosis
    if diagnosis is None or diagnosis.engine.name == "composer":
        spent = sum(diagnosis.timings_ms.values()) if diagnosis is not None else 0
        return (
            say("stage-rules", view.language, ms=f"{spent:,.0f}")
            if spent
            else say("stage-rules-known", view.language)
        )
    return say("stage-model-done", view.language, model=diagnosis.engine.name)


def _doing(view: TriageView) -> Iterator[Html]:
    language = view.language
    if view.is_elsewhere:
        return
    if view.state == "waiting" or (
        view.state == "running" and view.progress is None and view.read is None and view.diagnosis is None
    ):
        yield _row(say("stage-wait", language), "now")
    elif view.state == "running" and view.read is None and view.progress is not None:
        known_total = view.progress.total > 0
        words = "stage-reading" if known_total else "stage-reading-some"
        values = {"done": size(view.progress.bytes)} | (
            {"total": size(view.progress.total)} if known_total else {}
        )
        yield _row(say(words, language, **values), "now")
    elif view.wants_model:
        yield from (_row(in_language(look, language)) for look in view.looks)
        yield _row(say("stage-model" if view.said else "stage-model-reads", language), "now")


def _row(text: str, kind: str = "") -> Html:
    return element("li", text, class_=kind or "ok")


def trouble(view: TriageView) -> Html:
    """Render why there is no answer, and what to do."""
    failed = view.failed
    if failed is None:
        return EMPTY
    told = sentences.of_failed(failed, view.language)
    again = (
        element("button", say("try-again", view.language), type="button", class_="small", data_do="again")
        if view.diagnosis is None
        else None
    )
    return element(
        "div",
        element("h2", say("error", view.language)),
        element("p", told),
        again,
        class_="card trouble",
        role="alert",
    )
