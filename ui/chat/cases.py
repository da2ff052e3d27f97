"""The cases, notes and past crashes that are near, with their sources."""

from __future__ import annotations

from urllib.parse import urlsplit

from corpus.schema import Language
from service.html.markup import EMPTY, Html, element, folded, join, link
from service.schemas.diagnosis import CaseHit
from ui.chat.view import TriageView
from ui.chat.words import say

MAX_URLS = 6


def render(view: TriageView) -> Html:
    """Render the matching cases, best first."""
    diagnosis, answer, language = view.diagnosis, view.answer, view.language
    if diagnosis is None or answer is None or diagnosis.verdict == "no-failure":
        return EMPTY
    hits, title = diagnosis.cases, answer.words("cases")
    cited = {hit.id for hit in answer.cited} | {change.from_case for change in diagnosis.changes}
    summary = join(element("h2", title), element("span", str(len(hits)), class_="count"))
    body = (
        element("ol", *(_hit(hit, hit.id in cited, language) for hit in hits), class_="cases")
        if hits
        else element("p", say("no-cases", language), class_="hint")
    )
    return element(
        "section", folded(summary, body, key="cases"), id="wc-cases", class_="card", aria_label=title
    )


def _hit(hit: CaseHit, is_cited: bool, language: Language) -> Html:
    percent = f"{100 * min(1.0, max(0.0, hit.score)):.0f} %"
    return element(
        "li",
        element(
            "p",
            element("strong", hit.title),
            " ",
            element("span", say("match", language, percent=percent), class_="tag"),
            element("span", say("cited", language), class_="tag used") if is_cited else None,
        ),
        element(
            "meter",
            percent,
            value=f"{min(1.0, max(0.0, hit.score)):.3f}",
            min="0",
            max="1",
            aria_label=say("match", language, percent=percent),
        ),
        element("p", element("code", hit.id), f" · {say(f'kind-{hit.kind}', language)}", class_="by"),
        element("p", element("b", say("fixed-by", language)), ": ", hit.fix) if hit.fix else None,
        _sources(hit, language),
        data_case=hit.id,
        tabindex="-1",
    )


def _sources(hit: CaseHit, language: Language) -> Html | None:
    if not hit.urls:
        return None
    links = []
    for url in hit.urls[:MAX_URLS]:
        parts = urlsplit(url)
        path = parts.path.strip("/")
        links.append(link(url, f"{parts.netloc}/" + (f"…{path[-40:]}" if len(path) > 44 else path)))
    return element(
        "p",
        say("sources", language),
        ": ",
        *(join(" · " if place else None, item) for place, item in enumerate(links)),
        class_="sources",
    )
