"""The house's imports: one way between the folders, and each outside thing behind one seam."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.syntax import Module, modules
from tests.tables import each_row

ROOT = Path(__file__).parent.parent
ORDER = ["corpus", "ingest", "service", "eval", "ui"]
# What programs import: on top of the service, beside the faces.
PUBLIC = "whycrash"
BELOW_PUBLIC = ORDER[: ORDER.index("service") + 1]
# `python -m whycrash` is a face, though it stands where its name is.
COMMAND = "whycrash/__main__.py"

# A package, and the one module or folder that may import it; several where each does a thing of its own with
# it.
SEAMS: dict[str, str | tuple[str, ...]] = {
    "hyperscan": "ingest/logs/scanner.py",
    "chromadb": "ingest/chroma.py",
    "sentence_transformers": "ingest/embedder.py",
    "onnxruntime": "ingest/embedder.py",
    "torch": "ingest/embedder.py",
    "bm25s": "ingest/word_index.py",
    "jieba": "ingest/chinese_words.py",
    "bs4": "ingest/writeups.py",
    # The catalogue of messages lies below the library, whose errors are messages.
    "yaml": ("corpus/library.py", "corpus/message.py"),
    "ruamel": "ingest/configfiles/yaml_tree.py",
    "tree_sitter": "ingest/configfiles/shell/syntax.py",
    "tree_sitter_bash": "ingest/configfiles/shell/syntax.py",
    "zstandard": "ingest/logs/inputs/compression.py",
    "atheris": "eval/fuzz/process.py",
    "gradio": "ui/chat",
    "slack_bolt": "ui/slack",
    "slack_sdk": "ui/slack",
    "fastapi": ("service/api", "ui/server.py"),
    "starlette": ("service/api", "ui/slack", "ui/chat", "ui/server.py"),
    "uvicorn": ("service/api", "ui/server.py"),
    # What the server tells of itself, and what it reads of others.
    "prometheus_client": ("service/api", "service/telemetry/exposition.py"),
    "sqlalchemy": "service/persistence",
    "alembic": "service/persistence",
    "mcp": "ui/mcp",
    "mcp_types": "ui/mcp",
    "ray": "ingest/workers/ray_driver.py",
    "opentelemetry": "service/signals/export.py",
    "fsspec": "service/batches/sources/object_listing.py",
    "pynvml": "service/telemetry/nvml.py",
    "psutil": "service/telemetry/host.py",
    "langchain": "service/llm/models.py",
    "langsmith": "service/llm/models.py",
    "httpx": (
        "ingest/chroma.py",
        "service/telemetry",
        "service/api/client.py",
        "service/api/oidc.py",
        "service/batches/sources",
        "service/monitoring",
        "eval/fresh",
        "eval/attack",
        "eval/soak",
        "ui/slack",
    ),
    "jwt": "service/api/oidc.py",
    "typer": "ui",
}
# The packages of the service; each imports those before it.
SERVICE = [
    "html",
    "schemas",
    "allowed_files",
    "settings",
    "signals",
    "telemetry",
    "scoring",
    "remediation",
    "composition",
    "patching",
    "llm",
    "pipeline",
    "bundle",
    "persistence",
    "workers",
    "batches",
    "app",
    "monitoring",
    "api",
]
# The slow packages of which an answer must not wait at import.
SLOW = {
    "chromadb",
    "sentence_transformers",
    "torch",
    "onnxruntime",
    "bm25s",
    "jieba",
    "langchain",
    "langsmith",
    "openai",
    "ray",
    "alembic",
    "pandas",
    "pyarrow",
}


def _modules() -> list[Path]:
    return [path for folder in [*ORDER, PUBLIC] for path in sorted((ROOT / folder).rglob("*.py"))]


@cache
def _parsed() -> Mapping[str, Module]:
    return {module.name: module for module in modules()}


@cache
def _imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Give each imported name with its module's, and whether the import stands at the top of the module."""
    module = _parsed()[_name(path)]
    top = set(map(id, module.tree.body))
    found: list[tuple[str, bool]] = []
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(f"{node.module}.{alias.name}", id(node) in top) for alias in node.names]
    return tuple(found)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@each_row("path", _modules(), ids=_name)
def test_imports_go_one_way(path: Path) -> None:
    """A folder imports only itself and the folders before it."""
    own = _name(path).split("/")[0]
    allowed = {PUBLIC, *BELOW_PUBLIC} if own == PUBLIC else set(ORDER[: ORDER.index(own) + 1])
    allowed |= {"ui"} if _name(path) == COMMAND else set()
    upward = [module for module, _ in _imports(path) if module.split(".")[0] in {*ORDER, PUBLIC} - allowed]
    assert upward == []


@each_row(
    "path",
    [path for path in sorted((ROOT / "service").rglob("*.py")) if _name(path) != "service/__init__.py"],
    ids=_name,
)
def test_packages_of_the_service_import_those_before_them(path: Path) -> None:
    """Within the service, too, imports go one way, in the order that docs/architecture.md draws."""
    own = SERVICE.index(path.relative_to(ROOT / "service").parts[0].removesuffix(".py"))
    named = {module.split(".")[1] for module, _ in _imports(path) if module.startswith("service.")}
    assert {name for name in named if SERVICE.index(name) > own} == set()


def test_the_architecture_page_draws_the_order_of_the_service() -> None:
    """Its table has a row for each package, in their order."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `service/(\w+)(?:/|\.py)` \|", page, re.MULTILINE)
    assert rows == SERVICE


@each_row("path", _modules(), ids=_name)
def test_outside_packages_have_one_seam(path: Path) -> None:
    """An outside package is imported by its seam alone."""
    inside = ("eval/lab/", "eval/bench/")
    strangers = [
        module
        for module, _ in _imports(path)
        if (seam := SEAMS.get(module.split(".")[0]))
        and not _name(path).startswith((*((seam,) if isinstance(seam, str) else seam), *inside))
    ]
    assert strangers == []


# A benchmark or a failing job imports what it measures or breaks.
@each_row(
    "path",
    [path for path in _modules() if not _name(path).startswith(("eval/lab/", "eval/bench/"))],
    ids=_name,
)
def test_slow_packages_are_not_imported_at_import(path: Path) -> None:
    """A slow package is imported inside the function that needs it."""
    assert [module for module, top in _imports(path) if top and module.split(".")[0] in SLOW] == []


def _depends(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for following in graph.get(waiting.pop(), ()):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return seen


def test_no_module_imports_itself_through_others() -> None:
    """There is no import cycle."""
    names = {
        _name(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__"): path
        for path in _modules()
    }
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        for node in _parsed()[_name(path)].nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                found = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
                graph.setdefault(name, set()).update((found & set(names)) - {name})
    assert [name for name in graph if name in _depends(name, graph)] == []


def test_package_files_import_nothing() -> None:
    """An `__init__.py` holds a docstring and imports nothing.

    Only that of the public package forwards names, once they are used: at the top it imports what marks
    types, no more.
    """
    for path in _modules():
        if path.name == "__init__.py":
            at_import = (
                list(_imports(path))
                if path.parent.name != PUBLIC
                else [name for name, top in _imports(path) if top and name != "typing.TYPE_CHECKING"]
            )
            assert at_import == [], _name(path)


def test_files_stay_readable() -> None:
    """No file is longer than 500 lines."""
    assert [_name(path) for path in _modules() if path.read_text(encoding="utf-8").count("\n") > 500] == []


def test_lines_stay_readable() -> None:
    """No line has more than 110 columns, where ruff leaves out what a pragma takes."""
    assert [
        f"{_name(path)}:{number}"
        for path in _modules()
        if "experiments" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 110
    ] == []


def _functions() -> list[tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    """Give every function with its lines, but those of the jobs that are made to fail."""
    return [
        (module, node, (node.end_lineno or node.lineno) - node.lineno + 1)
        for module in modules()
        if not module.name.startswith("eval/lab/experiments/")
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_functions_stay_readable() -> None:
    """No function is longer than 60 lines."""
    assert [f"{module.name}:{node.lineno}" for module, node, lines in _functions() if lines > 60] == []


def test_functions_are_not_cut_smaller_than_a_thought() -> None:
    """The 90th percentile of the lines of a function lies between 18 and 30."""
    lengths = sorted(lines for _, _, lines in _functions())
    assert 18 <= lengths[len(lengths) * 9 // 10] <= 30


def test_short_helpers_with_one_caller_are_few() -> None:
    """Fewer than 150 private functions of at most six lines are called at one place alone.

    Decorated ones, and those that stand in tables or are passed on, have no place where they could go inline.
    """
    used = {
        module.name: Counter(re.findall(r"\b_\w+\b\(?", (ROOT / module.name).read_text(encoding="utf-8")))
        for module in modules()
    }
    short = [
        f"{module.name}:{node.name}"
        for module, node, lines in _functions()
        if lines <= 6
        and node.name.startswith("_")
        and not (node.name.startswith("__") or node.decorator_list)
        # Its definition and its call.
        and used[module.name][f"{node.name}("] == 2
        and used[module.name][node.name] == 0
    ]
    assert len(short) < 150, short


def test_a_class_is_one_thing() -> None:
    """No two classes of a top folder have one name: a reader who searches for it finds what is meant."""
    places: dict[tuple[str, str], list[str]] = {}
    for module in modules():
        if not module.name.startswith("eval/lab/experiments/"):
            for node in module.nodes:
                if isinstance(node, ast.ClassDef):
                    places.setdefault((module.name.split("/")[0], node.name), []).append(module.name)
    assert [(name, *found) for (_, name), found in places.items() if len(found) > 1] == []
