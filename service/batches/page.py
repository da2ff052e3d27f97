"""The report of a batch as a self-contained HTML page: what failed, what it cost, what to change first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from corpus.message import is_message, words
from corpus.schema import Language
from service.batches.summary import CauseGroup, Cost, CrashGroup, JobName, Saving, Summary
from service.batches.trend import TrendPoint
from service.composition.diagnosis_view import as_written, likely_words, standing_words
from service.html.markup import EMPTY, Html, coded, document, element, folded, join, paragraph, section, table
from service.html.plots import COLOURS, OTHER, Amount, Column, bar_plot, column_plot
from service.schemas.diagnosis import ProposedChange

# Bars of one plot.
MAX_BARS = 8
# How a time is named, by how long a stretch is shown.
_TIME_FORMS = ((timedelta(days=300), "%Y-%m"), (timedelta(days=3), "%m-%d"), (timedelta(0), "%H:%M"))
# Causes whose crashes are shown open.
OPEN = 3
# Gives the address of a job's answer or log, relative to the page; empty where it has none.
JobLink = Callable[[JobName], str]


class _Page:
    """A page in one language."""

    def __init__(self, summary: Summary, trend: Sequence[TrendPoint], address: JobLink) -> None:
        self.summary = summary
        self.trend = trend
        self.address = address
        self.chinese = summary.language == "zh"
        ranked = [group.cause for group in summary.causes]
        self.colours = dict(zip(ranked, COLOURS, strict=False))
        self.titles = {group.cause: group.title for group in summary.causes}

    def word(self, name: str, /, **values: object) -> str:
        """Say something."""
        name = f"report.{name.replace('_', '-')}"
        if "1" in values.values() and is_message(f"{name}-one"):
            return words(f"{name}-one", self.summary.language)
        return words(name, self.summary.language, **values)

    def html(self) -> str:
        """Write the whole page."""
        summary = self.summary
        if summary.died.jobs:
            groups = (self._cause(group, place < OPEN) for place, group in enumerate(summary.causes))
            crashes = section("crashes", self.word("crashes"), *groups)
            best, retry = summary.best_saving, summary.actions.get("retry", 0)
            instead = "small_shares" if summary.changes else "no_change"
            shown = self._best(best) if best else paragraph(self.word(instead))
            more = [paragraph(self.word("retry", jobs=number(retry)), class_="soft")] if retry else []
            first = section("first", self.word("first"), shown, *more, *self._more_changes())
            parts = [first, crashes, self._causes()]
        else:
            # Where no job shows that it ended well, that none died is not known.
            none = [] if summary.open_ends else [paragraph(self.word("none"))]
            parts = [section("causes", self.word("causes"), *none)]
        asked: list[Html] = []
        if use := summary.model:
            counts = {name: number(value) for name, value in use.model_dump(exclude={"counted"}).items()}
            part = "" if use.counted else self.word("estimated")
            asked = [paragraph(self.word("model", **counts, part=part))]
        title = f"{self.word('title')}: {self.summary.name}"
        body = element("main", self._cards(), *parts, self._sound(), self._unanswered())
        footer = element("footer", *asked, paragraph(self.word("footer", batch=summary.batch)), class_="soft")
        return document(
            title, self._header(), body, footer, lang="zh-CN" if self.chinese else "en", style=STYLE
        )

    def _header(self) -> Html:
        summary = self.summary
        told = self.word(
            "sub",
            source=self.word(summary.source),
            created=_date_and_time(summary.created),
            jobs=number(summary.jobs),
        )
        state = [paragraph(self.word(summary.state), class_="notice")] if summary.state != "done" else []
        names = ("first", "crashes", "causes") if summary.died.jobs else ()
        links = [element("a", self.word(name), href=f"#{name}") for name in names]
        nav = [element("nav", *links, aria_label=self.word("sections"))] if links else []
        return element(
            "header",
            paragraph(self.word("title"), class_="over"),
            element("h1", summary.name or summary.batch),
            paragraph(told, class_="soft"),
            *state,
            *nav,
        )

    # What it comes to.

    def _cards(self) -> Html:
        summary = self.summary
        died = summary.died
        cards = [
            self._card(number(died.jobs), "died", self.word("of", jobs=number(summary.jobs))),
            self._card(number(summary.crashes), "kinds", self.word("by", causes=len(summary.causes))),
        ]
        if died.gpu_hours is not None:
            known = (
                self.word("known", timed=number(died.timed), jobs=number(died.jobs))
                if died.timed < died.jobs
                else ""
            )
            cards.insert(1, self._card(number(died.gpu_hours), "hours", known))
        if died.nodes:
            worst = self.word("worst", name=summary.nodes_hit[0].name) if summary.nodes_hit else ""
            cards.append(self._card(number(died.nodes), "nodes", worst))
        if summary.untriaged:
            cards.append(self._card(number(summary.untriaged), "untriaged", self.word("why_none")))
        return element("ul", *cards, class_="cards")

    def _card(self, figure: str, name: str, told: str) -> Html:
        return element(
            "li",
            element("strong", figure),
            element("span", self.word(name)),
            element("span", told, class_="soft"),
        )

    # What to change.

    def _best(self, best: Saving) -> Html:
        died = self.summary.died
        told = [
            self.word(
                "saves", jobs=number(best.jobs), died=number(died.jobs), share=_share(best.jobs, died.jobs)
            )
        ]
        if best.gpu_hours is not None and died.gpu_hours:
            told.append(
                self.word(
                    "saves_hours", hours=number(best.gpu_hours), share=_share(best.gpu_hours, died.gpu_hours)
                )
            )
        if best.values > 1:
            told.append(self.word("values", values=best.values))
        parts = [
            paragraph(_code(best), class_="change"),
            paragraph(("" if self.chinese else " ").join(told)),
            paragraph(self.word("why", why=best.why)),
        ]
        if best.costs:
            parts.append(paragraph(self.word("costs", costs=best.costs), class_="soft"))
        parts.append(paragraph(self.word("against", causes=self._titles(best.causes)), class_="soft"))
        return element("div", *parts, class_="best")

    def _titles(self, causes: Iterable[str]) -> str:
        return ("；" if self.chinese else "; ").join(self.titles.get(cause, cause) for cause in causes)

    def _more_changes(self) -> list[Html]:
        others = self.summary.changes[1:] if self.summary.best_saving else self.summary.changes
        if not others:
            return []
        hours = any(change.gpu_hours is not None for change in others)
        heads = [
            self.word("change"),
            self.word("jobs"),
            *([self.word("gpu_hours")] if hours else []),
            self.word("cause"),
        ]
        rows = (
            [
                _code(change),
                number(change.jobs),
                *([number(change.gpu_hours)] if hours else []),
                self._titles(change.causes),
            ]
            for change in others
        )
        return [table(self.word("more_changes"), heads, rows)]

    # What died.

    def _causes(self) -> Html:
        summary = self.summary
        plots = [
            self._plot(
                "by_jobs",
                [
                    (group, float(group.jobs), self.word("job_count", count=number(group.jobs)))
                    for group in summary.causes
                ],
            )
        ]
        if summary.died.gpu_hours:
            costly = sorted(summary.causes, key=lambda group: -(group.gpu_hours or 0))
            plots.append(
                self._plot(
                    "by_hours",
                    [(group, group.gpu_hours or 0.0, number(group.gpu_hours or 0)) for group in costly],
                )
            )
        plots += self._over_time() + self._nodes()
        if len(self.trend) > 1:
            stacks = [Column(f"{point.created:%m-%d}", self._parts(point.causes)) for point in self.trend]
            plots.append(self._columns("trend", stacks))
        return section("causes", self.word("causes"), element("div", *plots, class_="plots"))

    def _sound(self) -> Html:
        """Name the jobs that ended well, and apart from them those whose end was not seen."""
        summary = self.summary
        told = (
            ("healthy", summary.healthy, summary.healthy_jobs),
            ("open_ends", summary.open_ends, summary.open_jobs),
        )
        parts = [
            join(
                paragraph(self.word(name, jobs=number(jobs))),
                paragraph(self._jobs(named, jobs), class_="soft"),
            )
            for name, jobs, named in told
            if jobs
        ]
        return section("sound", self.word("sound"), *parts) if parts else EMPTY

    def _jobs(self, named: Sequence[JobName], jobs: int) -> Html:
        """Name jobs, each with the way to its answer or log, and count those that are not named."""
        links: list[str] = [
            element("a", job.name, href=address)
            if (address := self.address(job))
            else element("code", job.name)
            for job in named
        ]
        more = self.word("more_jobs", more=number(jobs - len(named))) if jobs > len(named) else None
        return join(*links, more, between="、" if self.chinese else ", ")

    def _plot(self, name: str, rows: Sequence[tuple[CauseGroup, float, str]]) -> Html:
        rows = sorted(rows, key=lambda row: -row[1])
        amounts = [
            Amount(group.title, value, told, self.colours.get(group.cause, OTHER))
            for group, value, told in rows[:MAX_BARS]
            if value
        ]
        if rest := sum(value for _, value, _ in rows[MAX_BARS:]):
            amounts.append(Amount(self.word("other"), rest, number(rest), OTHER))
        return _figure(self.word(name), bar_plot(self.word(name), amounts))

    def _over_time(self) -> list[Html]:
        times = self.summary.times
        if not times:
            return []
        length = times[-1].begin - times[0].begin
        form = next(form for least, form in _TIME_FORMS if length >= least)
        stacks = [Column(f"{time.begin:{form}}", self._parts(time.causes)) for time in times]
        return [self._columns("over_time", stacks)]

    def _columns(self, name: str, stacks: Sequence[Column]) -> Html:
        return _figure(self.word(name), column_plot(self.word(name), stacks, self._stacked()), self._legend())

    def _parts(self, causes: dict[str, int]) -> dict[str, float]:
        """Give counts by the causes that have a colour; all others are one."""
        counts: Counter[str] = Counter()
        for cause, jobs in causes.items():
            counts[self.titles[cause] if cause in self.colours else self.word("other")] += jobs
        return {name: float(count) for name, count in counts.items()}

    def _stacked(self) -> dict[str, str]:
        return {self.titles[cause]: colour for cause, colour in self.colours.items()} | {
            self.word("other"): OTHER
        }

    def _legend(self) -> Html:
        others = len(self.titles) > len(self.colours)
        names = {name: colour for name, colour in self._stacked().items() if colour != OTHER or others}
        return element(
            "ul",
            *(element("li", element("span", class_=f"key {colour}"), name) for name, colour in names.items()),
            class_="legend",
        )

    def _nodes(self) -> list[Html]:
        if not self.summary.nodes_hit:
            return []
        rows = [
            Amount(node.name, float(node.jobs), self.word("job_count", count=number(node.jobs)), OTHER)
            for node in self.summary.nodes_hit[:MAX_BARS]
        ]
        return [_figure(self.word("by_node"), bar_plot(self.word("by_node"), rows))]

    # Crash by crash.

    def _cause(self, group: CauseGroup, is_open: bool) -> Html:
        told = " · ".join([*self._cost(group), self.word("crash_count", count=number(group.crashes))])
        summary = join(
            element("span", class_=f"key {self.colours.get(group.cause, OTHER)}"),
            group.title,
            element("span", told, class_="soft"),
        )
        more = (
            [paragraph(self.word("more_crashes", more=number(group.more)), class_="soft")]
            if group.more
            else []
        )
        return folded(summary, *(self._crash(crash) for crash in group.groups), *more, is_open=is_open)

    def _crash(self, crash: CrashGroup) -> Html:
        standing = standing_words(crash.standing, self.summary.language)
        likely = likely_words(crash.confidence, crash.verdict, self.summary.language)
        told = " · ".join(filter(None, [*self._cost(crash), likely, standing]))
        return element(
            "article",
            element("h3", coded(crash.headline)),
            paragraph(told, class_="soft"),
            element("dl", *self._facts(crash)),
        )

    def _facts(self, crash: CrashGroup) -> Iterable[Html]:
        rows: list[tuple[str, str]] = []
        if crash.proof:
            rows.append(("proof", element("code", crash.proof)))
        if crash.change:
            rows.append(("change_to", _code(crash.change)))
        elif crash.step:
            rows.append(("do_first", coded(crash.step)))
        rows.append(("job_names", self._jobs(crash.members or (crash.representative,), crash.jobs)))
        if crash.first and crash.last:
            rows.append(
                (
                    "between",
                    _date_and_time(crash.first)
                    + (f" – {_date_and_time(crash.last)}" if crash.last != crash.first else ""),
                )
            )
        if crash.nodes_hit:
            rows.append(("on", ", ".join(f"{node.name} ({node.jobs})" for node in crash.nodes_hit)))
        if crash.fingerprint:
            rows.append(("named", element("code", crash.fingerprint[:16])))
        return (
            part for name, value in rows for part in (element("dt", self.word(name)), element("dd", value))
        )

    def _cost(self, cost: Cost) -> list[str]:
        told = [self.word("job_count", count=number(cost.jobs))]
        if cost.gpu_hours is not None:
            told.append(self.word("hour_count", count=number(cost.gpu_hours)))
        if cost.nodes:
            told.append(self.word("node_count", count=number(cost.nodes)))
        return told

    # What has no answer.

    def _unanswered(self) -> Html:
        summary = self.summary
        parts: list[Html] = []
        if summary.failures:
            rows = (
                (failure.error, number(failure.jobs), failure.example.name) for failure in summary.failures
            )
            parts.append(
                table(
                    self.word("unanswered"),
                    [self.word("reason"), self.word("jobs"), self.word("example")],
                    rows,
                )
            )
        if summary.left_out:
            kept = ((reason.replace("_", " "), str(told)) for reason, told in summary.left_out.items())
            parts.append(table(self.word("left_out"), [self.word("reason"), self.word("what")], kept))
        return section("unanswered", self.word("missing"), *parts) if parts else EMPTY


def page(summary: Summary, trend: Sequence[TrendPoint] = (), address: JobLink = lambda _: "") -> str:
    """Write the page of a batch, in the summary's language.

    `trend` has this batch and earlier ones, oldest first; `address` leads to a job.
    """
    return _Page(summary, trend, address).html()


def number(value: float | None) -> str:
    """Format a number with three significant digits."""
    if value is None:
        return "-"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def _code(change: Saving | ProposedChange) -> Html:
    return join(element("code", as_written(change)), element("span", f" {change.framework}", class_="soft"))


def _share(part: float, whole: float) -> str:
    share = part / whole if whole else 0.0
    return f"{share:.1%}" if 0 < share < 0.01 else f"{share:.0%}"


def _date_and_time(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M}"


def _figure(caption: str, drawing: Html, *more: Html) -> Html:
    return element("figure", element("figcaption", caption), drawing, *more)


def in_language(text: str) -> Language:
    """Choose a page's language by a setting that may be empty."""
    return "zh" if text == "zh" else "en"


STYLE = """
:root { --c1: #1d5fbf; --c2: #c2570c; --c3: #0f8a6d; --c4: #8e44ad; --c5: #b38600; }
@media (prefers-color-scheme: dark) {
  :root { --c1: #6ea8ff; --c2: #f2955a; --c3: #4cc9a4; --c4: #c99bea; --c5: #e0b93f; }
}
svg .c1 { fill: var(--c1); } svg .c2 { fill: var(--c2); } svg .c3 { fill: var(--c3); }
svg .c4 { fill: var(--c4); } svg .c5 { fill: var(--c5); }
.key {
  display: inline-block; width: .75rem; height: .75rem; border-radius: .15rem; margin: 0 .5rem 0 0;
  vertical-align: -.05rem; background: var(--grey);
}
summary .key { margin-left: .3rem; }
.key.c1 { background: var(--c1); } .key.c2 { background: var(--c2); } .key.c3 { background: var(--c3); }
.key.c4 { background: var(--c4); } .key.c5 { background: var(--c5); }
h1 { overflow-wrap: anywhere; }
h2 { margin-top: 2.2rem; }
.over { margin: 0; font-size: .85rem; font-weight: 600; color: var(--soft); }
.notice {
  display: inline-block; margin-top: .6rem; padding: .3rem .7rem; border-radius: .4rem;
  background: var(--hit);
}
.cards { margin-top: 1.4rem; }
.best {
  background: var(--card); border: 1px solid var(--line); border-left: .3rem solid var(--good);
  border-radius: .5rem; padding: .9rem 1.1rem; margin: .8rem 0;
}
.best p { max-width: 56rem; }
.change { font-size: 1.15rem; overflow-wrap: anywhere; }
.change code { font-weight: 600; }
figcaption { font-weight: 600; color: var(--ink); margin-bottom: .6rem; }
.plots { gap: 2rem 2.5rem; margin-top: 1rem; }
.legend {
  list-style: none; margin: .6rem 0 0; padding: 0; font-size: .82rem; color: var(--soft); max-width: 28rem;
}
.legend li { margin: .1rem 0; }
article h3 { margin-bottom: .2rem; }
article dl { margin-top: .5rem; }
.scroll td, .scroll tbody th {
  white-space: normal; min-width: 5rem; max-width: 34rem; overflow-wrap: anywhere;
}
.scroll tbody th { min-width: 11rem; }
caption { font-weight: 600; color: var(--ink); }
/* The last column holds words, and takes the room on a phone that scrolling gives. */
.scroll td:last-child { min-width: 11rem; }
td span, .scroll th span { display: inline; margin: 0; }
"""
