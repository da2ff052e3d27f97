"""The answer itself: what died, how firmly that stands, what to change, and why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from corpus.library import Library
from corpus.schema import Language
from service.composition import shortening
from service.composition.diagnosis_view import ChangeView, DiagnosisView, as_written, percent, source_words
from service.html.markup import EMPTY, Html, element, folded, join, link, visible
from service.schemas.records import Recurrence
from ui.chat import diff, prose
from ui.chat.history import ago, crash_words
from ui.chat.view import TriageView
from ui.chat.words import counted, named, say

# So many characters of a failing line stand in the head, more where it names something further on; the whole
# of it is in the log's panel.
_PROOF, _LONG_PROOF = 200, 320


def head(view: TriageView, library: Library) -> Html:
    """Render the conclusion: one sentence, how firmly it stands, what to do next."""
    answer = view.answer
    if answer is None:
        return EMPTY
    language = view.language
    note = element("p", say("running-elsewhere", language), class_="note") if view.is_elsewhere else None
    # Of two causes that fit, the headline names both.
    cause = library.causes.get(answer.cause or "") if answer.verdict != "ambiguous" else None
    name = element("span", " · ", cause.title.to(language), title=cause.id, class_="cause") if cause else None
    # What is to be checked before acting, or may well be another, is not called found.
    is_probable = answer.is_probable or (answer.verdict == "diagnosed" and answer.is_doubtful)
    verdict = say(f"verdict-{'probable' if is_probable else answer.verdict}", language)
    # On a phone the way to the question's row.
    to_ask = {"class_": "small quiet to-ask", "data_do": "skip", "data_to": "wc-question"}
    ask = element("button", say("ask", language), type="button", **to_ask)
    deeds = [
        element("button", say(deed, language), type="button", class_="small quiet", data_do=deed)
        for deed in ("share", "copy-markdown")
    ]
    return element(
        "div",
        element(
            "div",
            element("p", verdict, name, class_="verdict"),
            element("div", ask, *deeds, class_="row"),
            class_="top",
        ),
        element("h1", *prose.inline(answer.headline), id="wc-headline", tabindex="-1"),
        element("dl", *_standing(answer, view.recurrence, library), class_="standing"),
        note,
        class_=f"card head v-{answer.verdict}" + (" doubtful" if answer.is_doubtful else ""),
    )


def _standing(answer: DiagnosisView, recurrence: Recurrence | None, library: Library) -> Iterator[Html]:
    language = answer.language
    if answer.names_cause:
        rests = say(f"standing-{answer.standing_name}", language)
        words = " · ".join(part for part in (answer.likely_words, rests, answer.confirmed_words) if part)
        shade = "doubtful" if answer.is_doubtful else answer.standing
        firm = element("span", words, class_=f"firm s-{shade}")
        yield _pair(say("standing", language), firm)
    # Where changes follow, they say it again.
    told = "action told" if answer.changes else "action"
    action = element("strong", say(f"action-{answer.action}", language))
    yield _pair(say("action", language), action, told)
    if answer.end_known:
        yield _pair(say("outcome", language), element("span", answer.end_known))
    if recurrence is not None:
        judged = _judged(answer.cause, recurrence, library, language)
        yield _pair(say("seen-before", language), _seen(recurrence, judged, language), "seen")
    if answer.resume:
        said = f"{answer.words('resume-how', resume=answer.resume)} `{answer.resumes_with}`"
        told = said if answer.resumes_with else answer.resume
        yield _pair(say("resume", language), element("span", *prose.inline(told)), "wide")
    if answer.root is not None:
        quote = element("code", shortening.proof(visible(answer.proof), _PROOF, _LONG_PROOF))
        yield _pair(say("proof", language), join(prose.citation(answer.root.place), " ", quote), "wide proof")


def _judged(cause: str | None, recurrence: Recurrence, library: Library, language: Language) -> Html | None:
    """Tell what a person said of the same crash: that this cause was right, or which it was instead."""
    judged = library.causes.get(recurrence.judged)
    if judged is None or cause is None:
        return None
    if judged.id == cause:
        return element("span", say("judged-right", language), class_="agreed")
    return element("span", say("judged-other", language, title=judged.title.to(language)), class_="doubt")


def _seen(recurrence: Recurrence, judged: Html | None, language: Language) -> Html:
    """Tell how often the same crash was here before, with the way to the last one, and what was said."""
    now = datetime.now(UTC)
    first, last = (ago(then, now, language) for then in (recurrence.first, recurrence.last))
    count = f"{recurrence.times:,}"
    often = (
        say("seen-once", language)
        if recurrence.times == 1
        else say("seen-times", language, count=count, first=first)
    )
    way = element(
        "a",
        say("seen-last", language, last=last) if recurrence.times > 1 else last,
        href=f"?triage={recurrence.triage}",
        data_do="open",
        data_triage=recurrence.triage,
    )
    job = element("span", named(recurrence.job, language)[-60:]) if recurrence.job else None
    noted = " · ".join(
        part for part in crash_words(recurrence.note, language, is_back=recurrence.is_back) if part
    )
    shade = "back" if recurrence.is_back else recurrence.note.state if recurrence.note else ""
    state = element("strong", noted, class_=f"crash c-{shade}") if noted else None
    fix = shortening.shortened(visible(recurrence.fix), _PROOF)
    cured = element("span", say("seen-fix", language, fix=fix), class_="cured") if fix else None
    said = [part for part in (job, state, judged, cured) if part is not None]
    between = ", " if language == "en" else "，"
    return join(join(often, way, between=between), *said, between=" · ")


def _pair(name: str, value: Html, class_: str | None = None) -> Html:
    return element("div", element("dt", name), element("dd", value), class_=class_)


def changes(view: TriageView) -> Html:
    """Render what to change: the patch and what it does first, then what else can help."""
    answer = view.answer
    if answer is None:
        return EMPTY
    language = view.language
    if answer.checks_come_first and not answer.steps:
        return _section("wc-changes", answer.words("look"), _checks(answer), *_apart(answer))
    title = say("what-to-change", language)
    steps = _steps(answer)
    if not answer.changes and answer.steps:
        return _section("wc-changes", title, steps, *_apart(answer))
    if not answer.changes and answer.verdict == "no-failure":
        # The next step says that there is nothing to do.
        return EMPTY
    if not answer.changes:
        return _section(
            "wc-changes", title, element("p", say("nothing-to-change", language)), *_apart(answer)
        )
    # Where the first change is told in words, no file would make a patch of it.
    hint = element("p", say("no-patch", language), class_="hint") if answer.changes[0].is_writable else EMPTY
    patch = (
        diff.render(answer.patch, language)
        if answer.patch
        else diff.render_suggestion(answer.suggestion, answer.words("suggestion")) or hint
    )
    command = diff.render_command(answer.command, answer.words("command"), language)
    more = None
    if others := answer.other_changes:
        more = folded(
            counted("other-changes", "other-change", len(others), language),
            element("ul", *map(_change, others), class_="changes"),
            key="more-changes",
        )
    first = element("ul", *map(_change, answer.first_changes), class_="changes")
    return _section("wc-changes", title, first, patch, command, steps, more, *_apart(answer))


def _apart(answer: DiagnosisView) -> Iterator[Html]:
    """Give what is guessed and what only helps to find out, folded."""
    for name, changes in (("guesses", answer.guesses), ("find-out", answer.looks)):
        if changes:
            yield folded(
                answer.words(name), element("ul", *map(_change, changes), class_="changes"), key=name
            )


def _steps(answer: DiagnosisView) -> Html | None:
    """Render the procedure: commands that look, and the one that acts, with what it costs."""
    if not answer.steps:
        return None
    rows = (
        element(
            "li",
            element("code", step.run, class_="setting"),
            element("p", *prose.inline(step.why)),
            _cost(step.costs, answer.language),
            class_="acts" if step.acts else None,
        )
        for step in answer.steps
    )
    return element("div", element("h3", answer.words("steps")), element("ol", *rows), class_="steps")


def _checks(answer: DiagnosisView) -> Html:
    return element("ul", *(element("li", *prose.inline(check)) for check in answer.checks))


def _change(change: ChangeView) -> Html:
    language = change.language
    was = change.was("instead-of")
    told = [change.why]
    if change.replaces:
        told.append(say("replaces", language, key=change.replaces))
    # Begin a text with a capital letter; a name of code stays as it is.
    text = "; ".join(part for part in told if part)
    word = text.split(" ", 1)[0]
    sentence = text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text
    written = as_written(change)
    # Words on how to choose, which mark names themselves, are no code.
    shown = prose.inline(written) if "`" in written else (written,)
    setting = element("span" if "`" in written else "code", *shown, class_="setting")
    tag = " · ".join(part for part in (", ".join(change.owners), change.kind_words) if part)
    return element(
        "li",
        element(
            "p",
            setting,
            " ",
            element("span", was, class_="was") if was else None,
            element("span", tag, class_="tag"),
            class_="what",
        ),
        element("p", *prose.inline(sentence)),
        _cost(change.costs, language),
        element("p", say("unverified", language), class_="doubt") if change.is_unchecked else None,
    )


def _cost(costs: str, language: Language) -> Html | None:
    if not costs:
        return None
    return element("p", element("b", say("costs", language)), ": ", *prose.inline(costs), class_="cost")


def why(view: TriageView, library: Library) -> Html:
    """Render the explanation: the rules' own, and below it the model's, as its own words and as they come."""
    answer = view.answer
    if answer is None:
        return EMPTY
    parts = [prose.render(answer.unquoted)]
    writing = view.state == "running"
    if said := "\n\n".join(view.said) if writing else answer.model_explanation:
        title = answer.words("model", model=view.model if writing else answer.model)
        busy = "true" if writing else None
        parts.append(element("div", element("h3", title), prose.render(said), class_="said", aria_busy=busy))
    checks = None
    if answer.checks and not answer.checks_come_first:
        is_open = answer.verdict != "diagnosed"
        checks = folded(answer.words("checks"), _checks(answer), key="checks", is_open=is_open)
    others = _alternatives(answer, library)
    return _section("wc-why", say("why", view.language), *parts, _sources(answer), checks, others)


def _sources(answer: DiagnosisView) -> Html | None:
    """Render where the frameworks' sources tell of the failure, each with the link to its line."""
    if not answer.sources:
        return None
    rows = []
    for place in answer.sources:
        told = source_words(place, answer.language)
        linked = link(place.url, told) if place.url else told
        rows.append(element("li", prose.citation(place.place), " ", linked))
    return folded(answer.words("sources"), element("ul", *rows), key="sources")


def _alternatives(answer: DiagnosisView, library: Library) -> Html | None:
    if not answer.alternatives:
        return None
    rows = (
        element(
            "li",
            element(
                "strong",
                cause.title.to(answer.language) if (cause := library.causes.get(item.cause)) else item.cause,
            ),
            f" ({answer.words('likely', percent=percent(item.confidence))}): ",
            *prose.inline(item.tell_apart),
        )
        for item in answer.alternatives
    )
    return folded(
        say("alternatives", answer.language),
        element("ul", *rows),
        key="alternatives",
        is_open=answer.verdict == "ambiguous" or answer.is_doubtful,
    )


def _section(name: str, title: str, *content: Html | None) -> Html:
    return element("section", element("h2", title), *content, id=name, class_="card", aria_label=title)
