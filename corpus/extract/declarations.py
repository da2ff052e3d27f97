"""What a source says of one setting at one version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from corpus.schema import Scalar

Kind = Literal["bool", "int", "float", "str", "enum", "list", "size", "any"]
Default = Scalar | list[Scalar] | None
Style = Literal["flag", "name", "as-is"]


@dataclass(frozen=True)
class Declaration:
    """One setting as a source declares it; `spellings` are further names of it in the same version.

    One that is not `declared`, only read somewhere, may be read elsewhere in a version where it is not found.
    """

    key: str
    type: Kind = "any"
    default: Default = None
    choices: tuple[Scalar, ...] = ()
    min: float | None = None
    max: float | None = None
    spellings: tuple[str, ...] = ()
    declared: bool = True


def styled(name: str, style: Style) -> str:
    """Spell a name as its users write it: as a flag, as a plain name, or unchanged."""
    if style == "flag":
        return name if name.startswith("-") else "--" + name.replace("_", "-")
    return name.lstrip("-").replace("-", "_") if style == "name" else name


def kind_of(value: object) -> Kind:
    """Give the type that a default value shows; None shows none."""
    for type_, kind in _SHOWN:
        if isinstance(value, type_):
            return kind
    return "any"


_SHOWN: tuple[tuple[type, Kind], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (str, "str"),
    (list, "list"),
)


def unique(rows: Iterable[Declaration]) -> dict[str, Declaration]:
    """Join declarations of one key, as several programs of a framework declare it, into one.

    Programs that disagree about the default leave it open; choices add up.
    """
    found: dict[str, Declaration] = {}
    for row in rows:
        found[row.key] = _joined(found[row.key], row) if row.key in found else row
    return found


def completed(one: Declaration, two: Declaration) -> Declaration:
    """Join what two forms say of one setting; the second fills what the first leaves open."""
    joined = _joined(one, two)
    default = one.default if one.default is not None else two.default
    return replace(joined, default=default, choices=one.choices or two.choices)


# The type that holds the values of two.
_WIDER: dict[frozenset[Kind], Kind] = {
    frozenset({"int", "float"}): "float",
    frozenset({"str", "enum"}): "str",
}


def _joined(one: Declaration, two: Declaration) -> Declaration:
    kind = (
        one.type
        if two.type in (one.type, "any")
        else two.type
        if one.type == "any"
        else _WIDER.get(frozenset({one.type, two.type}), "any")
    )
    return replace(
        one,
        type=kind,
        default=one.default if one.default == two.default else None,
        choices=tuple(dict.fromkeys((*one.choices, *two.choices))) if one.choices and two.choices else (),
        min=one.min if one.min == two.min else None,
        max=one.max if one.max == two.max else None,
        declared=one.declared or two.declared,
        spellings=tuple(dict.fromkeys((*one.spellings, *two.spellings))),
    )
