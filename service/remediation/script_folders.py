"""The folder that a script goes to before a command which names a path of that folder in vain."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.message import in_both
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import parse
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.named_options import NamedOption
from service.remediation.near_files import missed_path
from service.remediation.own_edits import job_files

_SHELL = (".sh", ".bash", ".slurm", ".sbatch", ".job")
_GOES = frozenset({"cd", "pushd"})
# A folder that a variable of the script names, alone or with what lies below it.
_VARIABLE = re.compile(r"\$\{?(?P<name>[A-Za-z_]\w*)\}?(?:/[\w./-]*)?")
# A path that is looked for where the process is.
_RELATIVE = re.compile(r"(?!\.\./)(?:\./)?[A-Za-z0-9_][\w.@+=-]*(?:/[\w.@+=-]+)*")


def script_folders(report: CrashReport, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the variable of the folder that a script went to before the command which misses a path there.

    Only where the command's own words have that path: what code has itself is a matter of the code.
    """
    missed = missed_path(report)
    if missed is None or not _RELATIVE.fullmatch(missed):
        return []
    path = missed.removeprefix("./")
    for file in job_files(report):
        if not file.name.endswith(_SHELL) and not file.text.startswith("#!/"):
            continue
        try:
            script = parse(file.text.replace("\r\n", "\n"))
        except NotPatchableError:
            continue
        commands = [each for each in script.commands if each.words]
        texts = [[word.text for word in each.words[1:]] for each in commands]
        given = [{(text.partition("=")[2] or text).removeprefix("./") for text in row} for row in texts]
        named = next((place for place, words in enumerate(given) if path in words), 0)
        gone = [each for each in commands[:named] if each.words[0].text in _GOES]
        folder = gone[-1].words[1].text if gone and len(gone[-1].words) > 1 else ""
        variable = _VARIABLE.fullmatch(folder.strip('"'))
        held = [item for item in settings if variable and item.key == variable["name"]]
        if variable and held:
            row = script.line(gone[-1].start)
            why = in_both("changes.looked-for-in", path=path, folder=folder, file=file.name, line=str(row))
            return [NamedOption(held[0].key, held[0].value, way="other", why=why)]
    return []
