"""The parts of a condition, how each is evaluated, and what conditions are evaluated against."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from corpus.expressions import compiled

Scalar = bool | int | float | str

_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Mapping[str, Callable[[Any, Any], object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


@dataclass(frozen=True, slots=True)
class SeenReading:
    """A reading that a condition looked at: its value, or why there is none."""

    name: str
    value: Scalar | None = None
    unavailable: str | None = None


class ConditionResult(NamedTuple):
    """What a condition or value comes to; None where it is not known. `seen` are the readings behind it."""

    value: Any = None
    seen: tuple[SeenReading, ...] = ()

    @property
    def holds(self) -> bool | None:
        """Whether it holds; None where that cannot be told."""
        return None if self.value is None else bool(self.value)


UNKNOWN = ConditionResult()


class EvaluationContext:
    """What conditions look at; each kind of context overrides what its conditions may name."""

    def look_up(self, name: str) -> ConditionResult:
        """Give what a name or a `part.field` stands for."""
        raise NotImplementedError

    def test(self, subject: str, argument: str) -> ConditionResult:
        """Tell whether the test of that subject holds, or in a comparison what its value is."""
        raise NotImplementedError

    def call(self, function: str, arguments: tuple[Node, ...]) -> ConditionResult:
        """Apply a function to arguments that are not evaluated yet, as some may be missing."""
        raise NotImplementedError

    def items(self, part: str) -> Sequence[EvaluationContext] | None:  # noqa: ARG002 - it has no parts
        """Give a context for each item of a part of which there are several; None for a single one."""
        return None

    def absent(self, part: str) -> tuple[SeenReading, ...]:  # noqa: ARG002 - a context that reports nothing
        """Say that a part of which there may be several has no items."""
        return ()


@dataclass(frozen=True)
class Node:
    """A part of a condition."""

    def evaluate(self, context: EvaluationContext) -> ConditionResult:
        """Give its value in a context; unknown where a part of it is missing, such as a division by zero."""
        raise NotImplementedError

    def parts(self) -> Iterator[Node]:
        """Give the parts that it is made of."""
        return iter(())

    def walk(self) -> Iterator[Node]:
        """Give the node and all below it."""
        yield self
        for part in self.parts():
            yield from part.walk()


@dataclass(frozen=True)
class Constant(Node):
    """A number, a text or a truth."""

    value: Scalar | None

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: ARG002, D102
        return ConditionResult(self.value)


@dataclass(frozen=True)
class Name(Node):
    """A name, or a `part.field`."""

    name: str

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        return context.look_up(self.name)


@dataclass(frozen=True)
class Predicate(Node):
    """A test by name: `subject:argument`."""

    subject: str
    argument: str

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        return context.test(self.subject, self.argument)


@dataclass(frozen=True)
class Call(Node):
    """A function with its arguments."""

    function: str
    arguments: tuple[Node, ...]

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        return context.call(self.function, self.arguments)

    def parts(self) -> Iterator[Node]:  # noqa: D102
        return iter(self.arguments)


@dataclass(frozen=True)
class Known(Node):
    """`known(A)`: whether a value is known at all."""

    operand: Node

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        return ConditionResult(self.operand.evaluate(context).value is not None)

    def parts(self) -> Iterator[Node]:  # noqa: D102
        yield self.operand


@dataclass(frozen=True)
class ListNode(Node):
    """A list of values."""

    members: tuple[Node, ...]

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        found = [member.evaluate(context) for member in self.members]
        missing = next((each for each in found if each.value is None), None)
        return missing or ConditionResult(tuple(each.value for each in found))

    def parts(self) -> Iterator[Node]:  # noqa: D102
        return iter(self.members)


@dataclass(frozen=True)
class Negation(Node):
    """`not` before a condition."""

    operand: Node

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        return negated(self.operand.evaluate(context))

    def parts(self) -> Iterator[Node]:  # noqa: D102
        yield self.operand


@dataclass(frozen=True)
class Junction(Node):
    """Conditions joined by `and` or `or`; the first that settles it ends the evaluation."""

    is_all: bool
    operands: tuple[Node, ...]

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        found = []
        for operand in self.operands:
            found.append(outcome := operand.evaluate(context))
            if outcome.holds is (not self.is_all):
                return outcome
        return (every if self.is_all else some)(found)

    def parts(self) -> Iterator[Node]:  # noqa: D102
        return iter(self.operands)


@dataclass(frozen=True)
class Choice(Node):
    """`then if test else other`."""

    test: Node
    then: Node
    other: Node

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        outcome = self.test.evaluate(context)
        return (
            outcome
            if outcome.value is None
            else (self.then if outcome.value else self.other).evaluate(context)
        )

    def parts(self) -> Iterator[Node]:  # noqa: D102
        yield from (self.test, self.then, self.other)


@dataclass(frozen=True)
class Arithmetic(Node):
    """Two values joined by a sign of arithmetic."""

    sign: str
    left: Node
    right: Node

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        if left.value is None or right.value is None:
            return left if left.value is None else right
        try:
            return ConditionResult(_ARITHMETIC[self.sign](left.value, right.value), left.seen + right.seen)
        except ZeroDivisionError:
            return UNKNOWN

    def parts(self) -> Iterator[Node]:  # noqa: D102
        yield from (self.left, self.right)


@dataclass(frozen=True)
class Comparison(Node):
    """Values compared in a row, as in `1 <= size < 8`.

    `shown` is how the last value is written; `named` are the parts whose items it is asked of, one by one.
    """

    values: tuple[Node, ...]
    signs: tuple[str, ...]
    shown: str
    named: tuple[str, ...] = ()

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        return _over_items(self.named, "any", self._compared, context)

    def parts(self) -> Iterator[Node]:  # noqa: D102
        return iter(self.values)

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions that are searched for."""
        pairs = zip(self.signs, self.values[1:], strict=True)
        return tuple(str(node.value) for sign, node in pairs if sign == "~" and isinstance(node, Constant))

    def _compared(self, context: EvaluationContext) -> ConditionResult:
        left = self.values[0].evaluate(context)
        seen = left.seen
        for sign, node in zip(self.signs, self.values[1:], strict=True):
            if left.value is None:
                return left
            right = node.evaluate(context)
            if right.value is None:
                reasons = tuple(SeenReading(self.shown, unavailable=each.unavailable) for each in right.seen)
                return ConditionResult(None, reasons)
            seen = seen or right.seen
            if not compare(left.value, sign, right.value):
                return ConditionResult(False, seen)
            left = right
        return ConditionResult(True, seen)


@dataclass(frozen=True)
class Quantified(Node):
    """`any`, `all`, `none` or `one` of the items that a condition names."""

    mode: str
    condition: Node
    named: tuple[str, ...]

    def evaluate(self, context: EvaluationContext) -> ConditionResult:  # noqa: D102
        return _over_items(self.named, self.mode, self.condition.evaluate, context)

    def parts(self) -> Iterator[Node]:  # noqa: D102
        yield self.condition


def _over_items(
    named: tuple[str, ...],
    mode: str,
    check: Callable[[EvaluationContext], ConditionResult],
    context: EvaluationContext,
) -> ConditionResult:
    """Ask each item of the first part of which there are several, and so on with the parts after it."""
    for place, part in enumerate(named, 1):
        items = context.items(part)
        if items is not None:
            if not items:
                return ConditionResult(None, context.absent(part))
            return QUANTIFIERS[mode]([_over_items(named[place:], mode, check, item) for item in items])
    return check(context)


def negated(outcome: ConditionResult) -> ConditionResult:
    """Turn an outcome round; what is not known stays so."""
    return outcome._replace(value=None if outcome.value is None else not outcome.value)


def every(outcomes: Sequence[ConditionResult]) -> ConditionResult:
    """Join conditions that must all hold: one that fails settles it, else an unknown one leaves it open."""
    failed = next((outcome for outcome in outcomes if outcome.holds is False), None)
    if failed is not None:
        return failed
    seen = tuple(item for outcome in outcomes for item in outcome.seen)
    return ConditionResult(
        None if any(outcome.value is None for outcome in outcomes) else bool(outcomes), seen
    )


def some(outcomes: Sequence[ConditionResult]) -> ConditionResult:
    """Join conditions of which one must hold: those that do settle it."""
    held = [outcome for outcome in outcomes if outcome.value]
    seen = tuple(item for outcome in held or outcomes for item in outcome.seen)
    if held:
        return ConditionResult(True, seen)
    return ConditionResult(None if any(outcome.value is None for outcome in outcomes) else False, seen)


def _exactly_one(outcomes: Sequence[ConditionResult]) -> ConditionResult:
    """Tell whether it holds of one and of no other; with fewer than two there is nothing to compare with."""
    seen = tuple(item for outcome in outcomes if outcome.holds is not False for item in outcome.seen)
    if len(outcomes) < 2 or any(outcome.value is None for outcome in outcomes):
        return ConditionResult(None, seen)
    return ConditionResult(sum(bool(outcome.value) for outcome in outcomes) == 1, seen)


QUANTIFIERS: Mapping[str, Callable[[Sequence[ConditionResult]], ConditionResult]] = {
    "any": some,
    "all": every,
    "none": lambda outcomes: every([negated(outcome) for outcome in outcomes]),
    "one": _exactly_one,
}


def compare(left: object, sign: str, right: object) -> bool:
    """Compare two values: as numbers where both are, else as words without case and quotes."""
    if sign == "in":
        members = right if isinstance(right, tuple) else (right,)
        return any(compare(left, "==", member) for member in members)
    if sign == "~":
        return compiled(str(right)).search(str(left)) is not None
    numbers = _number(left), _number(right)
    if numbers[0] is not None and numbers[1] is not None:
        return _ORDERS[sign](numbers[0], numbers[1])
    if sign in ("==", "!="):
        return (_word(left) == _word(right)) is (sign == "==")
    return False


def _word(value: object) -> str:
    return str(value).strip().strip("'\"").casefold()


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)  # type: ignore[arg-type]  # what is no number raises, which is the question
    except (TypeError, ValueError, OverflowError):
        return None
