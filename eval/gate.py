"""The regression gate: floors under the composer's figures that only rise.

`floors.yaml` holds, for each split, the least value of a metric (the greatest of those where less is
better). The gate fails where a figure falls through; `python -m eval --raise-floors` lifts the floors to
what was reached, less a margin for incidents yet to come, and never lowers one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from corpus.library import dump_yaml, read_yaml
from eval.metrics import LOWER_IS_BETTER, METRICS, Score, ece, summary

FILE = Path(__file__).parent / "floors.yaml"
GATED = (*(name for name, _, _ in METRICS if name != "patch"), "ece")
LOWER = LOWER_IS_BETTER | {"ece"}
# The probabilities are cooled to what logs that no rule was written for bore out, so on the incidents that
# the rules were written with they must look too modest.
UNJUDGED = frozenset({("fit", "ece")})
# One incident of a hundred may change sides with an honest change elsewhere.
MARGIN = 0.01

Floors = Mapping[str, Mapping[str, float]]


def figures(scores: Sequence[Score]) -> dict[str, float]:
    """Give the gated figures of a set of scores; what is not scored is left out."""
    means = summary(scores)
    found = {name: means[name].value for name in GATED if name in means and means[name].count}
    error = ece(scores)
    return found if math.isnan(error) else found | {"ece": error}


def _judged(split: str, scores: Sequence[Score]) -> dict[str, float]:
    return {name: value for name, value in figures(scores).items() if (split, name) not in UNJUDGED}


def falls(by_split: Mapping[str, Sequence[Score]], floors: Floors) -> list[str]:
    """Say which figures fell through their floors; empty where all stand."""
    found = []
    for split, scores in by_split.items():
        reached = _judged(split, scores)
        for name, floor in floors.get(split, {}).items():
            value = reached.get(name)
            if value is None:
                found.append(f"{split}: {name} is not scored any more (floor {floor:.3f})")
            elif value > floor if name in LOWER else value < floor:
                found.append(f"{split}: {name} is {value:.3f}, the floor is {floor:.3f}")
    return found


def load(path: Path = FILE) -> Floors:
    """Read the floors; empty where there are none yet."""
    return read_yaml(path) if path.exists() else {}


def lifted(by_split: Mapping[str, Sequence[Score]], floors: Floors) -> dict[str, dict[str, float]]:
    """Give the floors lifted to what was reached, less the margin; none is lowered."""
    new: dict[str, dict[str, float]] = {}
    for split, scores in by_split.items():
        new[split] = dict(floors.get(split, {}))
        for name, value in _judged(split, scores).items():
            old = floors.get(split, {}).get(name)
            aim = value + MARGIN if name in LOWER else value - MARGIN
            best = aim if old is None else (min(old, aim) if name in LOWER else max(old, aim))
            new[split][name] = round(min(1.0, max(0.0, best)), 3)
    return new


def save(floors: Floors, path: Path = FILE) -> None:
    """Write the floors."""
    head = "# Floors under the composer's figures, by split; they only rise: python -m eval --raise-floors\n"
    path.write_text(
        head + dump_yaml({split: dict(sorted(rows.items())) for split, rows in sorted(floors.items())}),
        encoding="utf-8",
    )
