"""The small language of conditions that signatures are written in.

A condition is one of `pattern:<glob>`, `root:<glob>`, `cause:<id>`, `frame:<regex>`, `exception:<regex>`,
`launch:<regex>`, `framework:<name>|<name><specifier>`, `phase:<name>`, `config:<key> <op> <value>`, or
`<fact>.<field> <op> <value>`. `cause:` is what the root's own line, refined by its pattern, tells. Parsing
lives with the corpus, so that a case is checked where it is written; evaluation lives with the reader of
logs, which has the facts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from packaging.specifiers import SpecifierSet

Operator = Literal["==", "!=", "<", "<=", ">", ">=", "~"]
Subject = Literal[
    "pattern", "root", "cause", "frame", "exception", "framework", "phase", "config", "fact", "launch"
]

_NAMED = re.compile(r"^(pattern|root|cause|frame|exception|phase|launch):(\S.*)$")
_FRAMEWORK = re.compile(r"^framework:([a-z0-9][a-z0-9-]*(?:\|[a-z0-9][a-z0-9-]*)*)\s*([<>=!~].*)?$")
_CONFIG = re.compile(r"^config:(\S+)(?:\s+(==|!=|<=|<|>=|>|~)\s+(.+))?$")
_FACT = re.compile(r"^([a-z_0-9]+)\.([a-z_0-9]+)\s+(==|!=|<=|<|>=|>|~)\s+(.+)$")


@dataclass(frozen=True, slots=True)
class Predicate:
    """One parsed condition.

    `name` is the glob, expression, framework, setting or `fact.field` that is looked at; `op` and
    `value` are set where the condition compares.
    """

    subject: Subject
    name: str
    op: Operator | None = None
    value: str = ""


@lru_cache(maxsize=4096)
def parse(text: str) -> Predicate:
    """Parse one condition; raises ValueError with the accepted forms where it is none."""
    if match := _NAMED.match(text):
        if match[1] in ("frame", "exception", "launch"):
            re.compile(match[2])
        return Predicate(match[1], match[2])  # type: ignore[arg-type]  # the expression lists the subjects
    if match := _FRAMEWORK.match(text):
        SpecifierSet(match[2] or "")  # one that is none raises here, where it is written
        return Predicate("framework", match[1], "~" if match[2] else None, match[2] or "")
    if match := _CONFIG.match(text):
        return Predicate("config", match[1], match[2], match[3] or "")  # type: ignore[arg-type]
    if match := _FACT.match(text):
        return Predicate("fact", f"{match[1]}.{match[2]}", match[3], match[4])  # type: ignore[arg-type]
    raise ValueError(
        f"{text!r} is no condition: write pattern:, root:, cause:, frame:, exception:, launch:, framework:, "
        "phase:, config:KEY OP VALUE or FACT.FIELD OP VALUE"
    )


def compare(left: object, op: Operator, right: str) -> bool:
    """Compare a value seen in a log with a condition's literal, as numbers where both are."""
    if op == "~":
        return re.search(right, str(left)) is not None
    numbers = _number(left), _number(right)
    if None not in numbers:
        return _ordered(numbers[0], op, numbers[1])
    if op in ("<", "<=", ">", ">="):
        return False
    same = str(left).strip().strip("'\"").casefold() == right.strip().strip("'\"").casefold()
    return same if op == "==" else not same


def _ordered(left: float | None, op: Operator, right: float | None) -> bool:
    assert left is not None  # noqa: S101 - the caller has checked; this tells the type checker
    assert right is not None  # noqa: S101
    results = {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    return results[op]


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)  # type: ignore[arg-type]  # what is no number raises, which is the question
    except (TypeError, ValueError):
        return None
