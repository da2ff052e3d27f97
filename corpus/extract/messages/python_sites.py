"""The sites of a Python module: raises, assertions, checks, logged errors, with what was tested before."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from corpus.extract.messages.python_texts import Scope, names_read, percent_parted, texts
from corpus.extract.messages.sites import FoundSite, joined_names, named_in, runs_of
from corpus.message_atlas import SiteKind

_LOGGED = frozenset({"error", "exception", "critical", "fatal", "error_once"})
_LOGGERS = ("log", "logger", "logging", "_logger", "LOG", "LOGGER", "logging_rank", "rank_zero")
# Functions that raise what they are told where their first argument does not hold.
_CHECKS = {
    "_check": "RuntimeError",
    "_check_value": "ValueError",
    "_check_index": "IndexError",
    "_check_type": "TypeError",
    "_check_not_implemented": "NotImplementedError",
}
_EXITS = frozenset({"exit", "_exit", "SystemExit"})
_ERROR_NAMES = ("Error", "Exception", "Interrupt", "Exit", "Timeout", "Failure")
_MESSAGES = frozenset({"message", "msg", "detail", "reason", "error_message"})
# A message is one of the first arguments; what stands behind is data.
_REACH = 3

_Block = tuple[tuple[ast.expr, ...], str, Scope]


def read_sites(text: str) -> list[FoundSite]:
    """Give the sites of a module; of what this Python cannot parse, none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    reader = _SiteReader(module)
    return list(reader.sites(module.body, (), "", reader.scope))


class _SiteReader:
    """Walks through a module with the conditions and the function around each statement."""

    def __init__(self, module: ast.Module) -> None:
        constants: dict[str, list[ast.expr]] = {}
        for node in module.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                constants.setdefault(node.targets[0].id, []).append(node.value)
        self.scope = Scope(ast.Module(body=[], type_ignores=[]), constants=constants)

    def sites(
        self, body: list[ast.stmt], guards: tuple[ast.expr, ...], symbol: str, scope: Scope
    ) -> Iterator[FoundSite]:
        """Give the sites of a block, in the order of the source."""
        # A check that returns or goes on where all is well guards what stands behind it.
        passed: tuple[ast.expr, ...] = ()
        for node in body:
            yield from self._of_statement(node, (*guards, *passed), symbol, scope)
            for inner, tests, name, own in self._blocks(node, guards, symbol, scope):
                yield from self.sites(inner, tests, name, own)
            if isinstance(node, ast.If) and isinstance(node.body[-1], (ast.Return, ast.Continue)):
                passed = (node.test,)

    def _blocks(
        self, node: ast.stmt, guards: tuple[ast.expr, ...], symbol: str, scope: Scope
    ) -> Iterator[tuple[list[ast.stmt], tuple[ast.expr, ...], str, Scope]]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                own = Scope(node, constants=self.scope.constants)
                yield node.body, (), f"{symbol}.{node.name}".lstrip("."), own
            case ast.ClassDef():
                yield node.body, (), f"{symbol}.{node.name}".lstrip("."), self.scope
            case ast.If() | ast.While():
                yield node.body, (node.test,), symbol, scope
                # The branches of a chain are told by the tests before them as well.
                yield node.orelse, (*guards[-1:], node.test), symbol, scope
            case ast.Match():
                yield from ((case.body, (node.subject,), symbol, scope) for case in node.cases)
            case ast.Try():
                yield node.body, guards, symbol, scope
                yield from ((handler.body, (), symbol, scope) for handler in node.handlers)
                yield [*node.orelse, *node.finalbody], guards, symbol, scope
            case ast.For() | ast.AsyncFor() | ast.With() | ast.AsyncWith():
                yield node.body, guards, symbol, scope
                yield getattr(node, "orelse", []), guards, symbol, scope

    def _of_statement(
        self, node: ast.stmt, guards: tuple[ast.expr, ...], symbol: str, scope: Scope
    ) -> Iterator[FoundSite]:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            kind = _last_name(node.exc.func)
            yield from _sites_of_call(node.exc, "raise", kind, guards, symbol, scope)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            made = ast.Call(func=node.test, args=[node.msg], keywords=[])
            ast.copy_location(made, node)
            yield from _sites_of_call(made, "assert", "AssertionError", (node.test,), symbol, scope)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _of_call(node.value, guards, symbol, scope)


def _of_call(node: ast.Call, guards: tuple[ast.expr, ...], symbol: str, scope: Scope) -> Iterator[FoundSite]:
    name = _last_name(node.func)
    holder = _last_name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if name in _LOGGED and (holder.lower().endswith(("log", "logger", "logging")) or holder in _LOGGERS):
        yield from _sites_of_call(node, "log", "", guards, symbol, scope)
    elif name == "error" and "parser" in holder:
        yield from _sites_of_call(node, "raise", "SystemExit", guards, symbol, scope)
    elif name in _CHECKS and len(node.args) > 1:
        message = node.args[1]
        made = ast.Call(func=node.func, args=[getattr(message, "body", message)], keywords=[])
        ast.copy_location(made, node)
        yield from _sites_of_call(made, "check", _CHECKS[name], (node.args[0],), symbol, scope)
    elif name in _EXITS:
        yield from _sites_of_call(node, "raise", "SystemExit", guards, symbol, scope)
    elif (
        name == "__init__" and symbol.split(".")[0].endswith(_ERROR_NAMES) and "super" in ast.dump(node.func)
    ):
        yield from _sites_of_call(node, "raise", symbol.split(".")[0], guards, symbol, scope)


def _sites_of_call(
    node: ast.Call, kind: SiteKind, exception: str, guards: tuple[ast.expr, ...], symbol: str, scope: Scope
) -> Iterator[FoundSite]:
    """Give a site for each text that the message may have."""
    given = [*node.args[:_REACH], *(item.value for item in node.keywords if item.arg in _MESSAGES)]
    for argument in given:
        found = texts(argument, scope)
        if kind == "log":
            found = [percent_parted(text) for text in found]
        runs = {runs_of(text): text for text in found}
        runs.pop((), None)
        if not runs:
            continue
        # The test nearest to the site says what was wrong; the one before only led there.
        read = [name for test in reversed(guards[-2:]) for name in names_read(test, scope)]
        shown = [node.value for node in ast.walk(argument) if isinstance(node, ast.FormattedValue)]
        put_in = [name for value in shown for name in names_read(value, scope)]
        for words, text in runs.items():
            names = joined_names(read, [*named_in(text), *put_in])
            yield FoundSite(symbol, node.lineno, kind, exception, words, names)
        return


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
