"""The settings of a framework over several versions: what each is now, its names, and who knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corpus.extract.checkouts import Checkout
from corpus.extract.declarations import Declaration, Kind
from corpus.extract.frameworks import Origin, declared, declaring

_FACTS = ("type", "default", "choices", "min", "max")


@dataclass(frozen=True)
class SettingHistory:
    """One setting: its newest declaration, and the versions in which each of its names was seen.

    It is not `sure` where a version only reads it somewhere: then it counts as seen in all.
    """

    catalogue: str
    spelled: str
    newest: Declaration
    names: Mapping[str, frozenset[str]]
    sure: bool = True

    @property
    def key(self) -> str:
        """Give the preferred name."""
        return self.newest.key


@dataclass
class _Family:
    """The declarations that share a name, over versions."""

    names: dict[str, set[str]] = field(default_factory=dict)
    rows: list[Declaration] = field(default_factory=list)


def read(framework: str, checkouts: Mapping[str, Checkout]) -> list[SettingHistory]:
    """Read all versions of a framework, oldest first in `checkouts`."""
    rows: list[SettingHistory] = []
    known = declaring()[framework]
    table: dict[tuple[str, str], list[Origin]] = {}
    for origin in known.declares:
        table.setdefault((origin.catalogue, origin.spelled), []).append(origin)
    for (catalogue, spelled), origins in table.items():
        seen = {version: declared(checkout, origins) for version, checkout in checkouts.items()}
        for family in _families(seen, known.renamed):
            sure = all(row.declared for row in family.rows)
            names = {
                name: frozenset(versions if sure else checkouts) for name, versions in family.names.items()
            }
            rows.append(SettingHistory(catalogue, spelled, _newest(family.rows), names, sure))
    return rows


def _families(seen: Mapping[str, Mapping[str, Declaration]], renames: Mapping[str, str]) -> list[_Family]:
    """Join what shares a name: the same key at several versions, a spelling, or a rename known by hand."""
    by_name: dict[str, _Family] = {}
    for version, declarations in seen.items():
        for row in declarations.values():
            names = [row.key, *row.spellings]
            renamed = [renames[name] for name in names if name in renames]
            family = _family_of([*names, *renamed], by_name)
            family.rows.append(row)
            for name in names:
                family.names.setdefault(name, set()).add(version)
    return list({id(family): family for family in by_name.values() if family.rows}.values())


def _family_of(names: Sequence[str], by_name: dict[str, _Family]) -> _Family:
    joined = _Family()
    for family in {id(known): known for name in names if (known := by_name.get(name)) is not None}.values():
        joined.rows += family.rows
        joined.names.update(family.names)
        by_name.update({name: joined for name, other in by_name.items() if other is family})
    by_name.update(dict.fromkeys(names, joined))
    return joined


def _newest(rows: Sequence[Declaration]) -> Declaration:
    """Give the last declaration, its type from an older one where it shows none, choices of all versions."""
    last = rows[-1]
    same = [row for row in rows if row.key == last.key]
    kind: Kind = (
        last.type
        if last.type != "any"
        else next((row.type for row in reversed(rows) if row.type != "any"), "any")
    )
    choices = (
        tuple(dict.fromkeys(choice for row in (last, *reversed(same)) for choice in row.choices))
        if last.choices
        else ()
    )
    return Declaration(last.key, kind, last.default, choices, last.min, last.max, last.spellings)


def facts(row: SettingHistory) -> dict[str, Any]:
    """Give the facts of a setting that the source states, as a row of a catalogue has them."""
    found = {name: getattr(row.newest, name) for name in _FACTS}
    if isinstance(found["default"], str) and "\n" in found["default"]:
        del found["default"]  # a text, such as a prompt, is no fact about the setting
    return {
        name: list(item) if isinstance(item, tuple) else item
        for name, item in found.items()
        if item not in (None, ())
    }
