"""What the check that raised proves: its comparison, with the numbers that the message and the job give.

The statement says which number of the message is which expression's (`GuardedStatement.told`). A setting is
taken for a name of the check only where its value is the number that the check saw, and only a comparison
that these numbers make fail proves anything.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from corpus.keys import canonical, last_level
from corpus.message import in_both
from corpus.schema import Text
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from ingest.source_code.guarded_statement import GuardedStatement
from ingest.source_code.names_read import name_of
from ingest.source_code.refused_choice import is_option, refused_choices
from service.remediation.divisions import multiple_below, shared_divisor
from service.remediation.named_options import NamedOption

_WHOLE = re.compile(r"-?\d{1,12}")
_HOLDS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
_SIGNS: Mapping[type[ast.cmpop], str] = {
    ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_RECKONED: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
_LARGEST = 10**15
# So many choices are told.
MOST_CHOICES = 8
_DEEPEST = 6


@dataclass(frozen=True)
class GuardValue:
    """A value with which a name of the check would have passed it, and why; `now` is what it was."""

    name: str
    now: int
    value: int
    why: Text


def guard_values(report: CrashReport, settings: Sequence[Setting]) -> list[GuardValue]:
    """Give the values of the names of the raising check with which it would have passed."""
    raised, root = report.failing_source.raised, report.root
    if raised is None or root is None:
        return []
    check = _Check(raised, root.body, settings)
    found: dict[str, GuardValue] = {}
    for condition in raised.conditions:
        test = condition.expression
        if isinstance(test, ast.Name):
            test = raised.assigned.get(test.id)
        if test is None:
            continue
        for left, sign, right in _comparisons(test, holds=condition.holds):
            for value in check.passing(left, sign, right):
                found.setdefault(value.name, value)
        if found:
            break
    return list(found.values())


@dataclass(frozen=True)
class _Check:
    statement: GuardedStatement
    message: str
    settings: Sequence[Setting]

    @cached_property
    def told(self) -> Mapping[str, int]:
        """What the message tells of expressions, in whole numbers."""
        told = self.statement.told(self.message)
        return {written: int(value) for written, value in told.items() if _WHOLE.fullmatch(value)}

    def number(self, part: ast.expr, depth: int = _DEEPEST) -> int | None:
        """Give the number that an expression was; None where nothing says it."""
        if depth and (said := self.told.get(ast.unparse(part))) is not None:
            return said
        match part:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return value
            case ast.BinOp(left=left, op=sign, right=right) if depth and type(sign) in _RECKONED:
                one, other = self.number(left, depth - 1), self.number(right, depth - 1)
                if one is None or other is None or (isinstance(sign, ast.FloorDiv | ast.Mod) and not other):
                    return None
                result = _RECKONED[type(sign)](one, other)
                return result if abs(result) < _LARGEST else None
            case ast.Name(id=name) if depth and name in self.statement.assigned:
                behind = self.number(self.statement.assigned[name], depth - 1)
                return behind if behind is not None else self._given(part)
            case _:
                return self._given(part)

    def _given(self, part: ast.expr) -> int | None:
        """Give the job's value of the setting that a name is, where all that it gives agree."""
        name = name_of(part, self.statement.assigned)
        wanted = last_level(name) if name else ""
        # A plain word is as likely a variable as the setting of that name.
        if "." not in name and "_" not in wanted:
            return None
        given = {item.value.strip("'\"") for item in self.settings if last_level(item.key) == wanted}
        value = given.pop() if wanted and len(given) == 1 else ""
        return int(value) if _WHOLE.fullmatch(value) else None

    def passing(self, left: ast.expr, sign: type[ast.cmpop], right: ast.expr) -> Iterator[GuardValue]:
        """Give what either side would have to be; nothing where the numbers do not show that it failed."""
        one, other = self.number(left), self.number(right)
        if one is None or other is None or not _HOLDS[sign](one, other):
            return
        if isinstance(left, ast.Name):
            left = self.statement.assigned.get(left.id, left)
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and other == 0:
            if sign in (ast.NotEq, ast.Gt):
                yield from self._dividing(left)
            return
        told = f"{ast.unparse(left)} {_SIGNS[sign]} {ast.unparse(right)}"
        strict = sign in (ast.GtE, ast.LtE)
        if sign in (ast.Gt, ast.GtE):
            sides = ((right, other, one + strict), (left, one, other - strict))
        elif sign in (ast.Lt, ast.LtE):
            sides = ((left, one, other + strict), (right, other, one - strict))
        elif sign is ast.NotEq:
            sides = ((left, one, other), (right, other, one))
        else:
            return
        for part, now, value in sides:
            yield from self._named(part, now, value, told, {left: one, right: other})

    def _dividing(self, division: ast.BinOp) -> Iterator[GuardValue]:
        """Give the multiple below what must be divided, and a divisor for what must divide it."""
        whole, by = self.number(division.left), self.number(division.right)
        if whole is None or by is None or by < 1 or whole < 1:
            return
        told = f"{ast.unparse(division)} != 0"
        sides = (
            (division.left, whole, multiple_below(whole, by)),
            (division.right, by, shared_divisor(whole, by)),
        )
        for part, now, value in sides:
            yield from self._named(part, now, value, told, {division.left: whole, division.right: by})

    def _named(
        self, part: ast.expr, now: int, value: int, told: str, numbers: Mapping[ast.expr, int]
    ) -> Iterator[GuardValue]:
        name = name_of(part, self.statement.assigned)
        if name and value >= 0 and value != now:
            shown = ", ".join(
                f"{ast.unparse(each)} = {number}"
                for each, number in numbers.items()
                if not isinstance(each, ast.Constant)
            )
            why = in_both("changes.guard-numbers", check=told, numbers=shown, value=value)
            yield GuardValue(name, now, value, why)


def guard_options(report: CrashReport, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the job's settings that the raising check refuses by their numbers, with what it lets pass."""
    found: dict[str, NamedOption] = {}
    for passing in guard_values(report, settings):
        setting = _held(passing, settings)
        if setting is not None:
            value = str(passing.value)
            option = NamedOption(setting.key, setting.value, value=value, why=passing.why, proves=True)
            found.setdefault(canonical(setting.key), option)
    for option in _choice_options(report, settings):
        found.setdefault(canonical(option.key), option)
    return list(found.values())


def _choice_options(report: CrashReport, settings: Sequence[Setting]) -> Iterator[NamedOption]:
    """Give the job's settings whose value is none of the choices that the raising code knows."""
    raised, root = report.failing_source.raised, report.root
    if raised is None or root is None:
        return
    told = set(raised.told(root.body).values())
    for refused in refused_choices(raised):
        wanted = last_level(canonical(refused.name))
        named = [item for item in settings if last_level(canonical(item.key)) == wanted]
        if told:
            # What the message tells was refused; another setting of that name was not.
            fitting = [item for item in settings if item.value.strip("'\"") in told]
            fitting = [item for item in fitting if item in named] or fitting
        else:
            fitting = named if is_option(refused.name) else []
        given = [item for item in fitting if item.value.strip("'\"") not in refused.choices]
        if refused.choices and given and len({canonical(item.key) for item in given}) == 1:
            listed = ", ".join(f"`{choice}`" for choice in refused.choices[:MOST_CHOICES])
            why = in_both("changes.none-of-the-codes", choices=listed)
            present = given[0].value.strip("'\"")
            yield NamedOption(given[0].key, present, choices=refused.choices, why=why)


def _held(found: GuardValue, settings: Sequence[Setting]) -> Setting | None:
    """Give the job's setting that a name of the check is: of its last level, with the very number.

    Where several have that name, the one whose levels the check names.
    """
    wanted = canonical(found.name)
    fitting = [item for item in settings if last_level(item.key) == last_level(wanted)]
    exact = [item for item in fitting if f".{wanted}".endswith(f".{canonical(item.key)}")] or fitting
    held = [item for item in exact if item.value.strip("'\"") == str(found.now)]
    return held[0] if len({canonical(item.key) for item in held}) == 1 else None


def _comparisons(
    test: ast.expr, *, holds: bool, depth: int = _DEEPEST
) -> Iterator[tuple[ast.expr, type[ast.cmpop], ast.expr]]:
    """Give the comparisons of a test that may have led there, each as it was true then."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner) if depth:
            yield from _comparisons(inner, holds=not holds, depth=depth - 1)
        case ast.BoolOp(values=values) if depth:
            for value in values:
                yield from _comparisons(value, holds=holds, depth=depth - 1)
        case ast.Compare(left=left, ops=signs, comparators=others):
            sides = [left, *others]
            for place, sign in enumerate(signs):
                kind = type(sign)
                if kind in _HOLDS:
                    yield sides[place], kind if holds else _OPPOSITE[kind], sides[place + 1]
        case ast.BinOp(op=ast.Mod()):
            yield test, ast.NotEq if holds else ast.Eq, ast.Constant(0)
