"""Change a setting in Python code: a suggestion, since what the code does with it is not known.

A plain value is changed where it stands (`NAME = 1`, `call(name=1)`, `"name": 1`, the default of an option);
a keyword that is missing is added to the call that has others of the same framework, or makes a class of it.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, levels, unsigned
from corpus.message import Message
from ingest.configfiles import python_code, reader
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.settings import Setting, TextEdit, edited
from ingest.configfiles.values import same
from service.patching.target import PatchTarget

# How many keywords of a framework tell that a call takes its settings.
_TELLING = 2
# Calls that make the settings which another call is handed: TrainingArguments, SFTConfig.
_SETTINGS = re.compile(r"(?:Config|Arguments|Args)$")
_MODELS = re.compile(r"(?:Model|For[A-Z]\w*|LM)(?:\.\w+)?$")


def suggested(
    text: str, target: PatchTarget, known: AbstractSet[str], quoted: AbstractSet[str] = frozenset()
) -> str:
    """Give the code with the target's value.

    `known` are the framework's settings in canonical form, `quoted` the rows that the failing traceback
    quotes, without blanks around them: of several calls that may take a keyword, one of theirs does. Raises
    NotPatchableError where there is no one place for it.
    """
    if target.kind not in ("setting", "flag"):
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    if target.removes or target.replaces is not None:
        return edited(text, _refused(text, target))
    found = [setting for setting in python_code.read(text) if _is_named(setting, target)]
    if not found:
        return edited(text, _added(text, target, known, quoted))
    if len({setting.place.scope for setting in found if setting.place}) > 1:
        lines = ", ".join(str(setting.line) for setting in found)
        raise NotPatchableError(Message("patch.set-more-once-lines", found=lines))
    if target.present:
        # Of several values the run had this one; where it has gone, another may be there in its place.
        had = [setting for setting in found if same(setting.value, target.present)]
        found = had or ([] if any(same(setting.value, target.to) for setting in found) else found)
    for setting in sorted(found, key=lambda each: each.place.start if each.place else 0, reverse=True):
        # What says so already, in other quotes, stays as it is.
        if not same(setting.value, target.to):
            text = reader.edited(text, "code.py", setting, target.to)
    return text


def gives_present(text: str, target: PatchTarget) -> bool:
    """Tell whether the code gives the target's setting the value that the run had."""
    try:
        found = [setting for setting in python_code.read(text) if _is_named(setting, target)]
    except NotPatchableError:
        return False
    return bool(target.present) and any(same(setting.value, target.present) for setting in found)


def _refused(text: str, target: PatchTarget) -> TextEdit:
    """Give the edit that renames or takes out a keyword which one call of the code gives in vain."""
    name = canonical(target.replaces or target.names[0]).rpartition(".")[2]
    found = [
        (node, keyword)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == name
    ]
    if len(found) != 1:
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    call, keyword = found[0]
    start = _offset(text, keyword.lineno, keyword.col_offset)
    if not target.removes:
        return TextEdit(start, start + len(name), canonical(target.names[0]).rpartition(".")[2])
    end = _offset(text, keyword.end_lineno or keyword.lineno, keyword.end_col_offset or 0)
    arguments = [*call.args, *(each.value for each in call.keywords if each is not keyword)]
    before = [
        place
        for node in arguments
        if (place := _offset(text, node.end_lineno or node.lineno, node.end_col_offset or 0)) < start
    ]
    if before:
        return TextEdit(max(before), end, "")
    # The first argument goes with the comma behind it.
    behind = re.compile(r"\s*,?\s*").match(text, end)
    return TextEdit(start, behind.end() if behind else end, "")


def _offset(text: str, line: int, column: int) -> int:
    """Give the place in a text of a row and a column as the parser tells them, which counts a row's bytes."""
    rows = text.split("\n")
    return sum(len(row) + 1 for row in rows[: line - 1]) + len(rows[line - 1].encode()[:column].decode())


# A value that is told as code: it would be a text in quotes.
_EXPRESSION = re.compile(r"[A-Za-z_][\w.]*\(.*\)")


def _is_named(setting: Setting, target: PatchTarget) -> bool:
    """Tell whether a setting of the code is the target's, by its name and the call that it belongs to."""
    call, leaf = target.call_argument
    scope = setting.place.scope.rpartition(".")[2] if setting.place else ""
    if call:
        return canonical(setting.key) == canonical(leaf) and scope in (call, "add_argument")
    return canonical(setting.key) in {canonical(unsigned(name)) for name in target.names}


def _added(text: str, target: PatchTarget, known: AbstractSet[str], quoted: AbstractSet[str]) -> TextEdit:
    """Give the edit that adds the keyword to the one call that it belongs to."""
    call, leaf = target.call_argument
    if not call and target.argument:
        above, _, leaf = target.argument.rpartition(".")
        call = above.rpartition(".")[2]
    name = canonical(leaf or unsigned(target.names[0]))
    is_written = not (isinstance(target.to, str) and _EXPRESSION.fullmatch(target.to))
    if not name.isidentifier() or target.spelled not in ("python", "flag", "yaml") or not is_written:
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    tree = ast.parse(text)
    classes = frozenset(_classes_of(tree, target.framework))
    fitting = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _takes(node, call, known, classes)
        and not any(canonical(keyword.arg) == name for keyword in node.keywords if keyword.arg)
    ]
    if len(fitting) > 1 and call:
        # What loads a model, and not its tokenizer or its configuration.
        fitting = [node for node in fitting if _MODELS.search(ast.unparse(node.func))] or fitting
    if len(fitting) > 1:
        fitting = [node for node in fitting if _SETTINGS.search(ast.unparse(node.func))] or fitting
        most = max(_share(node, known) for node in fitting)
        fitting = [node for node in fitting if call or _share(node, known) == most]
    if len(fitting) > 1:
        rows = text.split("\n")
        fitting = [node for node in fitting if quoted & set(_rows_of(node, rows))]
    if len(fitting) != 1:
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    arguments = [*fitting[0].args, *(keyword.value for keyword in fitting[0].keywords)]
    last = max(arguments, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    at = _offset(text, last.end_lineno or 1, last.end_col_offset or 0)
    row = text[text.rfind("\n", 0, at) + 1 : at]
    indent = row[: len(row) - len(row.lstrip())]
    is_apart = last.end_lineno != fitting[0].lineno
    between = f",\n{indent}" if is_apart else ", "
    written = repr(target.to)
    if isinstance(target.to, str) and target.to[:1] in ("{", "["):
        # What the catalogue has as JSON is the dictionary or list itself.
        with contextlib.suppress(ValueError):
            written = repr(json.loads(target.to))
    return TextEdit(at, at, f"{between}{name}={written}")


def _share(node: ast.Call, known: AbstractSet[str]) -> float:
    """Give which part of a call's keywords are settings of the framework."""
    names = [canonical(keyword.arg or "") in known for keyword in node.keywords]
    return sum(names) / max(1, len(names))


def _rows_of(node: ast.Call, rows: Sequence[str]) -> Iterator[str]:
    yield from (row.strip() for row in rows[node.lineno - 1 : node.end_lineno or node.lineno])


def _classes_of(tree: ast.Module, framework: str) -> Iterator[str]:
    """Name the classes that the code imports from a framework's own package: `from vllm import LLM`."""
    row = known_frameworks().row(framework)
    tops = {framework.replace("-", "_"), row.package.replace("-", "_")}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in tops:
            yield from (each.asname or each.name for each in node.names if each.name[:1].isupper())


def _takes(node: ast.Call, call: str, known: AbstractSet[str], classes: AbstractSet[str]) -> bool:
    """Tell whether a call takes the setting: by its name, else by its other keywords."""
    names = [keyword.arg for keyword in node.keywords]
    if not (node.args or names) or None in names:
        return False  # what `**` hands on is not known
    if call:
        return ast.unparse(node.func).rpartition(".")[2] == call
    is_class = isinstance(node.func, ast.Name) and node.func.id in classes
    return len({canonical(name) for name in names if name} & known) >= (1 if is_class else _TELLING)


def settings_of(names: Sequence[str]) -> Iterator[str]:
    """Give settings' names as keywords of a call may have them; those of parts have none."""
    yield from (canonical(unsigned(name)) for name in names if len(levels(name)) == 1)
