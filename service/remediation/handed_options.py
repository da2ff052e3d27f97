"""Keys of a file that a call hands on as arguments: those that it does not take, and those that it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpus.keys import canonical, last_level
from corpus.message import in_both
from ingest.logs.configs.handed_keys import missing_keys, unknown_key
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.named_options import NamedOption
from service.remediation.renames import Rename


def handed_options(
    report: CrashReport, settings: Sequence[Setting], renamed: Sequence[Rename] = ()
) -> Iterator[NamedOption]:
    """Give what the failing call refuses of a file's keys, and what the file does not give it.

    A key whose right name is known is left to it.
    """
    root = report.root
    if root is None or not root.frames:
        return
    message = root.body if root.exception in root.body else f"{root.exception}: {root.body}"
    unknown = unknown_key(message, root.frames, settings)
    right = {canonical(rename.old) for rename in renamed}
    if unknown is not None and canonical(unknown.key) not in right:
        why = in_both("changes.handed-unknown", key=unknown.key)
        argument = last_level(unknown.key)
        yield NamedOption(unknown.key, unknown.value, unknown=True, why=why, proves=True, argument=argument)
    for lacking in missing_keys(message, root.frames, settings):
        why = in_both("changes.handed-missing", key=last_level(lacking.key))
        yield NamedOption(lacking.key, required=True, why=why, argument=last_level(lacking.key))
