"""Settings declared as pairs of module constants: `NAME = "key"` and `NAME_DEFAULT = value`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corpus.extract.declarations import Declaration, kind_of
from corpus.extract.expressions import UNKNOWN, Source, value

_SUFFIX = "_DEFAULT"


def read(source: Source, places: Mapping[str, str]) -> Iterator[Declaration]:
    """Give the pairs; `places` says below which key the constants of a prefix stand."""
    for name, expression in source.constants.items():
        key = value(source.constants.get(name.removesuffix(_SUFFIX)), source)
        if not name.endswith(_SUFFIX) or not isinstance(key, str):
            continue
        default = value(expression, source)
        known = None if default is UNKNOWN else default
        longest = max((prefix for prefix in places if name.startswith(prefix)), key=len, default="")
        placed = places.get(longest, "") + key
        yield Declaration(placed, kind_of(known), known)
