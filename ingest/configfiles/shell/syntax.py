"""Read a shell script as bash would: its commands, their words, its assignments; nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

import tree_sitter
import tree_sitter_bash

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.words import Quote, Word, word

_COMPUTED = {
    "simple_expansion",
    "expansion",
    "command_substitution",
    "process_substitution",
    "arithmetic_expansion",
    "brace_expression",
    "ansi_c_string",
    "translated_string",
}
_BRANCHES = {
    "if_statement",
    "case_statement",
    "while_statement",
    "for_statement",
    "c_style_for_statement",
    "function_definition",
    "subshell",
    "command_substitution",
}
_NAMES_ASSIGNED = {"read", "mapfile", "readarray", "getopts", "let", "printf"}
_TAIL = re.compile(r"\\\n\s*\Z|\\\Z")


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=value` or `name=( ... )`; `declared` is the word before it (export, declare -x ...)."""

    name: str
    words: tuple[Word, ...]
    start: int
    array: bool = False
    append: bool = False
    declared: str = ""
    prefix: bool = False
    branch: bool = False


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A simple command; `statement` is where the top-level statement begins that holds it."""

    words: tuple[Word, ...]
    start: int
    statement: int
    branch: bool


@dataclass(frozen=True, slots=True)
class VariableUse:
    """A place where a variable's value is read, and the word of the command or assignment it is in."""

    name: str
    start: int
    printed: bool


@dataclass(slots=True)
class Script:
    """What a script's text says, in order; `documents` are the spans of here-documents."""

    text: str
    commands: list[ShellCommand] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    uses: list[VariableUse] = field(default_factory=list)
    exported: dict[str, int] = field(default_factory=dict)
    unset: list[tuple[str, int, int]] = field(default_factory=list)
    changed_names: dict[str, int] = field(default_factory=dict)
    documents: list[tuple[int, int]] = field(default_factory=list)
    comments: list[tuple[int, int]] = field(default_factory=list)

    def line(self, offset: int) -> int:
        """Give the 1-based line of an offset."""
        return self.text.count("\n", 0, offset) + 1


@lru_cache(maxsize=32)
def parse(text: str) -> Script:
    """Read a script; raise NotPatchableError where it is no bash.

    Each change of a file looks at it several times; what is given is shared and must not be changed.
    """
    if "\0" in text:
        raise NotPatchableError(Message("patch.file-holds-nul-byte"))
    # One byte per character, so that the parser's offsets are those of the text.
    ascii_only = re.sub(r"[^\x00-\x7f]", "%", text)
    # The grammar takes a last backslash for the start of a word that is missing.
    shadow = _TAIL.sub(lambda found: " " + found[0][1:], ascii_only).encode("ascii")
    root = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(shadow).root_node
    if root.has_error:
        node = root
        while not (node.is_error or node.is_missing):
            node = next(child for child in node.children if child.has_error or child.is_missing)
        raise NotPatchableError(Message("patch.line-cannot-read-bash", line=node.start_point.row + 1))
    script = Script(text)
    try:
        for statement in root.children:
            _walk(statement, script, statement.start_byte, branch=False)
    except RecursionError as error:
        raise NotPatchableError(Message("patch.script-nested-deeply-read")) from error
    return script


def _walk(node: tree_sitter.Node, script: Script, statement: int, branch: bool) -> None:
    branch = branch or node.type in _BRANCHES
    read = _READERS.get(node.type)
    if read is not None:
        read(node, script, statement, branch)
    # A declaration has walked through its own parts.
    for child in node.children if read is not _read_declaration else ():
        _walk(child, script, statement, branch)


def _text(node: tree_sitter.Node, script: Script) -> str:
    return script.text[node.start_byte : node.end_byte]


def _read_assignment(node: tree_sitter.Node, script: Script, _statement: int, branch: bool) -> None:
    # One before a command is read with the command.
    if node.parent is None or node.parent.type != "command":
        script.assignments.append(_assignment(node, script.text, branch))


def _read_loop(node: tree_sitter.Node, script: Script, _statement: int, _branch: bool) -> None:
    if name := node.child_by_field_name("variable"):
        script.changed_names[_text(name, script)] = node.start_byte


def _read_command(node: tree_sitter.Node, script: Script, statement: int, branch: bool) -> None:
    own = [child for child in node.children if child.type == "variable_assignment"]
    rest = [child for child in node.children if child.type not in ("variable_assignment", "file_redirect")]
    words = tuple(replace(each, branch=branch) for each in _words(rest, script.text))
    for child in own:
        # `A=1 program` is no assignment; the grammar joins `A=1 B=2` to the command of the next line.
        between = script.text[child.end_byte : words[0].start] if words else "\n"
        is_prefix = re.search(r"(?<!\\)\n", between) is None
        script.assignments.append(replace(_assignment(child, script.text, branch), prefix=is_prefix))
    script.commands.append(
        ShellCommand(words, words[0].start if words else node.start_byte, statement, branch)
    )
    if words and words[0].text in _NAMES_ASSIGNED:
        for each in words[1:]:
            script.changed_names.setdefault(each.text.split("=")[0], each.start)


def _words(nodes: list[tree_sitter.Node], text: str) -> Iterator[Word]:
    """Give the words; neighbours without a blank between are one, whatever the grammar makes of them."""
    spans: list[list[tree_sitter.Node]] = []
    for node in nodes:
        if node.type in ("comment", "(", ")", "heredoc_redirect", "herestring_redirect"):
            continue
        if spans and spans[-1][-1].end_byte == node.start_byte:
            spans[-1].append(node)
        else:
            spans.append([node])
    for span in spans:
        yield word(
            text, span[0].start_byte, span[-1].end_byte, [each for node in span for each in _computed(node)]
        )


def _computed(node: tree_sitter.Node) -> Iterator[tuple[int, int]]:
    if node.type in _COMPUTED:
        yield node.start_byte, node.end_byte
        return
    for child in node.children:
        yield from _computed(child)


def _assignment(node: tree_sitter.Node, text: str, branch: bool, declared: str = "") -> Assignment:
    name = text[node.children[0].start_byte : node.children[0].end_byte]
    sign = node.children[1]
    value = [child for child in node.children[2:] if child.end_byte > child.start_byte]
    array = bool(value) and value[0].type == "array"
    words = tuple(_words(value[0].children if array else value, text))
    if not words and not array:
        words = (word(text, sign.end_byte, sign.end_byte, ()),)
    words = tuple(replace(each, branch=branch) for each in words)
    append = text[sign.start_byte : sign.end_byte] == "+="
    return Assignment(name, words, node.start_byte, array, append, declared, False, branch)


def _read_declaration(node: tree_sitter.Node, script: Script, _statement: int, branch: bool) -> None:
    """Read export, declare, readonly, local: what they assign, and what they export by name alone."""
    declared = " ".join(
        _text(child, script)
        for child in node.children
        if child.type not in ("variable_assignment", "variable_name")
    )
    for child in node.children:
        if child.type == "variable_assignment":
            script.assignments.append(_assignment(child, script.text, branch, declared))
            for part in child.children[1:]:
                _walk(part, script, child.start_byte, branch)
        elif child.type == "variable_name" and is_export(declared):
            script.exported.setdefault(_text(child, script), node.start_byte)


def is_export(declared: str) -> bool:
    """Tell whether `export`, `declare -x` or the like puts the variable into the environment."""
    return (declared.startswith("export") and "-n" not in declared) or re.search(
        r"\s-\w*x", declared
    ) is not None


def _read_use(node: tree_sitter.Node, script: Script, _statement: int, _branch: bool) -> None:
    parent = node.parent
    if parent is None or (parent.type == "variable_assignment" and parent.children[0] == node):
        return
    while parent is not None and parent.type not in ("command", "variable_assignment", "program"):
        parent = parent.parent
    name = parent.child_by_field_name("name") if parent is not None and parent.type == "command" else None
    printed = name is not None and _text(name, script) in ("echo", "printf")
    script.uses.append(VariableUse(_text(node, script), node.start_byte, printed))


def _read_document(node: tree_sitter.Node, script: Script, _statement: int, branch: bool) -> None:
    """Note a here-document; `read ... name <<EOF` makes it the value of a variable."""
    for child in node.children:
        body = next((part for part in child.children if part.type == "heredoc_body"), None)
        if child.type != "heredoc_redirect" or body is None:
            continue
        words = (
            list(_words(node.children[0].children, script.text)) if node.children[0].type == "command" else []
        )
        if not words or words[0].text != "read":
            script.documents.append((body.start_byte, body.end_byte))
            continue
        # The body's node begins at the first line's first word; blanks before it do not count when it is
        # split.
        head = next(part for part in child.children if part.type == "heredoc_start")
        quote: Quote = "'" if re.search(r"['\"\\]", _text(head, script)) else "<<"
        value = replace(
            word(script.text, body.start_byte, body.end_byte, _computed(body), quote), branch=branch
        )
        script.assignments.append(
            Assignment(words[-1].text, (value,), node.start_byte, declared="read", branch=branch)
        )


_READERS: dict[str, Callable[[tree_sitter.Node, Script, int, bool], None]] = {
    "comment": lambda node, script, _statement, _branch: script.comments.append(
        (node.start_byte, node.end_byte)
    ),
    "command": _read_command,
    "variable_assignment": _read_assignment,
    "declaration_command": _read_declaration,
    "unset_command": lambda node, script, statement, _branch: script.unset.extend(
        (_text(child, script), node.start_byte, statement) for child in node.named_children
    ),
    "redirected_statement": _read_document,
    "for_statement": _read_loop,
    "variable_name": _read_use,
}
