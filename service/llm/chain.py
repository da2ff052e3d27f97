"""The chain: a first answer, a prompt, any chat model, its claims, grounding, the final answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from pydantic import ValidationError

from corpus.message import Message, message_id
from corpus.schema import Language
from service.composition import reasons
from service.composition.evidence import MAX_EVIDENCE
from service.composition.phrases import phrase
from service.llm.claim_verifier import (
    VerificationContext,
    VerifiedText,
    listed,
    verification_context,
    verify_text,
)
from service.llm.claims import Claims, schema
from service.llm.client import LlmClient
from service.llm.contacts import lead
from service.llm.deadline import Deadline
from service.llm.grounding import Grounded, GroundedQuote, ground_claims
from service.llm.models import ChatModel, open_model
from service.llm.prompt import for_answer, shown
from service.llm.prompt_context import Prompt, PromptContext, build_prompt_context
from service.llm.prose import blocks
from service.llm.stages import DraftStage, FinalStage, Stage, TextStage
from service.llm.streaming_json import growing_text, whole_fields
from service.llm.triage_context import TriageContext
from service.schemas.diagnosis import Alternative, Diagnosis, Dropped, Evidence, ProposedChange
from service.schemas.errors import ModelError
from service.settings import Settings

# A cause that a model names and no rule does.
NAMED_ONLY = 0.1
# How much longer an answer gets before it is looked at again.
STRIDE = 48
# Addresses of nodes among themselves, which workers print before each line.
_NODES = re.compile(
    r"\b(?:10\.\d{1,3}|127\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}\b(?::\d+)?"
)
_CLAIMED = {"cause", "quotes", "cases", "changes"}


def render_prompt(triage_context: TriageContext, settings: Settings) -> str:
    """Give exactly what a model would be sent, for a person to read."""
    return shown(for_answer(build_prompt_context(triage_context), settings.model_tokens), schema(Claims))


def answer_in_stages(triage_context: TriageContext, settings: Settings) -> Iterator[Stage]:
    """Give the first answer, then the configured model's words, then the final answer."""
    yield DraftStage(triage_context.first)
    if triage_context.first.verdict == "no-failure":
        note = Message("model.log-shows-no-failure") if settings.model else ""
        yield FinalStage(_noted(triage_context.first, [note], triage_context.language))
        return
    try:
        model = open_model(settings)
    except ModelError as error:
        yield FinalStage(
            _noted(
                triage_context.first,
                [str(error), Message("model.first-answer-stands")],
                triage_context.language,
            )
        )
        return
    if model is None:
        yield FinalStage(triage_context.first)
        return
    yield from explain_with_model(triage_context, model, settings.model_deadline, settings.model_tokens)


def explain_with_model(
    triage_context: TriageContext, model: ChatModel, seconds: float, budget: int
) -> Iterator[Stage]:
    """Give a model's words on an inquiry, then the final answer; a model that fails leaves the first one."""
    started = perf_counter()
    # The clock runs from here: what goes into the prompt is part of the wait.
    asker = LlmClient(model, Deadline(seconds), budget)
    prompt_context = build_prompt_context(triage_context)
    talk = _ModelExplanation(prompt_context, for_answer(prompt_context, budget))
    try:
        yield from talk.listen(asker)
        final = _joined(triage_context, talk, model.name)
    except ModelError as error:
        final = _noted(
            triage_context.first,
            [str(error), Message("model.first-answer-stands")],
            triage_context.language,
            talk.dropped,
        )
    engine = final.engine.model_copy(update={"tokens": asker.tokens, "omitted": dict(talk.prompt.omitted)})
    spent = {**final.timings_ms, "model": round(1000 * (perf_counter() - started), 2)}
    yield FinalStage(final.model_copy(update={"engine": engine, "timings_ms": spent}))


@dataclass
class _ModelExplanation:
    """What a model says of one matter, checked while it comes."""

    prompt_context: PromptContext
    prompt: Prompt
    grounded: Grounded | None = None
    kept: VerifiedText = field(default_factory=VerifiedText)
    _judged: int = 0

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """All that did not stand."""
        return (*(self.grounded.dropped if self.grounded else ()), *self.kept.dropped)

    def listen(self, asker: LlmClient) -> Iterator[TextStage]:
        """Pass on the paragraphs that stand; afterwards all fields are set. Raises ModelError."""
        text, seen = "", 0
        for text in asker.stream(self.prompt.messages, Claims, lambda: bool(self.kept.blocks)):
            if not seen <= len(text) < seen + STRIDE:
                seen = len(text)
                yield from self._grown(text)
        claims = asker.read(Claims, text)
        self.grounded = ground_claims(claims, self.prompt_context, self.prompt)
        yield from self._judge(blocks(claims.explanation))

    def _grown(self, text: str) -> Iterator[TextStage]:
        """Judge the paragraphs that are complete, once the claims are known on which they rest."""
        if self.grounded is None:
            fields = whole_fields(text)
            if not fields.keys() >= _CLAIMED:
                return
            try:
                claims = Claims.model_validate({**fields, "explanation": ""})
            except ValidationError:
                return
            self.grounded = ground_claims(claims, self.prompt_context, self.prompt)
        written, _ = growing_text(text, "explanation")
        # The last paragraph may go on, until the answer is read as a whole.
        yield from self._judge(blocks(written)[:-1])

    def _judge(self, found: Sequence[str]) -> Iterator[TextStage]:
        assert self.grounded is not None  # noqa: S101 - the callers ground first
        if not mentions_failure(self.grounded, self.prompt_context):
            return
        judge = self.judge_of(self.grounded)
        for block in found[self._judged :]:
            if good := verify_text(block, judge, self.kept):
                yield TextStage(good)
        self._judged = max(self._judged, len(found))

    def judge_of(self, grounded: Grounded) -> VerificationContext:
        """Give what holds prose against what was sent and what the answer names."""
        cause = grounded.chosen or grounded.hypothesis or self.prompt_context.first.cause
        return verification_context(self.prompt_context, self.prompt, self.prompt_context.offered, cause)


def mentions_failure(grounded: Grounded, prompt_context: PromptContext) -> bool:
    """Tell whether a model's prose is on the cause that the answer names; else it argues for another."""
    if any(message_id(item.what) == "dropped.cause" for item in grounded.dropped):
        # Where the rules know no cause, a possibility that has a quote may be told.
        return bool(grounded.hypothesis) and prompt_context.first.verdict == "unknown"
    return True


def _joined(triage_context: TriageContext, talk: _ModelExplanation, name: str) -> Diagnosis:
    """Put what stands of a model's answer beside the first one.

    Headline and explanation stay the rules' own.
    """
    grounded = talk.grounded
    assert grounded is not None  # noqa: S101 - listened to
    answer = triage_context.decide_cause(grounded.chosen) if grounded.chosen else triage_context.first
    used = bool(grounded.chosen)
    if not talk.prompt.suspects:
        answer = _with_changes(triage_context, answer, grounded.changes)
        answer = answer.model_copy(
            update={
                "evidence": _with_quotes(answer, grounded.quotes, talk),
                "alternatives": _with_hypothesis(answer, grounded, talk.prompt_context),
            }
        )
    if talk.kept.holds:
        used = True
        answer = answer.model_copy(
            update={"engine": answer.engine.model_copy(update={"model_explanation": talk.kept.text})}
        )
    noted = _noted(answer, _told(talk, used), talk.prompt_context.language, talk.dropped)
    return (
        noted.model_copy(update={"engine": noted.engine.model_copy(update={"name": name})}) if used else noted
    )


def _told(talk: _ModelExplanation, used: bool) -> list[str]:
    rows: list[str] = []
    if talk.grounded and talk.grounded.chosen:
        rows.append(Message("model.two-causes-fit-model", chosen=talk.grounded.chosen))
    if talk.grounded and not mentions_failure(talk.grounded, talk.prompt_context):
        rows.append(Message("model.model-speaks-another-cause"))
    elif not talk.kept.holds:
        rows.append(Message("model.little-model-explanation-checked"))
    if talk.prompt.suspects:
        rows.append(Message("model.lines-log-speak-model", suspects=talk.prompt.suspects))
    if not used:
        rows.append(Message("model.first-answer-stands"))
    return rows


def _with_changes(
    triage_context: TriageContext, answer: Diagnosis, picked: Sequence[ProposedChange]
) -> Diagnosis:
    """Put the picked changes first; those of the rules that were not picked stay behind them."""
    if answer.verdict != "diagnosed" or not picked:
        return answer
    names = {(change.framework, change.key) for change in picked}
    rest = [change for change in answer.changes if (change.framework, change.key) not in names]
    # What only helps to find out stays behind the cures, whatever was picked.
    ordered = sorted((*picked, *rest), key=lambda change: change.purpose == "find-out")
    return triage_context.repatch(answer.model_copy(update={"changes": tuple(ordered)}))


def _with_quotes(
    answer: Diagnosis, quotes: Sequence[GroundedQuote], talk: _ModelExplanation
) -> tuple[Evidence, ...]:
    """Add the lines that the model quotes and the rules did not, as far as there is room.

    A line that sends its reader elsewhere is for those to find who read the log, not for a model to put
    forward.
    """
    assert talk.grounded is not None  # noqa: S101 - listened to
    judge = talk.judge_of(talk.grounded)
    report = talk.prompt_context.report
    told = {(item.file or "", item.line) for item in answer.evidence}
    texts = dict(
        [
            *report.surroundings,
            *report.tail,
            *report.novel,
            *((event.line, event.text) for event in report.events),
        ]
    )
    more = []
    for found in quotes:
        place = report.place(found.number)
        if (
            (place.file, place.line) not in told
            and found.number in texts
            and not lead(_NODES.sub("", texts[found.number]), judge.is_known)
        ):
            why = phrase("quoted", talk.prompt_context.language)
            more.append(
                Evidence(
                    line=place.line,
                    text=texts[found.number],
                    role="context",
                    why=why,
                    file=place.file or None,
                )
            )
    return (*answer.evidence, *more)[: max(MAX_EVIDENCE, len(answer.evidence))]


def _with_hypothesis(
    answer: Diagnosis, grounded: Grounded, prompt_context: PromptContext
) -> tuple[Alternative, ...]:
    """Tell the cause that the model holds possible: first where the rules know none, else last."""
    if not grounded.hypothesis:
        return answer.alternatives
    known = next((item for item in answer.alternatives if item.cause == grounded.hypothesis), None)
    cause = prompt_context.library.causes[grounded.hypothesis]
    check = cause.checks[0] if cause.checks else cause.means
    named = known or Alternative(
        cause=cause.id, confidence=NAMED_ONLY, tell_apart=check.to(prompt_context.language)
    )
    rest = [item for item in answer.alternatives if item is not known]
    return (
        (named, *rest)
        if answer.verdict == "unknown"
        else (*answer.alternatives, *(() if known else (named,)))
    )


def _noted(
    answer: Diagnosis, note: Sequence[str], language: Language, dropped: Sequence[Dropped] = ()
) -> Diagnosis:
    told = reasons.translate_reasons(listed(dropped), language)
    engine = answer.engine.model_copy(
        update={"note": reasons.note(note, language), "dropped": (*answer.engine.dropped, *told)}
    )
    return answer.model_copy(update={"engine": engine})
