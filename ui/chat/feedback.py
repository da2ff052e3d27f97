"""Was this right: the form below an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from corpus.library import Library
from corpus.schema import Language
from service.html.markup import EMPTY, Html, element, folded
from service.schemas.records import Crash, CrashNote, CrashState
from ui.chat.view import TriageView
from ui.chat.words import say


def render(view: TriageView, library: Library) -> Html:
    """Render the question, its two answers, and the form that `wrong` opens."""
    diagnosis, language = view.diagnosis, view.language
    if diagnosis is None or view.state != "done":
        return EMPTY
    near = [item.cause for item in diagnosis.alternatives if item.cause in library.causes]
    form = element(
        "form",
        element(
            "label",
            say("real-cause", language),
            element("select", *_options(library, near, language), name="cause", id="wc-real-cause"),
        ),
        element(
            "label", say("what-fixed", language), element("textarea", name="fix", rows="2", maxlength="2000")
        ),
        element("button", say("send", language), type="submit", class_="primary small"),
        id="wc-wrong",
        hidden=True,
    )
    buttons = element(
        "div",
        element("span", say("was-right", language), class_="label"),
        element("button", "✓ ", say("right", language), type="button", class_="small", data_do="right"),
        element(
            "button",
            "✗ ",
            say("wrong", language),
            type="button",
            class_="small",
            data_do="wrong",
            aria_expanded="false",
            aria_controls="wc-wrong",
        ),
        class_="row",
        role="group",
        aria_label=say("was-right", language),
    )
    crash = _crash_form(view.crash, language) if view.crash is not None else None
    told = element("p", role="status", id="wc-thanks", class_="hint")
    return element(
        "section", buttons, form, crash, told, class_="card feedback", aria_label=say("was-right", language)
    )


def _crash_form(crash: Crash, language: Language) -> Html:
    """Render what is noted of all triages of this crash, to be changed."""
    note = crash.note or CrashNote()
    states = (
        element("option", say(f"crash-{state}", language), value=state, selected=state == note.state)
        for state in get_args(CrashState)
    )
    owner = _field("owner", note.owner, "100")
    fixed_by = _field("fixed_by", note.fixed_by, "500")
    form = element(
        "form",
        element("label", say("crash-state", language), element("select", *states, name="state")),
        element("label", say("crash-owner", language), owner),
        element("label", say("crash-fixed-by", language), fixed_by),
        element("button", say("save", language), type="submit", class_="small"),
        id="wc-crash",
    )
    title = say("crash-title", language, count=f"{crash.times:,}")
    return folded(title, form, key="crash", is_open=crash.note is not None or crash.times > 1)


def _field(name: str, value: str, longest: str) -> Html:
    return element("input", type="text", name=name, value=value, maxlength=longest, autocomplete="off")


def _options(library: Library, near: list[str], language: Language) -> Iterator[Html]:
    yield element("option", say("dont-know", language), value="")
    if near:
        rows = (element("option", library.causes[name].title.to(language), value=name) for name in near)
        yield element("optgroup", *rows, label=say("alternatives", language))
    groups: dict[str, list[Html]] = {}
    for cause in library.causes.values():
        groups.setdefault(cause.category, []).append(
            element("option", cause.title.to(language), value=cause.id)
        )
    for category, options in groups.items():
        yield element("optgroup", *options, label=category)
