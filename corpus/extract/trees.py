"""Settings declared as a tree of YAML, as Hydra and OmegaConf compose them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corpus.extract.declarations import Declaration, kind_of
from corpus.extract.expressions import Source
from corpus.extract.fields import of_class
from corpus.library import parse_yaml

_CLASS = "_target_"
_OWN = frozenset({"defaults", "hydra", "_convert_", "_partial_", "_recursive_"})


def read(texts: Mapping[str, str], source: Source) -> Iterator[Declaration]:
    """Give each leaf by its dotted path; where a mapping names its class, that class's further fields too."""
    for path, text in texts.items():
        tree = parse_yaml(text, Path(path))
        if isinstance(tree, dict):
            yield from _leaves(tree, "", source)


def _leaves(tree: Mapping[Any, Any], place: str, source: Source) -> Iterator[Declaration]:
    for name, item in tree.items():
        if not isinstance(name, str) or (not place and name in _OWN) or name == _CLASS:
            continue
        if isinstance(item, dict) and item:
            yield from _leaves(item, f"{place}{name}.", source)
        else:
            yield _leaf(f"{place}{name}", item)
    known = str(tree.get(_CLASS, "")).rpartition(".")[2]
    told = {place + key for key in tree if isinstance(key, str)}
    for row in of_class(known, source, place) if known else ():
        if row.key not in told and not any(row.key.startswith(f"{key}.") for key in told):
            yield row


def _leaf(key: str, item: Any) -> Declaration:
    # An interpolation names another setting or the environment: what it gives is known at run time only.
    open_ = isinstance(item, str) and "${" in item
    if open_ or not isinstance(item, bool | int | float | str | list):
        return Declaration(key)
    plain = not isinstance(item, list) or all(isinstance(part, bool | int | float | str) for part in item)
    return Declaration(key, kind_of(item), item if plain else None)
