"""A single row of source, as a traceback quotes it: what of it is code, and which brackets it leaves open."""

from __future__ import annotations

import re

_CLOSING = {"(": ")", "[": "]", "{": "}"}
# A string, or a comment to the row's end.
_QUIET = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|#.*$")


def bare_code(row: str) -> str:
    """Give a row without its strings and its comment."""
    return _QUIET.sub("", row)


def closing_brackets(row: str) -> str:
    """Give the signs that close what a row leaves open, in the order in which they close it."""
    waiting: list[str] = []
    for sign in bare_code(row):
        if sign in _CLOSING:
            waiting.append(_CLOSING[sign])
        elif waiting and sign == waiting[-1]:
            waiting.pop()
    return "".join(reversed(waiting))
