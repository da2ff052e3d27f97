"""What was masked, what was or would be sent to a model, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpus.schema import Language
from service.html.markup import EMPTY, Html, element, folded, join
from service.schemas.diagnosis import Diagnosis, Dropped
from ui.chat.view import TriageView
from ui.chat.words import counted, say

# What stands in the place of a secret begins so.
MARK = "[redacted:"


def render(view: TriageView) -> Html:
    """Render the privacy panel."""
    diagnosis, language = view.diagnosis, view.language
    if diagnosis is None:
        return EMPTY
    # A line that no answer quotes is masked when it is kept.
    count = max(
        diagnosis.redactions,
        sum(text.count(MARK) for stretch in view.excerpt.stretches for text in stretch.lines),
    )
    masked = say("masked-none", language) if not count else counted("masked", "masked-one", count, language)
    short = masked if not count else f"{count}"
    summary = join(element("h2", say("privacy", language)), element("span", short, class_="tag"))
    rows = [masked, *_sent(diagnosis, language), say("kept", language)]
    prompt = element("button", say("show-prompt", language), type="button", class_="small", data_do="prompt")
    forget = element(
        "button", say("forget", language), type="button", class_="small danger", data_do="forget"
    )
    body = (
        element("ul", *(element("li", row) for row in rows)),
        _dropped(diagnosis.engine.dropped, language),
        element("div", prompt, forget, class_="row"),
        element(
            "pre",
            id="wc-prompt",
            class_="prompt",
            tabindex="0",
            hidden=True,
            aria_label=say("show-prompt", language),
        ),
    )
    return element(
        "section",
        folded(summary, *body, key="privacy"),
        id="wc-privacy",
        class_="card",
        aria_label=say("privacy", language),
    )


def _sent(diagnosis: Diagnosis, language: Language) -> Iterator[str]:
    engine = diagnosis.engine
    if engine.name == "composer" and engine.tokens is None:
        yield f"{say('sent-nothing', language)}. {engine.note}".removesuffix(". ").strip()
        return
    if engine.note:
        yield say("sent-failed", language, note=engine.note)
    if engine.tokens is not None:
        about = "" if engine.tokens.counted else "~"
        yield say(
            "sent-model",
            language,
            model=engine.name,
            sent=f"{about}{engine.tokens.sent:,}",
            received=f"{about}{engine.tokens.received:,}",
        )
    if engine.omitted:
        yield say(
            "omitted", language, what=", ".join(f"{name} {count}" for name, count in engine.omitted.items())
        )


def _dropped(dropped: Sequence[Dropped], language: Language) -> Html | None:
    if not dropped:
        return None
    rows = (element("li", element("code", item.what), " — ", item.why) for item in dropped)
    return folded(
        counted("dropped", "dropped-one", len(dropped), language), element("ul", *rows), key="dropped"
    )
