"""Keys that stand on another level than the one on which the job's framework reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.keys import canonical
from corpus.library import Library, fits
from corpus.schema import SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.feasibility import value_of


@dataclass(frozen=True)
class Rename:
    """A key that the job sets in vain, and the name that its version has for it.

    `reads` tells that the job's own code asks for that name, `is_level` that the key holds others, and has no
    value of its own.
    """

    framework: str
    old: str
    spec: SettingSpec
    new: str
    known: bool
    value: str | None
    reads: bool = False
    is_level: bool = False


def moved_keys(
    framework: str, old: str, version: str | None, library: Library, settings: Sequence[Setting]
) -> Iterator[Rename]:
    """Give the setting that has a wrong key's name on another level below the same one, if there is one.

    `worker.actor.fsdp.offload` is no `worker.ref.offload`: another part of the job has that.
    """
    parent, _, leaf = canonical(old).rpartition(".")
    above = parent.rpartition(".")[0]
    # A level deeper, or beside the wrong one where the level above is that of one part of the job.
    homes = [re.escape(each) for each in (parent, above if "." in above else "") if each]
    if not homes:
        return
    there = re.compile(rf"(?:{'|'.join(homes)})\.\w+\.{re.escape(leaf)}")
    found = {
        name: spec
        for spec in library.specs.values()
        if spec.framework == framework
        for name, versions in (
            (spec.key, spec.versions),
            *((alias.key, alias.versions) for alias in spec.aliases),
        )
        if there.fullmatch(canonical(name)) and canonical(name) != canonical(old) and fits(version, versions)
    }
    if len(found) == 1 and value_of(next(iter(found)), settings) is None:
        ((new, spec),) = found.items()
        yield Rename(framework, old, spec, new, False, value_of(old, settings))


def siblings(
    rename: Rename, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[Rename]:
    """Give the keys beside one that moves which stand on the wrong level as well: they fail next."""
    (wrong, _, leaf), (right, _, last) = rename.old.rpartition("."), rename.new.rpartition(".")
    if leaf != last or not wrong or wrong == right:
        return
    version = report.version(rename.framework)
    for setting in settings:
        parent, _, name = setting.key.rpartition(".")
        new = f"{right}.{name}"
        spec = library.setting(rename.framework, new, version)
        is_wrong = canonical(parent) == canonical(wrong) and canonical(name) != canonical(leaf)
        is_unknown = library.setting(rename.framework, setting.key, version) is None
        if setting.file and spec is not None and is_wrong and is_unknown and value_of(new, settings) is None:
            yield Rename(rename.framework, setting.key, spec, new, False, setting.value)
