"""Fit what a model's vote weighs, on incidents with recorded answers: `python -m eval.votes NAME [--write]`.

A vote multiplies the odds of its choice (`service/scoring/fusion.py`). The weights of its signs are those
under which the labels are likeliest, drawn towards fixed ones, so that few incidents move them little. What
they come to is told for failure mechanisms that were left out of the fit (five-fold).
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from eval import incidents
from eval.cassette import Cassette
from eval.explained import Explained
from eval.incidents import Incident
from service.pipeline.triage import Triage
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.scoring import fusion
from service.scoring.fusion import (
    SOUND,
    VoteWeights,
    base_share,
    may_count,
    rule_shares,
    vote_signs,
    weigh_vote,
)
from service.settings import load_settings

# Strength of the pull towards the weights in use.
RIDGE = 0.5
FOLDS = 5
# What the weights are drawn towards: set by hand, before anything was fitted.
PRIOR: Mapping[str, float] = {
    "cause": 4.5,
    "cause-high": 1.2,
    "cause-low": -3.5,
    "named-by-rules": 0.5,
    "quote-says-it": 0.8,
    "quotes-of-other-kind": -1.2,
    "other-framework": -2.0,
    # The odds that the certainty itself claims: 19:1, 3:1, even.
    "agrees-high": 2.9,
    "agrees-medium": 1.1,
    "agrees-low": 0.0,
    "against-silence-medium": -1.5,
    "against-silence-low": -2.0,
    "insufficient-evidence": 2.5,
    "insufficient-evidence-high": 0.8,
    "insufficient-evidence-low": -0.8,
    "no-failure": 4.0,
    "no-failure-high": 1.0,
    "no-failure-low": -1.5,
}
# How sure the model says it is that the vote is right, where too few votes tell.
RIGHT = {"high": 0.95, "medium": 0.8, "low": 0.5}
ENOUGH = 10


@dataclass(frozen=True)
class VoteExample:
    """One incident's shares by the rules, the vote, and what the label takes for right."""

    mechanism: str
    priors: Mapping[str, float]
    choice: str
    certainty: str
    signs: Mapping[str, float]
    right: frozenset[str]

    def shares(self, learned: Mapping[str, float]) -> dict[str, float]:
        """Give the shares with the vote weighed in."""
        base = base_share(self.priors, self.choice)
        return weigh_vote(self.priors, self.choice, base, self.signs, learned)


def examples(system: Explained, found: Sequence[Incident]) -> Iterator[VoteExample]:
    """Replay the recorded answers; what has no vote teaches nothing."""
    for incident in found:
        heard = system.vote(incident)
        if heard is None:
            continue
        assessment, vote = heard
        if not may_count(assessment, vote, system.triage.library):
            continue
        label = incident.label
        right = {"unknown": {UNKNOWN_CAUSE}, "no-failure": {SOUND}}.get(label.verdict, set(label.causes))
        yield VoteExample(
            label.mechanism,
            rule_shares(assessment),
            vote.choice,
            vote.certainty,
            vote_signs(assessment, vote, system.triage.library),
            frozenset(right),
        )


def fitted(found: Sequence[VoteExample], prior: Mapping[str, float]) -> dict[str, float]:
    """Fit the weights by L-BFGS with numerical slopes: a dozen of them, deterministic."""
    names = sorted({*prior, *(name for example in found for name in example.signs)})
    start = np.array([prior.get(name, 0.0) for name in names])

    def loss(values: NDArray[np.float64]) -> float:
        learned = dict(zip(names, values.tolist(), strict=True))
        total = RIDGE * float(((values - start) ** 2).sum()) / 2
        for example in found:
            shares = example.shares(learned)
            total -= float(np.log(max(sum(shares.get(name, 0.0) for name in example.right), 1e-6)))
        return total

    best = scipy.optimize.minimize(loss, start, method="L-BFGS-B")
    return {name: round(float(value), 3) for name, value in zip(names, best.x, strict=True)}


def is_right(example: VoteExample, shares: Mapping[str, float]) -> bool:
    """Tell whether the likeliest is right."""
    return max(shares, key=lambda name: shares[name]) in example.right


def left_out(found: Sequence[VoteExample], prior: Mapping[str, float]) -> float:
    """Give the share that is right among incidents that the weights were not fitted on."""
    right = 0
    for fold in range(FOLDS):
        mine = [example for example in found if _fold(example) == fold]
        learned = fitted([example for example in found if _fold(example) != fold], prior)
        right += sum(is_right(example, example.shares(learned)) for example in mine)
    return right / max(1, len(found))


def _fold(example: VoteExample) -> int:
    return int(hashlib.sha256(example.mechanism.encode()).hexdigest(), 16) % FOLDS


def right_by_certainty(found: Sequence[VoteExample]) -> dict[str, float]:
    """Give the share of right votes for each certainty that a model gave."""
    shares = dict(RIGHT)
    for certainty in RIGHT:
        votes = [example.choice in example.right for example in found if example.certainty == certainty]
        if len(votes) >= ENOUGH:
            shares[certainty] = round(sum(votes) / len(votes), 3)
    return shares


def main(words: Sequence[str]) -> int:
    """Fit, say what came of it, and write it where that is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m eval.votes", description="Fit what a model's vote weighs."
    )
    parser.add_argument(
        "name", help="the model whose answers are recorded, such as of eval/recordings/NAME.jsonl"
    )
    parser.add_argument("--write", action="store_true", help=f"replace {fusion.FILE.name}")
    chosen = parser.parse_args(words)
    settings = load_settings()
    system = Explained(Triage(settings), settings, Cassette.load(chosen.name))
    found = list(examples(system, incidents.load()))
    by_rules = sum(is_right(item, item.priors) for item in found)
    by_vote = sum(item.choice in item.right for item in found)
    sys.stderr.write(
        f"{len(found)} incidents; likeliest by the rules right in {by_rules}, the vote in {by_vote}, both "
        f"weighed in {left_out(found, PRIOR):.1%} of those left out of the fit\n"
    )
    made = VoteWeights(signs=fitted(found, PRIOR), right=right_by_certainty(found), incidents=len(found))
    if chosen.write:
        fusion.FILE.write_text(made.model_dump_json(indent=2) + "\n")
    sys.stdout.write(made.model_dump_json(indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
