"""The statement of the job's own code that failed: in the job's file, else as the traceback prints it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingest.configfiles.formats import CODE
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.source_text import (
    SourceText,
    head_nodes,
    printed_source,
    statements,
    whole_source,
)

# How far a row may stand from where the traceback says: a file is edited after the job has begun.
NEAR_ROWS = 60
# How many times nearer to that the one of several rows alike is that counts.
FAR_NEARER = 4
# A row that a traceback quotes and that is longer is data.
LONGEST_ROW = 600
# And one that is shorter is found at the end of many others.
SHORT = 12
# A statement that is as long as this stands in one place of a program, wherever that is by now.
DISTINCT = 40
# Texts and numbers of a row.
_CONSTANT = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|(?<![\w.])\d[\d.e_-]*")
# The names of functions and classes.
_DEFINED = re.compile(r"(?m)^\s*(?:async\s+)?(?:def|class)\s+(\w+)")


@dataclass(frozen=True)
class JobFile:
    """One of the job's own files, by the name that it was given under."""

    name: str
    text: str


@dataclass(frozen=True)
class FailingCode:
    """A statement of the job's own code that failed, or called what did.

    `file` is the job's file that holds it, None where only the traceback's row is at hand. `is_innermost`
    tells that nothing was called below it that the traceback shows. `function` is the innermost definition
    around it.
    """

    frame: Frame
    source: SourceText
    statement: ast.stmt
    is_innermost: bool
    file: JobFile | None = None
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None

    def nodes(self) -> Iterator[ast.AST]:
        """Give what the statement holds, without the statements of its blocks."""
        return head_nodes(self.statement)


def failing_code(frames: Sequence[Frame], files: Sequence[JobFile]) -> Iterator[FailingCode]:
    """Give the own statements of a stack, the innermost first; each in its file where that is at hand."""
    shown = [frame for frame in frames if frame.file and not frame.file.startswith("<")]
    for frame in reversed(shown):
        if frame.line and is_own(frame) and frame.code and len(frame.code) <= LONGEST_ROW:
            is_innermost = frame is shown[-1]
            found = _in_files(frame, files, is_innermost=is_innermost)
            if found is None and (source := printed_source(frame.code)) is not None:
                found = FailingCode(frame, source, source.tree.body[0], is_innermost)
            if found is not None:
                yield found


def frames_of_failure(report: CrashReport) -> Sequence[Frame]:
    """Give the calls that led to the root: its own, or those of what came of it where they are not the job's.

    What a package raised in a thread or a kernel is raised again where the job's code waits for it.
    """
    root = report.root
    if root is None or any(map(is_own, root.frames)):
        return root.frames if root is not None else ()
    later = (event for event in report.standing if event.line > root.line and event.frames)
    raised = next(later, None)
    # A kernel prints its assertion without the prefix of the rank that then raises it.
    is_of_same = raised is not None and root.source in ("", raised.source)
    told = raised is not None and (raised.linked or not root.frames) and is_of_same
    return raised.frames if raised is not None and told else root.frames


def scope_nodes(code: FailingCode) -> Iterator[ast.AST]:
    """Give what the function around the statement holds; on the top level, what is in no function."""
    if code.function is not None:
        yield from ast.walk(code.function)
        return
    waiting: list[ast.AST] = [code.source.tree]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _in_files(frame: Frame, files: Sequence[JobFile], *, is_innermost: bool) -> FailingCode | None:
    path = frame.file.replace("\\", "/")
    fitting = [file for file in files if file.name.endswith(CODE) and _ends_alike(path, file.name)]
    for file in fitting:
        line = row_of(frame, file.text)
        source = whole_source(file.text) if line else None
        if source is None:
            continue
        around = [
            node
            for node in statements(source.tree)
            if node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        if around:
            inner = max(around, key=lambda node: (node.lineno, node.col_offset))
            functions = [node for node in around if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
            function = max(
                (node for node in functions if node is not inner), key=lambda node: node.lineno, default=None
            )
            return FailingCode(frame, source, inner, is_innermost, file, function)
    return None


def file_of(frame: Frame, files: Sequence[JobFile]) -> JobFile | None:
    """Give the one file of code that a call may lie in; None where none or several may be it.

    A program has many a `utils.py`: one that was handed in without its folder is that of the call where it
    has the function or the row.
    """
    path = frame.file.replace("\\", "/")
    fitting = [file for file in files if file.name.endswith(CODE) and _ends_alike(path, file.name)]
    if len(fitting) != 1 or ("/" in path.strip("./") and not _may_hold(fitting[0], frame)):
        return None
    return fitting[0]


def _may_hold(file: JobFile, frame: Frame) -> bool:
    function = frame.function.rpartition(".")[2]
    is_placed = "/" in file.name.strip("./") or not file.name.endswith(".py")
    if is_placed or not function.isidentifier() or frame.code.strip() in file.text:
        return True
    # A part of a file may have no function at all.
    defined = _DEFINED.findall(file.text)
    return not defined or function in defined


def _ends_alike(path: str, name: str) -> bool:
    """Tell whether two paths may be of one file: the shorter one is the end of the other."""
    one, other = (text.strip("./").split("/") for text in (path, name.replace("\\", "/")))
    length = min(len(one), len(other))
    return one[-length:] == other[-length:]


def row_of(frame: Frame, text: str) -> int:
    """Give the row that a traceback quotes, where the file has it at or near the line; else 0.

    A statement of several rows is quoted by one of them. Of several alike, the one counts that stands far
    nearer to the line than the next.
    """
    rows, wanted = text.split("\n"), frame.code.strip()
    if 0 < frame.line <= len(rows) and is_row(rows[frame.line - 1], wanted):
        return frame.line
    first = max(1, frame.line - NEAR_ROWS)
    near = range(first, min(len(rows), frame.line + NEAR_ROWS) + 1)
    found = [line for line in near if is_row(rows[line - 1], wanted)]
    if not found and len(wanted) > SHORT:
        # The same statement with another number or text in it is still the same call.
        bare = _CONSTANT.sub("", wanted)
        found = [line for line in near if _CONSTANT.sub("", rows[line - 1].strip()) == bare]
    if not found and len(wanted) > DISTINCT:
        # A file that has grown much since: the very statement, where the file has it once.
        found = [line for line, row in enumerate(rows, 1) if row.strip() == wanted]
        return found[0] if len(found) == 1 else 0
    found.sort(key=lambda line: abs(line - frame.line))
    is_one = len(found) == 1 or (
        len(found) > 1 and FAR_NEARER * abs(found[0] - frame.line) <= abs(found[1] - frame.line)
    )
    return found[0] if is_one else 0


def is_row(row: str, quoted: str) -> bool:
    """Tell whether a row of a file is the one that a traceback quotes, without its indent."""
    plain = row.strip()
    # A progress bar that is written meanwhile stands before the row that a traceback quotes.
    is_behind = len(plain) > SHORT and quoted.endswith(f" {plain}")
    return bool(plain) and (plain == quoted or quoted.startswith(f"{plain} ") or is_behind)
