"""Whose settings the job's user makes: a log shows many frameworks, and most are driven by another one."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from corpus.frameworks import KnownFramework, cued_frameworks, known_frameworks
from corpus.library import Library
from corpus.message_atlas import shipped
from corpus.schema import SettingSpec
from ingest.configfiles.remarks import without_remarks
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own

# Variables of a launcher; an engine that serves starts its processes itself, and reads none of them.
_LAUNCHING = frozenset({"MASTER_ADDR", "MASTER_PORT", "NPROC_PER_NODE"})
_IMPORT = re.compile(r"(?m)^\s{0,8}(?:from|import) ([A-Za-z]\w{1,40})\b")


def runs(framework: str, key: str, reader: str, seen: Collection[str]) -> bool:
    """Tell whether a job that shows the frameworks `seen` reads a setting of another one.

    `reader` is whose variable it is.
    """
    known = known_frameworks()
    cluster = {framework, known.reader_of(key)} & known.clusters
    if cluster:
        started_by = {row.id for row in known.rows.values() if cluster & set(row.starts)}
        return bool((cluster | started_by) & set(seen))
    if framework in known.common:
        return reader == "" or reader in known.common or reader in seen
    return framework in seen


def fits_place(framework: str, key: str, report: CrashReport) -> bool:
    """Tell whether a setting outside of the trainer can be one of this job, by what its log shows in use."""
    known, seen = known_frameworks(), shown_frameworks(report)
    # The engine that runs by itself; the empty string where there is none.
    engines = frozenset() if known.trainers & seen else seen & known.engines
    driven = {other for name in engines for other in known.row(name).drives}
    engine = next((name for name in known.rows if name in engines - driven), "")
    is_rank_option = known.row(framework).starts_ranks and key.startswith("--")
    if engine and (key in _LAUNCHING or is_rank_option):
        return False
    reader = known.reader_of(key) or (framework if framework in known.clusters else "")
    if reader and seen:
        running = seen.union(*(known.row(name).starts for name in seen))
        return reader in running and not (reader in known.engines and engine not in ("", reader))
    # Of what starts a job it uses one, so that where one is seen the others are none of its own.
    return framework not in known.places or framework in seen or not seen & known.places


def settable_frameworks(report: CrashReport) -> frozenset[str]:
    """Name the frameworks of the log whose settings the job's user makes."""
    known, seen = known_frameworks(), shown_frameworks(report)
    if (called := _called_engine(report.root)) in seen:
        # The trainer that would drive the engine has not made this one, and reads no setting of it.
        seen -= {name for name in seen if called in known.row(name).drives} - {called}
    # An engine is hidden by the trainer that drives it; alone, it hides what it is built on.
    drivers = (seen & known.with_field("drives")) - known.engines or seen & known.engines
    return frozenset(seen.difference(*(set(known.row(name).drives) - {name} for name in drivers)))


def _called_engine(root: Event | None) -> str:
    """Name the engine that the job's own code itself called, where no trainer stands above it."""
    frames = root.frames if root is not None else ()
    own = [place for place, frame in enumerate(frames) if is_own(frame) and frame.line]
    if not own or own[-1] + 1 == len(frames):
        return ""
    known = known_frameworks()
    called = known.engines.intersection(cued_frameworks(frames[own[-1] + 1].file))
    above = {name for frame in frames[: own[-1]] for name in cued_frameworks(frame.file)}
    return next(iter(called), "") if len(called) == 1 and not above & known.trainers else ""


def giving_setting(key: str, report: CrashReport, library: Library) -> SettingSpec | None:
    """Give the setting of a framework that fills an argument, where that framework made the failing call.

    The user of a trainer hands no argument to the loader or the optimizer that it makes: what is called
    `DataLoader.num_workers` is `dataloader_num_workers` there. None where the job's own code makes the call.
    """
    rows = [row for row in known_frameworks().rows.values() if key in row.gives]
    rows = [row for row in rows if _makes_the_call(row, report.root)]
    # Whose settings the user makes is looked for in all files of the job: only where it is asked.
    mine = settable_frameworks(report) if rows else frozenset[str]()
    for row in rows:
        # What extends a framework has its settings as its own.
        owners = [
            name
            for name, other in known_frameworks().rows.items()
            if name in mine and row.id in (name, *other.extends)
        ]
        found = (library.setting(name, row.gives[key], report.version(name)) for name in owners)
        if spec := next(filter(None, found), None):
            return spec
    return None


def _makes_the_call(row: KnownFramework, root: Event | None) -> bool:
    """Tell whether a framework called what failed: below the job's own code, or as the whole program."""
    if root is None:
        return False
    own = [place for place, frame in enumerate(root.frames) if is_own(frame) and frame.line]
    below = root.frames[own[-1] + 1 :] if own else root.frames
    is_program = row.layer == "trainer"
    return not (own and is_program) and any(row.id in cued_frameworks(frame.file) for frame in below)


def shown_frameworks(report: CrashReport) -> frozenset[str]:
    """Name the frameworks of the log, and those whose settings they take as their own."""
    known = known_frameworks()
    seen = {found.name for found in report.frameworks}.union(
        *(_launched(without_remarks(text)) for text in report.launches)
    )
    if report.root is not None and not seen & (known.trainers | known.engines):
        seen |= _told_by(report.root)
    named = seen.union(*(known.row(name).extends for name in seen))
    implied = {row.id for row in known.rows.values() if row.shown_by and set(row.shown_by) <= named}
    return frozenset(named | implied)


def _launched(text: str) -> frozenset[str]:
    """Name the frameworks that a file of the job speaks of, and the trainers that its code imports."""
    known = known_frameworks()
    imported = frozenset(_IMPORT.findall(text)) & known.trainers
    return imported.union(cued_frameworks(text))


def _told_by(root: Event) -> frozenset[str]:
    """Name the framework that a message alone shows, pasted without its calls: by its row, or its source.

    Of trainers whose rows share a message it is the one that the others drive: they were made from its code.
    """
    known = known_frameworks()
    told = known.trainers.union(known.engines).intersection(root.frameworks)
    if len(told) > 1 and told <= known.trainers:
        told = frozenset(name for name in told if not told.intersection(known.row(name).drives) - {name})
    if len(told) == 1:
        return told
    # What only a library says, or anybody, may be worded by a program as well; its calls would tell.
    worded = frozenset[str]() if root.frames else _worded_by(root.body)
    rows = told or frozenset(root.frameworks) - known.common
    worded = worded & rows if rows else worded
    named = worded & known.rows.keys() - known.common if len(worded) == 1 else frozenset[str]()
    if told or named:
        return named
    # Else the job's own program has called the library; where several say it, the common one.
    libraries = known.of_layer("library").intersection(root.frameworks)
    return libraries if len(libraries) == 1 else libraries & known.common


@lru_cache(maxsize=64)
def _worded_by(message: str) -> frozenset[str]:
    """Name the frameworks, or the packages that are none, whose sources fail with a message."""
    matches = shipped().look_up(message)
    sites = (site for match in matches[:1] for site in match.sites if site.kind != "log")
    return frozenset(site.framework or site.package for site in sites)


def option_owner(report: CrashReport) -> str:
    """Name the framework that a job's own options count for, the first one that it configures.

    What only places or launches the program has options of its own.
    """
    mine, rows = settable_frameworks(report), known_frameworks().rows
    shown = (
        found.name for found in report.frameworks if found.name in mine and rows[found.name].layer != "place"
    )
    return next(shown, "python")
