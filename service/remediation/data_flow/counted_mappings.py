"""A mapping of the job's own configuration that its code counts through: `heads[kind][0]` wants a list.

The failing row names the way to it, `config["model"]["heads"]`; a file at hand holds names there and no list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from corpus.message import in_both
from corpus.paths import base_name
from corpus.schema import Text
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import own_call
from service.remediation.code_edits.failing_code import JobFile

_NUMBER = re.compile(r"KeyError: (?P<number>\d{1,4})\s*$")
# An entry by its name, behind it those that a variable or a number chooses.
_WAY = re.compile(
    r"\[\s*['\"](?P<name>[\w.-]{2,60})['\"]\s*\](?P<chosen>(?:\[\s*(?:\d+|[A-Za-z_][\w.]*)\s*\])+)"
)
MOST_NAMED = 6


def counted_mapping(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say which mapping of which file is asked for a number; None where no file shows one alone."""
    root = report.root
    own = own_call(root.frames) if root is not None else None
    if root is None or own is None:
        return None
    line = root.body if root.exception in root.body else f"{root.exception}: {root.body}"
    said, way = _NUMBER.search(line), _WAY.search(own.code)
    if said is None or way is None:
        return None
    found = [
        (file, names)
        for file in files
        if file.name.endswith(".json") and (names := _names(file.text, way["name"], way["chosen"].count("[")))
    ]
    if len(found) != 1 or any(name.isdigit() for name in found[0][1]):
        return None
    file, names = found[0]
    leaf = base_name(file.name)
    told = {"name": way["name"], "file": leaf, "number": said["number"]}
    return in_both("changes.counted-mapping", keys=", ".join(names[:MOST_NAMED]), **told)


def _names(text: str, name: str, below: int) -> list[str]:
    """Give the names that stand so many levels below a key of a file; none where a list does."""
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return []
    found = []
    for each in waiting:
        inner = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        found += [each[name]] if isinstance(each, dict) and name in each else []
        waiting += inner
    for _ in range(below - 1):
        found = [inner for each in found if isinstance(each, dict) for inner in each.values()]
    is_mapping = len(found) > 0 and all(isinstance(each, dict) for each in found)
    return list(dict.fromkeys(key for each in found for key in each)) if is_mapping else []
