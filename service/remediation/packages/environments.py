"""The environment that was not started: a Python that lacks what the job's script imports before all else."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import PurePosixPath

from corpus.frameworks import known_frameworks
from corpus.message import in_both
from corpus.schema import Change
from ingest.configfiles.formats import CODE
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.source_text import parsed
from service.remediation.environment_entries import defined_environments, enters_one
from service.remediation.own_edits import job_files
from service.remediation.packages.changes import PackageChange

_MISSING = re.compile(r"^(?:\w+: )?(?:ModuleNotFoundError|ImportError)?:? ?No module named '(?P<top>\w+)'")
# As the tables of remedies word them, so that they are told in both languages.
_BEFORE = "in the shell that starts the job"
_STARTED = "that of the job's environment: conda activate ENV, or source ENV/bin/activate, before the command"
# A script that imports so much at least is no example of three lines.
_LEAST = 2


def inactive_environment(report: CrashReport) -> list[PackageChange]:
    """Give the start of the job's environment, where a bare Python runs and no file starts another one.

    That is where the first package that the script imports lacks, which others of them need or come with, and
    no call of an installed package shows.
    """
    root = report.root
    match = _MISSING.search(f"{root.exception}: {root.body}") if root is not None else None
    known = known_frameworks()
    if root is None or match is None or any(known.package_file.search(frame.file) for frame in root.frames):
        return []
    files = job_files(report)
    # What code or a text says of environments starts none.
    scripts = [file.text for file in files if not file.name.endswith((*CODE, ".md"))]
    if any(map(enters_one, (*scripts, report.command[1]))):
        return []
    top, script = match["top"], PurePosixPath(root.frames[-1].file).name if root.frames else ""
    imported = next((_imported(file) for file in files if PurePosixPath(file.name).name == script), None)
    is_base = known.modules.get(top, "") in known.common or top in known.common
    if not (is_base if imported is None else imported[:1] == [top] and len(imported) >= _LEAST):
        return []
    named = [each.name for each in defined_environments(files)]
    if len(named) == 1:
        why = in_both("packages.env-of-file", name=top, env=named[0])
        change = Change(
            framework="host", kind="command", key=f"conda activate {named[0]}", to=_BEFORE, why=why
        )
    else:
        why = in_both("packages.env-not-started", name=top)
        change = Change(framework="env", kind="env", key="PATH", to=_STARTED, why=why)
    return [PackageChange(change, None)]


def _imported(file: JobFile) -> list[str]:
    """Give the packages that a file imports, each once in its order, without Python's own modules."""
    tree = parsed(file.text)
    found: Sequence[ast.AST] = list(islice(ast.walk(tree), 5000)) if tree is not None else ()
    rows = [node for node in found if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [
        (node.lineno, name)
        for node in rows
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
        if isinstance(node, ast.Import) or not node.level
    ]
    tops = (name.partition(".")[0] for _, name in sorted(names))
    return [top for top in dict.fromkeys(tops) if top and top not in sys.stdlib_module_names]
