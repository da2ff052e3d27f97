"""What a failing message says to install or to upgrade: its command, or its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from corpus.frameworks import known_frameworks

_NAME = r"[`'\"]?(?P<package>[A-Za-z][\w.-]{1,60}?(?:\[[\w,-]{1,60}\])?)(?![\w\[])"
_VERSION = r"(?:[=<>!~]=|[<>])\s?v?[\w.*]{1,20}"
_WITH_VERSION = rf"(?P<specifier>\s?{_VERSION}(?:,\s?{_VERSION})?)"
_KIND = r"[`'\"]?(?: (?:python )?(?:package|library|module))?"
# `uv pip install`, `conda install -c conda-forge`, `poetry add`: options, and a channel's name behind one.
_COMMAND = re.compile(
    r"(?:\bpip3? install|\b(?:conda|mamba) install|\b(?:uv|poetry) add)\s+"
    r"(?:-c\s+[\w-]+\s+|-{1,2}[A-Za-z][\w-]*\s+)*[`'\"]?"
    r"(?P<package>[A-Za-z][\w.-]{0,60}+(?:\[[\w,-]{1,60}\])?)"
    # `git+https://...` is the address of a project.
    rf"(?![+:])(?P<specifier>\s?{_VERSION}(?:,\s?{_VERSION})?)?"
)
_UPGRADES = re.compile(r"(?:^|\s)(?:-U|--upgrade)\s")
# What libraries and people say of a package that is not there, in their own words.
_ABSENT = (
    r"(?i:(?:is|are|was|seems to be) (?:not|n't) (?:installed|available|importable)\b"
    r"|(?:must|needs to|has to|should) be installed\b|could not be imported\b"
    r"|is required\b[^\n]{0,80}\b(?:not (?:installed|found|available)|install)\b)"
)
_TO_INSTALL = (
    r"(?i:\binstall(?:ing)? (?:the )?(?:latest |required |missing )?(?:python )?(?:package |library )?)"
)
_ASKED = r"(?i:\b(?:requires?|needs?) (?:the )?)"
_BUT = r"(?=,? (?:but (?:it )?(?:is|was)|which (?:is|was)|to be installed|and (?:it )?is))"
# Of these a single word is a package's name; behind `install` it may be any noun.
_NAMING = (
    re.compile(_ASKED + _NAME + _KIND + _BUT),
    re.compile(rf"(?:^|[\s:]){_NAME}{_KIND} {_ABSENT}"),
    re.compile(rf"(?i:\boptional dependency ){_NAME}"),
    re.compile(rf"(?i:\brequires? the ){_NAME}[`'\"]? (?i:(?:python )?(?:package|library))\b"),
)
_WORDED = (
    re.compile(_TO_INSTALL + _NAME + _KIND + r"(?=[\s.,;:!)]|$)"),
    re.compile(rf"(?i:\bhav(?:e|ing) (?:the )?){_NAME}{_KIND}(?i:(?: \w+)? installed\b)"),
    *_NAMING,
)
# Newer ones than those that are there: torchao/utils.py, transformers/quantizers/, and their like.
_NEWER = (
    re.compile(
        rf"(?i:(?<!-)\b(?:upgrade|update)(?: your| the)?(?: version of)? ){_NAME}{_KIND}(?=[\s.,;:!)]|$)"
    ),
    re.compile(rf"(?i:\b(?:latest|newer|more recent) (?:version|release) of (?:the )?){_NAME}"),
    re.compile(rf"(?i:\boutdated version of (?:the )?){_NAME}"),
)
# `requires torchao >= 0.15.0`, `you need autoawq>0.2.6`, `Please upgrade to peft 0.7.2 or higher`.
_ASKS_VERSION = re.compile(
    r"(?i:\b(?:requires?|needs?|install|upgrade|update|use|have)(?: to| the| your| an?)*(?: version of)? )"
    rf"{_NAME}{_KIND}[`'\"]?{_WITH_VERSION}"
)
_ASKS_LEAST = re.compile(
    r"(?i:\b(?:requires?|needs?|install|upgrade|update|use|have)(?: to| the| your| an?)* )"
    rf"{_NAME}{_KIND}(?i: version)?"
    r"(?:(?i:(?: to)? at least(?: version)?) v?(?P<least>\d[\w.]{0,20}?)(?=[\s,;)]|\.?$|\.\s)"
    r"|(?i:(?: to)?) v?(?P<newer>\d[\w.]{0,20}?)"
    r"(?:\+|(?i:,? (?:or|and) (?:higher|newer|later|above|greater|up))))"
)
# What a package says of another that it finds too old or too new: peft/import_utils.py, and its like.
_BOUNDED = re.compile(
    rf"(?i:\b(?:incompatible|unsupported) version of ){_NAME}[`'\"]?[.,:; ]"
    r"[^\n]{0,120}?(?i:\bonly versions? )(?P<side>above|below|from|>=|<=|>|<|==)\s?"
    r"(?P<version>\d[\w.]{0,20}?)(?=[\s,;]|\.?$|\.\s)"
)
_USED = re.compile(
    rf"(?i:\bversion of ){_NAME}[`'\"]? (?i:you |that |which |is )"
    r"[^\n]{0,120}?(?P<side>(?i:greater than|higher than|newer than|at least|lower than|older than))\s"
    r"(?P<version>\d[\w.]{0,20}?)(?=[\s,;]|\.?$|\.\s)"
)
_SIDES = {
    "above": ">=",
    "from": ">=",
    "at least": ">=",
    "below": "<",
    "greater than": ">",
    "higher than": ">",
    "newer than": ">",
    "lower than": "<",
    "older than": "<",
}
# Further ones of a list: `install tqdm and rich`.
_FURTHER = re.compile(rf"[`'\"]?(?:,? and|,) {_NAME}(?=[`'\"]?[\s.,;:!)]|[`'\"]?$)")
_MOST_LISTED = 4

Way = Literal["install", "newer", "either"]


@dataclass(frozen=True)
class AskedPackage:
    """A package that a message asks for, as a requirement.

    `way` tells whether it is to be there, to be newer than it is, or either of them, as a command that
    upgrades what is there installs what is not. `is_firm` where the name is a package's for sure: a command's
    word, one in quotes, or one with a version.
    """

    requirement: str
    way: Way = "install"
    is_firm: bool = False


def asked_packages(text: str, *, commands_only: bool = False) -> Iterator[AskedPackage]:
    """Give the packages that a message asks for, with the releases that it names, in the order of its forms.

    With `commands_only` those alone that it gives a command for, or says to upgrade.
    """
    text = _by_name(text)
    for match in _COMMAND.finditer(text):
        yield _asked(match, "either" if _UPGRADES.search(match[0]) else "install", is_firm=True)
    for expression in (_ASKS_VERSION, _ASKS_LEAST, _BOUNDED, _USED):
        yield from (_asked(match, is_firm=True) for match in expression.finditer(text))
    for expression in _NEWER:
        yield from (_asked(match, "newer") for match in expression.finditer(text))
    if not commands_only:
        for expression in _WORDED:
            for match in expression.finditer(text):
                is_firm = expression in _NAMING
                yield from (_asked(each, is_firm=is_firm) for each in _listed(match))


def _asked(match: re.Match[str], way: Way = "install", *, is_firm: bool = False) -> AskedPackage:
    told, package = match.groupdict(), match["package"].rstrip(".")
    least = told.get("least") or told.get("newer")
    if told.get("version"):
        specifier = f"{_SIDES.get(told['side'].lower(), told['side'])}{told['version']}"
    else:
        specifier = f">={least}" if least else told.get("specifier") or ""
    is_quoted = match.string[match.start("package") - 1 : match.start("package")] in ("`", "'", '"')
    specifier = re.sub(r"([=<>])\s?v(?=\d)", r"\1", specifier).rstrip(".")
    return AskedPackage(f"{package}{specifier}", way, is_firm or is_quoted)


def _listed(first: re.Match[str]) -> Iterator[re.Match[str]]:
    """Give the package that a message names, and those that it lists behind it."""
    match: re.Match[str] | None = first
    for _ in range(_MOST_LISTED):
        if match is None:
            return
        yield match
        match = _FURTHER.match(first.string, match.end())


def _by_name(text: str) -> str:
    """Give a text with what sentences call packages replaced by the packages' names."""
    expression, names = _called()
    return expression.sub(lambda match: names[match[0].casefold()], text)


@cache
def _called() -> tuple[re.Pattern[str], dict[str, str]]:
    rows = known_frameworks().rows.values()
    names = {name.casefold(): package for row in rows for name, package in row.called.items()}
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?i)(?<![\w./-])(?:{words or '(?!)'})(?![\w/-]|\.\w)"), names
