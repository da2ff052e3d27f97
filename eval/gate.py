"""The regression gate: a floor for each figure of the composer.

`floors.yaml` holds, by split, the least allowed value of a metric (the greatest where lower is better). The
gate fails where a figure is below it. `python -m eval --raise-floors` sets each floor to the figure of that
run less a margin, and never lowers one.
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
# The temperature is fitted on logs that no rule was written for, so the probabilities are too low on the
# split that the rules were written with.
NOT_GATED = frozenset({("fit", "ece")})
# One incident of a hundred may become wrong by a change that is right elsewhere.
MARGIN = 0.01

Floors = Mapping[str, Mapping[str, float]]


def figures(scores: Sequence[Score]) -> dict[str, float]:
    """Give the gated figures of scores, by metric; metrics without a scored answer are left out."""
    means = summary(scores)
    found = {name: means[name].value for name in GATED if name in means and means[name].count}
    error = ece(scores)
    return found if math.isnan(error) else found | {"ece": error}


def _gated(split: str, scores: Sequence[Score]) -> dict[str, float]:
    return {name: value for name, value in figures(scores).items() if (split, name) not in NOT_GATED}


def below_floors(by_split: Mapping[str, Sequence[Score]], floors: Floors) -> list[str]:
    """Give a sentence for each figure that is below its floor or no longer scored."""
    found = []
    for split, scores in by_split.items():
        reached = _gated(split, scores)
        for name, floor in floors.get(split, {}).items():
            value = reached.get(name)
            if value is None:
                found.append(f"{split}: {name} is not scored any more (floor {floor:.3f})")
            elif value > floor if name in LOWER else value < floor:
                found.append(f"{split}: {name} is {value:.3f}, the floor is {floor:.3f}")
    return found


def load(path: Path = FILE) -> Floors:
    """Read the floors; empty where the file is missing."""
    return read_yaml(path) if path.exists() else {}


def raised_floors(by_split: Mapping[str, Sequence[Score]], floors: Floors) -> dict[str, dict[str, float]]:
    """Give the floors raised to the figures less MARGIN; none is lowered."""
    new: dict[str, dict[str, float]] = {}
    for split, scores in by_split.items():
        new[split] = dict(floors.get(split, {}))
        for name, value in _gated(split, scores).items():
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
