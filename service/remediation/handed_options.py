"""Keys of a file that a call hands on as arguments: those that it does not take, and those that it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from corpus.keys import canonical, last_level
from corpus.library import Library
from corpus.message import in_both
from corpus.package_classes import modules_with
from corpus.schema import SettingSpec
from ingest.logs.configs.handed_keys import HandedKey, missing_keys, unknown_key
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.remediation.framework_relations import settable_frameworks
from service.remediation.moved_keys import Rename
from service.remediation.named_options import NamedOption

# How alike two names are of which one is a slip of the other.
NEAR = 0.88


def handed_renames(report: CrashReport, library: Library, settings: Sequence[Setting]) -> list[Rename]:
    """Give the name that a key was meant for which the failing call refuses, where settings are called so.

    A slip of a letter may be of any framework's name; one that lacks a word is of the called class's package,
    or of the job's frameworks where no package has that class.
    """
    unknown = _unknown(report, settings)
    if unknown is None:
        return []
    above, _, old = unknown.key.rpartition(".")
    given = {canonical(item.key) for item in settings}
    names = {last_level(key) for _, key in library.specs if "[" not in key}
    is_name = canonical(old) in names
    near = [] if is_name else get_close_matches(canonical(old), names, n=1, cutoff=NEAR)
    # One and several of a thing are two names.
    near = [name for name in near if name.rstrip("s") != canonical(old).rstrip("s")]
    mine = modules_with(unknown.callee) or settable_frameworks(report)
    own = {last_level(key) for framework, key in library.specs if framework in mine}
    more = [name for name in own if canonical(old) not in own and _lacks_one_word(canonical(old), name)]
    meant = near or (more if len(more) == 1 else [])
    new = f"{above}.{meant[0]}" if above and meant else next(iter(meant), "")
    if not new or canonical(new) in given:
        return []
    spec = SettingSpec(framework="python", key=new, type="any", spelled="yaml")
    return [Rename("python", unknown.key, spec, new, False, unknown.value)]


def _lacks_one_word(short: str, long: str) -> bool:
    """Tell whether a name is another one of two words or more without one of its words."""
    words, others = short.split("_"), iter(long.split("_"))
    return len(words) > 1 and long.count("_") == len(words) and all(word in others for word in words)


def _unknown(report: CrashReport, settings: Sequence[Setting]) -> HandedKey | None:
    root = report.root
    if root is None or not root.frames:
        return None
    return unknown_key(_message(root), root.frames, settings)


def _message(root: Event) -> str:
    return root.body if root.exception in root.body else f"{root.exception}: {root.body}"


def handed_options(
    report: CrashReport, settings: Sequence[Setting], renamed: Sequence[Rename] = ()
) -> Iterator[NamedOption]:
    """Give what the failing call refuses of a file's keys, and what the file does not give it.

    A key whose right name is known is left to it.
    """
    unknown = _unknown(report, settings)
    right = {canonical(rename.old) for rename in renamed}
    if unknown is not None and canonical(unknown.key) not in right:
        why = in_both("changes.handed-unknown", key=unknown.key)
        argument = last_level(unknown.key)
        yield NamedOption(unknown.key, unknown.value, unknown=True, why=why, proves=True, argument=argument)
    root = report.root
    if root is None or not root.frames:
        return
    for lacking in missing_keys(_message(root), root.frames, settings):
        why = in_both("changes.handed-missing", key=last_level(lacking.key))
        yield NamedOption(lacking.key, required=True, why=why, argument=last_level(lacking.key))
