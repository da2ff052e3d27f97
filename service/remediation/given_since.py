"""Arguments and calls that the job lacked and its code at hand has by now: it was edited after the run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.message import words
from corpus.schema import Language
from ingest.logs.report import CrashReport
from service.remediation.code_edits.present_cures import given_argument, made_call
from service.remediation.own_edits import job_files
from service.remediation.ranking import argument_of
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange

# A function of a package, which code is to call.
_CALL = re.compile(r"[a-z]\w*(?:\.[a-z]\w*){1,4}")


def given_since(
    changes: Sequence[ProposedChange], report: CrashReport, language: Language
) -> list[ProposedChange]:
    """Say first of what the job lacked that its code has it by now.

    That is an argument which the failing message names, or a call that is proposed before all else. What else would do without the argument then only leads away from what the job's owner has chosen.
    """
    said = report.root.text if report.root is not None else ""
    files = job_files(report)
    for change in changes:
        argument = argument_of(change.key)
        if argument and is_guidance(change.to) and re.search(rf"\b{re.escape(argument)}\b", said):
            there = given_argument(change.key.partition(".")[0], argument, report, files)
        elif change is changes[0] and change.kind == "setting" and _CALL.fullmatch(change.key):
            there = made_call(change.key, report, files)
        else:
            continue
        if there is not None:
            place = {"file": there.name, "line": there.line, "name": argument or f"{change.key}()"}
            told = change.model_copy(
                update={
                    "framework": "code",
                    "kind": "code",
                    "key": f"{there.name}:{there.line}",
                    "to": words("changes.given-since", language, **place),
                    "status": "unverified",
                }
            )
            return [told, *(other for other in changes if other is not change)]
    return list(changes)
