"""Apply a row of `corpus/rules.yaml` to one job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from corpus.condition_nodes import UNKNOWN, ConditionResult, EvaluationContext, Node
from corpus.conditions import parse
from corpus.rules import RuleBook, RuleSentence, RuleWay, ValueRule
from corpus.schema import Scalar, Text
from ingest.logs.facts import size_in_words
from service.remediation.rules.context import Answer, CannotHelp, ComputedValue, DependentSetting, RuleContext
from service.remediation.rules.operators import Operator, names_in, operators_of
from service.schemas.value_bounds import ValueBounds

Names = dict[str, Any]


class _SentenceFormatter(Formatter):
    """Fills sentences; `{name:size}` is a number of GiB with its unit."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Put a value into words."""
        if format_spec == "size":
            return size_in_words(value)
        return str(super().format_field(value, format_spec))


_SENTENCE = _SentenceFormatter()


@dataclass(frozen=True)
class BoundNames(EvaluationContext):
    """The names of a rule with their values, and the operators over one job."""

    names: Mapping[str, object]
    operators: Mapping[str, Operator]

    def look_up(self, name: str) -> ConditionResult:
        """Give a name's value."""
        return ConditionResult(self.names.get(name))

    def call(self, function: str, arguments: tuple[Node, ...]) -> ConditionResult:
        """Apply an operator; a division by zero in it is as if a number were missing."""
        try:
            return ConditionResult(self.operators[function](arguments, self))
        except ZeroDivisionError:
            return UNKNOWN


def evaluate(text: str, names: Mapping[str, object], operators: Mapping[str, Operator]) -> Any:
    """Give the value of an expression; None where a part of it is missing."""
    return parse(text).evaluate(BoundNames(names, operators)).value


def apply_rule(rule: ValueRule, book: RuleBook, context: RuleContext) -> Answer:
    """Give the value of the first way that can be taken; None where the log states too little for any."""
    operators = operators_of(context)
    given = _bound(rule.let, {**names_in(context), **book.lists}, operators)
    if given is None:
        return None
    for way in rule.ways:
        let = way.let if way.value is None else {**way.let, "value": way.value}
        names = _bound(let, given, operators)
        if names is None or not _all_hold(way.when, names, operators):
            continue
        if not _all_hold(way.requires, names, operators):
            return None
        because = _told(way.because, names, book.sentences, operators)
        if way.value is None:
            return CannotHelp(because)
        return ComputedValue(
            _scalar(names["value"]),
            because,
            tuple(_dependent(way, names, operators)),
            proves=bool(evaluate(way.proves, names, operators)),
            bounds=_bounds(way, names, operators),
            present=evaluate(rule.present, names, operators) if rule.present else None,
        )
    return None


def _bounds(way: RuleWay, names: Names, operators: Mapping[str, Operator]) -> ValueBounds | None:
    asked = {name: getattr(way, name) for name in ValueBounds.model_fields if getattr(way, name) is not None}
    # A bound whose numbers the log does not state is none.
    found = {name: evaluate(expression, names, operators) for name, expression in asked.items()}
    bounds = ValueBounds.model_validate(found)
    return None if bounds == ValueBounds() else bounds


def _bound(let: Mapping[str, str], names: Names, operators: Mapping[str, Operator]) -> Names | None:
    """Add names with their values; None where one of them is missing."""
    names = dict(names)
    for name, expression in let.items():
        found = evaluate(expression, names, operators)
        if found is None:
            return None
        parts = name.split(", ")
        names.update(zip(parts, found, strict=True) if isinstance(found, tuple) else [(name, found)])
    return names


def _all_hold(conditions: tuple[str, ...], names: Names, operators: Mapping[str, Operator]) -> bool:
    return all(evaluate(condition, names, operators) for condition in conditions)


def _dependent(way: RuleWay, given: Names, operators: Mapping[str, Operator]) -> Iterator[DependentSetting]:
    for row in way.also:
        names = _bound({**row.let, "key": row.key, "value": row.value}, given, operators)
        if names is not None:
            yield DependentSetting(
                str(names["key"]), _scalar(names["value"]), _told(row.because, names, {}, operators)
            )


def _told(
    text: Text, names: Names, sentences: Mapping[str, RuleSentence], operators: Mapping[str, Operator]
) -> Text:
    """Fill a text with the names' values, and with the sentences that can be said of this job."""
    said: dict[str, Text] = {}
    for name, sentence in sentences.items():
        bound = _bound(sentence.let, names, operators)
        is_said = bound is not None and _all_hold(sentence.when, bound, operators)
        said[name] = (
            Text(en=_SENTENCE.vformat(sentence.en, (), bound), zh=_SENTENCE.vformat(sentence.zh, (), bound))
            if is_said and bound is not None
            else Text(en="", zh="")
        )
    return Text(
        en=_SENTENCE.vformat(text.en, (), {**names, **{name: each.en for name, each in said.items()}}),
        zh=_SENTENCE.vformat(text.zh, (), {**names, **{name: each.zh for name, each in said.items()}}),
    )


def _scalar(value: object) -> Scalar:
    if isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a rule computed {value!r}, which is no value of a setting")
