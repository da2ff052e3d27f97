"""The text of an issue for a framework's maintainers: what failed, which versions, where each rank stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from corpus.message import words
from corpus.schema import Language
from ingest.artefacts.stack_dumps import ProcessStacks
from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import Frame
from service.composition.diagnosis_view import DiagnosisView
from service.composition.ticket import fenced, plainly

# So many settings, calls of a stack and groups of ranks are written.
MOST_SETTINGS, MOST_CALLS, MOST_GROUPS = 120, 40, 16


def issue_text(
    view: DiagnosisView,
    report: CrashReport,
    stacks: Sequence[ProcessStacks],
    versions: Mapping[str, str],
    language: Language,
) -> str:
    """Write the issue as Markdown; nothing of a log is a link, an image or a tag in it."""
    return "\n\n".join(_parts(view, report, stacks, versions, language)) + "\n"


def _parts(
    view: DiagnosisView,
    report: CrashReport,
    stacks: Sequence[ProcessStacks],
    versions: Mapping[str, str],
    language: Language,
) -> Iterator[str]:
    yield f"## {plainly(view.headline)}"
    if view.root is not None:
        yield _section("bundle.error", language, fenced(view.root.text))
    if report.root is not None and report.root.frames:
        rows = "\n".join(map(_told, report.root.frames[-MOST_CALLS:]))
        yield _section("bundle.traceback", language, fenced(rows))
    told = {found.name: found.version or "?" for found in report.frameworks} | dict(versions)
    if told:
        rows = "\n".join(f"{name} {version}" for name, version in sorted(told.items()))
        yield _section("bundle.versions", language, fenced(rows))
    yield _section("bundle.reproduce", language, words("bundle.fill-in", language))
    if report.command[1]:
        yield _section("bundle.started", language, fenced(report.command[1], "bash"))
    if report.settings:
        yield _section("bundle.configuration", language, fenced("\n".join(_settings(report, language))))
    if stacks:
        yield _section("bundle.stacks", language, "\n\n".join(_groups(stacks, language)))
    if report.surroundings:
        rows = "\n".join(text for _, text in report.surroundings)
        yield _section("bundle.excerpt", language, fenced(rows))
    yield f"*{words('bundle.masked', language)}*"


def _section(title: str, language: Language, body: str) -> str:
    return f"### {words(title, language)}\n\n{body}"


def _settings(report: CrashReport, language: Language) -> Iterator[str]:
    """Give each setting by its last value, as far as there is room."""
    last = {setting.key: setting.value for setting in report.settings}
    for key, value in list(last.items())[:MOST_SETTINGS]:
        yield f"{key} = {value}"
    if len(last) > MOST_SETTINGS:
        yield words("bundle.settings-left", language, n=len(last) - MOST_SETTINGS)


def _groups(stacks: Sequence[ProcessStacks], language: Language) -> Iterator[str]:
    """Give each stack once, with all processes that stand there, the fewest first: they are waited for."""
    groups: dict[tuple[tuple[str, int, str], ...], list[ProcessStacks]] = {}
    for process in stacks:
        if process.main is not None:
            calls = tuple((call.file, call.line, call.function) for call in process.main.calls)
            groups.setdefault(calls, []).append(process)
    for same in sorted(groups.values(), key=len)[:MOST_GROUPS]:
        names = ", ".join(_name(process, language) for process in same)
        first = same[0].main
        shown = first.calls[-MOST_CALLS:] if first is not None else ()
        yield f"{plainly(words('bundle.stacks-of', language, names=names))}\n\n" + fenced(
            "\n".join(map(_told, shown))
        )


def _name(process: ProcessStacks, language: Language) -> str:
    if process.rank >= 0:
        return words("bundle.rank", language, rank=process.rank)
    return f"pid {process.pid}" if process.pid else process.source


def _told(call: Frame) -> str:
    place = f"{call.file}:{call.line}" if call.line else call.file
    code = f"\n    {call.code}" if call.code else ""
    return f"{place} {call.function}{code}"
