"""Remedies of a named cause: the rows of the corpus that this very job can apply, filled with the log's facts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.utils import canonicalize_name

from corpus.library import Library
from corpus.schema import Remedy
from ingest.logs.conditions import holds
from ingest.logs.report import CrashReport
from service.reasoning.rules.packages import distribution

# What belongs to no framework, so that a log rarely names it: variables, packages, the machine.
_ANYWHERE = frozenset({"env", "nccl", "pip", "host", "linux", "python"})
_ENGINES = frozenset({"vllm", "sglang"})
_TRAINERS = frozenset({"transformers", "trl", "accelerate"})
_VERL = _ENGINES | _TRAINERS | {"verl", "deepspeed", "megatron"}
# What a framework drives by itself: its log is full of their frames, but their settings are out of the user's hands.
_DRIVES = {
    "easyr1": _VERL, "tinyzero": _VERL, "simplerl-reason": _VERL, "search-r1": _VERL, "verl": _VERL - {"verl"},
    "openrlhf": _ENGINES | _TRAINERS | {"deepspeed"}, "trl": _ENGINES, "ms-swift": _ENGINES, "llamafactory": _ENGINES | {"trl"},
    "axolotl": _ENGINES | {"trl"}, "lightning": frozenset({"transformers"}), "megatron": _TRAINERS,
    "vllm": _TRAINERS | {"deepspeed"}, "sglang": _TRAINERS | {"deepspeed"},
}
_FACT = re.compile(r"\{([a-z_0-9]+)\.([a-z_0-9]+)\}")


def settable(report: CrashReport) -> frozenset[str]:
    """Name the frameworks of the log whose settings the job's user makes."""
    seen = {found.name for found in report.frameworks}
    # An engine is hidden by the trainer that drives it; alone, it hides what it is built on.
    drivers = (seen & _DRIVES.keys()) - _ENGINES or seen & _ENGINES
    return frozenset(seen.difference(*(_DRIVES[name] for name in drivers)))


def applicable(cause: str, report: CrashReport, library: Library) -> list[Remedy]:
    """Give the cause's remedies for the frameworks of the job, in the order in which to try them."""
    shown, view = settable(report), report.view()
    rows = [row for row in library.remedies.get(cause, ()) if _is_for(row, shown)]
    fitting = [row for row in rows if not any(holds(condition, view) for condition in row.unless)]
    return [filled for row in fitting for filled in _filled(row, report, library)]


def _is_for(row: Remedy, shown: frozenset[str]) -> bool:
    # A framework's own variable is read wherever that framework runs, whoever drives it.
    return row.framework in shown or row.framework in _ANYWHERE


def _filled(row: Remedy, report: CrashReport, library: Library) -> Iterator[Remedy]:
    """Put the log's facts where the row names them; a package that the catalogue does not know is none to propose."""
    if "{" not in f"{row.key}{row.to}":
        yield row
        return
    key, to = (_with_facts(text, report) for text in (row.key, row.to))
    if key is None or to is None:
        return
    if row.kind != "package":
        yield row.model_copy(update={"key": key, "to": to})
        return
    # A name that only looks like a package may be anybody's on the index: install what is known, or nothing.
    known = _package(str(key), library)
    if known is not None:
        yield row.model_copy(update={"key": known, "to": to})


def _with_facts(text: object, report: CrashReport) -> object:
    """Fill a template; None where a fact is missing."""
    if not isinstance(text, str):
        return text
    values = [_stated(match[1], match[2], report) for match in _FACT.finditer(text)]
    if None in values:
        return None
    filled = iter(values)
    return _FACT.sub(lambda _: str(next(filled)), text)


def _stated(kind: str, field: str, report: CrashReport) -> str | None:
    line = report.root.line if report.root else 0
    found = [fact for fact in report.facts if fact.kind == kind and field in fact.fields]
    ranked = sorted(found, key=lambda fact: (fact.line != line, fact.line))
    return str(ranked[0].fields[field]) if ranked else None


def _package(name: str, library: Library) -> str | None:
    """Give the catalogue's name of the package that a module, or a requirement, comes from."""
    wanted = canonicalize_name(distribution(name))
    keys = [key for framework, key in library.knobs if framework == "pip"]
    return next((key for key in keys if canonicalize_name(key.split("[")[0]) == wanted), None)
