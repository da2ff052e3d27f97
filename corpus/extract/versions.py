"""Which versions know a setting, from a sample of versions that were read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from packaging.version import Version

from corpus.library import fits


def ordered(versions: Collection[str]) -> list[str]:
    """Give versions from old to new."""
    return sorted(versions, key=Version)


def span(present: Collection[str], sample: Sequence[str]) -> str:
    """Give the specifier that leaves out only versions known to lack the setting.

    Between two versions of the sample nothing is known; such a version may have the setting, so it fits.
    A setting missing in the middle of the sample counts as known there.
    """
    places = [place for place, version in enumerate(sample) if version in present]
    if not places:
        return ""
    first, last = places[0], places[-1]
    low = [f">{sample[first - 1]}"] if first else []
    high = [f"<{sample[last + 1]}"] if last + 1 < len(sample) else []
    return ",".join([*low, *high])


def agrees(specifier: str, present: Collection[str], sample: Sequence[str]) -> bool:
    """Tell whether a specifier says of every version of the sample what was seen there."""
    inside = [place for place, version in enumerate(sample) if version in present]
    if not inside:
        return True
    seen = range(inside[0], inside[-1] + 1)
    return all(fits(version, specifier) is (place in seen) for place, version in enumerate(sample))
