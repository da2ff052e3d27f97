"""What the knowledge covers: counts of causes, cases, settings, patterns and sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from corpus.library import Library
from corpus.log_patterns import PatternTable
from corpus.schema import Case

Counts = Mapping[str, int]
SettingCounts = Mapping[str, Mapping[str, int]]


def stats(library: Library, table: PatternTable) -> dict[str, Counts | SettingCounts]:
    """Count the knowledge by what its users ask for; each table from the most frequent on."""
    cases, settings = library.cases.values(), dict[str, dict[str, int]]()
    for spec in library.specs.values():
        row = settings.setdefault(spec.framework, {"explained": 0, "extracted": 0})
        row["explained" if spec.explained else "extracted"] += 1
    return {
        "total": {
            "causes": len(library.causes),
            "cases": len(cases),
            "settings": len(library.specs),
            "patterns": len(table.rows),
        },
        "causes_by_category": _most(cause.category for cause in library.causes.values()),
        "cases_by_framework": _most(case.id.split("/")[0] for case in cases),
        "cases_by_category": _most(
            library.causes[case.cause].category for case in cases if case.cause in library.causes
        ),
        "cases_by_action": _most(case.action for case in cases),
        "cases_by_language": {"en": _count_written(cases, "en"), "zh": _count_written(cases, "zh")},
        "settings_by_framework": dict(
            sorted(settings.items(), key=lambda item: (-item[1]["explained"], item[0]))
        ),
        "patterns_by_dialect": _most(row.id.split(".")[0] for row in table.rows),
        "sources_by_strength": _most(source.says for case in cases for source in case.sources),
        "sources_by_kind": _most(source.kind for case in cases for source in case.sources),
    }


def _most(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items(), key=lambda item: (-item[1], item[0])))


def _count_written(cases: Iterable[Case], language: str) -> int:
    return sum(bool(getattr(case.body, language)) for case in cases)


def text(counts: Mapping[str, Counts | SettingCounts]) -> str:
    """Write the counts as lines to read."""
    return "\n".join(f"{name.replace('_', ' ')}: {_line(table)}" for name, table in counts.items())


def _line(table: Counts | SettingCounts) -> str:
    cells = (
        str(item) if isinstance(item, int) else f"{item['explained']}+{item['extracted']}"
        for item in table.values()
    )
    return ", ".join(f"{name} {cell}" for name, cell in zip(table, cells, strict=True))


def markdown(counts: Mapping[str, Counts | SettingCounts]) -> str:
    """Write the counts as a table; settings as explained by a person + read from the source."""
    rows = ["| what | how many |", "|---|---|"]
    return "\n".join(
        [*rows, *(f"| {name.replace('_', ' ')} | {_line(table)} |" for name, table in counts.items())]
    )
