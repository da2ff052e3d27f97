"""Options of a program that the job does not start: what its own code calls takes them as keywords."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from corpus.frameworks import cued_frameworks, known_frameworks
from corpus.keys import canonical
from corpus.library import Library
from corpus.message import words
from corpus.schema import Language
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.remediation.named_changes import launched
from service.schemas.diagnosis import ProposedChange


def in_own_calls(
    changes: Sequence[ProposedChange], report: CrashReport, library: Library, language: Language
) -> list[ProposedChange]:
    """Give the changes with flags of a framework told as keywords where the job's own code calls it.

    `LLM(model, tensor_parallel_size=2)` reads no `--tensor-parallel-size`; an engine whose program the job
    starts as well reads both, and its flags stay. Flags of launchers are no keywords of what they start. An
    option of a framework's programs that the job is not seen to have is told by what its code hands over.
    """
    changes = [_as_argument(change, report, library, language) for change in changes]
    engines = known_frameworks().of_layer("engine")
    places = {name: place for name, place in _called(report) if name in engines}
    started = launched(report) if places else frozenset()
    return [
        change.model_copy(
            update={
                "kind": "setting",
                "key": canonical(change.key),
                "why": _joined(change.why, words("changes.keyword", language, place=place), language),
            }
        )
        if change.kind == "flag"
        and change.framework not in started
        and (place := places.get(change.framework))
        else change
        for change in changes
    ]


def _as_argument(
    change: ProposedChange, report: CrashReport, library: Library, language: Language
) -> ProposedChange:
    spec = library.setting(change.framework, change.key) if change.from_ is None else None
    call = spec.argument.rpartition(".")[0] if spec is not None else ""
    frames = report.root.frames if call and report.root is not None else ()
    for caller, below in pairwise(frames):
        if spec is not None and is_own(caller) and not is_own(below) and below.function == call:
            told = words("changes.keyword", language, place=caller.found_at)
            why = _joined(change.why, told, language)
            return change.model_copy(update={"key": spec.argument, "why": why})
    return change


def _called(report: CrashReport) -> Iterator[tuple[str, str]]:
    """Give the frameworks that the job's own statements call, with the place of the call."""
    frames = report.root.frames if report.root is not None else ()
    for caller, below in pairwise(frames):
        if is_own(caller) and caller.line and not is_own(below):
            place = f"{caller.file.replace(chr(92), '/').rpartition('/')[2]}:{caller.line}"
            yield from ((name, place) for name in cued_frameworks(below.file))


def _joined(why: str, told: str, language: Language) -> str:
    return told if not why else f"{why}{told}" if language == "zh" else f"{why} {told}"
