"""From signs to probabilities: one weight a sign, fitted on labelled incidents, a softmax over the causes.

The causes that anything speaks for stand against each other and against "the log does not tell": a
conditional logit (McFadden, 1974). The weights are a file, fitted by `python -m eval.calibrate`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from corpus.schema import Record
from service.scoring.features import Signs

FILE = Path(__file__).parent / "calibration.json"
# No sum of signs makes an answer certain.
MOST = 0.97


class Weights(Record):
    """What each sign weighs, and what that was learned from.

    `temperature` divides the sums: above 1 where the fit was surer than other logs bore out.
    """

    signs: Mapping[str, float]
    temperature: float = 1.0
    corpus: str = ""
    incidents: int = 0


@dataclass(frozen=True)
class Probabilities:
    """The probability of each cause, in the order given, and that the log does not tell."""

    causes: tuple[float, ...]
    doubt: float


@cache
def weights(path: Path = FILE) -> Weights:
    """Load the weights."""
    return Weights.model_validate_json(path.read_bytes())


def probabilities(causes: Sequence[Signs], doubt: Signs, learned: Weights) -> Probabilities:
    """Weigh the causes against each other and against doubt; the probabilities add up to 1."""
    sums = [
        sum(value * learned.signs.get(name, 0.0) for name, value in signs.items()) / learned.temperature
        for signs in (*causes, doubt)
    ]
    top = max(sums)
    shares = [math.exp(value - top) for value in sums]
    total = sum(shares)
    return Probabilities(tuple(share / total for share in shares[:-1]), shares[-1] / total)
