"""Knowledge is data: no id of a cause or a pattern stands in code, where it would decide something."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from corpus import library, log_patterns
from corpus.library import read_causes

ROOT = Path(__file__).parent.parent
FOLDERS = ("corpus", "ingest", "service", "ui", "whycrash")
# Where an id stands that decides nothing, or that the answer's contract names itself.
ALLOWED = {
    ("service/schemas/diagnosis.py", "insufficient-evidence"): "the contract's cause of an unknown verdict",
    ("service/api/bodies.py", "gpu-oom-training"): "an example in the API's description",
}


def test_that_no_id_of_a_cause_or_pattern_stands_in_code() -> None:
    causes = {cause.id for cause in read_causes(library.ROOT / "causes.yaml")}
    # Ids of one word are words of the language too.
    ids = {name for name in causes if "-" in name} | set(log_patterns.load().by_id)
    found = {
        (path.relative_to(ROOT).as_posix(), text)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for text in _literals(path)
        if text in ids
    }
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == [], "an exemption that nothing needs"


def _literals(path: Path) -> Iterator[str]:
    """Give the strings of a module, and the conditions' names in them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.removeprefix("pattern:").removeprefix("root:").removeprefix("cause:")
