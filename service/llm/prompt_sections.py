"""What a prompt tells beside the log's lines: the first answer, causes, facts, settings, changes, cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter

from corpus.frameworks import known_frameworks
from corpus.keys import last_level
from corpus.library import Library
from corpus.message import words
from ingest.configfiles.formats import CODE
from ingest.configfiles.settings import Setting
from ingest.logs.facts import Fact
from ingest.logs.inputs.members import is_output
from ingest.logs.stacks.own_calls import is_own
from service.composition import phrases
from service.llm.call_lines import kept_frames
from service.llm.job_code import code_rows
from service.llm.prompt_causes import likely_candidates, other_causes, signs_beside_the_log
from service.llm.prompt_changes import change_rows
from service.llm.prompt_context import PromptContext
from service.llm.prompt_files import file_rows, is_named
from service.llm.prompt_injection import LONGEST_ROW, neutralize, withhold
from service.llm.prompt_lines import LONGEST_STACK, PromptRow, own_names, runs_of
from service.llm.setting_kinds import command_values, file_values, is_no_setting, is_of_shell, run_settings
from service.llm.setting_words import own_options, rows_of, spelled, without_value
from service.remediation.feasibility import same
from service.remediation.framework_relations import settable_frameworks, shown_frameworks
from service.remediation.own_edits import job_files
from service.schemas.diagnosis import UNKNOWN_CAUSE

MAX_SETTINGS = 60
# Settings of the job's frameworks that nothing near the failure speaks of.
MAX_KNOWN = 36
# The longest value that is shown.
LONGEST_VALUE = 300
# Files without a setting that are named, and the place of what names them.
MAX_UNREAD, _LAST = 6, 10_000_000
MAX_NEIGHBOURS = 8
# Runs in one file whose first lines are told, the last of them.
MAX_RUNS = 6
MAX_CASES = 5
# A setting that ranks behind this is of no interest by itself; so many of them are told.
SPECIAL, MAX_DULL = 5.0, 40
# The rank of a setting that the catalogue knows and nothing near the failure speaks of.
KNOWN = 4.6
# Cases of a less likely candidate are told by their titles alone.
TOLD_WHOLE = 0.05
# A case that no signature justifies stands among so many of the first in every search that found it.
FIRST_FOUND = 5
_LONGEST = 400
# Facts of one kind, failing stacks and their frames: more of them say little more.
OF_A_KIND, STACKS, FRAMES, LONGEST_CALLS = 6, 4, 12, 1800
# Candidates whose borders with the causes that are no candidates are told.
TOLD_APART = 1
_WORD = re.compile(r"[A-Za-z][\w.-]{2,60}")
# What a file holds for its readers, and what a run is called or whom it writes to.
_REMARK = re.compile(
    r"(?:.*\.)?_*(?:comment|description|readme)\w*$|//|(?:.*\.)?help$|mail-(?:user|type)$|job-name$|"
    r"(?:wandb|run)[-_](?:name|notes|tags|group)$",
    re.IGNORECASE,
)
# Where packages lie says nothing of a call in one.
_INSTALLED = re.compile(r"^.*/(?:site|dist)-packages/")
# The words of a name.
_PART = re.compile(r"[a-z]{4,}")
_SECTION = re.compile(r"^### ", re.MULTILINE)


def _answer(prompt_context: PromptContext) -> Iterator[PromptRow]:
    first, library, language = prompt_context.first, prompt_context.library, prompt_context.language
    cause = library.causes.get(first.cause or "")
    # By the one rule of the instructions: what just stops amid work is told under its name.
    is_open = first.verdict == "no-failure" and not first.ended_well
    said = words(
        "prompt.first-answer-open" if is_open else "prompt.first-answer",
        language,
        verdict=first.verdict,
        cause=UNKNOWN_CAUSE if is_open else first.cause,
        standing=first.standing,
        action=first.action,
    )
    yield PromptRow("answer", -2, said)
    if cause is not None:
        yield PromptRow(
            "answer",
            -1.9,
            f"{cause.title.to(prompt_context.language)}: {cause.means.to(prompt_context.language)}",
            is_ours=True,
        )
        advice = cause.advice.to(prompt_context.language, prompt_context.assessment.holds)
        yield PromptRow("answer", 3.5, advice, is_ours=True)
    else:
        yield PromptRow("answer", -1.9, withhold(first.headline, own_names(prompt_context)))
    if first.outcome.is_given:
        yield PromptRow("answer", -1.8, phrases.outcome(first.outcome, prompt_context.language))
    if told := _runs(prompt_context):
        yield PromptRow("answer", -1.75, told)
    seen = ", ".join(f"{found.name} {found.version or ''}".strip() for found in first.frameworks)
    if seen:
        yield PromptRow("answer", 1.0, words("prompt.frameworks", language, names=neutralize(seen)))
    for name, remark in prompt_context.edited.items():
        said = withhold(remark, (), 300)
        said = words("prompt.file-at-hand", language, file=neutralize(name, 120), remark=said)
        yield PromptRow("answer", -1.2, said)
    if prompt_context.edited:
        yield PromptRow("answer", -1.15, words("prompt.edits", language), is_ours=True)
    for step in first.steps:
        run = neutralize(step.run, 200)
        acts, shown = (words(f"prompt.step-{kind}", language, run=run) for kind in ("that-acts", "shown"))
        yield PromptRow("answer", 2.6, acts if step.acts else shown)


def _runs(prompt_context: PromptContext) -> str:
    """Say how many runs the root's file holds, where they begin and which is judged; of one run nothing."""
    report, language = prompt_context.report, prompt_context.language
    root, runs = report.root, runs_of(report)
    line = root.line if root is not None else report.limits.lines
    if not runs:
        return ""
    judged = max(start for start in runs if start <= line)
    starts = ", ".join(str(report.place(start)) for start in runs[-MAX_RUNS:])
    count, place = len(runs), report.place(judged)
    said = words("prompt.runs", language, count=count, starts=starts, judged=place)
    if root is None:
        return said
    said += words("prompt.runs-root", language, line=str(report.place(root.line)))
    # What was said again is one event: the runs in which it was died of the same.
    alike = [str(report.place(start)) for start in runs if line < start <= root.last]
    if alike:
        return said + words("prompt.runs-alike", language, starts=", ".join(alike[-MAX_RUNS:]))
    return said + (words("prompt.later-runs", language) if runs[-1] > line else "")


def _telemetry(prompt_context: PromptContext) -> Iterator[PromptRow]:
    for row in phrases.telemetry(prompt_context.first.telemetry, prompt_context.language):
        yield PromptRow("telemetry", -1.7, withhold(row.removeprefix("- "), (), 600))


def _candidates(prompt_context: PromptContext) -> Iterator[PromptRow]:
    candidates, cases = likely_candidates(prompt_context), _justified(prompt_context)
    language = prompt_context.language
    for place, candidate in enumerate(candidates):
        cause = prompt_context.library.causes[candidate.cause]
        reasons = [f"[{prompt_context.report.place(event.line)}]" for event in candidate.events[:4]]
        reasons += [f"[case:{match.case.id}]" for match in candidate.cases if match.case.id in cases]
        reasons += signs_beside_the_log(candidate, prompt_context)
        why = ", ".join(reasons) or words("prompt.only-likeness", language)
        share, means = f"{candidate.probability:.2f}", cause.means.to(language)
        told = words("prompt.candidate", language, cause=cause.id, means=means, share=share, why=why)
        yield PromptRow("candidates", -1.5 + place / 10, told)
    yield from _borders(prompt_context, [candidate.cause for candidate in candidates])


def _borders(prompt_context: PromptContext, candidates: Sequence[str]) -> Iterator[PromptRow]:
    """Say what tells the candidates apart from each other and from a log that does not tell.

    Of the likeliest also what tells it apart from causes that are no candidates.
    """
    for place, name in enumerate(candidates):
        near = {*candidates, UNKNOWN_CAUSE}
        for confusion in prompt_context.library.causes[name].confused_with:
            if place < TOLD_APART or confusion.cause in near:
                apart = confusion.to(prompt_context.language)
                rank = 1.4 if confusion.cause in near else 1.5
                other, language = confusion.cause, prompt_context.language
                said = words("prompt.two-causes", language, one=name, other=other, apart=apart)
                yield PromptRow("candidates", rank, said, is_ours=True)
    yield from _neighbours_words(prompt_context, candidates)


def _neighbours_words(prompt_context: PromptContext, candidates: Sequence[str]) -> Iterator[PromptRow]:
    """Say what neighbours of the likeliest say of it that its own row does not: those of its category."""
    causes = prompt_context.library.causes
    if not candidates:
        return
    first = causes[candidates[0]]
    for cause in causes.values():
        is_told = cause.id in candidates or any(cause.id == own.cause for own in first.confused_with)
        if is_told or cause.category != first.category:
            continue
        for confusion in cause.confused_with:
            if confusion.cause == first.id:
                apart = confusion.to(prompt_context.language)
                language = prompt_context.language
                said = words("prompt.two-causes", language, one=cause.id, other=first.id, apart=apart)
                yield PromptRow("candidates", 1.6, said, is_ours=True)


def _facts(prompt_context: PromptContext) -> Iterator[PromptRow]:
    yield from _stacks(prompt_context)
    report, ids = prompt_context.report, own_names(prompt_context)
    root = report.root.line if report.root else 0
    told: set[str] = set()
    kinds: dict[str, int] = {}
    # A job prints the same facts at each step; the last ones are those at its death.
    for fact in sorted(report.facts, key=lambda fact: (fact.line != root, abs(fact.line - root))):
        values = withhold(_values(fact), ids, 300)
        # Ranks that measured the same differ in the last digits.
        alike = f"{fact.kind} {_values(fact, digits=3)}"
        if alike in told:
            continue
        told.add(alike)
        seen = kinds[fact.kind] = kinds.get(fact.kind, 0) + 1
        rank = 1.8 if fact.line == root else 4.0 + min(seen, 40) / 4
        if seen <= OF_A_KIND or fact.line == root:
            place, shown = str(report.place(fact.line)), report.texts.get(fact.line, "")[:LONGEST_ROW]
            is_said = all(str(value) in shown for value in fact.fields.values())
            yield PromptRow(
                "facts",
                rank,
                f"[{place}] {fact.kind}: {values}",
                number=fact.line,
                cites=place,
                said_by=(fact.line,) if is_said else (),
            )


def _values(fact: Fact, digits: int = 0) -> str:
    """Write a fact's values, fractions with so many digits where there is a number of them.

    What stands there in seconds too is not told in milliseconds.
    """
    fields = fact.fields
    return " ".join(
        f"{name.removesuffix('_n')}={f'{value:.{digits}g}' if digits and isinstance(value, float) else value}"
        for name, value in fields.items()
        if not (name.endswith("_ms") and name.removesuffix("_ms") + "_s" in fields)
    )


def _stacks(prompt_context: PromptContext) -> Iterator[PromptRow]:
    """Give the calls of failures whose own rows may not all be sent."""
    report, ids = prompt_context.report, own_names(prompt_context)
    told: set[str] = set()
    standing = sorted(report.standing, key=lambda event: event.role != "root")
    for event in [event for event in standing if event.frames][:STACKS]:
        kept = kept_frames(event.frames, FRAMES)
        frames = list(filter(None, kept))
        calls = (
            f"{_INSTALLED.sub('', each.file)}:{each.line} {each.function}" if each else "..." for each in kept
        )
        stack = withhold(" > ".join(calls), ids, LONGEST_CALLS)
        if stack in told:
            continue
        told.add(stack)
        place = str(report.place(event.line))
        # The rows of its traceback, as far as they are looked at.
        looked = range(max(event.traceback or event.line, event.line - LONGEST_STACK), event.line)
        rows = {
            next((number for number in looked if f"line {each.line}" in report.texts.get(number, "")), 0)
            for each in frames
        }
        yield PromptRow(
            "facts",
            0.8 if event.role == "root" else 4.2,
            f"[{place}] stack: {stack}",
            number=event.line,
            cites=place,
            said_by=() if 0 in rows else tuple(sorted(rows)),
        )


def _settings(prompt_context: PromptContext) -> Iterator[PromptRow]:
    """Give the job's settings: those that the failure is about, then those that are not at their default."""
    assessment, library = prompt_context.assessment, prompt_context.library
    causes = likely_candidates(prompt_context)
    offered = (change.key for change in prompt_context.offered)
    of_cases = (change.key for cause in causes for match in cause.cases[:3] for change in match.case.changes)
    remedies = (change.key for cause in causes for change in library.remedies.get(cause.cause, ()))
    # YACS and its like write their keys in capitals.
    wanted = {last_level(key).lower() for key in chain(offered, of_cases, remedies)}
    named, near = _words_near(prompt_context)
    touched = _words_of_calls(prompt_context)
    of_calls = {part for word in touched for part in _PART.findall(word)}
    mine = sorted(settable_frameworks(assessment.report))
    failing = {event.line for event in assessment.report.events}
    ranked: dict[str, tuple[float, int, Setting]] = {}
    is_none = is_no_setting(assessment.report)
    given = run_settings(assessment.settings, assessment.report)
    for setting in (item for item in given if not is_output(item.file) and not is_of_shell(item)):
        if setting.key in ranked or len(ranked) >= 8 * MAX_SETTINGS or _REMARK.match(setting.key):
            continue
        name = last_level(setting.key)
        spec = next(filter(None, (library.setting(framework, setting.key) for framework in mine)), None)
        if spec is None and name not in named and not _is_setting(setting, failing, library):
            continue
        if name not in named and spec is None and is_none(setting):
            continue
        rank = 8.5 if setting.spelled == "package" else 7.5
        if spec is None and setting.spelled != "package" and of_calls & set(_PART.findall(name.lower())):
            # One that shares a word with the code that failed may be what that code was given.
            rank = SPECIAL + 0.5
        if name.lower() in wanted:
            rank = 3.0
        elif name in near or (spec is None and name in touched):
            rank = 3.4
        elif spec is not None:
            is_default = spec.default is not None and same(setting.value, spec.default)
            rank = 6.5 if is_default else KNOWN
            if not setting.file and (is_default or is_none(setting)):
                # A framework prints all that it has; what nobody gave it is no setting of the job's.
                continue
        ranked[setting.key] = rank, len(ranked) + 1, setting
    yield from _unread(prompt_context, given)
    ordered = sorted(ranked.values(), key=itemgetter(0, 1))
    near_or_wanted = sum(rank < KNOWN for rank, _, _ in ordered)
    known_to_us = sum(KNOWN <= rank <= SPECIAL for rank, _, _ in ordered)
    dull = ordered[near_or_wanted + known_to_us :]
    kept = [*ordered[: near_or_wanted + min(known_to_us, MAX_KNOWN)], *dull[:MAX_DULL]]
    yield from _setting_rows(prompt_context, kept, len(ranked) - len(kept))


def _unread(prompt_context: PromptContext, given: Sequence[Setting]) -> Iterator[PromptRow]:
    """Name the files of settings of which none could be read; of programs, nobody expects any."""
    files, read = job_files(prompt_context.report), {setting.file for setting in given}
    left = [
        file.name
        for file in files
        if file.name not in read and not file.name.endswith(CODE) and not is_output(file.name)
    ][:MAX_UNREAD]
    if left:
        names = neutralize(", ".join(left), LONGEST_VALUE)
        told = words("prompt.unread-settings", prompt_context.language, files=names)
        yield PromptRow("settings", KNOWN, told, number=_LAST)


def _setting_rows(
    prompt_context: PromptContext, kept: Sequence[tuple[float, int, Setting]], left_out: int
) -> Iterator[PromptRow]:
    """Give the settings by the file that they are of, each file with its name; and how many are left out."""
    ids, log = own_names(prompt_context), prompt_context.report
    files = list(dict.fromkeys(setting.file for _, _, setting in kept))
    language = prompt_context.language
    options, row_of = own_options(log), rows_of((setting for _, _, setting in kept), log)
    every = prompt_context.assessment.settings
    of_file, of_command = file_values(every), command_values(every)
    for rank, number, setting in kept:
        place = 10_000 * files.index(setting.file)
        row = f"{at}: " if (at := row_of(setting)) else ""
        said = f"{row}{spelled(setting, options)}"
        if held := of_file(setting):
            said += words("prompt.setting-in-file", language, file=held.file, value=held.value)
        if given := of_command(setting):
            said += words("prompt.setting-overridden", language, given=spelled(given, options))
        text = withhold(said, ids, LONGEST_VALUE)
        yield PromptRow("settings", rank + number / 1000, text, number=place + number)
    for place, file in enumerate(files):
        first = min(rank + number / 1000 for rank, number, setting in kept if setting.file == file)
        edited = "edited-" if file in prompt_context.edited else ""
        ran = "" if is_named(file, log) else "-not-named"
        told = (
            words(f"prompt.settings-of-{edited}file{ran}", language, file=neutralize(file, 120))
            if file
            else words("prompt.settings-of-log", language)
        )
        yield PromptRow("settings", first - 0.0001, told, number=10_000 * place)
    if others := without_value(options, [setting.key for _, _, setting in kept]):
        told = words("prompt.own-options", language, options=", ".join(others))
        yield PromptRow("settings", KNOWN, withhold(told, ids, LONGEST_CALLS), number=10_000 * len(files))
    if left_out > 0:
        told = words("prompt.more-settings", language, count=left_out)
        yield PromptRow("settings", KNOWN, told, number=10_000 * len(files))


def _is_setting(setting: Setting, failing: Collection[int], library: Library) -> bool:
    """Tell a setting from what a command only happens to hold, of one that no framework of the job knows.

    An interpreter's switch, a variable of the shell's own, an option of a command that failed by itself.
    """
    if len(setting.key) == 1 or library.is_setting(setting.key):
        return len(setting.key) > 1
    if setting.spelled == "env":
        # A job's own variable may be called as the option is that it feeds: `KV_CACHE_DTYPE`.
        return bool(known_frameworks().reader_of(setting.key)) or library.is_setting(setting.key.lower())
    return not (setting.spelled == "flag" and setting.line in failing)


def _words_near(prompt_context: PromptContext) -> tuple[frozenset[str], frozenset[str]]:
    """Give the words of the root's line, and those of it and the rows around it, as keys are compared."""
    report = prompt_context.report
    of_root = report.root.text if report.root else ""
    named, near = (
        frozenset(last_level(word) for text in texts for word in _WORD.findall(text))
        for texts in ([of_root], [of_root, *(text for _, text in report.surroundings)])
    )
    return named, near


def _words_of_calls(prompt_context: PromptContext) -> frozenset[str]:
    """Give the words of the job's own code at the calls that failed: a setting of that name was at work."""
    rows = [row.text for row in code_rows(prompt_context)]
    root = prompt_context.report.root
    rows += [frame.code for frame in root.frames if is_own(frame)] if root is not None else []
    return frozenset(last_level(word) for text in rows for word in _WORD.findall(text))


def _justified(prompt_context: PromptContext) -> list[str]:
    """Give the ids of the cases that are told: their signatures hold, or the searches rank them first.

    A case that was only searched for is one of a cause that something in the log speaks for, and that no case
    with a signature explains; and of a framework that the job shows.
    """
    library, retrieval = prompt_context.library, prompt_context.retrieval
    likely = {candidate.cause: candidate for candidate in likely_candidates(prompt_context)}
    spoken = {name for name, candidate in likely.items() if candidate.events} | {prompt_context.first.cause}
    # A signature may be wide: beside causes that lines speak for, one that none does is no rival.
    rivals = spoken if spoken & likely.keys() else likely.keys()
    fitting = [
        match.case.id
        for match in sorted(
            retrieval.signatures, key=lambda match: match.case.cause != prompt_context.first.cause
        )
        if match.case.id in library.cases and match.case.cause in rivals
    ]
    explained = {library.cases[name].cause for name in fitting}
    runs = shown_frameworks(prompt_context.report) | known_frameworks().common
    alike = []
    for item in retrieval.ranked[:MAX_NEIGHBOURS]:
        case = library.cases.get(item.owner)
        if case is None or case.cause in explained or case.cause not in likely:
            continue
        is_found = len(item.parts) > 1 and max(item.parts.values()) <= FIRST_FOUND
        if is_found and likely[case.cause].events and (not case.frameworks or runs & case.frameworks.keys()):
            alike.append(case.id)
    return [*dict.fromkeys([*fitting, *alike])][:MAX_CASES]


def _cases(prompt_context: PromptContext) -> Iterator[PromptRow]:
    library, language = prompt_context.library, prompt_context.language
    shares = {candidate.cause: candidate.probability for candidate in prompt_context.candidates}
    for place, name in enumerate(_justified(prompt_context)):
        case = library.cases[name]
        yield PromptRow(
            "cases",
            # A title is short, and what is not sent cannot be cited.
            1.55 + place / 100,
            words("prompt.case-title", language, case=name, title=case.title.to(language), cause=case.cause),
            number=10 * place,
            case=name,
            is_ours=True,
        )
        if place > 0 and shares.get(case.cause, 0.0) < TOLD_WHOLE:
            continue
        sections = [
            (number, " ".join(section.split()))
            for number, section in enumerate(_SECTION.split(case.body.to(prompt_context.language)), 1)
        ]
        for number, section in filter(itemgetter(1), sections):
            rank = 3.3 + place + number / 10 + 2.0 * (place > 0)
            at = 10 * place + min(number, 9)
            yield PromptRow("cases", rank, f"[case:{name}] {section}", number=at, case=name, is_ours=True)


def _notes(prompt_context: PromptContext) -> Iterator[PromptRow]:
    found = [
        item for item in prompt_context.retrieval.ranked if item.kind != "case" and item.document is not None
    ]
    for place, item in enumerate(found[:4]):
        assert item.document is not None  # noqa: S101 - chosen so above
        text = withhold(
            f"{item.owner}: {item.document.title}. {item.document.text} {item.document.fix}",
            own_names(prompt_context),
            _LONGEST,
        )
        yield PromptRow("notes", 6.5 + place, text)


def _causes(prompt_context: PromptContext) -> Iterator[PromptRow]:
    return other_causes(prompt_context, [candidate.cause for candidate in likely_candidates(prompt_context)])


SECTIONS: Sequence[Callable[[PromptContext], Iterable[PromptRow]]] = (
    _answer,
    _telemetry,
    _candidates,
    _facts,
    code_rows,
    _settings,
    file_rows,
    change_rows,
    _cases,
    _notes,
    _causes,
)
