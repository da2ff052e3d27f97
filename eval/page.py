"""Write a run's report as one HTML page without outside files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eval import charts
from eval.charts import Bar
from eval.figures import (
    COMPOSER,
    MetricRow,
    Run,
    by_category,
    cell,
    confusion,
    cost,
    counted,
    goal_mark,
    goal_text,
    interval,
    number,
    retriever_columns,
    scores_of,
    seconds,
    splits,
    systems,
    table,
    wrong,
)
from eval.incidents import Split
from eval.metrics import Mean, reliability, risk_coverage
from eval.vote_effects import COLUMNS, WORSENED, vote_effects, worsened
from eval.wrong_answers import category
from service.html import markup
from service.html.markup import EMPTY, Html, element, join, paragraph, section

Tables = dict[Split, list[MetricRow]]

_COLOURS: dict[Split, str] = {"test": "one", "fit": "two"}
_SHADES = {"reached": "good", "not reached": "bad"}
_SECTIONS = {
    "figures": "Figures",
    "plots": "Plots",
    "retrieval": "Retrieval",
    "cost": "Cost",
    "wrong": "Wrong answers",
}
_MIXED = 6


def page(run: Run) -> str:
    """Give the page: figures with goals, tables, plots, and each wrong answer with lines of its log."""
    # The split `test` first: `fit` was seen while the rules were written.
    tables = {split: table(run, split) for split in reversed(splits(run))}
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    footer = element(
        "footer", paragraph(f"Run of {run.started}, {run.seconds:.1f} s. {versions}."), class_="soft"
    )
    figures = section(
        "figures",
        _SECTIONS["figures"],
        paragraph(
            "Means with 95 % bootstrap intervals over n scored answers; “-” is unscored, which is neither "
            "right nor wrong.",
            class_="soft",
        ),
        *(_metrics(run, split, rows) for split, rows in tables.items()),
    )
    return markup.document(
        "whycrash: evaluation",
        _header(run),
        element(
            "main", _headline(tables), figures, _plots(run, tables), _retrieval(run), _costs(run), _wrong(run)
        ),
        footer,
    )


def _header(run: Run) -> Html:
    counts = Counter(incident.label.split for incident in run.incidents)
    split_counts = ", ".join(f"{counts[split]} {split}" for split in splits(run))
    links = (element("a", title, href=f"#{name}") for name, title in _SECTIONS.items())
    return element(
        "header",
        element("h1", "How good are the answers?"),
        paragraph(f"{len(run.incidents)} labelled incidents ({split_counts}), {run.started}", class_="soft"),
        element("nav", *links, aria_label="Sections"),
    )


def _chip(row: MetricRow) -> str:
    word = goal_mark(row)
    return element("span", word, class_=_SHADES[word]) if word else EMPTY


def _headline(tables: Tables) -> Html:
    split, rows = next(iter(tables.items()), (None, []))
    cards = [_card(row) for row in rows if row.goal is not None]
    return section(
        "headline",
        f"Goals, split {split}" if split else "No incidents",
        element("ul", *cards, class_="cards"),
    )


def _card(row: MetricRow) -> Html:
    found = row.means.get(COMPOSER) or Mean(float("nan"), float("nan"), float("nan"), 0)
    return element(
        "li",
        element("span", row.words),
        element("strong", number(found.value, row.goal)),
        element("span", f"{interval(found)} n={found.count}".strip(), class_="soft"),
        element("span", f"goal {goal_text(row)} ", class_="soft"),
        _chip(row),
    )


def _metrics(run: Run, split: Split, rows: Sequence[MetricRow]) -> Html:
    names = systems(run)
    count = sum(incident.label.split == split for incident in run.incidents)
    return markup.table(
        f"Split {split}, {count} incidents",
        ("metric", "goal", *names),
        (
            (
                row.words,
                goal_text(row),
                *(
                    join(counted(row.means[name], row.goal), _chip(row))
                    if name == COMPOSER
                    else cell(row.means[name])
                    for name in names
                ),
            )
            for row in rows
        ),
    )


def _retrieval(run: Run) -> Html:
    columns = retriever_columns(run)
    return section(
        "retrieval",
        _SECTIONS["retrieval"],
        markup.table(
            "Split test: whether a case of an accepted cause is among the first k, and the mean "
            "reciprocal rank of the first",
            ("retriever", *columns),
            ((name, *(counted(means[column]) for column in columns)) for name, means in run.rankings.items()),
        ),
    )


def _costs(run: Run) -> Html:
    found = {name: cost(run.answers.get(name, ())) for name in systems(run)}
    effects = [effect.row for effect in vote_effects(run)]
    worse = [row.row for row in worsened(run)]
    return section(
        "cost",
        _SECTIONS["cost"],
        markup.table("What a model's votes did to the answers of the rules", COLUMNS, effects)
        if effects
        else EMPTY,
        markup.table("Right answers that a vote set wrong", WORSENED, worse) if worse else EMPTY,
        markup.table(
            "Seconds for one incident, tokens for all",
            ("system", "median s", "p95 s", "tokens"),
            (
                (name, seconds(item.median), seconds(item.p95), str(item.tokens))
                for name, item in found.items()
            ),
        ),
    )


def _plots(run: Run, tables: Tables) -> Html:
    return section(
        "plots",
        _SECTIONS["plots"],
        element("h3", "Confidence"),
        _confidence(run, list(tables)),
        element("h3", "Cause, top 1, by category"),
        _categories(run, list(tables)),
        element("h3", "Categories, labelled and named"),
        element("div", *(_confusion(run, split) for split in tables), class_="matrices"),
        *(part for split, rows in tables.items() for part in _systems(run, split, rows)),
    )


def _figure_of(caption: str, drawing: Html, class_: str | None = None) -> Html:
    return element("figure", element("figcaption", caption), element("div", drawing, class_=class_))


def _confidence(run: Run, names: Sequence[Split]) -> Html:
    scores = {split: scores_of(run, COMPOSER, split) for split in names}
    curves = {str(split): risk_coverage(rows) for split, rows in scores.items()}
    return element(
        "div",
        *(
            _figure_of(
                f"Reliability, split {split}: on the dashed line, confidence is truth",
                charts.reliability(reliability(rows), _COLOURS[split]),
            )
            for split, rows in scores.items()
        ),
        _figure_of(
            "Risk and coverage: the surest answers first",
            charts.risk_coverage(curves, {str(split): _COLOURS[split] for split in names}),
        ),
        class_="plots",
    )


def _categories(run: Run, names: Sequence[Split]) -> Html:
    return element(
        "div",
        *(
            charts.bars(
                title, [Bar(split, means[split], _COLOURS[split]) for split in names if split in means]
            )
            for title, means in by_category(run).items()
        ),
        class_="plots",
    )


def _confusion(run: Run, split: Split) -> Html:
    pairs = confusion(run, split)
    mixed = Counter({pair: count for pair, count in pairs.items() if pair[0] != pair[1]}).most_common(_MIXED)
    words = ", ".join(f"{row} named {column} {count}×" for (row, column), count in mixed)
    return element(
        "div",
        _figure_of(
            f"Split {split}: rows are labelled, columns named; the deeper, the larger the share of the row",
            charts.confusion(pairs),
            "matrix",
        ),
        paragraph(f"Most often mixed up: {words or 'none'}.", class_="soft"),
    )


def _systems(run: Run, split: Split, rows: Sequence[MetricRow]) -> tuple[Html, Html]:
    names = systems(run)
    drawn = (
        charts.bars(
            row.words,
            [Bar(name, row.means[name], "one" if name == COMPOSER else "other") for name in names],
            None if row.goal is None else (row.goal, goal_text(row)),
        )
        for row in rows
        if any(found.count for found in row.means.values())
    )
    return element("h3", f"The composer beside the baselines, split {split}"), element(
        "div", *drawn, class_="plots"
    )


def _wrong(run: Run) -> Html:
    found = wrong(run)
    groups = [
        category(name, [item for item in found if item.category == name])
        for name in sorted({item.category for item in found})
    ]
    summary = (
        f"{len(found)} of {len(run.answers.get(COMPOSER, ()))} answers of the composer; open a category "
        "to see them."
    )
    return section(
        "wrong", _SECTIONS["wrong"], paragraph(summary if found else "None.", class_="soft"), *groups
    )
