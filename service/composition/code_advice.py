"""What to change in the job's own code, where a failure's message and its statement tell it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from corpus.message import joined, words
from corpus.schema import Cause, Language
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own, own_call
from service.composition.failure_text import trace_sentence
from service.composition.message_forms import FormedMessage, place_of
from service.composition.phrases import phrase
from service.remediation.code_edits.changed_rows import ChangedRow, changed_row
from service.remediation.code_edits.edits import LONGEST_SHOWN
from service.remediation.code_edits.present_cures import moved_row
from service.remediation.code_edits.unparsed import UNPARSED, unparsed_words
from service.remediation.data_flow.call_bindings import changed_since
from service.remediation.data_flow.file_findings import file_finding
from service.remediation.guesses import is_advised
from service.remediation.offered_edits import offered_edit
from service.remediation.own_edits import OwnEdit, job_files
from service.remediation.ranking import MOST_CURES, shown
from service.remediation.setting_values import is_guidance
from service.remediation.value_traces import TraceKind, trace_values
from service.schemas.diagnosis import ProposedChange
from service.scoring.assessment import Assessment

# Values that any line may have by chance.
_ANY = frozenset({"", "0", "1", "True", "False", "true", "false", "None", "null"})
# What is known of the values of the statement itself.
ABOUT_CODE: frozenset[TraceKind] = frozenset({"tested", "path", "name"})


CodeStep = Literal["", "again", "edited", "parsed"]


class CodeAdvice(NamedTuple):
    """The changes with that of the job's own code, and what it leaves to do where it is the first of them.

    `again`: start the job again, since the files at hand are not as they ran; `edited`: make the edit;
    `parsed`: make it in a file that does not parse.
    """

    changes: tuple[ProposedChange, ...]
    step: CodeStep = ""


def with_code_advice(
    changes: Sequence[ProposedChange],
    message: FormedMessage | None,
    cause: Cause | None,
    assessment: Assessment,
    language: Language,
) -> CodeAdvice:
    """Give the changes with that of the job's own code: first where the code is at fault, else behind them.

    An edit of the failing statement comes before words on it, and, where the message names the very thing
    that it changes, before remedies of the cause in general. Nothing is added where the message tells nothing
    to change, or no call of the job's own code led there.
    """
    if cause is None:
        return CodeAdvice(())
    report = assessment.report
    # What the message's numbers prove of a setting of the job's own needs no change of its code.
    is_proved = any(change.proof and change.status == "verified" for change in changes[:1])
    changed = changed_row(report, job_files(report))
    variables = [change.key for change in changes if change.kind == "env"]
    is_first = cause.action == "fix-code" and not is_proved
    own = own_call(report.root.frames) if report.root is not None else None
    if own is not None and (unparsed := unparsed_words(report, job_files(report))) is not None:
        to = unparsed.to(language)
        said = ProposedChange(
            framework="code", kind="code", key=place_of(own), to=to, why="", status="unverified"
        )
        return _placed(said, changes, "again", is_first=is_first)
    if (edit := offered_edit(report, variables=variables)) is not None:
        return _edited(edit, changes, message, assessment, language, is_proved=is_proved, is_first=is_first)
    is_other = changed is not None and bool(changed.is_anew or changed.removed) and not changed.still
    if own is not None and changed is not None and is_other and (is_first or changed.gained):
        act = message.act(language) if message is not None else ""
        other = _now_otherwise(changed, place_of(own), act, language)
        return _placed(other, changes, "again", is_first=True)
    act = message.act(language) if message is not None else ""
    # What is wrong with a sample is mended where the job's own code makes it.
    shown_by_files = file_finding(report, job_files(report), cause.action)
    if shown_by_files is not None:
        act, is_first = shown_by_files.to(language), not is_proved
    if own is None or not act:
        another = _another(report, place_of(own), changed, language) if own is not None else None
        if another is None:
            return CodeAdvice(tuple(changes))
        return _placed(another, changes, "again", is_first=is_first)
    advice = _worded(act, place_of(own), message, assessment, language, changed)
    # The switch without which the statement is not reached is one exact step; words are none.
    off = words("changes.to-off", language)
    first = [change for change in changes[:1] if is_first and (change.to == off or _is_told(change, report))]
    step: CodeStep = "edited" if shown_by_files is not None else ""
    placed = _placed(advice, changes[len(first) :], step, is_first=is_first)
    return CodeAdvice(shown([*first, *placed.changes]), placed.step)


def _edited(
    edit: OwnEdit,
    changes: Sequence[ProposedChange],
    message: FormedMessage | None,
    assessment: Assessment,
    language: Language,
    *,
    is_proved: bool,
    is_first: bool,
) -> CodeAdvice:
    """Give the changes with an edit; of what the file has by now, and of a row that is gone, that is said."""
    changed = changed_row(assessment.report, job_files(assessment.report))
    plain = edit_change(edit, language)
    if edit.told is not None:
        # What the failure is ruled out by leaves nothing else to change.
        why = message.means(language) if message is not None else ""
        return CodeAdvice((plain.model_copy(update={"why": why}),), "again")
    made = _told_changed(plain, changed, language, edit)
    is_first = is_first or (edit.is_sure and not is_proved)
    is_stale = edit.file is None and not edit.there and made.to == plain.to
    if is_stale and changed is not None and not (changed.still or changed.gone):
        # An edit of a row that the file no longer has can be made nowhere.
        instead = _now_otherwise(changed, made.key, f"{edit.place}: {made.to}", language)
        return _placed(instead, changes, "again", is_first=is_first)
    others = [] if edit.there else changes
    others = _beside_edit(others) if is_first and edit.is_sure else others
    root = assessment.report.root
    # In a file that does not parse nothing can be printed either.
    step: CodeStep = "parsed" if root is not None and root.exception in UNPARSED else "edited"
    return _placed(made, others, "again" if edit.there else step, is_first=is_first)


def since_words(advice: CodeAdvice, report: CrashReport, language: Language) -> str:
    """Say that the file of the failing call has changed since the log; empty where a change says so."""
    files = job_files(report)
    changed = changed_row(report, files)
    has_change = any(each.kind == "code" for each in advice.changes)
    if advice.step == "again" or (changed is not None and changed.gone and has_change):
        return ""
    if changed is not None:
        form = "row-still" if changed.still else "since-row" if changed.line else "since-gone"
        return phrase(f"code-{form}", language, **_as_now(changed))
    if (moved := moved_row(report, files)) is not None:
        return phrase("code-since-moved", language, file=moved.name, line=moved.line)
    return ""


def _worded(
    act: str,
    place: str,
    message: FormedMessage | None,
    assessment: Assessment,
    language: Language,
    changed: ChangedRow | None,
) -> ProposedChange:
    """Give words on the failing statement as a change, with what else the job tells of its values."""
    report = assessment.report
    traces = (trace for trace in trace_values(assessment) if trace.kind in ABOUT_CODE)
    sentences = [trace_sentence(trace, report, language) for trace in traces]
    means = [message.means(language)] if message is not None else []
    why = " ".join([*means, *sentences])
    advice = ProposedChange(framework="code", kind="code", key=place, to=act, why=why, status="unverified")
    advice = _told_changed(advice, changed, language)
    since = changed_since(report, job_files(report)) if changed is None else None
    if since is None:
        return advice
    return advice.model_copy(update={"why": joined(advice.why, since.to(language), language)})


def _now_otherwise(row: ChangedRow, place: str, act: str, language: Language) -> ProposedChange:
    """Tell that the file at hand makes the failing call otherwise, or not at all.

    What the row lacked as it ran, `act`, is told behind it, for the job may run with another file.
    """
    form = "code-call-gone" if row.removed else "code-row-now" if row.line else "code-row-lost"
    return ProposedChange(
        framework="code",
        kind="code",
        key=place,
        to=phrase(form, language, **_as_now(row)),
        why=phrase("code-else", language, act=act) if act else "",
        status="unverified",
    )


def _is_told(change: ProposedChange, report: CrashReport) -> bool:
    """Tell whether the failing message tells the very value that the job gives a setting.

    To mend that one row is nearer than what words on the failing statement come to.
    """
    now = str(change.from_ or "").strip("'\"")
    if change.kind not in ("setting", "flag", "env") or not is_advised(change) or now in _ANY:
        return False
    said = report.root.body if report.root is not None else ""
    # A shape tells it beside another number: `512x4096`.
    return re.search(rf"(?<![\w.])(?:\d{{1,9}}x)?{re.escape(now)}(?:x\d{{1,9}})?(?!\.?\w)", said) is not None


def _told_changed(
    change: ProposedChange, row: ChangedRow | None, language: Language, edit: OwnEdit | None = None
) -> ProposedChange:
    """Say that the file at hand has what a change brings, or no longer what the message blames."""
    if row is None or (edit is not None and (edit.file is not None or edit.there)):
        return change
    now = _as_now(row)
    if edit is not None and edit.kind == "replace" and row.text == edit.after:
        return change.model_copy(update={"to": phrase("code-edit-there", language, **now)})
    if row.gone:
        return change.model_copy(update={"to": phrase("code-row-mended", language, **now)})
    return change


def _as_now(row: ChangedRow) -> dict[str, str | int]:
    plain = row.text.replace("`", "'")[:LONGEST_SHOWN]
    told = {"row": plain, "still": row.still, "gone": row.gone, "call": row.removed}
    return {"file": row.name, "line": row.line, **told}


def _another(
    report: CrashReport, place: str, row: ChangedRow | None, language: Language
) -> ProposedChange | None:
    """Tell how the failing statement reads in the file at hand, where it is another one there."""
    fails_there = report.root is not None and is_own(report.root.frames[-1])
    # What raises was not what failed.
    innermost = report.root.frames[-1].code.lstrip() if report.root is not None and report.root.frames else ""
    is_raising = innermost.startswith(("raise ", "assert "))
    if row is None or not row.line or row.still or not fails_there or is_raising:
        return None
    to = phrase("code-row-now", language, **_as_now(row))
    return ProposedChange(framework="code", kind="code", key=place, to=to, why="", status="unverified")


def edit_change(edit: OwnEdit, language: Language) -> ProposedChange:
    """Give an edit of a file of the job's as a change: its place, what stands there and what it becomes."""
    name = "code-edit-there" if edit.there else f"code-edit-{edit.kind}"
    file = edit.place.rpartition(":")[0]
    if edit.told is not None:
        told = edit.told.to(language)
        return ProposedChange(
            framework="code", kind="code", key=edit.place, to=told, why="", status="unverified"
        )
    row = edit.after.replace("`", "'")[:LONGEST_SHOWN]
    told = phrase(name, language, before=edit.before, after=edit.after, file=file, line=edit.there, row=row)
    if edit.brings:
        told = phrase("code-edit-with", language, told=told, brings=edit.brings)
    return ProposedChange(
        framework="code", kind="code", key=edit.place, to=told, why=edit.why.to(language), status="unverified"
    )


def _beside_edit(changes: Sequence[ProposedChange]) -> list[ProposedChange]:
    """Leave out options that lead to a statement which is mended, and for which no value is known.

    A number may be what is wrong all the same, such as one that makes a divisor 0.
    """
    return [
        change
        for change in changes
        if change.kind not in ("setting", "flag", "env")
        or change.purpose != "cure"
        or change.status == "verified"
        or change.proof is not None
        or change.tier
        or not is_guidance(change.to)
        or re.fullmatch(r"-?\d[\d.e+-]*", str(change.from_))
    ]


def _placed(
    advice: ProposedChange, changes: Sequence[ProposedChange], step: CodeStep, *, is_first: bool
) -> CodeAdvice:
    """Put a change of the code first, or behind the others where there is room."""
    if is_first:
        return CodeAdvice(shown([advice, *changes]), step)
    advised = [change for change in changes if is_advised(change)]
    others = [change for change in changes if not is_advised(change)]
    told = shown([*advised, advice, *others]) if len(advised) < MOST_CURES else tuple(changes)
    return CodeAdvice(told, "" if advised else step)
