"""The threat model names tests; they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def _tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_that_each_threat_has_a_test_that_exists() -> None:
    """A row without one would be a promise."""
    # The first table of the page; others, of figures, may follow under headings of their own.
    rows = [row for row in TEXT.split("\n## ")[0].splitlines() if row.startswith("| ")][1:]
    assert len(rows) >= 25
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row)
        assert named, row
        for file, name in named:
            assert (ROOT / file).exists(), file
            assert not name or name in _tests(ROOT / file), name
