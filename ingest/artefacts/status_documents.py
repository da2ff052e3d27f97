"""Tell the JSON of schedulers and platforms as the lines that their tools print: how a job ended.

`docker inspect`, `kubectl get pod -o json` and events, `sacct --json`, `scontrol show job --json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice

from corpus import status_documents
from corpus.message import Message
from ingest.errors import ArtefactError
from ingest.logs.lines import printable

MOST_BYTES = 16 << 20
MOST_DOCUMENTS, MOST_ITEMS, _LONGEST = 2000, 200, 2000

_BLANK = re.compile(r"\{([\w.]+)\}")
# Lists of documents: Kubernetes' and Slurm's; docker's has no name.
_LISTS = ("items", "jobs")


def read_status(data: bytes) -> list[str]:
    """Give the lines that a document tells; raises ArtefactError where it is damaged or tells nothing."""
    if len(data) > MOST_BYTES:
        raise ArtefactError(Message("artefacts.too-large", megabytes=MOST_BYTES >> 20))
    documents = _documents(_value(data))
    lines = [line for document in islice(documents, MOST_DOCUMENTS) for line in _lines(document)]
    if not lines:
        raise ArtefactError(Message("artefacts.no-status"))
    return lines


def _value(data: bytes) -> object:
    """Parse a document, or several of which each stands in a row."""
    try:
        try:
            return json.loads(data)
        except ValueError:
            return [json.loads(row) for row in data.splitlines()[:MOST_DOCUMENTS] if row.strip()]
    except (ValueError, RecursionError) as error:
        raise ArtefactError(Message("artefacts.json-damaged")) from error


def _documents(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))
    elif isinstance(value, dict):
        named = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
        yield from _documents(named) if named is not None else (value,)


def _lines(document: Mapping[str, object]) -> Iterator[str]:
    kind = status_documents.load().of(document)
    for group in kind.groups if kind else ():
        found = _at(document, group.each) if group.each else [document]
        for item in (found if isinstance(found, list) else [])[:MOST_ITEMS]:
            for line in group.lines:
                # Words and the names of blanks take turns; a line of which a blank is not told is left out.
                parts = _BLANK.split(line)
                parts[1::2] = [_text(_at(item, name)) for name in parts[1::2]]
                if all(parts[1::2]):
                    yield "".join(parts)


def _at(value: object, path: str) -> object:
    for name in path.split("."):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def _text(value: object) -> str:
    """Write a value in one row, as JSON writes it; lists, objects and what is false are none."""
    if isinstance(value, bool):
        return "true" if value else ""
    if isinstance(value, int | float | str):
        return printable(" ".join(str(value)[:_LONGEST].split()))
    return ""
