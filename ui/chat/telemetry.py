"""What the machine says: whether it agrees with the cause, by which readings, and how those went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from corpus.library import Library
from corpus.schema import Language
from service.html.markup import EMPTY, Html, element, folded, join
from service.schemas.diagnosis import CauseTelemetry, Telemetry, TelemetryReading
from service.telemetry.snapshot import Point, Series
from ui.chat import prose
from ui.chat.view import TriageView
from ui.chat.words import say

# A plot's own units; the browser stretches it.
_WIDTH, _HEIGHT = 400, 90
# What is plotted: what a job can run out of, first; and how many.
_TELLING = ("memory", "gib", "cache", "usage", "temperature", "power", "util")
MAX_PLOTS = 6
MAX_POINTS = 400


def render(view: TriageView, library: Library) -> Html:
    """Render the machine's side of the answer."""
    diagnosis, language = view.diagnosis, view.language
    if diagnosis is None:
        return EMPTY
    telemetry = diagnosis.telemetry
    given = bool(telemetry.sources or telemetry.causes)
    state = say(f"says-{telemetry.says}", language)
    summary = join(
        element("h2", say("telemetry", language)),
        element("span", state, class_=f"tag says-{telemetry.says.replace(' ', '-')}"),
    )
    history = view.snapshot.history if view.snapshot is not None else ()
    places = {
        one.name: next(
            (place for place, word in enumerate(_TELLING) if word in one.name.lower()), len(_TELLING)
        )
        for one in history
    }
    drawn = (one for one in history if len(one.points) > 1)
    ranked = sorted(drawn, key=lambda one: (places[one.name], one.name))
    body = (
        [*_told(telemetry, library, language), *(_plot(one, language) for one in ranked[:MAX_PLOTS])]
        if given
        else [element("p", *prose.inline(say("telemetry-none", language)), class_="hint")]
    )
    return element(
        "section",
        folded(summary, *body, key="telemetry", is_open=given),
        id="wc-machine",
        class_="card",
        aria_label=say("telemetry", language),
    )


def _told(telemetry: Telemetry, library: Library, language: Language) -> Iterator[Html]:
    telling = [item for item in telemetry.causes if item.says != "not available"]
    if telemetry.why and telemetry.why not in [item.why for item in telling]:
        yield element("p", *prose.inline(telemetry.why))
    for item in telling:
        yield _cause(item, library, language)
    silent = [_title(item.cause, library, language) for item in telemetry.causes if item not in telling]
    if silent:
        yield element("p", say("telemetry-silent", language, causes="; ".join(silent)), class_="hint")
    if telemetry.taken_at:
        yield element(
            "p",
            say("taken", language, when=telemetry.taken_at, sources=", ".join(telemetry.sources)),
            class_="by",
        )


def _cause(item: CauseTelemetry, library: Library, language: Language) -> Html:
    title = element(
        "p",
        element("strong", _title(item.cause, library, language)),
        ": ",
        say(f"says-{item.says}", language),
    )
    why = element("p", *prose.inline(item.why)) if item.why else None
    rows = [_reading(reading, language) for reading in item.readings]
    names = element(
        "tr",
        element("th", say("reading", language), scope="col"),
        element("th", say("value", language), scope="col"),
    )
    table = element("table", element("thead", names), element("tbody", *rows)) if rows else None
    return join(title, why, table)


def _title(name: str, library: Library, language: Language) -> str:
    cause = library.causes.get(name)
    return cause.title.to(language) if cause else name


def _reading(reading: TelemetryReading, language: Language) -> Html:
    value = (
        str(reading.value)
        if reading.unavailable is None
        else say("not-available", language, why=reading.unavailable)
    )
    return element("tr", element("th", element("code", reading.name), scope="row"), element("td", value))


def _plot(series: Series, language: Language) -> Html:
    points = sorted(series.points)
    if (step := -(-len(points) // MAX_POINTS)) > 1:
        points = [*points[:-1:step], points[-1]]
    name = " ".join([series.name, *(f"{key}={value}" for key, value in series.labels.items())])
    span = str(timedelta(seconds=round(points[-1][0] - points[0][0])))
    told = say(
        "plot-of", language, name=name, first=f"{points[0][1]:g}", last=f"{points[-1][1]:g}", span=span
    )
    low, high = min(value for _, value in points), max(value for _, value in points)
    line = element(
        "polyline", points=" ".join(_places(points, low, high)), vector_effect="non-scaling-stroke"
    )
    svg = element(
        "svg",
        line,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=told,
    )
    ends = element(
        "p",
        element("span", say("before-end", language, span=span)),
        element("span", say("snapshot-end", language)),
        class_="ends",
        aria_hidden="true",
    )
    scale = element(
        "div", element("span", f"{high:g}"), element("span", f"{low:g}"), class_="scale", aria_hidden="true"
    )
    return element(
        "figure",
        element("figcaption", element("code", name)),
        element("div", scale, svg, class_="curve"),
        ends,
    )


def _places(points: Sequence[Point], low: float, high: float) -> Iterator[str]:
    begin, end = points[0][0], points[-1][0]
    for when, value in points:
        x = _WIDTH * (when - begin) / ((end - begin) or 1)
        # A little room above and below, so that a flat line is seen.
        y = 6 + (_HEIGHT - 12) * (1 - (value - low) / ((high - low) or 1))
        yield f"{x:.1f},{y:.1f}"
