"""How fast a run counted its steps, by the clock of the rows that count them."""

from __future__ import annotations

import re
from collections import defaultdict

from ingest.logs.clock import parse_time
from ingest.logs.lines import parse_line
from ingest.logs.timeline import YEAR
from service.remediation.rules.context import RuleContext

_COUNT = re.compile(r"(?<![\d/.:-])(?P<done>\d{1,12}) ?(?:/|of) ?(?P<total>\d{1,12})(?![\d/:]|\.\d)")
_WHOLE = re.compile(r"\d{1,12}")
# Fewer rows tell no pace.
FEWEST_ROWS = 3


def pace_of_clock(context: RuleContext) -> tuple[int, int, float] | None:
    """Give how far the count came, its total, and the seconds that each step took between the rows.

    The total must be a number that the job sets: what else is counted to an end (files, batches of an
    evaluation) begins anew within the run.
    """
    totals = {int(item.value) for item in context.settings if _WHOLE.fullmatch(item.value)}
    reached: dict[int, dict[int, float]] = defaultdict(dict)
    for row in (row for text in context.texts for row in text.split("\n")):
        line = parse_line(row.encode(), 0)
        when = parse_time(line.time, YEAR) if line.time else None
        for match in _COUNT.finditer(line.body) if when is not None else ():
            if int(match["total"]) in totals and when is not None:
                reached[int(match["total"])][int(match["done"])] = when
    total = max(reached, key=lambda each: len(reached[each]), default=0)
    counts = sorted(reached[total].items()) if total else []
    if len(counts) < FEWEST_ROWS:
        return None
    (first, began), (done, ended) = counts[0], counts[-1]
    return (done, total, (ended - began) / (done - first)) if done < total and ended > began else None
