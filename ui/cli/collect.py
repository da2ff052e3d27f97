"""`whycrash collect`: what tells of a dead or hanging job, in one archive or as the text of an issue."""

from __future__ import annotations

import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path

from corpus import bundle_items
from corpus.bundle_items import BundleTable
from corpus.library import Library
from corpus.message import Message, words
from corpus.schema import Language
from ingest.artefacts.stack_dumps import ProcessStacks, read_stacks
from ingest.errors import ArtefactError, MissingInputError
from ingest.logs.inputs import jobs
from ingest.logs.inputs.artefacts import stacks_of
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.lines import printable
from service.bundle.archive import write_bundle
from service.bundle.gathering import BundleEntry, Subject, gather
from service.bundle.issue import issue_text
from service.bundle.job_processes import job_processes
from service.composition.diagnosis_view import diagnosis_view
from service.llm.triage_context import TriageContext
from service.patching.application import name_in_repository
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import UNKNOWN_CAUSE, Diagnosis
from service.schemas.errors import InvalidRequestError
from ui.cli.codes import EXPLAINED
from ui.cli.console import check_language, language, load_settings, progress

# What happened longer ago than this before the look is of another job.
LOOKS_BACK = timedelta(days=1)


def run(
    logs: Sequence[str], job: str, out_file: Path | None, configs: Sequence[Path], lang: str, *, issue: bool
) -> int:
    """Gather, and write the archive or print the issue; raises MissingInputError where nothing is named."""
    check_language(lang)
    if not logs and not job:
        raise MissingInputError(Message("errors.nothing-to-collect"))
    table = bundle_items.load()
    kind, parts = _job(job, table)
    paths = [Path(log) for log in logs]
    context, library, source = _answered(paths, configs, lang) if paths else (None, None, None)
    variables = frozenset(name for item in table.items for name in item.variables)
    subject = Subject(
        kind,
        parts,
        job_processes(kind, parts.get("name", ""), table.processes, variables),
        datetime.now() - LOOKS_BACK,
        _wanted(context.first, library) if context is not None and library is not None else None,
    )
    with tempfile.TemporaryDirectory(prefix="whycrash-collect-") as work:
        if issue:
            if context is None or source is None:
                raise MissingInputError(Message("errors.issue-needs-log"))
            stacks = [*stacks_of(source.artefacts), *_live_stacks(table, subject, Path(work))]
            chosen: Language = "zh" if lang == "zh" else "en"
            view = diagnosis_view(context.first, chosen)
            told = {"whycrash": version("whycrash"), "python": sys.version.split()[0]}
            sys.stdout.write(issue_text(view, context.report, stacks, told, chosen))
            return EXPLAINED
        target = out_file or Path(f"whycrash-{datetime.now():%Y%m%d-%H%M%S}.tar.gz")
        about = _about(job, context)
        entries = write_bundle(target, gather(table, subject, [*paths, *configs], Path(work)), about)
    _tell(target, entries, subject, language(lang))
    return EXPLAINED


def _job(job: str, table: BundleTable) -> tuple[str, dict[str, str]]:
    """Give a job's kind and the parts of its id; raises InvalidRequestError where it is no id."""
    if not job:
        return "", {}
    found = table.kind_of(job)
    if found is None:
        raise InvalidRequestError(Message("errors.no-such-job-id", job=repr(job)))
    return found[0], dict(found[1])


def _answered(
    paths: Sequence[Path], configs: Sequence[Path], lang: str
) -> tuple[TriageContext, Library, JobSource]:
    """Answer by rules, so that what is gathered is what the answer lacks."""
    settings = load_settings()
    source = jobs.open_jobs(list(paths))
    files = [read_config(path, name_in_repository(path)) for path in configs]
    with progress() as report:
        triage = Triage(settings, report)
        return triage.diagnose(triage.read(source, lang, files)), triage.library, source


def _wanted(answer: Diagnosis, library: Library) -> frozenset[str] | None:
    """Give the causes, with their categories, that the answer names or leaves open; None for all."""
    if answer.cause in (None, UNKNOWN_CAUSE):
        return None
    causes = {answer.cause, *(other.cause for other in answer.alternatives)} - {None}
    known = [library.causes[cause] for cause in causes if cause in library.causes]
    return frozenset(name for row in known for name in (row.id, row.category))


def _live_stacks(table: BundleTable, subject: Subject, work: Path) -> list[ProcessStacks]:
    """Look at the processes that still run."""
    looks = tuple(item for item in table.items if item.each == "process")
    found: list[ProcessStacks] = []
    only = replace(subject, wanted=None)
    for entry in gather(table.model_copy(update={"items": looks}), only, (), work):
        if entry.content is not None:
            try:
                found += read_stacks(entry.content.read_bytes(), entry.name)
            except ArtefactError:  # a look that came too late: the process is gone
                continue
    return found


def _about(job: str, context: TriageContext | None) -> dict[str, object]:
    told: dict[str, object] = {
        "tool": f"whycrash {version('whycrash')}",
        "host": socket.gethostname(),
        "job": job,
    }
    if context is not None:
        first = context.first
        told["answer"] = {"verdict": first.verdict, "cause": first.cause, "headline": first.headline}
    return {name: value for name, value in told.items() if value}


def _tell(target: Path, entries: Sequence[BundleEntry], subject: Subject, chosen: Language) -> None:
    there = [entry for entry in entries if entry.exit_code in (None, 0) and not entry.note]
    gathered = [entry for entry in entries if entry.content is not None]
    masked = sum(entry.masked or 0 for entry in gathered)
    rows = [
        words("bundle.written", chosen, file=printable(str(target)), n=len(gathered), masked=masked),
        *(
            words("bundle.left-out", chosen, what=printable(entry.source), why=printable(entry.note))
            for entry in entries
            if entry not in there and entry.content is None
        ),
    ]
    if not subject.processes:
        rows.append(words("bundle.no-processes", chosen))
    sys.stdout.write("\n".join(rows) + "\n")
