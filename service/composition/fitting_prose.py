"""The prose of an answer without what is nothing to the job: other nodes, ranks, cards that it has not."""

from __future__ import annotations

import re

from corpus import job_kinds
from corpus.expressions import compiled
from ingest.logs.conditions import ReportView

# A sentence, or a part of one that a semicolon ends: behind its mark, never within code.
_CLAUSE = re.compile(r"(?:`[^`\n]*`|[^`.!?;。！？；\n]|[.!?;](?!\s|$)|`)+[.!?;。！？；]*\s*|\n|\S")
# What goes on what was said before it has nothing to stand on without it.
_GOES_ON = re.compile(
    r"(?:It|They|This|That|These|Those|Otherwise|Only then|If so|The same)\b|(?:否则|这|它)"
)


def fitting_prose(text: str, view: ReportView) -> str:
    """Give a text without the sentences and parts of them that speak of what this job has not.

    Where a phrase can go alone, the sentence stays without it. A text of which nothing would be left stands
    as it is.
    """
    foreign = [row for row in job_kinds.load().phrases if not row.serves(view.job)]
    dropped = [row.expression for row in foreign if row.instead is None]
    kept: list[str] = []
    is_without = False
    for clause in _CLAUSE.findall(text) if foreign else ():
        said = view.in_its_words(clause)
        goes_on = is_without and _GOES_ON.match(said) is not None
        if said.strip() and (goes_on or any(compiled(each).search(said) for each in dropped)):
            is_without = True
            if kept:
                kept[-1] = re.sub(r"[;；](?=\s*$)", lambda mark: "." if mark[0] == ";" else "。", kept[-1])
            continue
        kept.append(f"{said[:1].upper()}{said[1:]}" if is_without and _begins(kept) else said)
        is_without = is_without and not said.strip()
    return "".join(kept).strip() or text


def _begins(kept: list[str]) -> bool:
    """Tell whether the next part begins a sentence."""
    return not kept or kept[-1].rstrip().endswith((".", "!", "?"))
