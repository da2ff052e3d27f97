"""What to change in the job's own code, where a failure's message and its statement tell it."""

from __future__ import annotations

from collections.abc import Sequence

from corpus.schema import Cause, Language
from ingest.logs.stacks.own_calls import own_call
from service.composition.failure_text import trace_sentence
from service.composition.message_forms import FormedMessage, place_of
from service.remediation.ranking import MOST_CURES, shown
from service.remediation.value_traces import TraceKind, trace_values
from service.schemas.diagnosis import ProposedChange
from service.scoring.assessment import Assessment

# What is known of the values of the statement itself.
ABOUT_CODE: frozenset[TraceKind] = frozenset({"tested", "path", "name"})


def with_code_advice(
    changes: Sequence[ProposedChange],
    message: FormedMessage | None,
    cause: Cause,
    assessment: Assessment,
    language: Language,
) -> tuple[ProposedChange, ...]:
    """Give the changes with that of the job's own code: first where the code is at fault, else behind them.

    Nothing is added where the message tells nothing to change, or no call of the job's own code led there.
    """
    report = assessment.report
    own = own_call(report.root.frames) if report.root is not None else None
    act = message.act(language) if message is not None else ""
    if own is None or message is None or not act:
        return tuple(changes)
    traces = (trace for trace in trace_values(assessment) if trace.kind in ABOUT_CODE)
    told = [trace_sentence(trace, report, language) for trace in traces]
    advice = ProposedChange(
        framework="code",
        kind="code",
        key=place_of(own),
        to=act,
        why=" ".join([message.means(language), *told]),
        status="unverified",
    )
    # What the message's numbers prove of a setting of the job's own needs no change of its code.
    is_proved = any(change.proof and change.status == "verified" for change in changes[:1])
    if cause.action == "fix-code" and not is_proved:
        return shown([advice, *changes])
    cures = sum(change.purpose == "cure" for change in changes)
    return shown([*changes, advice]) if cures < MOST_CURES else tuple(changes)
