"""The files of a release that say what it requires: each form gives Pythons and lines of requirements."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.utils import canonicalize_name

# Gives a file's text, or the empty string where the release has none.
ReadFile = Callable[[str], str]
# The Pythons, as a specifier, and the requirements, as pip writes them.
Declared = tuple[str, list[str]]

_INCLUDED = re.compile(r"^(?:-r|--requirement)[ =]*(?P<path>\S+)")
_RANGED = re.compile(r"^\s*(?P<name>[\w.-]+)(?:\[[\w,-]+\])?\s*[<>=!~]")
# Deeper than any file of requirements includes others.
_DEEPEST = 6


def of_project(text: str, extras: Sequence[str]) -> Declared:
    """Read `pyproject.toml`, with the requirements of some of its extras."""
    project = tomllib.loads(text).get("project", {})
    optional = project.get("optional-dependencies", {})
    lines = [
        *project.get("dependencies", []),
        *(line for extra in extras for line in optional.get(extra, [])),
    ]
    return project.get("requires-python", ""), lines


def of_lines(path: str, text: str, read: ReadFile, depth: int = 0) -> Iterator[str]:
    """Give the lines of a requirements file and of those that it includes."""
    for line in text.splitlines():
        included = _INCLUDED.match(line)
        if included is not None and depth < _DEEPEST:
            other = (Path(path).parent / included["path"]).as_posix()
            yield from of_lines(other, read(other), read, depth + 1)
        elif line.strip() and not line.startswith(("#", "-")):
            yield re.sub(r"\s#.*", "", line).strip()


def of_options(text: str, extras: Sequence[str]) -> Declared:
    """Read `setup.cfg`."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return "", []
    lines = parser.get("options", "install_requires", fallback="").splitlines()
    for extra in extras:
        lines += parser.get("options.extras_require", extra, fallback="").splitlines()
    return parser.get("options", "python_requires", fallback=""), [
        line.strip() for line in lines if line.strip()
    ]


def of_setup(text: str, extras: Sequence[str]) -> Declared:
    """Read the arguments of `setup(...)`; what only running it would tell is left out."""
    try:
        module = ast.parse(text)
    except SyntaxError:
        return "", []
    script = _SetupScript(module)
    lines = script.texts(script.arguments.get("install_requires"))
    table = script.resolved(script.arguments.get("extras_require"))
    if isinstance(table, ast.Dict):
        named = {
            key.value: value
            for key, value in zip(table.keys, table.values, strict=True)
            if isinstance(key, ast.Constant)
        }
        lines += [line for extra in extras for line in script.texts(named.get(extra))]
    return "".join(script.texts(script.arguments.get("python_requires"))[:1]), lines


class _SetupScript:
    """The assignments of a setup script, and the arguments that it calls `setup` with."""

    def __init__(self, module: ast.Module) -> None:
        nodes = list(ast.walk(module))
        self._names: Mapping[str, ast.expr] = {
            target.id: node.value
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        constants = (node.value for node in nodes if isinstance(node, ast.Constant))
        self._ranged = {
            canonicalize_name(match["name"]): text
            for text in constants
            if isinstance(text, str) and (match := _RANGED.match(text))
        }
        self.arguments: Mapping[str, ast.expr] = {
            word.arg: word.value
            for node in nodes
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "setup"
            for word in node.keywords
            if word.arg
        }

    def resolved(self, node: ast.expr | None) -> ast.expr | None:
        """Give what a name stands for; anything else as it is."""
        return self._names.get(node.id, node) if isinstance(node, ast.Name) else node

    def texts(self, node: ast.expr | None, depth: int = 0) -> list[str]:
        """Give the texts of a list of requirements: literals, names, sums, and `deps["name"]`."""
        node = self.resolved(node)
        if depth > _DEEPEST:
            return []
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [node.value]
        if isinstance(node, ast.List | ast.Tuple):
            return [text for item in node.elts for text in self.texts(item, depth + 1)]
        if isinstance(node, ast.Call) and node.args:
            # `list(...)` of a list.
            return self.texts(node.args[0], depth + 1)
        if isinstance(node, ast.BinOp):
            return [text for side in (node.left, node.right) for text in self.texts(side, depth + 1)]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            # A table by name of the texts of another list, as the libraries of Hugging Face have it.
            found = self._ranged.get(canonicalize_name(str(node.slice.value)))
            return [found] if found else []
        return []


def of_table(text: str, package: str, version: str) -> list[str]:
    """Read the row of a README's table on this version: its other columns say what it was built for."""
    rows = [[cell.strip(" `*") for cell in line.strip().strip("|").split("|")] for line in text.splitlines()]
    head: list[str] = []
    for row in rows:
        if row[0] == package:
            head = row
        elif head and len(row) == len(head) and f"{version}.".startswith(f"{row[0]}."):
            # A cell such as `2.7` stands for all its patch releases; another is a range, as `>=2.11`.
            return [
                f"{name}{cell if cell[0] in '<>=' else f'=={cell}.*'}"
                for name, cell in zip(head[1:], row[1:], strict=True)
                if re.fullmatch(r"[a-z][\w-]*", name) and re.match(r"[<>=]*\s*\d", cell)
            ]
    return []


_BUILT_FOR = re.compile(
    r"[Bb]inary wheels (?:require|are available for) PyTorch "
    r"(?P<torch>\d+(?:\.\d+)+)(?P<later> \(and later\))?"
)


def of_changelog(text: str, version: str) -> list[str]:
    """Read what a changelog's section on this version says its wheels were built for."""
    sections = re.split(r"^## \[?v?", text, flags=re.MULTILINE)
    own = next((section for section in sections if re.match(rf"{re.escape(version)}\b(?!\.)", section)), "")
    found = _BUILT_FOR.search(own)
    if found is None:
        return []
    return [f"torch>={found['torch']}" if found["later"] else f"torch=={found['torch']}"]


_MATRIX = re.compile(r"^\s*torch-version:\s*\[(?P<versions>[^\]]*)\]", re.MULTILINE)


def of_workflow(text: str) -> list[str]:
    """Read for which minor releases of PyTorch a workflow builds wheels, from the first to the last."""
    found = _MATRIX.search(text)
    minors = (
        sorted(
            {(int(major), int(minor)) for major, minor in re.findall(r"(\d+)\.(\d+)\.\d+", found["versions"])}
        )
        if found
        else []
    )
    if not minors:
        return []
    (low, first), (high, last) = minors[0], minors[-1]
    return [f"torch>={low}.{first},<{high}.{last + 1}"]
