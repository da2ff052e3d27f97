"""Options that a parser reads by `type=bool`: any text but an empty one is True, also `False`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from corpus.keys import last_level
from corpus.message import joined, words
from corpus.paths import base_name
from corpus.schema import Language
from ingest.configfiles.formats import CODE
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.source_text import parsed
from service.remediation.own_edits import job_files
from service.schemas.diagnosis import ProposedChange

_TRUE = frozenset({"true", "1", "yes", "on"})


def told_of_bool(
    changes: Sequence[ProposedChange], report: CrashReport, language: Language
) -> tuple[ProposedChange, ...]:
    """Say of a change that switches such an option off how the command line does that."""
    switches = [change for change in changes if str(change.from_).strip("'\"").lower() in _TRUE]
    places = dict(_read_as_bool(job_files(report))) if switches else {}
    return tuple(
        change.model_copy(
            update={
                "why": joined(
                    change.why,
                    words(
                        "changes.read-as-bool",
                        language,
                        key=change.key.lstrip("-"),
                        place=places[last_level(change.key.lstrip("-"))],
                    ),
                    language,
                )
            }
        )
        if change in switches
        and change.kind in ("setting", "flag")
        and last_level(change.key.lstrip("-")) in places
        else change
        for change in changes
    )


def _read_as_bool(files: Sequence[JobFile]) -> Iterator[tuple[str, str]]:
    """Give each option that a parser of the job's files reads so, with the place."""
    for file in files:
        tree = parsed(file.text) if file.name.endswith(CODE) else None
        name = base_name(file.name)
        for node in ast.walk(tree) if tree is not None else ():
            match node:
                case ast.Call(func=ast.Attribute(attr="add_argument"), args=[*flags], keywords=keywords):
                    types = [ast.unparse(word.value) for word in keywords if word.arg == "type"]
                    keys = [flag.value for flag in flags if isinstance(flag, ast.Constant)]
                    longest = max((key for key in keys if isinstance(key, str)), key=len, default="")
                    if types == ["bool"] and longest:
                        yield last_level(longest.lstrip("-")), f"{name}:{node.lineno}"
