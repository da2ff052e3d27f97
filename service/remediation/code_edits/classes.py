"""Names that classes and loops of the job's own code give: methods, attributes, what a loop indexes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ingest.configfiles.formats import CODE
from service.remediation.code_edits.failing_code import FailingCode, JobFile
from service.remediation.code_edits.source_text import parsed

# What a first parameter of a method is called that takes the object or the class, and what needs neither.
_RECEIVERS, _NO_RECEIVER = frozenset({"self", "cls"}), frozenset({"staticmethod", "classmethod"})


def enclosing_class(code: FailingCode) -> ast.ClassDef | None:
    """Give the class whose method holds the failing statement."""
    classes = (node for node in ast.walk(code.source.tree) if isinstance(node, ast.ClassDef))
    return next((node for node in classes if any(item is code.function for item in node.body)), None)


def own_method(name: str, code: FailingCode) -> str | None:
    """Give a name that is a method of the class around a statement which has its object as `self`."""
    around, function = enclosing_class(code), code.function
    if around is None or function is None or [item.arg for item in function.args.args[:1]] != ["self"]:
        return None
    return name if any(item.name == name for item in _methods(around)) else None


def attributes(name: str, trees: Sequence[ast.AST]) -> Iterator[str]:
    """Give what the one class of a name has: its methods, its fields, and what its methods set."""
    found = [
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == name
    ]
    if len(found) != 1:
        return
    yield from (item.name for item in _methods(found[0]))
    for node in ast.walk(found[0]):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def trees_of(code: FailingCode, files: Sequence[JobFile]) -> list[ast.AST]:
    """Give the trees of the failing statement's file and of the job's other ones."""
    others = [file for file in files if file.name.endswith(CODE) and file != code.file]
    told = [tree for file in others if (tree := parsed(file.text)) is not None]
    return [*([code.source.tree] if code.file is not None else []), *told]


def asked_as_truth(name: str, code: FailingCode) -> str | None:
    """Give a name where the statement reads such an attribute only to ask whether it is true."""
    tests: list[ast.expr] = []
    read = 0
    for node in code.nodes():
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            tests.append(node.test)
        elif isinstance(node, ast.BoolOp):
            tests += node.values
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            tests.append(node.operand)
        if isinstance(node, ast.Attribute) and node.attr == name:
            read += 1
    asked = sum(isinstance(test, ast.Attribute) and test.attr == name for test in tests)
    return name if read and read == asked else None


def kept_container(code: FailingCode, loops: Sequence[ast.For]) -> str | None:
    """Give what the statement indexes by the number of the loop around it and the loop leaves as it is."""
    if code.file is None or not loops or not isinstance(loops[-1].target, ast.Name):
        return None
    number = loops[-1].target.id
    found = {
        ast.unparse(node.value)
        for node in code.nodes()
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Name)
        and node.slice.id == number
        and isinstance(node.value, ast.Name | ast.Attribute)
    }
    stored = {
        ast.unparse(node)
        for node in ast.walk(loops[-1])
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    # An attribute of what the loop sets anew is another one in each turn.
    kept = {name for name in found if not {name, name.partition(".")[0]} & stored}
    return found.pop() if len(found) == 1 and kept == found else None


def method_without_self(name: str, trees: Sequence[ast.AST]) -> str | None:
    """Give a name that one class has as a method which takes no object."""
    classes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    named = [item for node in classes for item in _methods(node) if item.name == name]
    if len(named) != 1:
        return None
    first = [item.arg for item in (*named[0].args.posonlyargs, *named[0].args.args)[:1]]
    marked = {ast.unparse(item) for item in named[0].decorator_list}
    return name if not {*first} & _RECEIVERS and not marked & _NO_RECEIVER else None


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    yield from (item for item in node.body if isinstance(item, ast.FunctionDef))
