"""Values that a model may have of a log whose author has put them there.

What a model proposes for a setting, or writes into the job's code, is read by who wants the job to run. A
path that only lines have which tell nothing of the failure may be such an author's choice: it is not passed
on. One that no line has is the model's own, and one that is nearly the present value mends a slip.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Collection, Iterator

# So many words joined by signs say something; fewer are a name.
JOINED = 3
# How like a present value one is that mends a slip of it.
ALIKE = 0.8
_PLACE = re.compile(r"[^\s/]*(?:/[^\s/]+)+/?")
_APART = re.compile(r"[-_./:\s]+")
_UP = re.compile(r"(?:^|/)\.\.(?:/|$)")


def joined_words(value: str) -> str:
    """Give the words of a value that is made of several, as `wipe-all-checkpoints` is; else nothing."""
    parts = [part for part in _APART.split(value.strip()) if part]
    is_said = len(parts) >= JOINED and all(part.isalpha() for part in parts)
    return " ".join(parts) if is_said and not _PLACE.fullmatch(value.strip()) else ""


def is_of_log_alone(value: str, lines: str, present: Collection[str], shown: Collection[str]) -> bool:
    """Tell whether a path, or a name with a folder, stands in the log and in no line of the job's own.

    `lines` are the job's own and those of its failure, `present` the values that its settings have, `shown`
    the rows of the log that a model was shown.
    """
    plain = value.strip().strip("'\"").rstrip("/")
    if not _PLACE.fullmatch(plain) or plain in lines or plain in present:
        return False
    own = "\n".join((lines, *present))
    if any(folder in own for folder in _folders(plain)):
        return False
    if difflib.get_close_matches(plain, present, n=1, cutoff=ALIKE):
        return False
    return any(plain in row for row in shown)


def climbs(value: str) -> bool:
    """Tell whether a path leads out of the folder that it begins with."""
    return value.startswith("/") and _UP.search(value) is not None


def _folders(path: str) -> Iterator[str]:
    """Yield the folders of an absolute path that are no roots of a machine."""
    folder = posixpath.dirname(posixpath.normpath(path))
    while folder.count("/") > 1:
        yield folder
        folder = posixpath.dirname(folder)
