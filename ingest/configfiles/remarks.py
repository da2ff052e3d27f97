"""What a file of the job says to its readers alone: comments, and texts of code that nothing is done with."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from ingest.configfiles.formats import CODE

# Behind these signs a scheduler, or the system, reads what stands in a comment.
_REMARK = re.compile(r"(?m)^[ \t]*#(?!SBATCH|PBS|BSUB|COBALT|\$|!|@).*$")
_TEXT = re.compile(r"(?m)^[ \t]*[rRuU]?(?:\"\"\"|''')")


@lru_cache(maxsize=64)
def without_remarks(text: str) -> str:
    """Give a file's text with whole rows of remarks left blank, so that rows keep their numbers."""
    told = _REMARK.sub("", text)
    if not _TEXT.search(told):
        return told
    body, _, name = told.rpartition("\n")
    try:
        tree = ast.parse(body if name.endswith(CODE) else told)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return told
    rows = told.split("\n")
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            rows[first:last] = [""] * (last - first)
    return "\n".join(rows)
