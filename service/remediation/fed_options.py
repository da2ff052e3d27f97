"""Which of the job's own options gives a framework's setting its value: `Trainer(lr=args.rate)`.

The setting itself stands in no file then; it is the option, or the key of the job's own configuration, that
is to be changed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from corpus.keys import canonical
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.job_program import JobProgram
from service.remediation.data_flow.option_reads import HOLDER, defined_options, level_of

# Names that a value goes through at most on its way to a call.
_MOST_NAMES = 3


def fed_by(name: str, call: str, files: Sequence[JobFile]) -> str | None:
    """Give the own option or key that a keyword of the job's calls has its value from, as it is spelled.

    `call` is the call that the keyword belongs to, the empty string where any is meant. None where several
    options feed it, or what feeds it is no option.
    """
    program = JobProgram([], files)
    options = defined_options(program)
    found: set[str] = set()
    for module in program.modules:
        calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
        meant = (node for node in calls if not call or ast.unparse(node.func).rpartition(".")[2] == call)
        for item in (item for node in meant for item in node.keywords):
            if item.arg and canonical(item.arg) == name:
                found.add(".".join(_path(item.value, module.tree)))
    if len(found) != 1 or not (told := found.pop()):
        return None
    option = options.get(canonical(told))
    return option.spelled if option is not None else told


def _path(value: ast.expr, tree: ast.AST) -> list[str]:
    """Give the levels of an option that an expression reads as it stands; none for anything else."""
    for _ in range(_MOST_NAMES):
        if not isinstance(value, ast.Name):
            break
        given = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
        ]
        if len(given) != 1:
            return []
        value = given[0]
    path: list[str] = []
    while (level := level_of(value)) is not None:
        value, key, _ = level
        path.insert(0, key)
    is_holder = isinstance(value, ast.Name) and HOLDER.fullmatch(value.id) is not None
    if isinstance(value, ast.Name) and value.id == "self" and len(path) > 1 and HOLDER.fullmatch(path[0]):
        return path[1:]
    return path if is_holder else []
