"""A configuration of Hydra that code loads as a plain file: what its `defaults` list names is then missing.

`OmegaConf.load` reads one file. The list is composed by Hydra alone: hydra/_internal/defaults_list.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from corpus.message import in_both
from ingest.configfiles.formats import CODE
from ingest.configfiles.notebook import place_in
from ingest.configfiles.settings import TextEdit
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.rewriting import with_import
from service.remediation.code_edits.source_text import SourceText, parsed, whole_source
from service.remediation.own_edits import OwnEdit

# omegaconf/errors.py; what a key of the first level is, stands behind `full_key`.
_MISSING = re.compile(
    r"\bMissing key (?P<name>\w+)(?:\s*\n\s*full_key: (?P<full>[\w.]+))?|"
    r"\bKey '(?P<key>\w+)' is not in struct"
)
_LIST = re.compile(r"^defaults:[ \t]*\n(?P<rows>(?:[ \t]*(?:-[^\n]*|#[^\n]*)?\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"-\s*(?:override\s+|optional\s+)*/?(?P<group>\w+)(?:/[\w/]+)?(?:@[\w.]+)?\s*:")
_BROUGHT = ("import os", "from hydra import compose, initialize_config_dir")


def uncomposed_edit(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Compose the configuration whose list names the missing key, in place of loading its one file."""
    root = report.root
    found = _MISSING.search(f"{root.body}\n{root.rest}") if root is not None else None
    if found is None:
        return None
    name = (found["full"] or found["name"] or found["key"]).partition(".")[0]
    for file, source, statement, path in _loads(files):
        ending = f"/{path.lstrip('./')}"
        configs = [each for each in files if each.name.endswith((".yaml", ".yml"))]
        configs = [
            each for each in configs if f"/{each.name}".endswith(ending) or ending.endswith(f"/{each.name}")
        ]
        lists = [rows for each in configs if (rows := _LIST.search(f"{each.text}\n")) is not None]
        groups = {entry["group"] for rows in lists for entry in _ENTRY.finditer(rows["rows"])}
        if len(configs) != 1 or name not in groups:
            continue
        folder, _, leaf = path.rpartition("/")
        indent = source.indent(statement)
        if indent is None:
            continue
        target = ast.unparse(statement.targets[0])
        put = [
            f"initialize_config_dir(version_base=None, config_dir=os.path.abspath({folder or '.'!r}))",
            f"{target} = compose({leaf.rpartition('.')[0]!r})",
        ]
        start, end = source.start(statement), source.end(statement)
        edits = [TextEdit(start, end, f"\n{indent}".join(put))]
        edits += [edit for text in _BROUGHT if (edit := with_import(source, text)) is not None]
        text = source.edited(edits)
        if parsed(text) is None:
            continue
        why = in_both("changes.uncomposed", file=configs[0].name, name=name)
        at = place_in(file.name, file.text, statement.lineno)
        before = source.source(statement)
        return OwnEdit("replace", at, before, "; ".join(put), why, file, text, "; ".join(_BROUGHT))
    return None


def _loads(files: Sequence[JobFile]) -> Iterator[tuple[JobFile, SourceText, ast.Assign, str]]:
    """Give the statements that load one file by its name, `cfg = OmegaConf.load("conf/config.yaml")`."""
    for file in files:
        source = whole_source(file.text) if file.name.endswith(CODE) else None
        for node in ast.walk(source.tree) if source is not None else ():
            match node:
                case ast.Assign(
                    targets=[ast.Name()],
                    value=ast.Call(
                        func=ast.Attribute(value=ast.Name(id="OmegaConf"), attr="load"),
                        args=[ast.Constant(value=str() as path)],
                    ),
                ) if source is not None:
                    yield file, source, node, path
