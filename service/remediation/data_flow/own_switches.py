"""Switches of the job's own program, now off, with which the statement that failed lets pass what it refused.

A check raises unless one is given (`if path.exists() and not args.overwrite: raise`), or a call is told
by one that it may go on (`os.makedirs(out, exist_ok=args.force)`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from corpus.keys import canonical, last_level
from corpus.message import in_both
from corpus.paths import base_name
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import FailingCode, JobFile, failing_code, frames_of_failure
from service.remediation.code_edits.source_text import parsed
from service.remediation.data_flow.job_program import called
from service.remediation.data_flow.option_reads import HOLDER, level_of, text_of
from service.remediation.named_options import NamedOption
from service.remediation.own_edits import job_files

_THERE = re.compile(r"FileExistsError|[Ee]xists|not empty")
_MOST = 2


def own_switches(report: CrashReport, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the switches that are off and that the failing check, or the failing call, would pass with."""
    files = job_files(report)
    code = next(failing_code(frames_of_failure(report), files), None)
    root = report.root
    if root is None or code is None or code.file is None:
        return []
    switches = _switches(files)
    read = _exempting(code) if isinstance(code.statement, ast.Raise | ast.Assert) else iter(())
    is_there = _THERE.search(f"{root.exception}: {root.body}") is not None
    if is_there:
        calls = [node for node in code.nodes() if isinstance(node, ast.Call)]
        read = iter([*read, *(word.value for call in calls for word in call.keywords)])
    levels = (level for node in read if (level := level_of(node)) is not None)
    names = (name for held, name, _ in levels if HOLDER.fullmatch(ast.unparse(held).rpartition(".")[2]))
    given = {canonical(last_level(item.key)) for item in settings if item.file and item.value == "True"}
    found = [switches[name] for name in dict.fromkeys(names) if name in switches and name not in given]
    leaf = base_name(code.file.name)
    place = f"{leaf}:{code.statement.lineno}"
    told = "changes.let-over" if is_there else "changes.let-by-switch"
    return [
        NamedOption(flag, None, value="True", way="on", why=in_both(told, key=flag, place=place))
        for flag in found[:_MOST]
    ]


def _switches(files: Sequence[JobFile]) -> Mapping[str, str]:
    """Give the flags that a parser of the job's files takes without a value, by the name that code reads."""
    found: dict[str, str] = {}
    for file in files:
        tree = parsed(file.text)
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.Call) or called(node) != "add_argument":
                continue
            flags = [
                text for arg in node.args if (text := text_of(arg)) is not None and text.startswith("--")
            ]
            named = {word.arg: text_of(word.value) for word in node.keywords}
            if flags and named.get("action") == "store_true":
                found[canonical(named.get("dest") or flags[0].lstrip("-"))] = flags[0]
    return found


def _exempting(code: FailingCode) -> Iterator[ast.expr]:
    """Give what a check reads that would have kept it from failing, were it true."""
    if isinstance(code.statement, ast.Assert):
        test = code.statement.test
        yield from test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
        return
    for node in ast.walk(code.function or code.source.tree):
        if isinstance(node, ast.If) and code.statement in node.body:
            parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
            is_all = not isinstance(node.test, ast.BoolOp) or isinstance(node.test.op, ast.And)
            for part in parts if is_all else ():
                if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
                    yield part.operand
