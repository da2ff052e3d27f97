"""A model's claims held against what was sent: each kept, or dropped with the reason.

Pure; nothing is believed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from corpus.keys import canonical
from corpus.message import Message, words
from corpus.vocabulary import texts_in
from ingest.logs.report import CrashReport
from service.llm.claims import Claims, Pick, Proposal, Quote
from service.llm.code_claims import as_option, code_at_hand, code_change, is_code, strange_text
from service.llm.contacts import NODES, lead
from service.llm.directives import OwnAdvice, own_advice, reasons_strangely
from service.llm.plain_names import is_measure, is_plain_name
from service.llm.printed_commands import printed_command
from service.llm.prompt_context import Prompt, PromptContext
from service.llm.prompt_injection import addresses_a_model, neutralize
from service.llm.prose import is_in, is_safe
from service.llm.proved_values import LIBRARY, is_file_at_hand, is_proved
from service.remediation.code_edits.edits import code_edit
from service.remediation.feasibility import same as is_value
from service.remediation.framework_relations import option_owner, settable_frameworks
from service.remediation.free_proposals import FreeProposal, check_proposal
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import UNKNOWN_CAUSE, Dropped, ProposedChange
from service.scoring.assessment import CERTAINTIES, Vote
from service.scoring.fusion import SOUND

# Shorter words stand in too many lines to prove anything.
MIN_QUOTE = 6
# So many proposals of a model are looked at: more are no advice.
MAX_PICKS = 6
_SHOWN = 120
_TAKES_OPTIONS = re.compile(r"(?i)(?:flags?|opts?|options?|args?|arguments?|params?)$")
# Endings of files that hold settings alone.
_OF_SETTINGS = frozenset({"json", "yaml", "yml", "toml", "cfg", "ini"})
_LARGE = re.compile(r"\d{4,}")
_VARIABLE = re.compile(r"[A-Z]{2,12}(?:_[A-Z0-9]{2,}){2,}")
_ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]{3,79}=\S")


@dataclass(frozen=True, slots=True)
class GroundedQuote:
    """A quote that stands: its line's mark and its number in the report."""

    mark: str
    number: int


@dataclass(frozen=True)
class GroundedClaims:
    """What stands of a model's claims.

    `named` is the cause that it names, whether it may count or not; `vote` what it decides for, None where it
    may
    decide nothing. `refused` are the changes of which nothing stands where the first is among them.
    """

    named: str = ""
    vote: Vote | None = None
    quotes: tuple[GroundedQuote, ...] = ()
    cases: tuple[str, ...] = ()
    changes: tuple[ProposedChange, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    refused: tuple[Dropped, ...] = ()


def ground_claims(claims: Claims, prompt_context: PromptContext, prompt: Prompt) -> GroundedClaims:
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
    named = claims.cause.strip().strip("`[]")
    vote = None
    if why := _rejected(named, quotes, prompt_context, prompt):
        dropped.append(Dropped(what=Message("dropped.cause", named=named[:_SHOWN]), why=why))
    elif not prompt.suspects:
        sure = claims.certainty.strip().lower()
        vote = Vote(
            named,
            next((known for known in CERTAINTIES if known == sure), "medium"),
            tuple(found.number for found in quotes),
            cases,
        )
    cause = named if named in prompt_context.library.causes else prompt_context.first.cause or UNKNOWN_CAUSE
    refused: dict[int, Dropped] = {}
    changes = _picked(claims.changes, cause, prompt_context, prompt, dropped, refused)
    without_first = tuple(refused.values()) if 0 in refused else ()
    return GroundedClaims(named, vote, quotes, cases, changes, tuple(dropped), without_first)


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
    picks: Sequence[Proposal],
    cause: str,
    prompt_context: PromptContext,
    prompt: Prompt,
    dropped: list[Dropped],
    refused: dict[int, Dropped],
) -> tuple[ProposedChange, ...]:
    """Give the changes that stand, at most MAX_PICKS proposals, and note the others with the reason.

    `refused` gets those of which nothing stands, by their places.
    """
    kept: dict[tuple[str, str], ProposedChange] = {}
    for place, pick in enumerate(picks[:MAX_PICKS]):
        found = offered(pick, prompt_context)
        option = as_option(pick, prompt_context.report, prompt_context.library)
        made: list[ProposedChange] | str = [found] if found else _free(option, cause, prompt_context, prompt)
        why = made if isinstance(made, str) else ""
        if not found and not isinstance(made, str):
            is_withheld = made[0].to == words("model.another-value", prompt_context.language)
            why = Message("model.value-unproved") if is_withheld else why
            why = Message("model.offered-value-another") if made[0] in prompt_context.offered else why
        if why:
            what = Message(
                "dropped.change", framework=pick.framework[:40], key=pick.key[:_SHOWN], to=pick.to[:_SHOWN]
            )
            dropped.append(Dropped(what=what, why=why))
        if isinstance(made, str):
            refused[place] = dropped[-1]
            continue
        for change in made:
            kept.setdefault((change.framework, change.key), change)
    return tuple(kept.values())


def _free(
    pick: Proposal, cause: str, prompt_context: PromptContext, prompt: Prompt
) -> list[ProposedChange] | str:
    """Check a change that was not offered."""
    if prompt.suspects:
        # A log that speaks to a model may have worded what is not on offer.
        return Message("model.log-holds-text-speaks")
    ours = next(
        (
            item
            for item in prompt_context.offered
            if canonical(item.key) == canonical(pick.key.strip()) and not is_guidance(item.to)
        ),
        None,
    )
    if ours is not None and _is_opposed(ours, pick.to):
        return Message("model.offered-value-another")
    if ours is not None and ours.proof:
        # The log's own numbers say which value suffices: the setting is the model's choice, the value ours.
        return [ours]
    of_code = is_code(pick)
    key, to = neutralize(pick.key).strip(), neutralize(pick.to).strip()
    why = is_safe(neutralize(pick.why, 300))
    # Addresses of nodes among themselves lead nowhere, and neither do the files of shared libraries.
    if addresses_a_model(f"{key} {to} {why}") or (not of_code and lead(LIBRARY.sub("", NODES.sub("", to)))):
        return Message("model.leads-reader-elsewhere")
    language = prompt_context.language
    own = own_advice(prompt_context.library, (cause,), prompt.cases, prompt_context.offered)
    at_hand, shown = code_at_hand(prompt_context.report), tuple(prompt.lines.values())
    # A change does not fall with its sentence.
    told = "\n".join((at_hand, key, to, *(item.key for item in prompt_context.offered)))
    if lead(NODES.sub("", why)) or reasons_strangely(why, told, own):
        why = ""
    said = words("model.model-says", language, why=why) if why and is_in(language, why) else ""
    if of_code:
        made_of_code = code_change(pick, said, prompt_context.report, own, shown)
        return made_of_code if isinstance(made_of_code, str) else [_or_edit(made_of_code, prompt_context)]
    if command := printed_command(pick, prompt_context.report):
        return [_command(command, said, prompt_context)]
    proposal = FreeProposal(pick.framework.strip(), pick.kind.strip().lower(), key, to, said)
    assessment, library = prompt_context.assessment, prompt_context.library
    present = {level for item in assessment.settings for level in (item.key, *item.key.split("."))}
    if strange := _strange_value(proposal, present, prompt_context.report, own, shown):
        return strange
    made = check_proposal(proposal, cause, assessment, library, language, shown)
    is_sure = not isinstance(made, str) and all(item.status == "verified" for item in made)
    # A value of the model's own that nothing proves is no better than the one that is offered.
    if not is_sure and ours is not None:
        return [ours]
    return made if isinstance(made, str) else [_withheld(item, to, own, prompt_context) for item in made]


def _command(command: str, why: str, prompt_context: PromptContext) -> ProposedChange:
    """Give the change of running what the failing message names."""
    return ProposedChange(
        framework=option_owner(prompt_context.report),
        kind="command",
        key=command,
        to=words("model.as-message-says", prompt_context.language),
        why=why,
        status="unverified",
        by="model",
    )


def _or_edit(change: ProposedChange, prompt_context: PromptContext) -> ProposedChange:
    """Give a change of code; in place of words, the edit of the same place that follows from the message."""
    edit = code_edit(prompt_context.report) if change.from_ is None else None
    known = (item for item in prompt_context.offered if edit is not None and item.key == edit.place)
    return next(known, change) if edit is not None and edit.place == change.key else change


def _withheld(
    change: ProposedChange, to: str, own: OwnAdvice, prompt_context: PromptContext
) -> ProposedChange:
    """Give a change without the model's value where nothing else speaks for that."""
    if _chooses_file(change, prompt_context.report) or _is_choice(change, prompt_context):
        return change.model_copy(update={"status": "verified"})
    is_number = isinstance(change.to, int | float) and is_measure(str(abs(int(change.to))))
    if str(change.to) != to or (change.status == "verified" and is_number):
        return change
    spec = prompt_context.library.setting(change.framework, change.key)
    known = tuple(text.en for text in texts_in((spec,)))
    settings = prompt_context.assessment.settings
    # Of a variable that nobody knows, no words can say which value it is to have; a text is no number.
    is_foreign = spec is None and change.from_ is None and " " in to and change.kind == "env"
    is_mistaken = (
        spec is not None and spec.type == "str" and _LARGE.fullmatch(to) and not str(change.from_).isdecimal()
    )
    if not (is_foreign or is_mistaken) and is_proved(
        change.key, to, prompt_context.report, settings, own, known
    ):
        return change
    another = words("model.another-value", prompt_context.language)
    return change.model_copy(update={"to": another, "status": "unverified"})


def _chooses_file(change: ProposedChange, report: CrashReport) -> bool:
    """Tell whether a setting that names one of the job's files is to name another that is at hand.

    Code is not chosen so.
    """
    now, wanted = (str(value).rpartition(".")[2] for value in (change.from_, change.to))
    return now == wanted in _OF_SETTINGS and all(
        is_file_at_hand(str(value), report) for value in (change.from_, change.to)
    )


def _is_choice(change: ProposedChange, prompt_context: PromptContext) -> bool:
    """Tell whether a job's own variable is called as an option of several choices, and goes to another one.

    Scripts hand such a variable on to the option: `KV_CACHE_DTYPE`.
    """
    report, library = prompt_context.report, prompt_context.library
    if change.kind != "env" or change.from_ is None:
        return False
    frameworks = sorted(settable_frameworks(report))
    specs = (library.setting(name, change.key.lower(), report.version(name)) for name in frameworks)
    return any(spec is not None and {change.from_, change.to} <= {*spec.choices} for spec in specs)


def _strange_value(
    proposal: FreeProposal,
    present: Collection[str],
    report: CrashReport,
    own: OwnAdvice,
    shown: Collection[str],
) -> str:
    """Say why a value is none that a setting could have, or a name none of one; else give the empty string.

    A value in words is advice, in letters of other scripts too; an option, or another variable with its
    value, is a value of options alone. `present` are the names of the job's settings.
    """
    key, to, at_hand = proposal.key, proposal.to, code_at_hand(report)
    is_option = to.startswith("--") or _ASSIGNMENT.match(to)
    # A library's variables begin with its name, which need not be known: `RAYON_NUM_THREADS`.
    told = key.partition("_")[2] if _VARIABLE.fullmatch(key) else key
    names = "\n".join((*present, *_named(key, at_hand)))
    # Which packages there are is known by their names.
    is_named = proposal.kind == "package" or all(
        is_plain_name(level, own.library, names) for level in told.split(".")
    )
    if (is_option and not _TAKES_OPTIONS.search(key)) or not is_named:
        return Message("model.no-setting")
    return strange_text(to, at_hand, report, own, shown)


def _named(key: str, at_hand: str) -> Iterator[str]:
    """Yield a key where the job's own lines have it as a name, and not only as a value."""
    name = re.escape(key.lstrip("-+~"))
    if re.search(rf"(?<![\w.-])(?:--?{name}(?![\w-])|{name}['\"`]?\s*[:=,()\].])", at_hand):
        yield key


def _is_opposed(ours: ProposedChange, to: str) -> bool:
    """Tell whether a value would move a setting the other way than the offered one does."""
    try:
        now, offered_value, wanted = (float(str(value)) for value in (ours.from_, ours.to, to))
    except ValueError:
        return False
    return (offered_value - now) * (wanted - now) < 0


def offered(pick: Pick, prompt_context: PromptContext) -> ProposedChange | None:
    """Give the offered change that is meant; None where none is, or the value is another."""
    for change in prompt_context.offered:
        is_meant = change.key == pick.key.strip() and pick.framework in ("", change.framework)
        if is_meant and (not pick.to.strip() or is_value(pick.to.strip(), change.to)):
            return change
    return None


def _rejected(
    named: str, quotes: Sequence[GroundedQuote], prompt_context: PromptContext, prompt: Prompt
) -> str:
    """Say why the cause that a model names may not count, or give the empty string."""
    if named == prompt_context.first.cause:
        return ""
    if named != SOUND and named not in prompt_context.library.causes:
        return Message("model.no-cause")
    if prompt.suspects:
        return Message("model.log-holds-text-speaks")
    shown = prompt_context.assessment.findings.holding(named)
    needs_quote = named not in (SOUND, UNKNOWN_CAUSE) and not any(
        held.rule.effect != "contradicts" for held in shown
    )
    return "" if quotes or not needs_quote else Message("model.no-quote-stands-speaks")
