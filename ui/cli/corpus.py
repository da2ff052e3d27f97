"""`whycrash corpus`: check the knowledge, show a case."""

from __future__ import annotations

import json
from pathlib import Path

from rich.markdown import Markdown

from corpus import library, log_patterns
from eval import drafting
from ingest.logs.inputs import sources
from service.pipeline import lint as checks
from service.pipeline.triage import Triage
from ui import coverage
from ui.cli.codes import EXPLAINED, MISUSE
from ui.cli.console import language, load_settings, out


def lint() -> int:
    """Check everything and print each finding on its line."""
    with library.checking_all():
        loaded, table = library.load(), log_patterns.load()
        checks.read_tables()
        findings = checks.findings(loaded, table, load_settings().home / "cache")
        findings += checks.table_findings(loaded, table)
    console = out()
    for finding in findings:
        console.print(finding, markup=False)
    console.print(
        f"{len(loaded.causes)} causes, {len(loaded.cases)} cases, {len(loaded.specs)} settings, "
        f"{len(table.rows)} patterns: " + (f"{len(findings)} findings" if findings else "all good"),
        markup=False,
    )
    return MISUSE if findings else EXPLAINED


def stats(*, as_json: bool) -> int:
    """Print what the knowledge covers."""
    counts = coverage.stats(library.load(), log_patterns.load())
    out().print(
        json.dumps(counts, ensure_ascii=False, indent=2) if as_json else coverage.text(counts),
        markup=False,
        soft_wrap=True,
    )
    return EXPLAINED


def draft(log: Path, cause: str, fix: str, out_folder: Path) -> int:
    """Write a case draft and an incident from a log and what a person knows of it."""
    triage = Triage(load_settings())
    report = triage.reader.read(sources.from_path(log))
    text = b"".join(sources.from_path(log).chunks()).decode("utf-8", "replace")
    written = drafting.write(report, drafting.Truth(cause, fix), text, triage.library, out_folder)
    for path in written:
        out().print(str(path), markup=False)
    return EXPLAINED


def show(case_id: str, lang: str) -> int:
    """Print one case."""
    chosen = language(lang)
    loaded = library.load()
    case = loaded.case(case_id)
    rows = [f"# {case.title.to(chosen)}", f"`{case.id}` · {case.cause} · {case.action}", case.body.to(chosen)]
    if case.changes:
        rows.append(
            "\n".join(
                f"- `{change.key} = {loaded.settings_named(change.to, chosen)}` ({change.framework}): "
                f"{change.why.to(chosen)}"
                for change in case.changes
            )
        )
    rows.append("\n".join(f"- {source.url} ({source.kind}, {source.says})" for source in case.sources))
    out().print(Markdown("\n\n".join(rows)))
    return EXPLAINED
