"""A model's claims held against what was sent: each kept, or dropped with the reason.

Pure; nothing is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corpus.message import Message
from service.llm.claims import Claims, Pick, Quote
from service.llm.prompt_context import Prompt, PromptContext
from service.remediation.setting_values import misfit_reason
from service.schemas.diagnosis import Dropped, ProposedChange

# Shorter words stand in too many lines to prove anything.
MIN_QUOTE = 6
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class GroundedQuote:
    """A quote that stands: its line's mark and its number in the report."""

    mark: str
    number: int


@dataclass(frozen=True)
class Grounded:
    """What stands of a model's claims.

    `chosen` is a cause that takes the place of the first answer's, `hypothesis` one that only stands beside
    it; both are empty as a rule.
    """

    chosen: str = ""
    hypothesis: str = ""
    quotes: tuple[GroundedQuote, ...] = ()
    cases: tuple[str, ...] = ()
    changes: tuple[ProposedChange, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def ground_claims(claims: Claims, prompt_context: PromptContext, prompt: Prompt) -> Grounded:
    """Check all claims but the prose."""
    dropped: list[Dropped] = []
    quotes = _quotes(claims.quotes, prompt, dropped)
    wanted = dict.fromkeys(name.removeprefix("case:").strip("[] ") for name in claims.cases)
    dropped.extend(
        Dropped(what=Message("dropped.case", name=name[:_SHOWN]), why=Message("model.not-among-were-sent"))
        for name in wanted
        if name not in prompt.cases
    )
    cases = tuple(name for name in wanted if name in prompt.cases)
    changes = _picked(claims.changes, prompt_context, dropped)
    chosen, hypothesis = _cause(claims.cause.strip(), quotes, prompt_context, prompt, dropped)
    return Grounded(chosen, hypothesis, quotes, cases, changes, tuple(dropped))


def _quotes(quotes: Sequence[Quote], prompt: Prompt, dropped: list[Dropped]) -> tuple[GroundedQuote, ...]:
    kept: dict[str, GroundedQuote] = {}
    for quote in quotes:
        mark = place_of(quote, prompt)
        if mark is None:
            dropped.append(
                Dropped(
                    what=Message("dropped.quote", text=repr(quote.text[:_SHOWN])),
                    why=Message("model.stands-no-line-sent"),
                )
            )
        else:
            kept.setdefault(mark, GroundedQuote(mark, prompt.numbers[mark]))
    return tuple(kept.values())


def place_of(quote: Quote, prompt: Prompt) -> str | None:
    """Give the mark of the line that a quote stands in, the named one where it does; None where in none.

    A model's own line number is only a hint among lines that hold the words.
    """
    wanted = _bare(quote.text)
    if len(wanted) < MIN_QUOTE:
        return None
    holding = [mark for mark, text in prompt.lines.items() if wanted in _bare(text)]
    named = quote.line.strip("[] ")
    named = named if not named.isdecimal() else f"L{named}"
    return named if named in holding else min(holding, key=lambda mark: prompt.numbers[mark], default=None)


def _bare(text: str) -> str:
    return " ".join(text.split())


def _picked(
    picks: Sequence[Pick], prompt_context: PromptContext, dropped: list[Dropped]
) -> tuple[ProposedChange, ...]:
    kept: dict[tuple[str, str], ProposedChange] = {}
    for pick in picks:
        change = offered(pick, prompt_context)
        if change is None:
            dropped.append(
                Dropped(
                    what=Message(
                        "dropped.change",
                        framework=pick.framework[:40],
                        key=pick.key[:_SHOWN],
                        to=pick.to[:_SHOWN],
                    ),
                    why=_refusal(pick, prompt_context),
                )
            )
        else:
            kept.setdefault((change.framework, change.key), change)
    return tuple(kept.values())


def offered(pick: Pick, prompt_context: PromptContext) -> ProposedChange | None:
    """Give the offered change that is meant; None where none is, or the value is another."""
    for change in prompt_context.offered:
        same = change.key == pick.key.strip() and pick.framework in ("", change.framework)
        if same and pick.to.strip().lower() in ("", str(change.to).lower()):
            return change
    return None


def _refusal(pick: Pick, prompt_context: PromptContext) -> str:
    """Say why a change that was not offered is not made."""
    if any(change.key == pick.key.strip() for change in prompt_context.offered):
        return Message("model.offered-value-another")
    spec = prompt_context.library.setting(
        pick.framework, pick.key, prompt_context.report.version(pick.framework)
    )
    if spec is None:
        if not pick.framework:
            return Message("model.not-catalogue-any-framework")
        return Message("model.not-catalogue-version", framework=pick.framework)
    return misfit_reason(pick.to, spec) or Message("model.not-change-known-help")


def _cause(
    named: str,
    quotes: Sequence[GroundedQuote],
    prompt_context: PromptContext,
    prompt: Prompt,
    dropped: list[Dropped],
) -> tuple[str, str]:
    """Give the cause that the model decides for, and the one that it only holds to be possible."""
    first = prompt_context.first
    if named == first.cause:
        return "", ""
    if why := _rejected(named, quotes, prompt_context, prompt):
        dropped.append(Dropped(what=Message("dropped.cause", named=named[:_SHOWN]), why=why))
        return "", ""
    if first.verdict == "ambiguous" and _is_proved(named, quotes, prompt_context):
        return named, ""
    dropped.append(
        Dropped(what=Message("dropped.cause", named=named), why=Message("model.model-names-but-no"))
    )
    return "", named


def _rejected(
    named: str, quotes: Sequence[GroundedQuote], prompt_context: PromptContext, prompt: Prompt
) -> str:
    if named not in prompt_context.library.causes:
        return Message("model.no-cause")
    if prompt.suspects:
        return Message("model.log-holds-text-speaks")
    return "" if quotes else Message("model.no-quote-stands-speaks")


def _is_proved(named: str, quotes: Sequence[GroundedQuote], prompt_context: PromptContext) -> bool:
    """Tell whether the rules too hold a cause possible, and a quoted line is one that speaks for it."""
    candidate = next((item for item in prompt_context.candidates[:2] if item.cause == named), None)
    if candidate is None:
        return False
    lines = {event.line for event in candidate.events}
    root = prompt_context.report.root
    if root is not None and any(match.at_root for match in candidate.cases):
        lines.add(root.line)
    return any(found.number in lines for found in quotes)
