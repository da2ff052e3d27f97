"""Values of changes, computed from the facts of a log by the rows of `corpus/rules.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from corpus.expressions import compiled
from corpus.keys import last_level, unsigned
from corpus.message import words
from corpus.rules import ValueRule, known_rules
from corpus.schema import Change, Language, Scalar, SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.gpu_cards import largest_gib
from service.remediation.rules.context import Answer, ComputedValue, RuleContext, gib_of, parsed
from service.remediation.rules.evaluation import apply_rule

_DECIMAL = r"\d{1,12}(?:\.\d{1,20})?(?:[eE]-?\d{1,3})?"
# A count of tokens that a message states.
_NUMBER = re.compile(r"(?<![\w.:/-])\d{3,7}(?![\w:/-]|\.\d)")


@cache
def rule_ids() -> frozenset[str]:
    """Give the ids that a setting or change may name."""
    return frozenset(rule.id for rule in known_rules().rules)


def rule_for(change: Change, spec: SettingSpec, cause: str) -> ValueRule | None:
    """Give the rule that computes this change for this cause; the change's own outranks the setting's."""
    wanted = change.rule or spec.rule
    return next((rule for rule in known_rules().rules if rule.id == wanted and cause in rule.causes), None)


def rule_context(
    change: Change,
    spec: SettingSpec,
    now: str | None,
    cause: str,
    report: CrashReport,
    settings: Sequence[Setting],
) -> RuleContext:
    """Gather what a rule may look at, the facts of the failing line first."""
    named = largest_gib((*report.launches, *(text for _, text in (*report.surroundings, *report.tail))))
    line = report.root.line if report.root else 0
    facts = tuple(sorted(report.facts, key=lambda fact: (fact.line != line, -fact.line)))
    texts = tuple(report.texts.values())
    is_saved = report.checkpoint is not None
    return RuleContext(
        change, spec, now, cause, facts, settings, named, texts, report.launches, is_saved, report.saved_n
    )


def compute_value(rule: ValueRule, given: RuleContext) -> Answer:
    """Apply a rule; None where facts do not suffice or the value is none that helps this job."""
    result = apply_rule(rule, known_rules(), given)
    if not isinstance(result, ComputedValue):
        return result
    value, spec = result.value, given.spec
    bounds = ((rule.low, rule.high), (spec.min, spec.max))
    if isinstance(value, (int, float)) and any(
        (low is not None and value < low) or (high is not None and value > high) for low, high in bounds
    ):
        return None
    return None if leads_astray(rule, spec, given.now, value) else result


def leads_astray(rule: ValueRule, spec: SettingSpec, now: str | None, value: Scalar) -> bool:
    """Tell whether a value lies on the wrong side of the job's present one.

    A rise where a fall would help. A negative amount is none: it stands for all of them, above any number.
    """
    old, new = measured_gib(now, spec), measured_gib(value, spec)
    if rule.direction == "any" or old is None or new is None or (rule.direction == "down" and old < 0 <= new):
        return False
    return new > old if rule.direction == "down" else new < old


def beyond_default(
    change: Change, spec: SettingSpec, now: str | None, rule: ValueRule, language: Language
) -> Scalar:
    """Give the change's own value, or the direction in words where the default lies beyond it already.

    What the job sets is not shown then, so that neither the value nor a part of the default need be a move.
    """
    default, falls = spec.default, rule.direction == "down"
    # A negative default, or one in words, means another thing than an amount: never, or all.
    if now is not None or not isinstance(default, (int, float)) or isinstance(default, bool) or default < 0:
        return change.to
    if default == (spec.min if falls else spec.max) or not leads_astray(rule, spec, str(default), change.to):
        return change.to
    return words(f"changes.to-{'below' if falls else 'above'}-present", language)


def printed_number(key: str, texts: Iterable[str]) -> str | None:
    """Give the largest number that the log's own rows of measures print under a setting's last name.

    A schedule prints less than what is set, and never more.
    """
    leaf = re.escape(last_level(unsigned(key)))
    wanted = compiled(rf"(?<![\w.-])['\"]?{leaf}['\"]?\s?[:=]\s?(?P<number>{_DECIMAL})(?![\w.])")
    found = [match["number"] for text in texts for match in wanted.finditer(text)]
    return max(found, key=float, default=None)


def at_least_told(rule: ValueRule, spec: SettingSpec, value: Scalar, message: str) -> Scalar:
    """Give a length that holds the largest number of the failing message, where a rise is what helps."""
    if rule.direction != "up" or spec.unit != "tokens" or isinstance(value, bool | float | str):
        return value
    told = max((int(number) for number in _NUMBER.findall(message)), default=0)
    return value if value >= told else -(-told // 64) * 64


def measured_gib(value: Scalar | None, spec: SettingSpec) -> float | None:
    """Give a value as a number that can be compared; sizes count in GiB."""
    if value is None or isinstance(value, bool):
        return None
    # A size of 0 is none to compare with: Slurm and Docker read it as no limit.
    return gib_of(value, spec.unit) or None if spec.type == "size" else parsed(str(value))
