"""Write an edit of code: what is put in place of a node, and statements around one.

Every text that is written parses, and means what the template says: parentheses are put where the tree would
be another one without them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from corpus.code_edits import CodeOperator
from ingest.configfiles.settings import TextEdit
from service.remediation.code_edits.matching import CAPTURE, Match, coded
from service.remediation.code_edits.source_text import SourceText, expression, parsed, statements

_CAPTURED = re.compile(rf"\b{CAPTURE}(\w+)")
_NO_REST = re.compile(r"\.\.\.,\s*|,\s*\.\.\.|\.\.\.")
_STEP = "    "


def edits_of(
    operator: CodeOperator, match: Match, statement: ast.stmt, source: SourceText, filled: Mapping[str, str]
) -> list[TextEdit] | None:
    """Give the edits of an operator whose blanks are `filled`; None where the code does not allow them."""
    node = match.captures.get(operator.at, match.node) if operator.at else match.node
    if operator.write:
        return _replaced(filled["write"], node, match, source)
    if operator.before or operator.after:
        return _inserted(filled["before"], filled["after"], match, statement, source)
    if operator.guard:
        return _guarded(filled["guard"], filled["rescue"], match, statement, source)
    if operator.statement:
        return _restated(filled["statement"], match, statement, source)
    if operator.unimport:
        return _unimported(filled["unimport"], filled["instead"], node, source)
    if operator.parameter:
        return _parameter(filled["parameter"], node, source)
    return _of_call(operator, node, match, source, filled)


def _of_call(
    operator: CodeOperator, node: ast.AST, match: Match, source: SourceText, filled: Mapping[str, str]
) -> list[TextEdit] | None:
    """Give the edits of a call's keyword arguments."""
    if not isinstance(node, ast.Call) or source.end(node) > source.limit:
        return None
    if operator.drop:
        return _dropped(filled["drop"], node, source)
    if operator.rename:
        return _renamed({key[1:]: name for key, name in filled.items() if key[0] == ">"}, node, source)
    edits: list[TextEdit] = []
    for key, value in filled.items():
        if key[0] != "=":
            continue
        text = _written(value, match, source)
        if text is None:
            return None
        edits.append(_argument(key[1:], text, node, source))
    return edits


def blanks_of(operator: CodeOperator) -> dict[str, str]:
    """Give the operator's templates by a key that `edits_of` takes them back by."""
    return {
        "write": operator.write,
        "before": operator.before,
        "after": operator.after,
        "guard": operator.guard,
        "rescue": operator.rescue,
        "drop": operator.drop,
        "statement": operator.statement,
        "unimport": operator.unimport,
        "instead": operator.instead,
        "parameter": operator.parameter,
        **{f"={name}": value for name, value in operator.arguments.items()},
        **{f">{old}": new for old, new in operator.rename.items()},
    }


def with_import(source: SourceText, statement: str) -> TextEdit | None:
    """Give the edit that adds an import below the last of the file's first ones; None where it is there."""
    wanted = parsed(statement)
    if wanted is None:
        return None
    asked = {alias.asname or alias.name for node in wanted.body for alias in getattr(node, "names", [])}
    line = 0
    for number, node in enumerate(source.tree.body):
        is_text = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(node, ast.Import | ast.ImportFrom):
            break
        line = node.end_lineno or node.lineno
    brought = {
        alias.asname or alias.name
        for node in source.tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    if asked <= brought:
        return None
    if not line:
        # A first row with the interpreter's name, and comments on the licence, stay first.
        rows = source.rows()
        line = next((number for number, row in enumerate(rows) if not row.startswith("#")), 0)
    at = source.row_start(line + 1) if line < len(source.rows()) else len(source.text)
    lead = "" if at == 0 or source.text[at - 1] == "\n" else "\n"
    return TextEdit(at, at, f"{lead}{statement}\n")


def _replaced(template: str, node: ast.AST, match: Match, source: SourceText) -> list[TextEdit] | None:
    text = _written(template, match, source)
    if text is None or not source.is_placed(node):
        return None
    start, end = source.start(node), source.end(node)
    plain, wrapped = ((source.text[:start] + form + source.text[end:]) for form in (text, f"({text})"))
    one, other = parsed(plain), parsed(wrapped)
    if other is None:
        return None
    is_same = one is not None and ast.dump(one) == ast.dump(other)
    return [TextEdit(start, end, text if is_same else f"({text})")]


def _written(template: str, match: Match, source: SourceText) -> str | None:
    """Fill a template's captures by their source, in parentheses where they need them."""
    code = coded(template)
    if "..." in code:
        rest = _rest(match, source)
        if rest is None:
            return None
        code = code.replace("...", rest) if rest else _NO_REST.sub("", code)
    names = set(_CAPTURED.findall(code))
    if any(name not in match.captures or not source.is_placed(match.captures[name]) for name in names):
        return None

    def put(*, wrapped: bool) -> str:
        return _CAPTURED.sub(
            lambda found: ("({})" if wrapped else "{}").format(source.source(match.captures[found[1]])), code
        )

    plain, safe = put(wrapped=False), put(wrapped=True)
    one, other = expression(plain), expression(safe)
    if other is None:
        return None
    return plain if one is not None and ast.dump(one) == ast.dump(other) else safe


def _rest(match: Match, source: SourceText) -> str | None:
    """Give the arguments that `...` stands for, as they are written; None where others stand among them."""
    if not match.rest or not isinstance(match.node, ast.Call):
        return ""
    start, end = min(map(source.start, match.rest)), max(map(source.end, match.rest))
    others = [
        node
        for node in (*match.node.args, *match.node.keywords)
        if not any(node is item for item in match.rest) and start <= source.start(node) < end
    ]
    return None if others or end > source.limit else source.text[start:end]


def _argument(name: str, value: str, call: ast.Call, source: SourceText) -> TextEdit:
    given = next((item for item in call.keywords if item.arg == name), None)
    if given is not None:
        return TextEdit(source.start(given.value), source.end(given.value), value)
    arguments = [*call.args, *call.keywords]
    if not arguments:
        at = source.text.index("(", source.end(call.func)) + 1
        return TextEdit(at, at, f"{name}={value}")
    last = max(arguments, key=source.end)
    at = source.end(last)
    row = source.text[source.text.rfind("\n", 0, at) + 1 : at]
    is_apart = getattr(last, "end_lineno", 0) != call.lineno and getattr(last, "lineno", 0) != call.lineno
    between = f",\n{row[: len(row) - len(row.lstrip())]}" if is_apart else ", "
    return TextEdit(at, at, f"{between}{name}={value}")


def _dropped(name: str, call: ast.Call, source: SourceText) -> list[TextEdit] | None:
    given = next((item for item in call.keywords if item.arg == name), None)
    if given is None:
        return None
    start, end = source.start(given), source.end(given)
    before = [
        source.end(node)
        for node in (*call.args, *call.keywords)
        if node is not given and source.end(node) <= start
    ]
    if before:
        return [TextEdit(max(before), end, "")]
    # The first argument goes with the comma behind it.
    behind = re.compile(r"\s*,?\s*").match(source.text, end)
    return [TextEdit(start, behind.end() if behind else end, "")]


def _parameter(text: str, node: ast.AST, source: SourceText) -> list[TextEdit] | None:
    """Give a definition one more parameter; None where it takes such a one already."""
    if not isinstance(node, ast.FunctionDef) or source.start(node) > source.limit:
        return None
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    others = [item for item in (given.vararg, *given.kwonlyargs) if item is not None]
    name = text.lstrip("*").partition("=")[0]
    known = {item.arg for item in (*plain, *others)}
    # What takes any argument refuses none, and one more of any number has no place before named ones.
    is_row = text.startswith("*") and not text.startswith("**")
    if name in known or given.kwarg is not None or (is_row and others):
        return None
    opened = source.text.index("(", source.start(node)) + 1
    if name == text:
        return [TextEdit(opened, opened, f"{text}, " if plain or others else text)]
    defaults = [item for item in (*given.defaults, *given.kw_defaults) if item is not None]
    parts = [*plain, *others, *defaults]
    if not parts:
        return [TextEdit(opened, opened, text)]
    at = max(map(source.end, parts))
    return [TextEdit(at, at, f", {text}")]


def _restated(template: str, match: Match, statement: ast.stmt, source: SourceText) -> list[TextEdit] | None:
    rows = _rows(template, match, source)
    if rows is None or len(rows) > 1 or source.end(statement) > source.limit:
        return None
    return [TextEdit(source.start(statement), source.end(statement), rows[0])]


def _unimported(name: str, instead: str, node: ast.AST, source: SourceText) -> list[TextEdit] | None:
    """Take a name out of an import and bring it by another one, which stands alone where nothing is left."""
    if not isinstance(node, ast.ImportFrom) or source.end(node) > source.limit:
        return None
    gone = next((alias for alias in node.names if alias.name == name), None)
    indent = source.indent(node)
    if gone is None or gone.asname or indent is None:
        return None
    if len(node.names) == 1:
        return [TextEdit(source.start(node), source.end(node), instead)]
    place = node.names.index(gone)
    start = source.end(node.names[place - 1]) if place else source.start(gone)
    end = source.end(gone) if place else source.start(node.names[1])
    at = source.row_start(node.lineno)
    return [TextEdit(at, at, f"{indent}{instead}\n"), TextEdit(start, end, "")]


def _renamed(names: Mapping[str, str], call: ast.Call, source: SourceText) -> list[TextEdit] | None:
    found = [item for item in call.keywords if item.arg in names]
    taken = {item.arg for item in call.keywords}
    if not found or any(names[item.arg or ""] in taken for item in found):
        return None
    return [
        TextEdit(source.start(item), source.start(item) + len(item.arg or ""), names[item.arg or ""])
        for item in found
    ]


def _inserted(
    before: str, after: str, match: Match, statement: ast.stmt, source: SourceText
) -> list[TextEdit] | None:
    rows = _rows(before or after, match, source)
    indent = source.indent(statement)
    if rows is None or indent is None or (source.end(statement) > source.limit and after):
        return None
    used = [match.captures[name] for name in _CAPTURED.findall(coded(after))]
    behind = [node for node in used if source.start(node) > source.end(statement)]
    above = set(re.findall(r"\w+", source.text[: source.end(statement)]))
    if any(isinstance(part, ast.Name) and part.id not in above for node in behind for part in ast.walk(node)):
        return None  # a name that is made further below
    text = "".join(f"{indent}{row}\n" for row in rows)
    if before:
        at = source.row_start(statement.lineno)
        return [TextEdit(at, at, text)]
    end = source.text.find("\n", source.end(statement))
    if end < 0:
        return [TextEdit(len(source.text), len(source.text), f"\n{text.rstrip()}")]
    return [TextEdit(end + 1, end + 1, text)]


def _guarded(
    head: str, rescue: str, match: Match, statement: ast.stmt, source: SourceText
) -> list[TextEdit] | None:
    rows = _rows(f"{head} pass\n{rescue}".rstrip("\n"), match, source)
    indent = source.indent(statement)
    if rows is None or indent is None or source.end(statement) > source.limit:
        return None
    start, end = source.row_start(statement.lineno), source.end(statement)
    body = source.text[start:end]
    if '"""' in body or "'''" in body:
        # Rows of a text would move with those of the code.
        return None
    told = rows[0].removesuffix(" pass")
    moved = "\n".join(f"{_STEP}{row}" if row.strip() else row for row in body.split("\n"))
    below = "".join(f"\n{indent}{row}" for row in rows[1:])
    return [TextEdit(start, end, f"{indent}{told}\n{moved}{below}")]


def _rows(template: str, match: Match, source: SourceText) -> list[str] | None:
    """Fill a template of statements."""
    code = coded(template)
    names = set(_CAPTURED.findall(code))
    if any(name not in match.captures or not source.is_placed(match.captures[name]) for name in names):
        return None

    def put(*, wrapped: bool) -> str:
        form = "({})" if wrapped else "{}"
        return _CAPTURED.sub(lambda found: form.format(source.source(match.captures[found[1]])), code)

    plain, safe = put(wrapped=False), put(wrapped=True)
    one, other = parsed(plain), parsed(safe)
    told = plain if one is not None and (other is None or ast.dump(one) == ast.dump(other)) else safe
    if (one if told is plain else other) is None:
        return None
    return told.rstrip("\n").split("\n")


def holding(source: SourceText, node: ast.AST) -> ast.stmt | None:
    """Give the innermost statement around a node."""
    at = source.start(node)
    around = [
        item
        for item in statements(source.tree)
        if min(map(source.start, (item, *getattr(item, "decorator_list", ())))) <= at
        and source.end(node) <= source.end(item)
    ]
    return max(around, key=lambda item: (source.start(item), -source.end(item)), default=None)
