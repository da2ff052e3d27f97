"""What the job lacked and its files at hand have: arguments, calls, packages on a list."""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from corpus.keys import canonical, levels_above
from corpus.message import joined, words
from corpus.schema import Language
from ingest.configfiles.settings import Setting
from ingest.logs.report import CrashReport
from service.remediation.code_edits.present_cures import given_argument, made_call
from service.remediation.own_edits import job_files
from service.remediation.ranking import argument_of
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange

_OF_FILES = frozenset({"yaml", "json", "toml", "ini"})
# A function of a package, which code is to call.
_CALL = re.compile(r"[a-z]\w*(?:\.[a-z]\w*){1,4}")


def given_since(
    changes: Sequence[ProposedChange], report: CrashReport, language: Language
) -> list[ProposedChange]:
    """Say first of what the job lacked that its code has it by now.

    That is an argument which the failing message names, or a call that is proposed before all else. What
    else would do without the argument then only leads away from what the job's owner has chosen.
    """
    said = report.root.text if report.root is not None else ""
    files = job_files(report)
    for change in changes:
        argument = argument_of(change.key)
        if argument and is_guidance(change.to) and re.search(rf"\b{re.escape(argument)}\b", said):
            there = given_argument(change.key.partition(".")[0], argument, report, files)
        elif argument and change is changes[0] and not is_guidance(change.to):
            call = change.key.rpartition(".")[0].rpartition(".")[2]
            there = given_argument(call, argument, report, files, str(change.to)) if call else None
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


def gone_since(
    changes: Sequence[ProposedChange], report: CrashReport, settings: Sequence[Setting], language: Language
) -> list[ProposedChange]:
    """Say of a key that is to go that the files at hand do not set it: it was in others that ran."""
    if not any(item.file and item.spelled in _OF_FILES for item in settings):
        return list(changes)
    given = {
        canonical(key)
        for item in (*settings, *report.settings)
        for key in (item.key, *levels_above(item.key))
    }
    found = []
    for change in changes:
        key = canonical(change.key)
        is_set = any(each == key or each.endswith(f".{key}") for each in given) or key in report.command[1]
        if change.removes and change.kind == "setting" and not is_set:
            why = words("changes.gone-since", language, key=change.key)
            change = change.model_copy(update={"why": joined(change.why, why, language)})
        found.append(change)
    return found


def listed_already(
    changes: Sequence[ProposedChange], settings: Sequence[Setting], language: Language
) -> list[ProposedChange]:
    """Say of each package that the job's own list has it as it is proposed: the run had it otherwise."""
    lists = [item for item in settings if item.file and item.spelled == "package"]
    found = []
    for change in changes:
        # One list may be what the run's environment was made from, and another not.
        named = (item for item in lists if canonicalize_name(item.key) == canonicalize_name(change.key))
        met = (item for item in named if _is_met(item.value, str(change.to)))
        item = next(met, None) if change.kind == "package" else None
        if item is not None:
            why = words("changes.listed", language, file=item.file, spec=f"{item.key}{item.value}")
            found.append(change.model_copy(update={"why": joined(change.why, why, language), "from_": None}))
        else:
            found.append(change)
    return found


def _is_met(listed: str, wanted: str) -> bool:
    """Tell whether the one release that a list names is among those that are wanted."""
    pinned = re.fullmatch(r"===?\s*([\w.+!-]+)", listed.strip())
    if wanted == "install":
        return True
    try:
        return pinned is not None and SpecifierSet(wanted).contains(pinned[1], prereleases=True)
    except InvalidSpecifier:
        return False
