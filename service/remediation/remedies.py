"""Remedies of a named cause.

The rows of the corpus that this very job can apply, filled with the log's facts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from packaging.utils import canonicalize_name

from corpus.expressions import compiled
from corpus.frameworks import known_frameworks
from corpus.keys import flag, last_level, unsigned
from corpus.library import Library
from corpus.schema import ChangeKind, Remedy, Scalar
from ingest.logs.conditions import applies
from ingest.logs.configs.launch import Setting
from ingest.logs.facts import Fact
from ingest.logs.report import CrashReport
from service.remediation.feasibility import key_at, same
from service.remediation.framework_relations import (
    fits_place,
    giving_setting,
    settable_frameworks,
    shown_frameworks,
)
from service.remediation.held_values import held_by
from service.remediation.named_changes import kind_of
from service.remediation.packages.seen import involved_packages
from service.remediation.reach import takes_constants
from service.remediation.rules.packages import distribution
from service.remediation.setting_phases import failing_phase, phase_of
from service.remediation.setting_values import is_guidance

# A message may name several keys; more than this would be a list, not an answer.
MAX_FACTS = 3
# What stands for no value where a program prints its settings.
_NOT_GIVEN = frozenset({"", "none", "null", "false"})
# How prints and records spell settings, those that were made of others among them.
_PRINTED = frozenset({"dump", "yaml", "json"})
# Where a program notes a run, which nothing of it fails of.
_TRACKER = re.compile(r"(?:wandb|swanlab|mlflow|comet_ml|neptune|clearml|trackio|aim)\.")
# Classes that hold options, and those that feed, build or train a model.
_HOLDER = re.compile(
    r"(?i)config|cfg|arg|param|option|setting|namespace"
    r"|loader|dataset|datamodule|trainer|engine|model|net$|llm"
)
_NAME = re.compile(r"[A-Za-z_][\w.-]{1,60}")
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){0,3}")
_FACT = re.compile(r"\{([a-z_0-9]+)\.([a-z_0-9]+)\}")


def applicable(
    cause: str, report: CrashReport, library: Library, settings: Sequence[Setting] = ()
) -> list[Remedy]:
    """Give the cause's remedies for the frameworks of the job, in the order in which to try them."""
    mine, view = settable_frameworks(report), report.view_with(settings)
    known = known_frameworks()
    # What only one says that belongs to every job is a matter of its own settings.
    told = known.common.intersection(report.root.frameworks if report.root is not None else ())
    mine |= told if len(told) == 1 else frozenset()
    # What a job's framework was made from is no package that could be moved.
    taken = {other for name in mine if known.row(name).at_release for other in known.row(name).extends}
    # Where the log does not tell what starts the job, a row that waits for a sign is shown for each of them.
    rows = [
        row
        for row in library.remedies.get(cause, ())
        if (
            row.framework in mine
            or row.framework in known.anywhere
            or (row.framework in known.places and row.when)
        )
        and fits_place(row.framework, row.key, report)
        and not (row.kind == "package" and row.key in taken)
    ]
    fitting = [row for row in rows if applies(row.when, row.unless, view)]
    named = [filled for row in fitting for filled in _named_by(row, report, library, settings)]
    given = [_as_given(row, report, library) for row in named]
    return [_at_version(row, report.version(row.framework), library, settings) for row in given]


def _as_given(row: Remedy, report: CrashReport, library: Library) -> Remedy:
    """Name an argument of a call by the setting that fills it, where a framework makes the call."""
    spec = giving_setting(row.key, report, library) if row.kind == "setting" and not row.own else None
    if spec is None:
        return row
    return row.model_copy(update={"framework": spec.framework, "key": spec.key, "kind": kind_of(spec)})


def _at_version(row: Remedy, version: str | None, library: Library, settings: Sequence[Setting]) -> Remedy:
    """Name the setting as the job does, else as its version does."""
    spec = library.specs.get((row.framework, row.key))
    return (
        row.model_copy(update={"key": key_at(version, spec, settings)})
        if spec is not None and spec.aliases
        else row
    )


def _named_by(
    row: Remedy, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[Remedy]:
    """Give the row for what names its setting: the failing line's values, the job's own names, or facts."""
    if row.holds:
        yield from (_held(row, item, report, library) for item in held_by(row.holds, report, settings))
    elif row.own:
        yield from _of_job(row, report, library, settings)
    else:
        yield from _filled(row, report, library)


def _held(row: Remedy, item: Setting, report: CrashReport, library: Library) -> Remedy:
    """Give the row for a setting that the job has, as the framework's that knows it, else as its own."""
    order = dict.fromkeys((*sorted(settable_frameworks(report)), *known_frameworks().holding_variables))
    found = ((name, library.setting(name, unsigned(item.key))) for name in order)
    owner, spec = next(((name, spec) for name, spec in found if spec is not None), (row.framework, None))
    if spec is not None:
        return row.model_copy(update={"framework": owner, "key": spec.key, "kind": kind_of(spec)})
    kind: ChangeKind = item.spelled if item.spelled in ("flag", "env") else "setting"
    key = flag(item.key) if kind == "flag" else item.key
    return row.model_copy(update={"key": key, "kind": kind, "own": re.escape(item.key)})


def _of_job(
    row: Remedy, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[Remedy]:
    """Give the row for the first setting of the job's own that it is for, none of a framework's.

    What is for another phase than the one that failed is none; what is for that one alone comes first.
    """
    if is_guidance(row.to) and takes_constants(report):
        return  # what fails has its values from no setting
    seen, failing = shown_frameworks(report), failing_phase(report)

    def is_known(item: Setting) -> bool:
        return any(library.setting(framework, unsigned(item.key)) for framework in seen)

    calls = "\n".join(f"{frame} {frame.code}" for event in report.standing for frame in event.frames)
    found = [
        item for item in settings if compiled(row.own).search(item.key) and not _of_other_call(item, calls)
    ]
    if is_guidance(row.to):
        # What takes a path or a name is no switch, whatever its name ends in (`overwrite_output_dir`).
        found = [item for item in found if item.value.strip("'\"").lower() not in _SWITCHED]
    fitting = [item for item in found if phase_of(item.key) in ("", failing)]

    def order(item: Setting) -> tuple[bool, bool, bool]:
        # What a file of the job calls it, before the words of a print; `lr` before `final_lr`.
        match = compiled(row.own).search(last_level(item.key))
        return phase_of(item.key) != failing, match is None or match.start() > 0, not item.file

    if row.beside:
        yield from _next_to(row, fitting, settings)
        return
    for setting in sorted(fitting, key=order):
        is_given = setting.value.strip("'\"").lower() not in _NOT_GIVEN
        longer = (item for item in settings if _may_make(item, setting) and is_known(item))
        is_switched = isinstance(row.to, bool)
        if is_switched and same(setting.value, row.to):
            continue
        if not is_known(setting) and (is_given or row.rule or is_switched) and next(longer, None) is None:
            kind: ChangeKind = "flag" if setting.key.startswith("--") else "setting"
            yield row.model_copy(update={"key": setting.key, "kind": kind})
            return


def _next_to(row: Remedy, found: Sequence[Setting], settings: Sequence[Setting]) -> Iterator[Remedy]:
    """Give the row for the one level at which a key was found, or whose name the job sets elsewhere."""
    above = {item.key.rpartition(".")[0]: item for item in found if item.file}
    named = {name.strip(" '\"") for item in settings for name in item.value.split(",")}
    levels = [level for level in above if last_level(level) in named] if len(above) > 1 else list(above)
    if len(levels) == 1:
        yield row.model_copy(update={"key": f"{levels[0]}.{row.key}".lstrip("."), "kind": "setting"})


_SWITCHED = frozenset({"true", "false"})


def _of_other_call(item: Setting, calls: str) -> bool:
    """Tell whether a setting is an argument that code gives to a class which the failing calls do not show.

    What holds options, or feeds and trains a model, may be of any failure; what notes the run is of its own.
    """
    if _TRACKER.match(item.scope):
        return _TRACKER.search(calls.replace("/", ".")) is None
    call = item.scope.rpartition(".")[2]
    is_argument = bool(item.file) and item.spelled == "dump" and call[:1].isupper()
    return is_argument and not _HOLDER.search(call) and call not in calls


def _may_make(item: Setting, other: Setting) -> bool:
    """Tell whether a print may show the second setting because the first one has made it.

    A trainer prints `train_batch_size` beside `per_device_train_batch_size`, and takes it from nobody.
    """
    is_printed = other.spelled in _PRINTED and (other.file, other.spelled) == (item.file, item.spelled)
    return is_printed and item.value == other.value and item.key.endswith(f"_{other.key}")


def _filled(row: Remedy, report: CrashReport, library: Library) -> Iterator[Remedy]:
    """Put the log's facts where the row names them; what the catalogue does not know is none to propose."""
    text = f"{row.key} {row.to}"
    places = _FACT.findall(text) if "{" in text else ()
    if not places:
        yield row
        return
    for facts in _stating(places, report):
        rows = [made for fact in facts[:MAX_FACTS] if (made := _made(row, fact, library)) is not None]
        yield from rows
        # A key may stand whole below the root; a package of another line is another matter.
        if rows or (facts and row.kind == "package"):
            return


def _made(row: Remedy, fact: Fact, library: Library) -> Remedy | None:
    key, to = (_with(fact, text) for text in (row.key, row.to))
    if row.kind == "package":
        # A name that only looks like a package may be anybody's on the index: install what is known, or
        # nothing.
        wanted = canonicalize_name(distribution(str(key)))
        installing = known_frameworks().with_field("installs")
        packages = [name for framework in sorted(installing) for name in library.keys.get(framework, ())]
        named = [name for name in packages if canonicalize_name(name.split("[")[0]) == wanted]
        known = min(named, key=len, default=None)
        # Words on where it may come from install nothing.
        if known is None and is_guidance(to) and _NAME.fullmatch(str(key)):
            known = distribution(str(key))
    elif row.kind == "command":
        # A shell reads a command: the log's words are put into none, but for a version.
        told = [str(fact.fields[name]) for _, name in _FACT.findall(f"{row.key} {row.to}")]
        known = str(key) if all(map(_VERSION.fullmatch, told)) else None
    else:
        # A setting may stand below a job's own sections; a leaf alone may be anybody's, unless that is all
        # that the message names.
        parts = str(key).split(".")
        names = [str(key), *(".".join(parts[place:]) for place in range(1, len(parts) - 1))]
        if row.kind == "flag":
            names.append(flag(str(key).replace("_", "-")))  # the program's code has its name without signs
        known = next((name for name in names if (row.framework, name) in library.specs), None)
    return None if known is None else row.model_copy(update={"key": known, "to": to})


def _stating(places: Sequence[tuple[str, str]], report: CrashReport) -> tuple[list[Fact], list[Fact]]:
    """Give the facts that have all that a row names, each wording once.

    The root's own, and those of all lines.
    """
    kind, fields = places[0][0], {field for _, field in places}
    facts = (*report.facts, *involved_packages(report))
    found = [fact for fact in facts if fact.kind == kind and fields <= fact.fields.keys()]
    own = [fact for fact in found if report.root is not None and fact.line == report.root.line]
    return _once(own, fields), _once(found, fields)


def _once(facts: Sequence[Fact], fields: Collection[str]) -> list[Fact]:
    once = {tuple(str(fact.fields[name]) for name in sorted(fields)): fact for fact in reversed(facts)}
    return sorted(once.values(), key=lambda fact: fact.line)


def _with(fact: Fact, text: Scalar) -> Scalar:
    """Fill a template with one fact's fields; one that is a fact alone keeps its type."""
    if isinstance(text, str) and (alone := _FACT.fullmatch(text)):
        return fact.fields[alone[2]]
    return _FACT.sub(lambda match: str(fact.fields[match[2]]), text) if isinstance(text, str) else text
