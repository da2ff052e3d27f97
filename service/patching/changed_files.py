"""Files of a job that are no longer as the run read them: a setting of theirs is not what the run printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from corpus.keys import canonical
from corpus.message import words
from corpus.schema import Language
from ingest.configfiles import reader
from ingest.configfiles.formats import CODE
from ingest.configfiles.settings import Setting
from ingest.logs.report import CrashReport
from service.patching.patches import ConfigFile, FileEdit
from service.patching.target import PatchTarget
from service.patching.used_files import is_record
from service.remediation.feasibility import same
from service.remediation.setting_values import number_of, typed_value
from service.schemas.diagnosis import ProposedChange

# Settings of one file that are others than the run's, beside the one to change: then another file ran.
OTHERS = 2


class ChangedFile(NamedTuple):
    """A setting that a file to be patched gives another value than the run had."""

    name: str
    key: str
    now: str
    then: str
    others: int

    def holds(self, to: object) -> bool:
        """Tell whether what cures the run's value cures the file's: it goes the same way, and as far."""
        now, then, new = (number_of(str(value), "float") for value in (self.now, self.then, to))
        if now is None or then is None or new is None or self.others >= OTHERS:
            return False
        return (new < now and new < then) or (new > now and new > then)

    def has_gone(self, to: object) -> bool:
        """Tell whether the file goes from the run's value as far as what cures it, or further.

        What code has of an option is only its default, which the run's command may give again.
        """
        now, then, new = (number_of(str(value), "float") for value in (self.now, self.then, to))
        if now is None or then is None or new is None or self.name.endswith(CODE):
            return False
        return then > new >= now or then < new <= now


def changed_file(
    edits: Sequence[FileEdit],
    targets: Sequence[PatchTarget],
    report: CrashReport,
    files: Sequence[ConfigFile] = (),
) -> ChangedFile | None:
    """Give the first file to be edited in which the first target's setting is not what the run had.

    That is what it printed, or what a tracker wrote of it, whose record is among the job's `files`.
    """
    wanted = {canonical(name) for name in targets[0].names} if targets else set()
    told = _told(report, files) if edits else {}
    for edit in edits:
        found = list(_otherwise(edit.file, told))
        mine = next((item for item in found if canonical(item[0]) in wanted), None)
        if mine is not None:
            key, now, then = mine
            return ChangedFile(edit.file.name, key, now, then, len({item[0] for item in found} - {key}))
    return None


def tell_changed(
    changes: Sequence[ProposedChange], changed: ChangedFile, language: Language
) -> tuple[ProposedChange, ...]:
    """Say of the first change that the file is not as the run read it, and what the run had."""
    first, *others = changes
    if changed.has_gone(first.to):
        # Reckoned from the run's value, a change would take back what was done since.
        why = words(
            "changes.file-goes-further", language, file=changed.name, now=changed.now, then=changed.then
        )
        update = {"to": typed_value(changed.now), "why": why, "from_": changed.then, "proof": None}
        return (first.model_copy(update=update), *others)
    # What code has of an option is its default, which a command overrides.
    said = "changes.default-overridden" if changed.name.endswith(CODE) else "changes.file-changed"
    why = words(said, language, file=changed.name, now=changed.now, then=changed.then)
    update = {"why": f"{first.why} {why}".strip(), "from_": changed.then}
    return (first.model_copy(update=update), *others)


def holder_of(target: PatchTarget, files: Sequence[ConfigFile]) -> str:
    """Name a file that has the target's value wherever it sets it; empty where none has.

    The run had another value: it was made before the file was as it is.
    """
    wanted = {canonical(name) for name in target.names}
    for file in files:
        given = [item.value for item in reader.read(file.text, file.name) if canonical(item.key) in wanted]
        if given and all(same(value, target.to) for value in given):
            return file.name
    return ""


def tell_held(changes: Sequence[ProposedChange], file: str, language: Language) -> tuple[ProposedChange, ...]:
    """Say of the first change that a file has its value already, so that the job is only to be started."""
    first, *others = changes
    why = words("changes.file-has-it", language, file=file)
    return (first.model_copy(update={"why": f"{first.why} {why}".strip()}), *others)


def _told(report: CrashReport, files: Sequence[ConfigFile]) -> Mapping[str, Sequence[str]]:
    """Give the values that the run had, as it printed them and as a tracker wrote them down."""
    records = (setting for file in files if is_record(file) for setting in reader.read(file.text, file.name))
    told: dict[str, list[str]] = {}
    for setting in (*report.settings, *records):
        told.setdefault(canonical(setting.key), []).append(setting.value)
    return told


def _otherwise(file: ConfigFile, told: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """Give the settings of a file that the run had with other values: key, value here, value there."""
    given: dict[str, list[Setting]] = {}
    for setting in reader.read(file.text, file.name):
        given.setdefault(canonical(setting.key), []).append(setting)
    for key, settings in given.items():
        then = told.get(key, [])
        # What a shell fills in is not known; of several commands with the key one may be the run's.
        is_plain = all(
            "$" not in item.value and number_of(item.value, "float") is not None for item in settings
        )
        if then and is_plain and not any(same(value, item.value) for value in then for item in settings):
            yield settings[0].key, settings[0].value, then[0]
