"""A file that is missed and that the job's own code writes, but only for each of the things that it finds.

`for each in folder.glob(...): open(path, "w")` writes nothing where the folder holds none of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from corpus.message import in_both
from corpus.paths import base_name
from corpus.schema import Text
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile, frames_of_failure
from service.remediation.data_flow.job_program import JobProgram, Module, called

_MISSED = re.compile(r"No such file or directory: '(?P<path>[^'\n]{1,300})'")
_WRITES = re.compile(r"[wax]b?\+?t?|[wax]t")
_SAVES = re.compile(r"(?:to_(?:csv|json|parquet|pickle|excel)|save\w*|savez?|write_text|write_bytes|dump)")
# What finds files, and may find none.
_FINDS = re.compile(r"glob|iglob|rglob|listdir|scandir|iterdir|walk")
_LONGEST = 60


def written_words(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say which loop alone writes the file that is missed; None where a row outside of one does."""
    found = _MISSED.search(report.root.body) if report.root is not None else None
    if found is None:
        return None
    path = found["path"].replace("\\", "/")
    folder, _, name = path.rpartition("/")
    program = JobProgram(frames_of_failure(report), files)
    loops = [
        (module, node, loop)
        for module in program.modules
        for node in _writing(module, name)
        for loop in [_loop(module, node)]
    ]
    module, node, loop = loops[0] if len(loops) == 1 else (None, None, None)
    if module is None or node is None or loop is None:
        return None
    leaf = base_name(module.name)
    finds = (each for each in ast.walk(loop.iter) if isinstance(each, ast.Call))
    over = ast.unparse(next(each for each in finds if _FINDS.fullmatch(called(each))))
    over = over if len(over) <= _LONGEST else f"{over[:_LONGEST]}…"
    told = {"place": f"{leaf}:{node.lineno}", "row": loop.lineno, "over": over, "folder": folder or "."}
    return in_both("changes.written-in-loop", name=name, **told)


def _writing(module: Module, name: str) -> Iterator[ast.Call]:
    """Give the calls that write a file of a name."""
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        modes = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "mode")]
        is_open = called(node) == "open" and any(
            isinstance(mode, ast.Constant) and _WRITES.fullmatch(str(mode.value)) for mode in modes
        )
        if is_open or _SAVES.fullmatch(called(node)):
            texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
            if any(isinstance(text, str) and text.rpartition("/")[2] == name for text in texts):
                yield node


def _loop(module: Module, node: ast.AST) -> ast.For | None:
    """Give the loop over what is found around a call, within its function."""
    for above in module.around(node):
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        if isinstance(above, ast.For):
            calls = (each for each in ast.walk(above.iter) if isinstance(each, ast.Call))
            return above if any(_FINDS.fullmatch(called(each)) for each in calls) else None
    return None
