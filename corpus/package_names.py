"""Names that packages of the index have: `package_names.txt`, read when asked for.

They are the most downloaded ones, those that the frameworks' own messages say to install, and those that
other tables speak of; `python -m corpus.extract package-names` writes them. A name that is not among them may
be anybody's: who believes a log that asks for it installs what a stranger put there.
"""

from __future__ import annotations

from functools import cache

from packaging.utils import canonicalize_name

from corpus.library import pages

FILE = "package_names.txt"


def is_on_index(name: str) -> bool:
    """Tell whether a package of this name is widely used."""
    return canonicalize_name(name) in _names()


@cache
def _names() -> frozenset[str]:
    return frozenset(name for path in pages(FILE) for name in path.read_text(encoding="utf-8").split())
