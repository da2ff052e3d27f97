"""Expressions of values: what they compute, what is missing, and what they refuse."""

from __future__ import annotations

import pytest

from corpus.expressions import MissingError, Operator, evaluate, names_of, parse_expression
from tests.tables import each_row

NAMES = {"now": 8, "share": 0.9, "none": None, "word": "auto"}


def _or_zero() -> Operator:
    def choose(arguments: tuple[object, ...]) -> object:
        try:
            return arguments[0]()  # type: ignore[operator]  # an argument is evaluated by calling it
        except MissingError:
            return 0

    return choose


OPERATORS = {"or_zero": _or_zero()}


@each_row(
    ("text", "expected"),
    [
        ("now // 2", 4),
        ("-now + 1.5", -6.5),
        ("now % 3 * 2", 4),
        ("1 <= now < 10", True),
        ("now == 8 and share > 1", False),
        ("not (share > 1)", True),
        ("1 if now > 4 else none", 1),
        ("1 if now < 4 else none", None),
        ("none + 1", None),
        ("unheard_of", None),
        ("now / 0", None),
        ("or_zero(none * 3) + 1", 1),
        ("word == 'auto'", True),
        ("share > 1 or none", None),
    ],
)
def test_what_an_expression_gives(text: str, expected: object) -> None:
    """A part that is missing makes the whole missing, unless an operator says otherwise."""
    assert evaluate(text, NAMES, OPERATORS) == expected


@each_row(
    "text",
    [
        "now +",
        "now.bit_length()",
        "[1, 2]",
        "lambda: 1",
        "(lambda: 1)()",
        "now ** 99",
        "f'{now}'",
        "min(now, key=1)",
        "now[0]",
        "x := 1",
        "__import__('os').system('true')",
    ],
)
def test_that_what_is_no_arithmetic_is_refused_where_it_is_written(text: str) -> None:
    with pytest.raises(ValueError, match=r"no expression|no part of an expression"):
        parse_expression(text)


def test_the_names_of_an_expression() -> None:
    assert names_of("first(now, default) / 2") == {"first", "now", "default"}
