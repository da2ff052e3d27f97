"""Which of a job's possible changes come first, and how many of them an answer shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corpus.condition_nodes import Comparison, Name, Predicate
from corpus.conditions import parse
from corpus.frameworks import known_frameworks
from corpus.keys import canonical, last_level
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange

# The place of what no message advises, behind all that one does; a right name comes before both.
# A setting whose value the failing line tells comes before others that the message names.
FOLLOWS_ADVICE, BEFORE_ADVICE, BEFORE_OTHERS = 1000, -1, -2
# With fewer changes, a neighbouring cause's case is worth a look, and what the source reads, whichever way.
ENOUGH_CHANGES = 2
# An argument that code gives to a class of a library has its value from the program's own options.
_ARGUMENT = re.compile(r"[A-Z]\w*\.\w")
# From this tier on (see `ChangeGroup.tier`) no message advises a change.
UNADVISED = 4
# Tests of what the job did and how it was started.
_OF_JOB = frozenset({"phase", "launch", "command"})
# Tests of what the log says.
_OF_LOG = frozenset({"message", "pattern", "root"})
# The last tier of what the job's own settings or the log's figures call for.
UNPROVED = 8 + UNADVISED
# From this tier on a change is left to try when all else fails.
LAST_RESORTS = 16
# Cures that an answer offers, and looks beside them; what must follow a change is not counted.
MOST_CURES, MOST_LOOKS = 3, 3


@dataclass
class ChangeGroup:
    """One change and those that must follow it, which are proposed together or not at all.

    `advised` is its place among what the failing message itself says to do; None where it says nothing of it.
    `situated` tells that, of the table, not the cause alone calls for it but the job's own settings, the
    log's figures or what the source reads where it tells of the failure; `measure` is what it shares with
    other spellings of one remedy, None where it stands alone; `own` the expression for settings of the job's
    own program by which this one was found, empty where it is none of these; `held` tells that the failing
    line tells this setting's very value; `of_failed` that it is a setting of the very part of the job that
    failed, such as its evaluation; `yields` that others of the same standing leave the job more; `rule` is
    the one that its value follows, empty where it follows none; `worded` that its row asks for words of the
    log; `told` that the failing message names this
    setting together with the job's value of it; `together` that those of the same measure are one step.
    """

    changes: list[ProposedChange]
    computed: bool = False
    from_case: bool = False
    advised: int | None = None
    situated: bool = False
    last_resort: bool = False
    measure: str | None = None
    own: str = ""
    held: bool = False
    of_failed: bool = False
    yields: bool = False
    rule: str = ""
    worded: bool = False
    told: bool = False
    together: bool = False

    @property
    def rank(self) -> tuple[bool, bool, bool, bool, int, int, bool, bool, bool]:
        """Put cures before what finds out, and what is left to try when all else fails behind other cures.

        What the log's own numbers prove comes first, then what the failing message names, then what the job's
        settings call for, then a case's changes in its own order; of the table's, what is checked before
        guidance, computed before fixed.
        """
        first = self.changes[0]
        tabled = not self.from_case and self.advised is None
        return (
            first.purpose == "find-out",
            self.last_resort,
            first.proof is None and self.advised != BEFORE_ADVICE,
            self.advised is None,
            FOLLOWS_ADVICE if self.advised is None else self.advised,
            self._origin,
            not self.of_failed,
            tabled and first.status != "verified",
            tabled and not self.computed,
        )

    @property
    def is_general(self) -> bool:
        """Tell whether the cause alone calls for a setting: neither the message, the job nor a case does."""
        is_near = self.situated or self.held or self.computed or self.from_case or self.advised is not None
        return not is_near and self.changes[0].kind in ("flag", "setting")

    @property
    def is_bare(self) -> bool:
        """Tell whether the cause alone calls for it, and the job is not seen to set it."""
        first = self.changes[0]
        is_near = self.situated or self.held or self.of_failed or self.worded or bool(self.own)
        return not (is_near or self.advised is not None or first.proof or first.from_ is not None)

    @property
    def _origin(self) -> int:
        """Tell how near to this job the change is: its own setting, a case's, one that any job may have."""
        is_near = self.situated or self.of_failed or self.advised is not None
        near = 0 if is_near else 1 + (not self.from_case)
        return max(near, int(self.yields))

    @property
    def tier(self) -> int:
        """How firmly the change stands, in coarse steps: within one of them none is better than another."""
        finds_out, last_resort, unproved, unadvised, _, origin, *_ = self.rank
        kind = LAST_RESORTS * (2 * finds_out + last_resort)
        return kind + 8 * unproved + UNADVISED * unadvised + origin


def argument_of(key: str) -> str:
    """Name the argument of a class that a key is (`DataLoader.num_workers`); the empty string for others."""
    return canonical(last_level(key)) if _ARGUMENT.match(key) else ""


def is_situated(conditions: Iterable[str]) -> bool:
    """Tell whether conditions compare the job's settings or the log's figures, or ask what the job did."""
    nodes = (node for condition in conditions for node in parse(condition).walk())
    return any(
        isinstance(node, Name | Comparison) or (isinstance(node, Predicate) and node.subject in _OF_JOB)
        for node in nodes
    )


def compares_settings(conditions: Iterable[str]) -> bool:
    """Tell whether conditions compare a setting of the job with a value: `config:fp16 == true`."""
    nodes = (node for condition in conditions for node in parse(condition).walk())
    compared = (part for node in nodes if isinstance(node, Comparison) for part in node.walk())
    return any(isinstance(part, Predicate) and part.subject == "config" for part in compared)


def asks_words(conditions: Iterable[str]) -> bool:
    """Tell whether one of some conditions asks what the log says."""
    nodes = (node for condition in conditions for node in parse(condition).walk())
    return any(isinstance(node, Predicate) and node.subject in _OF_LOG for node in nodes)


def without_repeats(groups: Sequence[ChangeGroup], told: Sequence[tuple[str, str]] = ()) -> list[ChangeGroup]:
    """Leave out what the job's own program is seen to set under a name of its own.

    `told` are such settings for which there is nothing to change, each with the expression that found it: the
    batch of one row is no larger where it is called otherwise.
    """
    own = [(group.own, canonical(last_level(group.changes[0].key))) for group in groups if group.own]
    own += [(sought, canonical(last_level(key))) for sought, key in told]

    def repeats(key: str) -> bool:
        in_code, name = _ARGUMENT.match(key), canonical(last_level(key))
        return any((in_code and re.search(sought, key)) or name == known for sought, known in own)

    # What the message itself tells of the very setting is no repeat of it.
    return [
        group
        for group in groups
        if group.own or group.advised is not None or not repeats(group.changes[0].key)
    ]


def without_unset(groups: Sequence[ChangeGroup]) -> list[ChangeGroup]:
    """Leave out what the job does not set, told in words, where it has the setting that the line tells of."""
    if not any(group.held for group in groups):
        return list(groups)

    def is_unset(group: ChangeGroup) -> bool:
        first = group.changes[0]
        is_bare = first.from_ is None and first.kind in ("setting", "flag") and is_guidance(first.to)
        return is_bare and group.advised is None and not group.own and first.purpose == "cure"

    return [group for group in groups if not is_unset(group)]


def ranked(groups: Iterable[ChangeGroup]) -> list[ChangeGroup]:
    """Give the groups, the best first; further spellings of one remedy follow when each was told once.

    What a framework takes as its own argument is not told once more for the one that it has it from. Where
    the message itself tells a setting with the job's value, what only the cause in general calls for is left
    out: it is another setting than the one that failed.
    """
    groups = list(groups)
    if any(group.told for group in groups):
        groups = [group for group in groups if not group.is_general]
    found: list[ChangeGroup] = []
    repeated: list[ChangeGroup] = []
    told: dict[str, set[str]] = {}
    for group in sorted(groups, key=lambda group: group.rank):
        owner = group.changes[0].framework
        others = told.setdefault(group.measure, set()) if group.measure else set()
        if not others:
            found.append(group)
        elif not any(owner in known_frameworks().row(other).extends for other in others):
            repeated.append(group)
        others.add(owner)
    return _seen_first(sorted((*found, *repeated), key=lambda group: group.rank[:2]))


def _seen_first(groups: Sequence[ChangeGroup]) -> list[ChangeGroup]:
    """Put what the job is seen to set before the setting of another framework that says the same.

    Both follow one rule: a micro batch by the key that a file has, rather than by one that nothing shows.
    """
    found = list(groups)
    for group in groups:
        first, place = group.changes[0], found.index(group)
        if not group.rule or first.from_ is not None:
            continue
        seen = (
            other
            for other in found[place + 1 :]
            if other.rule == group.rule
            and other.changes[0].from_ is not None
            and other.changes[0].framework != first.framework
            and other.rank[:2] == group.rank[:2]
        )
        if (other := next(seen, None)) is not None:
            found.remove(other)
            found.insert(place, other)
    return found


def without_strangers(changes: Sequence[ProposedChange]) -> list[ProposedChange]:
    """Leave out values that any job may have, of other programs, behind a change of what this job has.

    Behind a setting that the job is seen to set, or a package that it lacks, another program's setting that
    nothing in the log calls for is a guess.
    """
    # What starts the job bounds it from outside, whatever the job sets itself.
    owners, places = set[str](), known_frameworks().places
    has_set, left = False, list[ProposedChange]()
    for change in changes:
        # Without the package that it lacks a job may be set to do, but by no variable.
        kinds = ("setting", "flag", "env") if has_set else ("env",)
        is_other = change.framework not in owners | places and change.kind in kinds
        is_guess = change.from_ is None and change.tier > UNPROVED and not is_guidance(change.to)
        if change.purpose != "cure" or change.goes_with is not None:
            continue
        if owners and is_other and is_guess:
            left.append(change)
        elif change.from_ is not None or change.kind == "package":
            owners.add(change.framework)
            has_set |= change.kind != "package"
    kept = [change for change in changes if not any(change is other for other in left)]
    # What goes with one that is left out goes too, unless another of that name stays.
    keys = {change.key for change in kept if change.goes_with is None}
    gone = {change.key for change in left} - keys
    return [change for change in kept if change.goes_with not in gone]


def shown(changes: Sequence[ProposedChange]) -> tuple[ProposedChange, ...]:
    """Give as many of ranked changes as an answer shows, each with what must follow it."""
    left = {"cure": MOST_CURES, "find-out": MOST_LOOKS}
    kept: list[ProposedChange] = []
    for change in changes:
        if change.goes_with is None:
            left[change.purpose] -= 1
        if left[change.purpose] >= 0:
            kept.append(change)
    return tuple(kept)
