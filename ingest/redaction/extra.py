r"""What else users hold for secret: names and expressions of their own, from `WHYCRASH_REDACT_EXTRA`.

Commas or row ends part them; what stands in slashes is an expression, all else is a name:
`acme pin, crew_badge, /\bACME-[0-9A-F]{32}\b/`.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import NamedTuple

from corpus.message import Message
from ingest.errors import InvalidExpressionError, RedactionPatternError
from ingest.redaction import entropy
from ingest.redaction.kinds import NEXT_ROW, SecretKind
from ingest.redaction.named import NOTHING, VALUE, decode_named, kind_of_flag, kind_of_name

VARIABLE = "WHYCRASH_REDACT_EXTRA"
# The kind that a mask names.
KIND = "extra"
# Each is looked for in every text, so that a list of all that ever was secret would cost all users.
MOST, LONGEST = 100, 400
_ENTRY = re.compile(r"[ \t]*(?:/(?P<expression>(?:\\.|[^/\\\n])+)/|(?P<name>[^,\n]*?))[ \t\r]*(?:,|\n|\Z)")
_NAME = re.compile(r"\w[\w .-]{0,78}\w")
_PARTED = re.compile(r"[ _.-]+|(?<=[a-z0-9])(?=[A-Z])")
_QUOTED = (
    rf"(?:\"{NOTHING}(?P<quoted>[^\"\n]{{1,400}})\"|'{NOTHING}(?P<single>[^'\n]{{1,400}})'|"
    rf"{NOTHING}(?P<secret>[^\s'\"\\,;]{{1,400}}))"
)


class ExtraPatterns(NamedTuple):
    """The names of values that are secret, and expressions that find secrets."""

    names: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()


def parse_extra(text: str) -> ExtraPatterns:
    """Read what the setting says; raises RedactionPatternError naming the entry that cannot be used."""
    names, expressions, place = list[str](), list[str](), 0
    while place < len(text):
        entry = _ENTRY.match(text, place)
        if entry is None:
            raise RedactionPatternError(
                _told(text[place:].split("\n")[0], Message("errors.redact-extra-form"))
            )
        place = entry.end()
        if entry["expression"]:
            expressions.append(_checked(entry["expression"]))
        elif name := entry["name"].strip():
            if not _NAME.fullmatch(name):
                raise RedactionPatternError(_told(name, Message("errors.redact-extra-form")))
            names.append(name)
        if len(names) + len(expressions) > MOST:
            raise RedactionPatternError(_told(entry[0], Message("errors.redact-extra-many", most=MOST)))
    return ExtraPatterns(tuple(names), tuple(expressions))


def _checked(expression: str) -> str:
    """Give an expression that takes linear time, whatever it is held against."""
    # Imported here: who sets no expressions does not wait for Hyperscan.
    from ingest.logs.scanner import SpanFinder

    if len(expression) > LONGEST or not expression.isascii():
        raise RedactionPatternError(
            _told(expression, Message("errors.redact-extra-letters", longest=LONGEST))
        )
    try:
        SpanFinder(expression)
    except InvalidExpressionError as error:
        why = Message("errors.redact-extra-refused", reason=error)
        raise RedactionPatternError(_told(expression, why)) from error
    return expression


def _told(entry: str, why: Message) -> Message:
    return Message("errors.redact-extra", variable=VARIABLE, entry=entry.strip()[:80], why=why)


@lru_cache(maxsize=4)
def extra_kinds(text: str) -> tuple[SecretKind, ...]:
    """Give rows for the table of secrets; raises RedactionPatternError."""
    found = parse_extra(text)
    kinds = tuple(
        SecretKind(KIND, f"(?:{each})", each, wraps=False, shaped=False, linear=True)
        for each in found.expressions
    )
    return (*_kinds_of_names(found.names), *kinds) if found.names else kinds


def _is_value(value: bytes) -> bool:
    # Its owner says that it is secret, so that a number and a word are; a variable is still none.
    return not (entropy.is_nothing(value) or entropy.is_fetched(value))


def _kinds_of_names(names: tuple[str, ...]) -> tuple[SecretKind, ...]:
    """Give the rows of values that have one of some names, whatever these are."""
    plain = [_PARTED.sub("[ _.-]?", re.escape(_PARTED.sub("_", name))) for name in names if name.isascii()]
    foreign = [name for name in names if not name.isascii()]
    exact = rf"(?<![A-Za-z0-9])(?:{'|'.join((*plain, *map(re.escape, foreign)))})"
    coded = "|".join((*plain, decode_named("|".join(foreign)))) if foreign else "|".join(plain)
    prefilter = f"(?:{coded})"
    cuts = " ".join(_PARTED.sub(sign, name) for name in names for sign in ("_", "-"))
    return (
        kind_of_name(KIND, exact, prefilter, rf"{VALUE}{{1,4000}}", "{1,4000}", cuts, _is_value),
        kind_of_flag(KIND, exact, prefilter, r"[^\s'\"-][^\s'\"]{0,4000}", cuts, _is_value),
        # | NAME | X |, <name>X</name>
        SecretKind(
            KIND,
            rf"(?i){prefilter}['\"`]?[ \t]*[|>]",
            rf"(?i:{exact})['\"`]?(?:[ \t]{{0,60}}\|[ \t]{{0,4}}`?{NOTHING}(?P<cell>[^|`\n]{{1,400}}?)[ "
            rf"\t`]*(?:\||$)|>{NOTHING}(?P<secret>[^<>\n]{{1,400}})</)",
            check=_is_value,
            wraps=False,
            shaped=False,
        ),
        # setenv NAME X, ENV NAME X, name: NAME value: X, which may stand in the row below
        SecretKind(
            KIND,
            rf"(?i)(?:setenv|\bset|\benv|\barg|name['\"]?[ ]?[:=])[^\n]{{0,40}}{prefilter}",
            rf"(?i:\b(?:setenv|set[ ]-\w{{1,3}}|env|arg)[ ]{exact}[ \t]{{1,4}}|"
            rf"name['\"]?[ ]?[:=][ ]?['\"]?{exact}['\"]?,?\s{{1,20}}['\"]?value['\"]?[ ]?[:=][ ]?)"
            rf"{_QUOTED}",
            check=_is_value,
            ahead=2 * NEXT_ROW,
            wraps=False,
            shaped=False,
        ),
    )


_TEXT: list[str] = []


def use_extra(text: str) -> None:
    """Look for these too from now on, in this process and in the workers that it starts.

    Raises RedactionPatternError.
    """
    extra_kinds(text)
    _TEXT[:] = [text]


def extra_text() -> str:
    """Give what is in use: what `use_extra` was last given, else what the variable says."""
    if not _TEXT:
        use_extra(os.environ.get(VARIABLE, ""))
    return _TEXT[0]
