"""The report of a soak as one page: what was asked, what was killed, what was found, and plots over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from eval.soak.checks import SoakFindings, memory_trend
from eval.soak.load import SubmissionCounts
from eval.soak.target import Sample, SoakTarget
from service.html import markup, plots
from service.html.markup import Html, paragraph, section
from service.html.plots import Column

COLUMNS = 48
_STYLE = (
    "body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    ".one{fill:#4269d0}.rule{stroke:#ccc}.small{font-size:11px}td{padding-right:2em}"
)


@dataclass(frozen=True)
class Soak:
    """What there is to tell of a soak: `recoveries` are seconds after the end of each harm."""

    target: SoakTarget
    asked: SubmissionCounts
    found: SoakFindings
    minutes: float
    recoveries: Sequence[tuple[str, float]] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


def page(soak: Soak) -> str:
    """Give the page."""
    target, asked, found = soak.target, soak.asked, soak.found
    verdict = "All held." if not found.wrong else f"{len(found.wrong)} did not hold."
    samples = target.samples
    recovered = [(what, f"{after:.0f}") for what, after in soak.recoveries]
    return markup.document(
        "whycrash: soak",
        markup.element("h1", f"A soak of {soak.minutes:g} minutes"),
        paragraph(verdict),
        section("wrong", "What did not hold", *(paragraph(row) for row in found.wrong))
        if found.wrong
        else "",
        markup.table("What was asked, and answered", ("what", "times"), _rows(asked.answered)),
        markup.table("What was refused or cut off", ("what", "times"), _rows(asked.refused)),
        markup.table("What became of all that was accepted", ("what", "number"), _rows(found.counts)),
        markup.table("Seconds until work was taken again after a harm", ("what", "seconds"), recovered)
        if recovered
        else "",
        markup.table("What could not be tried here", ("what", "why"), list(soak.missing.items()))
        if soak.missing
        else "",
        paragraph(trend.told()) if (trend := memory_trend(samples)) else "",
        _over_time("Memory of the server, MiB", samples, lambda sample: sample.server_mb),
        _over_time("Memory of all its processes, MiB", samples, lambda sample: sample.all_mb),
        _over_time("Open files of the server", samples, lambda sample: float(sample.files)),
        markup.table(
            "What was killed",
            ("what", "times"),
            [(what, str(count)) for what, count in target.killed.most_common()],
        ),
        # The longest comes last.
        markup.table("What happened", ("second", "what"), [(f"{at:.0f}", what) for at, what in target.notes]),
        style=_STYLE,
    )


def _rows(counts: dict[str, int]) -> list[tuple[str, str]]:
    return [(name, str(count)) for name, count in sorted(counts.items())]


def _over_time(told: str, samples: Sequence[Sample], value: Callable[[Sample], float]) -> Html:
    """Draw the highest value of each stretch of time."""
    width = max(1, -(-len(samples) // COLUMNS))
    parts = [samples[place : place + width] for place in range(0, len(samples), width)]
    stacks = [Column(f"{part[0].at:.0f} s", {"highest": round(max(map(value, part)), 1)}) for part in parts]
    return section(told.split()[0].lower(), told, plots.column_plot(told, stacks, {"highest": "one"}))
