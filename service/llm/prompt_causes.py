"""The causes in a prompt: which are candidates, which others have a sign, and the ids of those near them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from corpus.message import words
from service.llm.cause_lookups import ALL
from service.llm.prompt_context import PromptContext
from service.llm.prompt_lines import PromptRow
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.scoring.scoring import Candidate

# A candidate that only the likeness of other logs speaks for is told as one from this probability.
LIKELY = 0.15
# Cases and past crashes that the searches rank first, whose causes come with words.
NEIGHBOURS = 8
# Verdicts under which a log without a failure has no use for what all causes mean.
QUIET = frozenset({"no-failure", "unknown"})
# Causes with words beside the general ones, and those of which is told what a bare death lacks.
MOST_WORDED, MOST_BORDERS = 16, 6
_EXAMPLE = re.compile(r"\s*\([^()]*\)")


def likely_candidates(prompt_context: PromptContext) -> tuple[Candidate, ...]:
    """Give the candidates that something speaks for; the others are among the other causes."""
    return tuple(
        candidate
        for candidate in prompt_context.candidates
        if candidate.probability >= LIKELY
        or candidate.events
        or candidate.cases
        or signs_beside_the_log(candidate, prompt_context)
    )


def signs_beside_the_log(candidate: Candidate, prompt_context: PromptContext) -> list[str]:
    """Say what speaks for a candidate beside lines and cases."""
    assessment = prompt_context.assessment
    held = assessment.findings.holding(candidate.cause)
    reading = assessment.outcome.reading
    said = {
        "[telemetry]": any(item.rule.effect != "contradicts" for item in held),
        words("prompt.known-end", prompt_context.language): reading is not None
        and reading.cause == candidate.cause,
    }
    return [reason for reason, holds in said.items() if holds]


def other_causes(prompt_context: PromptContext, told: Iterable[str]) -> Iterator[PromptRow]:
    """Give the causes beside those that are `told`: with words where a sign speaks for one, else by id.

    By id come those of the areas that anything speaks for, where a tool can list the others; else all, since
    what a model has never read of it cannot answer. What any failure may come to is always told, with what
    tells it apart. Where the log may not tell, also what a cause needs for which a bare death is easily
    taken, of the strongest.
    """
    causes, language = prompt_context.library.causes, prompt_context.language
    others = [name for name in causes if name not in {*told, UNKNOWN_CAUSE}]
    borders = {
        name: other for name in others for other in causes[name].confused_with if other.cause == UNKNOWN_CAUSE
    }
    is_quiet = prompt_context.first.verdict in QUIET and not prompt_context.report.standing
    may_not_tell = _may_not_tell(prompt_context)
    signs = chain(
        () if is_quiet else _signs(prompt_context, told), borders if is_quiet or may_not_tell else ()
    )
    general = [name for name in others if causes[name].general and not is_quiet]
    signed = [name for name in dict.fromkeys(signs) if name in others]
    worded = list(dict.fromkeys((*signed[:MOST_WORDED], *general)))
    bordering = [name for name in worded if name in borders][:MOST_BORDERS]
    yield from _told_apart(prompt_context, general)
    for place, name in enumerate(worded, 1):
        # What is no candidate is told in short; `describe_cause` tells it whole.
        means = _EXAMPLE.sub("", causes[name].means.to(language))
        said = words("prompt.cause", language, cause=name, means=means)
        yield PromptRow("causes", -1.0, said, number=place, is_ours=True)
        if may_not_tell and name in bordering:
            apart = borders[name].to(language)
            text = words("prompt.two-causes", language, one=name, other=UNKNOWN_CAUSE, apart=apart)
            yield PromptRow("causes", 2.1, text, number=place, is_ours=True)
    failed = (event.cause for event in prompt_context.report.standing if event.cause)
    spoken = [name for name in (*told, *failed) if name in causes] or signed
    areas = {causes[name].category for name in spoken}
    rest = [name for name in others if name not in worded]
    near = {name for name in rest if name in signed or causes[name].category in areas}
    by_id = [name for name in rest if name in near or not prompt_context.may_look]
    if by_id:
        row = "prompt.causes-by-id-quiet" if is_quiet else "prompt.causes-by-id"
        text = words(row, language, ids=", ".join(by_id))
        yield PromptRow("causes", -1.0, text, number=len(causes), is_ours=True)
    if left_out := len(rest) - len(by_id):
        text = words("prompt.causes-elsewhere", language, count=left_out, name=ALL)
        yield PromptRow("causes", -1.0, text, number=len(causes) + 1, is_ours=True)


def _told_apart(prompt_context: PromptContext, general: Collection[str]) -> Iterator[PromptRow]:
    """Say what tells the general causes apart from each other, of each two once."""
    causes, language = prompt_context.library.causes, prompt_context.language
    told: set[frozenset[str]] = set()
    for name in general:
        for other in causes[name].confused_with:
            pair = frozenset({name, other.cause})
            if other.cause in general and pair not in told:
                told.add(pair)
                apart = other.to(language)
                text = words("prompt.two-causes", language, one=name, other=other.cause, apart=apart)
                yield PromptRow("causes", 1.9, text, number=len(causes) - 1, is_ours=True)


def _may_not_tell(prompt_context: PromptContext) -> bool:
    """Tell whether the log may not tell.

    Nothing is established, and what is likely, if anything, is what a bare death is taken for.
    """
    first, causes = prompt_context.first, prompt_context.library.causes
    if first.verdict == "no-failure" or first.standing == "established":
        return False
    likeliest = causes.get(first.cause or UNKNOWN_CAUSE)
    borders = likeliest.confused_with if likeliest is not None and first.verdict == "diagnosed" else None
    return borders is None or any(other.cause == UNKNOWN_CAUSE for other in borders)


def _signs(prompt_context: PromptContext, told: Iterable[str]) -> Iterator[str]:
    """Yield the causes that anything speaks for, the strongest sign first."""
    assessment, causes = prompt_context.assessment, prompt_context.library.causes
    yield from (candidate.cause for candidate in assessment.candidates)
    yield from (event.cause for event in assessment.report.events if event.cause)
    likely = list(told)
    # What is often taken for a candidate, or a candidate for it.
    yield from (other.cause for name in likely if name in causes for other in causes[name].confused_with)
    yield from (
        cause.id for cause in causes.values() if any(other.cause in likely for other in cause.confused_with)
    )
    ranked = (item.owner for item in assessment.retrieval.ranked[:NEIGHBOURS])
    cases = prompt_context.library.cases
    yield from (cases[owner].cause for owner in ranked if owner in cases)
