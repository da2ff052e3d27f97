"""Options of a former release that are parts of one option's JSON by now: `folds` of the catalogue."""

from __future__ import annotations

import json
from collections.abc import Sequence

from corpus.keys import canonical, unsigned
from corpus.library import Library, fits
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.feasibility import value_of
from service.remediation.framework_relations import settable_frameworks
from service.remediation.moved_keys import Rename
from service.remediation.refusals import unknown_options
from service.remediation.setting_values import typed_value


def with_folded(
    renames: Sequence[Rename], report: CrashReport, library: Library, settings: Sequence[Setting]
) -> list[Rename]:
    """Put first the option that holds what the program's refused ones were, with their values as its JSON.

    The first of them makes room for it; the others are refused as well, and go. None where the job has that
    option beside them already, or where a value of theirs is not known.
    """
    refused = [option.key for option in unknown_options(report)]
    found = []
    for spec in library.specs.values() if refused else ():
        framework, version = spec.framework, report.version(spec.framework)
        if not spec.folds or framework not in settable_frameworks(report) or not fits(version, spec.versions):
            continue
        parts = {canonical(old): name for old, name in spec.folds.items()}
        olds = [key for key in refused if canonical(key) in parts]
        given = {parts[canonical(key)]: typed_value(value_of(key, settings)) for key in olds}
        if not olds or None in given.values() or value_of(spec.key, settings) is not None:
            continue
        found.append(Rename(framework, unsigned(olds[0]), spec, spec.key, True, json.dumps(given)))
    told = {canonical(old) for rename in found for old in rename.spec.folds}
    return [*found, *(rename for rename in renames if canonical(rename.old) not in told)]
