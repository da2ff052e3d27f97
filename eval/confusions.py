"""Count what causes were confused with at first sight: `python -m eval.confusions [--write]`.

Of an answer that named a cause, the accepted ones are what it may be confused with: all of those where it was
wrong, and to a lesser degree those beside it where it was right. What is usual of any cause stands for one
more answer of each. Before the table, the held-out figures are told: each round is judged by the others.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eval.calibrate import ACCEPTED_WEIGHT
from eval.fresh import rounds
from service.scoring import confusions
from service.scoring.confusions import PROPOSED, Confusions

# How many answers the usual shares stand for beside those of a cause.
USUAL_ANSWERS = 1.0
# Shares below this are dropped: nobody is told of them.
LEAST_SHARE = 0.02


@dataclass(frozen=True)
class FirstAnswer:
    """What was named of a public log before its label was seen, and which causes its label accepts."""

    round: int
    named: tuple[str, ...]
    accepted: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Tell whether the first cause is accepted."""
        return self.named[0] in self.accepted


@dataclass(frozen=True)
class HeldOut:
    """Of `wrong` answers at first sight, how many had a right cause among those named beside the first.

    `before` as they were answered, `after` with those that the other rounds' table proposes.
    """

    wrong: int
    before: int
    after: int


def first_answers() -> list[FirstAnswer]:
    """Give the answers of all recorded rounds that named a cause where there was one."""
    found = []
    for sight in rounds.recorded():
        answers = {answer["id"]: answer for answer in sight.answers}
        for log in rounds.load(sight.round).logs:
            answer = answers.get(log.id)
            if log.causes and answer and answer["verdict"] in ("diagnosed", "ambiguous"):
                found.append(FirstAnswer(sight.round, tuple(answer["causes"]), log.causes))
    return found


def counted(first: Iterable[FirstAnswer]) -> Confusions:
    """Count the shares of a table."""
    answers = list(first)
    by_named: dict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    whole = list(answers)
    for answer in whole:
        weight = (ACCEPTED_WEIGHT if answer.is_right else 1.0) / len(answer.accepted)
        others = [cause for cause in answer.accepted if cause != answer.named[0]]
        by_named[answer.named[0]].update(dict.fromkeys(others, weight))
        total.update(dict.fromkeys(others, weight))
    usual = _shares(total)
    shares = {
        named: _shares(seen + Counter({cause: USUAL_ANSWERS * share for cause, share in usual.items()}))
        for named, seen in sorted(by_named.items())
    }
    return Confusions(
        shares={named: _rounded_shares(found) for named, found in shares.items()},
        usual=_rounded_shares(usual),
        answers=len(whole),
    )


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    whole = sum(weights.values())
    ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return {cause: weight / whole for cause, weight in ranked}


def _rounded_shares(shares: Mapping[str, float]) -> dict[str, float]:
    return {cause: round(share, 3) for cause, share in shares.items() if share >= LEAST_SHARE}


def held_out(answers: Sequence[FirstAnswer]) -> HeldOut:
    """Judge each round by the table of the others."""
    wrong = [answer for answer in answers if not answer.is_right]
    tables = {
        number: counted(answer for answer in answers if answer.round != number)
        for number in {answer.round for answer in wrong}
    }
    before = [set(answer.named[1:3]) for answer in wrong]
    proposed = [list(tables[answer.round].rivals(answer.named[0]))[:PROPOSED] for answer in wrong]
    pairs = list(zip(wrong, before, proposed, strict=True))
    return HeldOut(
        len(wrong),
        sum(not named.isdisjoint(answer.accepted) for answer, named, _ in pairs),
        sum(not named.union(rivals).isdisjoint(answer.accepted) for answer, named, rivals in pairs),
    )


def main(words: Sequence[str]) -> int:
    """Count, print the table as JSON, and write it with `--write`."""
    parser = argparse.ArgumentParser(prog="python -m eval.confusions", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"replace {confusions.FILE.name}")
    chosen = parser.parse_args(words)
    answers = first_answers()
    judged = held_out(answers)
    sys.stderr.write(
        f"held out: of {judged.wrong} wrong first causes {judged.before} had a right one beside them, "
        f"{judged.after} with the table of the other rounds\n"
    )
    text = counted(answers).model_dump_json(indent=1) + "\n"
    if chosen.write:
        confusions.FILE.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
