"""The build of PyTorch that a driver, or a card, can run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from packaging.version import Version

from corpus.message import in_both
from corpus.releases import TorchBuild, allows, known_builds, releases_of
from corpus.schema import Text
from ingest.logs.report import CrashReport

_TORCH = "torch"
# CUDA as the driver counts it: 12020 is 12.2.
_FOUND = re.compile(r"driver on your system is too old \(found version (?P<major>\d{1,2})(?P<minor>0\d)0\)")
_DRIVER = re.compile(r"Driver Version: (?P<driver>\d{3})\.")
_CARD = re.compile(
    r"with CUDA capability sm_(?P<arch>\d{2,3}) is not compatible|of cuda capability (?P<dotted>\d{1,2}\.\d)"
)
_LOCAL = re.compile(r"cu(?P<number>\d{3})")


@dataclass(frozen=True)
class BuildMove:
    """A version of PyTorch whose build runs, as a specifier, and why."""

    specifier: str
    why: Text


def for_driver(report: CrashReport, seen: Mapping[str, Version]) -> BuildMove | None:
    """Give the PyTorch that the installed driver runs; None where the log does not tell the driver."""
    most = _newest_cuda(report, seen)
    if most is None:
        return None
    needed = next((row.driver for row in known_builds().drivers if row.cuda == most + 1), None)
    chosen = _nearest(seen.get(_TORCH), lambda build: build.cuda // 10 <= most)
    if chosen is None or needed is None:
        return None
    why = in_both("packages.driver-runs", cuda=most, newer=most + 1, needed=needed)
    return BuildMove(chosen, why)


def for_card(report: CrashReport, seen: Mapping[str, Version]) -> BuildMove | None:
    """Give the PyTorch that has code for the card; None where the log does not tell the card."""
    told = (found for text in report.texts.values() for found in _CARD.finditer(text))
    card = next((int((found["arch"] or found["dotted"]).replace(".", "")) for found in told), None)
    if card is None:
        return None
    present = seen.get(_TORCH)
    if present is not None:
        cuda = _cuda_of(present)
        rows = (row for row in known_builds().torch if row.cuda == cuda and allows(row.versions, present))
        if any(row.least <= card <= row.most for row in rows):
            return None
    chosen = _nearest(present, lambda build: build.least <= card <= build.most)
    if chosen is None:
        return None
    why = in_both("packages.card-needs", card=f"{card // 10}.{card % 10}", version=chosen)
    return BuildMove(chosen, why)


def _newest_cuda(report: CrashReport, seen: Mapping[str, Version]) -> int | None:
    """Give the newest major version of CUDA that the driver runs, where the job's own is beyond it."""
    own = _cuda_of(seen[_TORCH]) if _TORCH in seen else None
    for text in report.texts.values():
        most = None
        if found := _FOUND.search(text):
            most = int(found["major"])
        elif found := _DRIVER.search(text):
            runs = [row.cuda for row in known_builds().drivers if row.driver <= int(found["driver"])]
            most = max(runs, default=None)
        if most is not None and (own is None or own // 10 > most):
            return most
    return None


def _cuda_of(torch: Version) -> int | None:
    """Give the CUDA of a build: as its local version says, else that of the index's own."""
    local = _LOCAL.fullmatch(torch.local or "")
    if local is not None:
        return int(local["number"])
    rows = known_builds().torch
    return next((row.cuda for row in rows if row.default and allows(row.versions, torch)), None)


def _nearest(present: Version | None, fits: Callable[[TorchBuild], bool]) -> str | None:
    """Give the nearest version whose build fits, of the package index if it can be, as a specifier.

    The newest one where the present version is not known.
    """
    table = releases_of(_TORCH)
    versions = [release.version for release in table.releases] if table else []
    known = [place for place, version in enumerate(versions) if present is None or version <= present]
    here = known[-1] if known else 0
    for of_index in (True, False):
        rows = [row for row in known_builds().torch if row.default >= of_index and fits(row)]
        fitting = {
            place: row
            for place, version in enumerate(versions)
            for row in rows
            if allows(row.versions, version)
        }
        if fitting:
            place = min(fitting, key=lambda place: (abs(place - here), -place))
            if (
                of_index
                and present is not None
                and set(range(place, len(versions))) <= fitting.keys()
                and place > here
            ):
                return f">={versions[place]}"
            return f"=={versions[place]}" if of_index else f"=={versions[place]}+cu{fitting[place].cuda}"
    return None
