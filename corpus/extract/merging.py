"""Bring what was read from sources into the catalogue; what people wrote there stays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.extract.versions import agrees, span
from corpus.frameworks import known_frameworks
from corpus.library import EXTRACTED, dump_yaml, read_yaml

Table = dict[str, Any]
_SAME_TYPES = frozenset(
    {
        ("enum", "str"),
        ("str", "enum"),
        ("size", "int"),
        ("size", "str"),
        ("float", "int"),
        ("str", "list"),
        ("list", "str"),
        ("enum", "list"),
        ("enum", "bool"),
        ("int", "enum"),
        ("int", "bool"),
        ("bool", "int"),
        ("int", "float"),
        ("str", "bool"),
        ("bool", "str"),
    }
)


@dataclass(frozen=True)
class MergedSetting:
    """One setting as the sources have it: its row, and the versions in which each name was seen."""

    framework: str
    row: Table
    sample: Sequence[str]
    seen: Mapping[str, Sequence[str]]

    def versions(self, name: str) -> str:
        """Give the versions that know one of its names."""
        return span(self.seen[name], self.sample)


@dataclass
class Merge:
    """The catalogue after a merge, and each correction of what a person wrote."""

    tables: dict[str, Table]
    extracted: dict[str, list[Table]] = field(default_factory=dict)
    corrections: list[str] = field(default_factory=list)


def load(paths: Iterable[Path]) -> list[MergedSetting]:
    """Read what `python -m corpus.extract` wrote; settings of an inherited framework lose their versions."""
    found: list[MergedSetting] = []
    for path in paths:
        head, *rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found += [MergedSetting(head["framework"], row, head["sample"], row["seen"]) for row in rows]
    names = {(one.framework, name) for one in found for name in one.seen}
    for place, one in enumerate(found):
        parent = next(iter(known_frameworks().row(one.framework).extends), None)
        if parent is not None and (parent, one.row["key"].lstrip("-")) in names:
            # A setting that a trainer shares with what its arguments extend never comes or goes; a default
            # belongs to the one trainer that overrides it.
            row = {name: item for name, item in one.row.items() if name != "default"}
            seen = {**one.seen, one.row["key"]: one.sample}
            found[place] = MergedSetting(one.framework, row, one.sample, seen)
    return found


def merged(
    tables: Mapping[str, Table], found: Iterable[MergedSetting], effects: Mapping[str, Mapping[str, Table]]
) -> Merge:
    """Correct the written settings by the sources' facts, and add the settings that nobody wrote yet.

    `effects` holds, by catalogue and key, what a person writes on a new setting; such a setting goes to the
    written ones, any other to the extracted ones.
    """
    merge = Merge(
        {
            name: {**table, "settings": [dict(row) for row in table["settings"]]}
            for name, table in tables.items()
        }
    )
    written = _by_name(merge.tables)
    for one in found:
        catalogue = one.row["catalogue"]
        rows = {id(row): row for name in one.seen if (row := written.get((catalogue, name))) is not None}
        for row in rows.values():
            _correct(row, one, merge, alone=len(rows) == 1)
        # An environment variable may be written down under another framework.
        is_elsewhere = one.row["spelled"] == "env" and any(
            row["key"] in one.seen for table in merge.tables.values() for row in table["settings"]
        )
        if not rows and not is_elsewhere:
            _add(one, effects.get(catalogue, {}), merge)
    return merge


def _by_name(tables: Mapping[str, Table]) -> dict[tuple[str, str], Table]:
    found: dict[tuple[str, str], Table] = {}
    for name, table in tables.items():
        for row in table["settings"]:
            found.update(
                {
                    (name, alias["key"]): row
                    for alias in row.get("aliases", ())
                    if (name, alias["key"]) not in found
                }
            )
    for name, table in tables.items():
        found.update({(name, row["key"]): row for row in table["settings"]})
    return found


def _add(one: MergedSetting, effects: Mapping[str, Table], merge: Merge) -> None:
    catalogue, row = one.row["catalogue"], _row(one)
    written = next((effects[name] for name in one.seen if name in effects), None)
    if written is None:
        others = merge.extracted.setdefault(catalogue, [])
        # Two frameworks may read one variable: the first keeps it.
        others.extend(
            []
            if any(other["key"] == row["key"] for other in others)
            else [{**row, "spelled": one.row["spelled"]}]
        )
        return
    table = merge.tables[catalogue]
    own = {} if one.row["spelled"] == table["spelled"] else {"spelled": one.row["spelled"]}
    table["settings"].append({**row, **own, **written})


def _row(one: MergedSetting) -> Table:
    kept: Table = {
        name: one.row[name] for name in ("key", "type", "default", "choices", "min", "max") if name in one.row
    }
    versions = one.versions(one.row["key"])
    names = [_alias(one, name) for name in one.seen if name != one.row["key"]]
    return {
        **kept,
        **({"versions": versions} if versions else {}),
        **({"aliases": names} if names else {}),
        **_reader(one),
    }


def _alias(one: MergedSetting, name: str) -> Table:
    versions = one.versions(name)
    return {"key": name, "versions": versions} if versions else {"key": name}


def _reader(one: MergedSetting) -> Table:
    return {"read_by": one.framework} if one.row["catalogue"] == "env" else {}


def _correct(row: Table, one: MergedSetting, merge: Merge, *, alone: bool) -> None:
    """Put right what a written row says against its source."""
    changes: Table = {}
    if row["key"] in one.seen and _wrong(row.get("versions") or "", row["key"], one):
        changes["versions"] = one.versions(row["key"])
    if alone:
        aliases = _aliases(row, one)
        changes.update({"aliases": aliases} if aliases != row.get("aliases", []) else {})
    if row["key"] == one.row["key"]:
        changes.update(_facts(row, one.row))
    if changes.get("versions") or row.get("versions"):
        changes.update({name: item for name, item in _reader(one).items() if row.get(name) != item})
    for name, item in changes.items():
        merge.corrections.append(f"{one.row['catalogue']} {row['key']}: {name} {row.get(name)!r} -> {item!r}")
    _put(row, changes)


def _wrong(written: str, name: str, one: MergedSetting) -> bool:
    """Tell whether written versions contradict what was seen.

    Who wrote an end knew a program that dropped the setting; another program of the framework may keep it.
    """
    return (
        one.row["sure"]
        and not agrees(written, one.seen[name], one.sample)
        and not ("<" in written and "<" not in one.versions(name))
    )


def _aliases(row: Table, one: MergedSetting) -> list[Table]:
    """Give the aliases with versions as seen, further ones of the source at the end.

    Unseen ones stay as written.
    """
    kept = [
        _alias(one, alias["key"])
        if alias["key"] in one.seen and _wrong(alias.get("versions") or "", alias["key"], one)
        else alias
        for alias in row.get("aliases", [])
    ]
    told = {row["key"], *(alias["key"] for alias in kept)}
    return [*kept, *(_alias(one, name) for name in one.seen if name not in told)]


def _facts(row: Table, source: Table) -> Table:
    changes: Table = {}
    kind = source["type"]
    if kind not in ("any", row["type"]) and (row["type"], kind) not in _SAME_TYPES:
        changes["type"] = kind
    default = source.get("default")
    if (
        default not in (None, "")
        and default != row.get("default")
        and (isinstance(default, bool) is (row["type"] == "bool"))
    ):
        changes["default"] = default
    choices = [choice for choice in source.get("choices", ()) if choice not in row.get("choices", ())]
    if choices and row.get("choices"):
        changes["choices"] = [*row["choices"], *choices]
    return changes


def _put(row: Table, changes: Table) -> None:
    """Set fields, an emptied one away; `versions` and `aliases` of a row stand before its words."""
    words: Table = {name: row.pop(name) for name in ("effect", "costs", "rule") if name in row}
    row.update(changes)
    for name in [name for name, item in row.items() if item in ("", [])]:
        del row[name]
    row.update(words)


def write(root: Path, merge: Merge) -> None:
    """Write the catalogue: written settings as YAML, extracted ones as JSON with a setting a line."""
    for name, table in merge.tables.items():
        path = root / f"{name}.yaml"
        if read_yaml(path) != table:
            path.write_text(dump_yaml(table), encoding="utf-8")
    (root / EXTRACTED).mkdir(exist_ok=True)
    for name, rows in merge.extracted.items():
        lines = ",\n".join(
            json.dumps(row, ensure_ascii=False) for row in sorted(rows, key=lambda row: row["key"])
        )
        text = f'{{"framework": {json.dumps(name)}, "settings": [\n{lines}\n]}}\n'
        (root / EXTRACTED / f"{name}.json").write_text(text, encoding="utf-8")


def into(root: Path, paths: Sequence[Path], words: Path | None) -> list[str]:
    """Merge what was read into the catalogue under `root`, and give each correction.

    `words` is a folder of YAML files by catalogue: what a person writes on settings that are new.
    """
    effects = catalogue(words) if words else {}
    found = load(paths)
    merge = merged(catalogue(root), found, effects)
    frameworks = {one.framework for one in found}
    for path in (root / EXTRACTED).glob("*.json"):
        # Variables of frameworks that were not read this time stay as they are.
        others = [
            row
            for row in json.loads(path.read_bytes())["settings"]
            if row.get("read_by", "") not in {"", *frameworks}
        ]
        if others:
            rows = merge.extracted.get(path.stem, [])
            told = {row["key"] for row in rows}
            merge.extracted[path.stem] = [*rows, *(row for row in others if row["key"] not in told)]
    write(root, merge)
    return merge.corrections


def catalogue(root: Path) -> dict[str, Table]:
    """Read a folder of YAML files, by the name of each."""
    return {path.stem: read_yaml(path) for path in sorted(root.glob("*.yaml"))}
