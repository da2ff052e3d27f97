"""Draft a case and a labelled incident from a log whose real cause a person knows.

The draft holds what the reader found (the root's pattern, exception and innermost call, the settings seen). A
person completes its sentences, then checks both with `whycrash corpus lint`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from corpus.conditions import expression_test
from corpus.library import Library, dump_yaml
from eval.errors import EvalError
from ingest.logs.report import CrashReport
from ingest.redaction.redactor import Redactor

_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Truth:
    """What a person knows of the crash: an id of causes.yaml, and the fix in words (may be empty)."""

    cause: str
    fix: str = ""


def signature(report: CrashReport) -> dict[str, list[str]]:
    """Suggest a case's `signatures`: the root's pattern, or its exception and innermost call; the framework.

    Raises EvalError where the report has no root.
    """
    root = report.root
    if root is None:
        raise EvalError("the log shows no failure, so there is nothing to draft a case from")
    conditions = [f"pattern:{root.pattern}"]
    if root.handler == "unknown-exception" and root.exception:
        conditions = [expression_test("exception", f"^{re.escape(root.exception)}$")]
        if root.frames:
            inner = root.frames[-1]
            place = f"{re.escape(Path(inner.file).name)}:{re.escape(inner.function)}$"
            conditions.append(expression_test("frame", place))
    if report.frameworks:
        conditions.append(f"framework:{report.frameworks[0].name}")
    return {"all": conditions}


def case_id(report: CrashReport, truth: Truth) -> str:
    """Suggest a case id: framework, the root's exception or pattern, and six digits of the fingerprint."""
    framework = report.frameworks[0].name if report.frameworks else "common"
    what = report.root.exception or report.root.pattern if report.root else truth.cause
    return f"{framework}/{_SLUG.sub('-', what.lower()).strip('-')[:40]}-{report.fingerprint[:6]}"


def case_draft(report: CrashReport, truth: Truth, library: Library) -> str:
    """Give the text of a case file; raises EvalError where `truth.cause` is not in causes.yaml."""
    if truth.cause not in library.causes:
        raise EvalError(
            f"there is no cause {truth.cause!r}; `whycrash corpus lint` knows {len(library.causes)} of them"
        )
    cause = library.causes[truth.cause]
    front = {
        "id": case_id(report, truth),
        "title": {"en": cause.title.en, "zh": cause.title.zh},
        "cause": truth.cause,
        "action": cause.action,
        "frameworks": {found.name: "" for found in report.frameworks[:2]},
        "signatures": signature(report),
        "changes": [],
        "sources": [
            {"url": "https://example.org/where-it-was-solved", "kind": "writeup", "says": "confirmed"}
        ],
    }
    seen = report.root.body if report.root else ""
    settings = "\n".join(f"- `{item.key} = {item.value}` (line {item.line})" for item in report.settings[:20])
    body = [
        "## en",
        "### What you see",
        f"The log says: `{seen}`",
        "### Why",
        cause.means.en,
        "### What to do",
        truth.fix or cause.advice.to("en"),
        *(["", "Settings seen in the log:", settings] if settings else []),
        "",
        "## zh",
        "### 现象",
        f"日志写道：`{seen}`",
        "### 原因",
        cause.means.zh,
        "### 处理",
        truth.fix or cause.advice.to("zh"),
    ]
    return f"---\n{dump_yaml(front)}---\n" + "\n".join(body) + "\n"


def incident_draft(report: CrashReport, truth: Truth, text: str) -> tuple[str, str]:
    """Give an incident's label (YAML) and its log, redacted line by line so that line numbers stay."""
    clean = Redactor()
    log = "\n".join(clean.clean(row) for row in clean.clean(text).split("\n"))
    label = {
        "id": f"reported-{report.fingerprint}",
        "causes": [truth.cause],
        "verdict": "diagnosed",
        "root_lines": [report.root.line] if report.root else [],
        "changes": [],
        "frameworks": {found.name: found.version for found in report.frameworks},
        "language": "en",
        "kind": "short",
        "mechanism": f"reported-{report.fingerprint}",
        "split": "fit",
        "origin": {"kind": "written", "note": "from feedback"},
    }
    return dump_yaml(label), log


def write(report: CrashReport, truth: Truth, text: str, library: Library, out: Path) -> tuple[Path, Path]:
    """Write the case and the incident under `out`; gives the case's file and the incident's folder."""
    case = out / "cases" / f"{case_id(report, truth)}.md"
    label, log = incident_draft(report, truth, text)
    incident = out / "incidents" / f"reported-{report.fingerprint}"
    case.parent.mkdir(parents=True, exist_ok=True)
    incident.mkdir(parents=True, exist_ok=True)
    case.write_text(case_draft(report, truth, library), encoding="utf-8")
    (incident / "label.yaml").write_text(label, encoding="utf-8")
    (incident / "log.txt").write_text(log, encoding="utf-8")
    return case, incident
