"""Changes of keys that the failing message names: another name, one that is to go, a value that is taken."""

from __future__ import annotations

from collections.abc import Sequence

from corpus.frameworks import known_frameworks
from corpus.keys import canonical
from corpus.library import Library
from corpus.message import words
from corpus.schema import ChangeKind, Language, Scalar, SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.feasibility import value_of
from service.remediation.framework_relations import settable_frameworks
from service.remediation.named_options import NamedOption
from service.remediation.renames import Rename
from service.remediation.setting_values import is_guidance, misfit_reason, typed_value
from service.schemas.diagnosis import ProposedChange

_KIND: dict[str, ChangeKind] = {"flag": "flag", "env": "env", "package": "package", "command": "command"}


def kind_of(spec: SettingSpec) -> ChangeKind:
    """Give the kind of a change of a setting, as it is spelled."""
    return _KIND.get(spec.spelled, "setting")


def renamed_change(rename: Rename, language: Language) -> ProposedChange:
    """Propose the right name with the job's own value."""
    spec, value = rename.spec, typed_value(rename.value)
    # A value that was masked is the job's own secret: the mask must not take its place.
    fitting = (
        value is not None
        and not misfit_reason(value, spec)
        and not is_guidance(value)
        and "[redacted:" not in str(value)
    )
    why = "changes.renamed" if rename.known else "changes.misspelt"
    if canonical(rename.old) == canonical(rename.new):
        why = "changes.signed"
    return ProposedChange(
        framework=rename.framework,
        kind=kind_of(spec),
        key=rename.new,
        to=value if fitting and value is not None else words("changes.same-value", language, old=rename.old),
        why=words(why, language, old=rename.old, new=rename.new),
        replaces=rename.old,
        status="verified" if fitting else "unverified",
    )


def refusal_change(
    option: NamedOption,
    report: CrashReport,
    library: Library,
    settings: Sequence[Setting],
    language: Language,
) -> ProposedChange:
    """Propose what a program says of an option that it refuses; the program itself tells that it has it."""
    mine = settable_frameworks(report)
    shown = [found.name for found in report.frameworks if found.name in mine]
    known = [name for name in shown if library.setting(name, option.key)]
    # A library that the program uses takes no options; what no framework knows is the program's own.
    owner = next(
        iter([*known, *(name for name in shown if name not in known_frameworks().generic)]), "python"
    )
    present = option.present if option.present is not None else value_of(option.key, settings)
    to: Scalar = words("changes.to-allowed", language)
    if option.unknown:
        to = words("changes.right-name", language)
    elif option.required:
        to = words("changes.to-given", language)
    elif option.choices:
        to = option.nearest or words("changes.to-one-of", language, choices=", ".join(option.choices))
    spec = library.setting(owner, option.key, report.version(owner))
    why = "changes.refused" if option.unknown else "changes.named"
    return ProposedChange(
        framework=owner,
        kind="flag" if option.key.startswith("--") else "setting",
        key=option.key,
        from_=present,
        to=to,
        why=words(why, language, key=option.key),
        # The program's own words tell that it has the option and takes the value; the catalogue need not.
        status="verified" if option.nearest and (spec is not None or present is not None) else "unverified",
    )
