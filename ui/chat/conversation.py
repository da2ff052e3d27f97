"""The conversation about an answer."""

from __future__ import annotations

from collections.abc import Iterator

from corpus.message import in_language
from corpus.schema import Language
from service.html.markup import EMPTY, Html, element, join
from ui.chat import prose
from ui.chat.view import TriageView
from ui.chat.words import say


def render(view: TriageView) -> Html:
    """Render the questions and answers so far, and the one that is being answered."""
    language = view.language
    rows = [_said(message.role == "user", message.text, language) for message in view.messages]
    if view.asking:
        rows += _going_on(view)
    if not rows:
        return EMPTY
    ruled = None
    if view.constraints:
        chips = (element("span", f"“{said}”", class_="tag") for said in view.constraints)
        ruled = element(
            "p", say("ruled-out", language), ": ", *(join(chip, " ") for chip in chips), class_="by"
        )
    title = say("talk", language)
    return element(
        "section",
        element("h2", title),
        element("ol", *rows, class_="talk"),
        ruled,
        class_="card",
        aria_label=title,
    )


def _going_on(view: TriageView) -> Iterator[Html]:
    yield _said(True, view.asking, view.language)
    if view.reply:
        yield _said(False, "\n\n".join(view.reply), view.language)
    else:
        looks = (in_language(look, view.language) for look in view.turn_looks)
        told = [element("p", text, class_="hint") for text in (*looks, say("thinking", view.language))]
        yield element("li", *told, class_="ours", aria_busy="true")


def _said(is_theirs: bool, text: str, language: Language) -> Html:
    who = element("b", say("you" if is_theirs else "whycrash", language), class_="who")
    body = element("p", text, class_="plain") if is_theirs else prose.render(text)
    return element("li", who, body, class_="theirs" if is_theirs else "ours")
