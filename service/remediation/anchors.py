"""Signs in a job that a change needs before it is one of this job: its package, and what starts its ranks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from packaging.utils import canonicalize_name

from corpus.frameworks import known_frameworks
from ingest.logs.report import CrashReport
from service.remediation.framework_relations import shown_frameworks

# A program of Python that a shell starts by itself.
_INTERPRETER = re.compile(r"(?m)(?:^|[\s;&|/])python[\d.]*\s+(?:-\w\s+)*\S+\.py\b")
# The trait of a job that several processes do together (`corpus/job_kinds.yaml`).
DISTRIBUTED = "distributed"
# The functions that start further processes of a script that was started once:
# torch/multiprocessing/spawn.py, multiprocessing/popen_*.py.
# How the line of an actor of a cluster tells whose it is: ray/_private/worker.py, print_worker_logs.
_ACTOR = re.compile(r"\bpid=\d+")
_SPAWNED = re.compile(r"torch/multiprocessing/spawn|[/\s]multiprocessing/(?:spawn|popen_\w+)\.py")


def names_package(package: str, report: CrashReport) -> bool:
    """Tell whether the job shows a package: by its framework, in a path, a message or a file of its own."""
    known, name = known_frameworks(), canonicalize_name(package.split("[")[0])
    # NVIDIA's libraries come with a build of PyTorch, and no log names the wheel (`nvidia-cublas-cu12`).
    if name.startswith("nvidia-") or any(
        name in (shown, known.row(shown).package) for shown in shown_frameworks(report)
    ):
        return True
    # A message alone, pasted without its calls: what only one package says shows it.
    sayers = report.root.frameworks if report.root is not None else ()
    if [canonicalize_name(known.row(sayer).package or sayer) for sayer in sayers] == [name]:
        return True
    modules = [module for module, owner in known.modules.items() if canonicalize_name(owner) == name]
    words = (re.split(r"[-_.]", word) for word in (name, *modules))
    spelled = "|".join("[-_.]?".join(map(re.escape, word)) for word in words)
    expression = re.compile(rf"(?i)(?<![A-Za-z0-9])(?:lib)?(?:{spelled})(?![A-Za-z])")
    return any(expression.search(text) for text in _shown_texts(report))


def rank_starters(programs: Collection[str], report: CrashReport) -> frozenset[str]:
    """Name the programs of those that start one process per GPU that may have started this job.

    `programs` are the frameworks whose programs the job shows. Where none of them starts ranks, the job is to
    be one of several processes, none of which its own code or a shell's `python` has started.
    """
    known = known_frameworks()
    able = known.with_field("starts_ranks")
    if shown := able & set(programs):
        # One that is built on another shows that one's calls too.
        return shown - known.common or shown
    source = report.root.source if report.root is not None else ""
    if known.clusters & shown_frameworks(report) and _ACTOR.search(source):
        return frozenset()  # a cluster has started the process that failed
    calls = (str(frame) for event in report.standing for frame in event.frames)
    starts_itself = any(map(_SPAWNED.search, calls))
    is_plain = any(map(_INTERPRETER.search, (*report.launches, report.command[1])))
    return able if DISTRIBUTED in report.view().job and not (starts_itself or is_plain) else frozenset()


def _shown_texts(report: CrashReport) -> Iterator[str]:
    """Give all that the report holds of the job's own words."""
    yield from report.launches
    yield report.command[1]
    yield from report.texts.values()
    for event in report.events:
        yield from map(str, event.frames)
    for setting in report.settings:
        yield f"{setting.key} {setting.value}"
    for fact in report.facts:
        yield " ".join(map(str, fact.fields.values()))
