"""Ranges of versions: whether two specifiers can both hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from corpus.library import fits


@cache
def overlap(one: str, other: str) -> bool:
    """Tell whether there can be a version that two specifiers both allow."""
    if not one or not other:
        return True
    return any(
        fits(version, one) and fits(version, other)
        for version in ("0", *_around(one), *_around(other), "99999")
    )


def _around(specifier: str) -> Iterator[str]:
    """Give the versions that a specifier names, with one right below and one right above each."""
    for part in SpecifierSet(specifier):
        try:
            release = Version(part.version.removesuffix(".*")).release
        except InvalidVersion:
            continue
        yield ".".join(map(str, release))
        yield ".".join(map(str, (*release, 1)))
        place = max((index for index, number in enumerate(release) if number), default=-1)
        if place >= 0:
            yield ".".join(map(str, (*release[:place], release[place] - 1, 99999)))
