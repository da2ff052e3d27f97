"""On which line a release makes a call: `call_lines/PACKAGE/FILE.json`, read when a frame is in that file.

A traceback names file, line, function and statement of each call. The same statement stands on another line
in nearly every release, so that the frames of a log date a package whose version it does not print.
`python -m corpus.extract calls` writes the tables, as digests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

from packaging.version import Version

from corpus.library import pages

FOLDER = "call_lines"


class CallLine(NamedTuple):
    """One frame of a traceback: its file, the line in it, the function, and the statement as it is quoted."""

    file: str
    line: int
    function: str
    code: str


def digest_of(function: str, line: int, code: str) -> str:
    """Give what a call is kept as."""
    return blake2b(f"{function}:{line}:{code}".encode(), digest_size=5).hexdigest()


def dated_packages(calls: Iterable[CallLine]) -> Mapping[str, str]:
    """Give the range of versions of each package that all its calls which are known leave open.

    A range begins and ends with a minor release: that not every patch of one was read does no harm.
    """
    found: dict[str, list[str]] = {}
    for file, line, function, code in calls:
        for name, package in _files().items():
            if not file.endswith(f"/{name}"):
                continue
            table = _table(name)
            runs = table["calls"].get(digest_of(function, line, code.strip()))
            if runs:
                first, last = (Version(table["versions"][place]) for place in (runs[0][0], runs[-1][1]))
                found.setdefault(package, []).append(
                    f">={first.major}.{first.minor},<{last.major}.{last.minor + 1}"
                )
    return {package: ",".join(dict.fromkeys(ranges)) for package, ranges in found.items()}


@cache
def _files() -> Mapping[str, str]:
    """Give the files that were read, as they are installed, with the package of each."""
    return {f"{path.parent.name}/{path.stem}.py": path.parent.name for path in pages(f"{FOLDER}/*/*.json")}


@cache
def _table(file: str) -> Any:
    path = next(path for path in pages(f"{FOLDER}/*/*.json") if file == f"{path.parent.name}/{path.stem}.py")
    return json.loads(path.read_bytes())
