"""What a model's votes did to the answers of the rules: agreement, better, worse, and what they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from eval.answers import NO_FAILURE, Answer
from eval.figures import COMPOSER, Run
from eval.incidents import Label


@dataclass(frozen=True)
class VoteEffect:
    """A system with a model beside the rules alone, over the incidents that the model was asked about.

    `voted` of `asked` answers held a vote that stands, and `agreed` of those were for what the rules name.
    `better` and `worse` are the incidents whose answer the vote set right or wrong. `tokens` and `seconds`
    are medians for one answer, `calls` of tools for one of the `looked` answers that could make some.
    """

    system: str
    asked: int
    voted: int
    agreed: int
    better: tuple[str, ...]
    worse: tuple[str, ...]
    tokens: float
    looked: int
    calls: float
    seconds: float

    @property
    def row(self) -> tuple[str, ...]:
        """Give the row of a table, its columns as in COLUMNS."""
        share = f"{self.agreed} of {self.voted}"
        calls = f"{self.calls:g} in {self.looked} that could look" if self.looked else "none could look"
        costs = (f"{self.tokens:.0f}", calls, f"{self.seconds:.2f}")
        return (
            self.system,
            str(self.asked),
            share,
            _count_and_names(self.better),
            _count_and_names(self.worse),
            *costs,
        )


COLUMNS = (
    "system",
    "asked",
    "votes for what the rules name",
    "made right",
    "made wrong",
    "median tokens",
    "median calls",
    "median s",
)


@dataclass(frozen=True)
class WorsenedAnswer:
    """An answer that a vote set wrong: what the label, the rules, the model and both together say, and why.

    `quoted` are the lines of the answer that the rules' own does not show; `note` is what the answer says of
    the vote.
    """

    system: str
    incident: str
    labelled: str
    rules: str
    vote: str
    both: str
    quoted: str
    note: str

    @property
    def row(self) -> tuple[str, ...]:
        """Give the row of a table, its columns as in WORSENED."""
        said = (self.labelled, self.rules, self.vote, self.both, self.quoted, self.note)
        return self.system, self.incident, *said


WORSENED = ("system", "incident", "labelled", "by rules", "vote", "answer", "lines by the model", "why")


def worsened(run: Run) -> list[WorsenedAnswer]:
    """Give each answer that a model's vote set wrong, with what led to it."""
    rules = {answer.incident: answer for answer in run.answers.get(COMPOSER, ())}
    labels = {incident.id: incident.label for incident in run.incidents}
    return [
        _worsened(effect.system, answer, rules[answer.incident], labels[answer.incident])
        for effect in vote_effects(run)
        for answer in run.answers[effect.system]
        if answer.incident in effect.worse
    ]


def _worsened(system: str, both: Answer, rules: Answer, label: Label) -> WorsenedAnswer:
    shown = set(rules.lines or ())
    return WorsenedAnswer(
        system,
        label.id,
        ", ".join(label.causes) or label.verdict,
        _answer_text(rules),
        both.vote,
        _answer_text(both),
        ", ".join(f"L{line}" for line in both.lines or () if line not in shown) or "-",
        both.note,
    )


def _answer_text(answer: Answer) -> str:
    sure = "" if answer.confidence is None else f" {answer.confidence:.2f}"
    return f"{named(answer) or answer.verdict}{sure}"


def _count_and_names(names: Sequence[str]) -> str:
    return f"{len(names)}: {', '.join(names)}" if names else "0"


def vote_effects(run: Run) -> list[VoteEffect]:
    """Give the effect of each system whose answers a model was asked for."""
    rules = {answer.incident: answer for answer in run.answers.get(COMPOSER, ())}
    found = []
    for system, answers in run.answers.items():
        asked = [item for item in answers if item.tokens and item.incident in rules]
        if system != COMPOSER and any(item.vote for item in asked):
            found.append(_effect(run, system, asked, rules))
    return found


def _effect(run: Run, system: str, asked: Sequence[Answer], rules: dict[str, Answer]) -> VoteEffect:
    by_rules, by_both = (
        {item.incident: item.right for item in run.scores.get(name, ())} for name in (COMPOSER, system)
    )
    changed = {
        item.incident: by_both.get(item.incident, 0.0) - by_rules.get(item.incident, 0.0) for item in asked
    }
    voted = [item for item in asked if item.vote]
    calls = [item.calls for item in asked if item.calls is not None]
    return VoteEffect(
        system,
        len(asked),
        len(voted),
        sum(item.vote == named(rules[item.incident]) for item in voted),
        tuple(name for name, change in changed.items() if change > 0),
        tuple(name for name, change in changed.items() if change < 0),
        median(item.tokens for item in asked),
        len(calls),
        median(calls or [0]),
        median(item.seconds for item in asked),
    )


def named(answer: Answer) -> str:
    """Give what an answer names: a cause, that the log does not tell, or that nothing failed."""
    return NO_FAILURE if answer.verdict == NO_FAILURE else next(iter(answer.causes), "")
