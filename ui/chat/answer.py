"""The answer itself: what died, how firmly that stands, what to change, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corpus.keys import levels, pattern
from corpus.library import Library
from corpus.schema import Language
from service.composition import phrases
from service.html.markup import EMPTY, Html, element, folded, join, visible
from service.schemas.diagnosis import Diagnosis, ProposedChange
from ui.chat import diff, prose
from ui.chat.view import TriageView
from ui.chat.words import counted, say

# Changes that are shown at once where no patch says which come first.
_AT_ONCE = 2


def head(view: TriageView, library: Library) -> Html:
    """Render the conclusion: one sentence, how firmly it stands, what to do next."""
    diagnosis = view.diagnosis
    if diagnosis is None:
        return EMPTY
    language = view.language
    note = element("p", say("running-elsewhere", language), class_="note") if view.is_elsewhere else None
    is_named = diagnosis.verdict in ("diagnosed", "ambiguous")
    cause = library.causes.get(diagnosis.cause or "") if is_named else None
    name = element("span", cause.title.to(language), title=cause.id, class_="cause") if cause else None
    return element(
        "div",
        element(
            "div",
            element(
                "p",
                say(f"verdict-{_told(diagnosis)}", language),
                name and join(" · ", name),
                class_="verdict",
            ),
            element("button", say("share", language), type="button", class_="small quiet", data_do="share"),
            class_="top",
        ),
        element("h1", diagnosis.headline, id="wc-headline", tabindex="-1"),
        element("dl", *_standing(diagnosis, language), class_="standing"),
        note,
        class_=f"card head v-{verdict(diagnosis)}",
    )


def verdict(diagnosis: Diagnosis) -> str:
    """Name the verdict for its colour: a log without a failure is good only where it shows a good end."""
    return "open-end" if diagnosis.verdict == "no-failure" and not diagnosis.ended_well else diagnosis.verdict


def _told(diagnosis: Diagnosis) -> str:
    """Name the verdict for its words; what is to be checked before acting is not called found."""
    return (
        "probable"
        if diagnosis.verdict == "diagnosed" and diagnosis.standing == "hypothesis"
        else verdict(diagnosis)
    )


def _standing(diagnosis: Diagnosis, language: Language) -> Iterator[Html]:
    if diagnosis.verdict in ("diagnosed", "ambiguous"):
        yield _pair(
            say("standing", language),
            element(
                "span",
                say("standing-end" if diagnosis.rests_on_end else f"standing-{diagnosis.standing}", language),
                class_=f"firm s-{diagnosis.standing}",
            ),
        )
    root = next((item for item in diagnosis.evidence if item.role == "root"), None)
    yield _pair(say("action", language), element("strong", say(f"action-{diagnosis.action}", language)))
    if ended := phrases.outcome(diagnosis.outcome, language):
        yield _pair(say("outcome", language), element("span", ended))
    if root is not None:
        place = f"{root.file}:L{root.line}" if root.file else f"L{root.line}"
        quote = element("code", visible(root.text.strip(), 200))
        yield _pair(say("proof", language), join(prose.citation(place), " ", quote), "wide")


def _pair(name: str, value: Html, class_: str | None = None) -> Html:
    return element("div", element("dt", name), element("dd", value), class_=class_)


def changes(view: TriageView) -> Html:
    """Render what to change: the patch and what it does first, then what else can help."""
    diagnosis = view.diagnosis
    if diagnosis is None:
        return EMPTY
    language = view.language
    if _lacks_more(diagnosis):
        rows = (element("li", *prose.inline(check)) for check in diagnosis.checks)
        return _section("wc-changes", say("what-to-check", language), element("ul", *rows))
    if not diagnosis.changes:
        words = "healthy-change" if diagnosis.ended_well else "nothing-to-change"
        return _section("wc-changes", say("what-to-change", language), element("p", say(words, language)))
    first, rest = map(_merged, _split(diagnosis))
    patch = (
        diff.render(diagnosis.patch, language)
        if diagnosis.patch
        else element("p", say("no-patch", language), class_="hint")
    )
    more = None
    if rest:
        title = counted("other-changes", "other-change", len(rest), language)
        more = folded(
            title,
            element("ul", *(_change(item, names, language) for item, names in rest), class_="changes"),
            key="more-changes",
        )
    return _section(
        "wc-changes",
        say("what-to-change", language),
        element("ul", *(_change(item, names, language) for item, names in first), class_="changes"),
        patch,
        more,
    )


def _lacks_more(diagnosis: Diagnosis) -> bool:
    """Tell whether looking closer is all there is to do, so that checks stand where changes would."""
    return bool(diagnosis.checks) and not diagnosis.changes and not diagnosis.ended_well


def _split(diagnosis: Diagnosis) -> tuple[Sequence[ProposedChange], Sequence[ProposedChange]]:
    """Part the changes that the patch makes from the others; without a patch the first few stand for them."""
    rows = (diagnosis.patch or "").split("\n")
    added = "\n".join(row[1:] for row in rows if row.startswith("+") and not row.startswith("+++"))
    removed = "\n".join(row[1:] for row in rows if row.startswith("-") and not row.startswith("---"))
    first = [item for item in diagnosis.changes if _is_made(item, added, removed)] or diagnosis.changes[
        :_AT_ONCE
    ]
    return first, [item for item in diagnosis.changes if item not in first]


def _is_made(change: ProposedChange, added: str, removed: str) -> bool:
    """Tell whether a patch's rows make a change: they set its key to its value, or bring or take a switch."""
    # A flag is spelled with dashes or with underscores.
    name = r"(?<![\w])" + pattern(levels(change.key)[-1]) + r"(?![\w])"
    pair = rf"(?i){name}[\"'\s=:]*{re.escape(str(change.to))}(?![\w.])"
    if re.search(pair, added):
        return not re.search(pair, removed)
    if re.search(name, added):
        return change.to is True and not re.search(name, removed)
    return bool(re.search(name, removed))


def _merged(changes: Sequence[ProposedChange]) -> list[tuple[ProposedChange, str]]:
    """Put changes together that read the same for several frameworks, each with the names of those."""
    found: dict[tuple[object, ...], tuple[ProposedChange, list[str]]] = {}
    for change in changes:
        key = (
            change.key,
            str(change.to),
            str(change.from_),
            change.kind,
            change.why,
            change.costs,
            change.status,
        )
        found.setdefault(key, (change, []))[1].append(change.framework)
    return [(change, ", ".join(dict.fromkeys(names))) for change, names in found.values()]


def _change(change: ProposedChange, frameworks: str, language: Language) -> Html:
    was = say("was", language, value=change.from_) if change.from_ is not None else None
    told = [change.why]
    if change.replaces:
        told.append(say("replaces", language, key=change.replaces))
    cost = (
        element("p", element("b", say("costs", language)), ": ", change.costs, class_="cost")
        if change.costs
        else None
    )
    doubtful = change.status == "unverified" and change.kind not in ("package", "command")
    # Tell whose setting it is and of which kind; what every program reads is nobody's.
    kind = say(f"kind-{change.kind}", language)
    tag = kind if frameworks == change.kind else f"{frameworks} · {kind}"
    # Begin a text with a capital letter; a name of code stays as it is.
    text = "; ".join(part for part in told if part)
    word = text.split(" ", 1)[0]
    sentence = text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text
    return element(
        "li",
        element(
            "p",
            element("code", _setting(change), class_="setting"),
            " ",
            element("span", was, class_="was") if was else None,
            element("span", tag, class_="tag"),
            class_="what",
        ),
        element("p", sentence),
        cost,
        element("p", say("unverified", language), class_="doubt") if doubtful else None,
    )


def _setting(change: ProposedChange) -> str:
    value = (
        str(change.to).lower() if isinstance(change.to, bool) and change.kind != "setting" else str(change.to)
    )
    if change.kind == "command":
        return value if change.key in value else f"{change.key} {value}".strip()
    return f"{change.key}={value}" if change.kind in ("env", "flag") else f"{change.key} = {value}"


def why(view: TriageView, library: Library) -> Html:
    """Render the explanation: the rules' own, and below it the model's, as its own words and as they come."""
    diagnosis = view.diagnosis
    if diagnosis is None:
        return EMPTY
    language = view.language
    parts = _explained(view, diagnosis)
    checks = None
    if diagnosis.checks and not _lacks_more(diagnosis):
        rows = (element("li", *prose.inline(check)) for check in diagnosis.checks)
        is_open = diagnosis.verdict != "diagnosed"
        checks = folded(say("checks", language), element("ul", *rows), key="checks", is_open=is_open)
    return _section(
        "wc-why", say("why", language), *parts, checks, _alternatives(diagnosis, library, language)
    )


def _explained(view: TriageView, diagnosis: Diagnosis) -> list[Html]:
    rules = prose.render(diagnosis.explanation)
    writing = view.state == "running"
    said = "\n\n".join(view.said) if writing else diagnosis.engine.model_explanation
    if not said:
        return [rules]
    title = element(
        "h3", say("model-says", view.language, model=view.model if writing else diagnosis.engine.name)
    )
    return [
        rules,
        element("div", title, prose.render(said), class_="said", aria_busy="true" if writing else None),
    ]


def _alternatives(diagnosis: Diagnosis, library: Library, language: Language) -> Html | None:
    if not diagnosis.alternatives or diagnosis.verdict == "no-failure":
        return None
    rows = (
        element(
            "li",
            element(
                "strong",
                cause.title.to(language) if (cause := library.causes.get(item.cause)) else item.cause,
            ),
            ": ",
            *prose.inline(item.tell_apart),
        )
        for item in diagnosis.alternatives
    )
    return folded(
        say("alternatives", language),
        element("ul", *rows),
        key="alternatives",
        is_open=diagnosis.verdict == "ambiguous",
    )


def _section(name: str, title: str, *content: Html | None) -> Html:
    return element("section", element("h2", title), *content, id=name, class_="card", aria_label=title)
