"""The chain: a first answer, a prompt, any chat model, its claims, grounding, the final answer."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from pydantic import ValidationError

from corpus.message import Message
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
from service.llm.client import LlmClient, added_tokens
from service.llm.comfort import comforts
from service.llm.contacts import NODES, lead
from service.llm.deadline import FIRST_SHARE, Deadline
from service.llm.directives import blames, misdirects
from service.llm.grounding import GroundedClaims, GroundedQuote, ground_claims
from service.llm.investigation import SINGLE_SHOT, Investigation, LookLimits, begin_investigation
from service.llm.models import ChatModel, open_models
from service.llm.prompt import shown
from service.llm.prompt_context import Prompt, PromptContext, build_prompt_context
from service.llm.prose import blocks
from service.llm.spending import Spending, open_spending
from service.llm.stages import DraftStage, FinalStage, LookStage, Stage, TextStage
from service.llm.streaming_json import growing_text, whole_fields
from service.llm.tools import schemas
from service.llm.triage_context import TriageContext
from service.remediation.free_proposals import is_of_job
from service.remediation.proposals import MAX_CHANGES
from service.schemas.diagnosis import Diagnosis, Dropped, Evidence, ProposedChange, Tokens, TraceStep, Votes
from service.schemas.errors import ModelError
from service.scoring.assessment import Assessment, Vote
from service.scoring.fusion import SOUND, fuse, outcome_named, vote_weights
from service.settings import Settings

# How much longer an answer gets before it is looked at again.
STRIDE = 48
_ADVISES = re.compile(
    r"(?i)\b(?:hints?|notes?|advice|advise|fix|remedy|cure|solution|please|must|should|"
    r"instead|operator|admin)\b"
)
_CLAIMED = {"cause", "certainty", "quotes", "cases", "changes"}


def render_prompt(triage_context: TriageContext, settings: Settings) -> str:
    """Give exactly what a model would be sent, for a person to read; with the tools that it may call."""
    limits = LookLimits(settings.model_calls, settings.model_calls_deadline)
    prompt_context = build_prompt_context(triage_context)
    begun = begin_investigation(triage_context, prompt_context, settings.model_tokens, limits)
    prompt = replace(begun.prompt, messages=begun.first_messages)
    return shown(prompt, schema(Claims), schemas(triage_context.language) if limits.calls else ())


def answer_in_stages(triage_context: TriageContext, settings: Settings, batch: str = "") -> Iterator[Stage]:
    """Give the first answer, then the configured model's words, then the final answer.

    `batch` names the batch whose budget is spent, if any.
    """
    yield DraftStage(triage_context.first)
    if triage_context.first.ended_well:
        note = Message("model.log-shows-no-failure") if settings.model else ""
        yield FinalStage(_noted(triage_context.first, [note], triage_context.language))
        return
    try:
        models, spending = open_models(settings), open_spending(settings, batch)
    except ModelError as error:
        yield FinalStage(
            _noted(
                triage_context.first,
                [str(error), Message("model.first-answer-stands")],
                triage_context.language,
            )
        )
        return
    if not models:
        yield FinalStage(triage_context.first)
        return
    limits = LookLimits(settings.model_calls, settings.model_calls_deadline)
    yield from explain_with_models(
        triage_context, models, settings.model_deadline, settings.model_tokens, limits, spending
    )


def explain_with_model(
    triage_context: TriageContext,
    model: ChatModel,
    seconds: float,
    budget: int,
    limits: LookLimits = SINGLE_SHOT,
) -> Iterator[Stage]:
    """Give one model's looks and words on a job, then the final answer, as `explain_with_models` does."""
    return explain_with_models(triage_context, (model,), seconds, budget, limits)


def explain_with_models(
    triage_context: TriageContext,
    models: Sequence[ChatModel],
    seconds: float,
    budget: int,
    limits: LookLimits = SINGLE_SHOT,
    spending: Spending | None = None,
) -> Iterator[Stage]:
    """Give a model's looks and words on a job, then the final answer; a model that fails leaves the first.

    The next of `models` is asked where one fails before any of its words were passed on. `limits` bounds how
    often each may look further; as a rule it is asked once. `spending` holds the budgets.
    """
    started = perf_counter()
    # The clock runs from here: what goes into the prompt is part of the wait.
    deadline = Deadline(seconds)
    prompt_context = build_prompt_context(triage_context)
    final, failures, taken = triage_context.first, list[str](), list[Tokens]()
    for place, model in enumerate(models, 1):
        time = deadline if place == len(models) else Deadline(seconds * FIRST_SHARE)
        asker = LlmClient(model, time, budget, spending, language=triage_context.language)
        investigation = begin_investigation(triage_context, prompt_context, budget, limits)
        talk = _ModelExplanation(triage_context, prompt_context, investigation)
        told = [*failures, Message("model.asked-instead", name=model.name)] if failures else []
        try:
            yield from talk.listen(asker)
            final, is_over = _joined(triage_context, talk, model.name, told), True
        except ModelError as error:
            failures = [*told, str(error)]
            note = [*failures, Message("model.first-answer-stands")]
            final = _noted(triage_context.first, note, triage_context.language, talk.dropped)
            is_over = bool(talk.kept.blocks)
        taken += [asker.tokens] if asker.was_asked else []
        engine = final.engine.model_copy(
            update={
                "tokens": added_tokens(taken),
                "omitted": dict(talk.prompt.omitted),
                "trace": tuple(investigation.trace),
            }
        )
        final = final.model_copy(update={"engine": engine})
        if is_over:
            break
    spent = {**final.timings_ms, "model": round(1000 * (perf_counter() - started), 2)}
    yield FinalStage(final.model_copy(update={"timings_ms": spent}))


def hear_vote(
    triage_context: TriageContext,
    model: ChatModel,
    seconds: float,
    budget: int,
    limits: LookLimits = SINGLE_SHOT,
) -> Vote | None:
    """Ask a model and give what it decides for; None where it may decide nothing. Raises ModelError."""
    prompt_context = build_prompt_context(triage_context)
    investigation = begin_investigation(triage_context, prompt_context, budget, limits)
    # Of a vote no change is asked.
    talk = _ModelExplanation(triage_context, prompt_context, investigation, may_ask_anew=False)
    asker = LlmClient(model, Deadline(seconds), budget, language=triage_context.language)
    deque(talk.listen(asker), maxlen=0)
    return talk.vote


@dataclass
class _ModelExplanation:
    """What a model says of one job, checked while it comes; `fused` is the assessment with its vote.

    Where the first of its changes does not stand, it may say them once more.
    """

    triage_context: TriageContext
    prompt_context: PromptContext
    investigation: Investigation
    grounded: GroundedClaims | None = None
    fused: Assessment | None = None
    vote: Vote | None = None
    kept: VerifiedText = field(default_factory=VerifiedText)
    may_ask_anew: bool = True
    _judged: int = 0

    @property
    def prompt(self) -> Prompt:
        """What the model was sent, with what its looks have shown."""
        return self.investigation.prompt

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """All that did not stand."""
        return (*(self.grounded.dropped if self.grounded else ()), *self.kept.dropped)

    @property
    def decided(self) -> str:
        """What the answer names: a cause, `insufficient-evidence` or `no-failure`."""
        assert self.fused is not None  # noqa: S101 - grounded first
        return outcome_named(self.fused, self.triage_context.library)

    @property
    def is_on_answer(self) -> bool:
        """Whether the model speaks of what the answer names; else its words argue for something else."""
        return self.grounded is not None and self.grounded.named == self.decided

    def listen(self, asker: LlmClient) -> Iterator[LookStage | TextStage]:
        """Pass on the looks and the paragraphs that stand; then all fields are set. Raises ModelError."""
        text, seen = "", 0
        for came in self.investigation.listen(asker, lambda: bool(self.kept.blocks)):
            if isinstance(came, TraceStep):
                # What was written before a look is no answer.
                text, seen, self.grounded, self.fused = "", 0, None, None
                yield LookStage(came)
                continue
            text = came
            if not seen <= len(text) < seen + STRIDE:
                seen = len(text)
                yield from self._grown(text)
        claims = asker.read(Claims, text)
        self._ask_anew(claims, self._ground(claims), asker)
        yield from self._judge(blocks(claims.explanation))

    def _ground(self, claims: Claims) -> GroundedClaims:
        self.grounded = grounded = ground_claims(claims, self.prompt_context, self.prompt)
        rows = self.investigation.rows
        self.prompt_context = self.prompt_context.with_lines(
            {quote.number: rows[quote.number] for quote in grounded.quotes if quote.number in rows}
        )
        assessment, vote = self.prompt_context.assessment, grounded.vote
        fails = self.triage_context.fails
        if vote is not None and fails is not None:
            # The quoted lines that the rules passed over, and that read as failures by themselves.
            report = self.prompt_context.report
            known = {event.line for event in report.events}
            texts = {line: text for line in vote.lines if (text := rows.get(line, report.texts.get(line)))}
            failing = [line for line, text in texts.items() if line not in known and fails(text)]
            vote = replace(vote, failing=tuple(failing))
        self.vote = vote
        self.fused = fuse(assessment, vote, self.triage_context.library) if vote else assessment
        return grounded

    def _ask_anew(self, claims: Claims, first: GroundedClaims, asker: LlmClient) -> None:
        """Let the model say its changes once more where the first of them does not stand.

        All else of its answer stays, and so do its changes where the new ones begin no better.
        """
        if not (self.may_ask_anew and first.refused and not self.prompt.suspects):
            return
        try:
            said = self.investigation.ask_anew(asker, claims.model_dump_json(), first.refused)
        except ModelError:
            return
        anew = self._ground(claims.model_copy(update={"changes": said.changes}))
        is_better = bool(anew.changes) and not anew.refused
        self.grounded = replace(anew, dropped=(*first.refused, *anew.dropped)) if is_better else first

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
            self._ground(claims)
        written, _ = growing_text(text, "explanation")
        # The last paragraph may go on, until the answer is read as a whole.
        yield from self._judge(blocks(written)[:-1])

    def _judge(self, found: Sequence[str]) -> Iterator[TextStage]:
        if not self.is_on_answer:
            return
        judge = self.judge()
        for block in found[self._judged :]:
            if good := verify_text(block, judge, self.kept):
                yield TextStage(good)
        self._judged = max(self._judged, len(found))

    def judge(self) -> VerificationContext:
        """Give what holds prose against what was sent and what the answer names."""
        assert self.grounded is not None  # noqa: S101 - the callers ground first
        changes = (*self.prompt_context.offered, *self.grounded.changes)
        failed = self.decided != SOUND
        return verification_context(
            self.prompt_context, self.prompt, changes, self.decided if failed else None, failed=failed
        )


def _joined(
    triage_context: TriageContext, talk: _ModelExplanation, name: str, told: Sequence[str]
) -> Diagnosis:
    """Put together the answer with the model's vote weighed in, and what stands of its words.

    Headline and explanation stay the rules' own. `told` is what became of models that were asked before.
    """
    grounded, fused = talk.grounded, talk.fused
    assert grounded is not None  # noqa: S101 - listened to
    assert fused is not None  # noqa: S101 - grounded
    answer = triage_context.answer_anew(fused) if grounded.vote else triage_context.first
    if not talk.prompt.suspects:
        if talk.is_on_answer:
            answer = _with_changes(triage_context, answer, grounded.changes, fused)
        answer = answer.model_copy(update={"evidence": _with_quotes(answer, grounded.quotes, talk)})
    rules, vote = triage_context.first.engine.votes, grounded.vote
    model = {vote.choice: vote_weights().right.get(vote.certainty, 0.0)} if vote else {}
    update: dict[str, object] = {"votes": Votes(rules=rules.rules if rules else {}, model=model)}
    if talk.kept.holds:
        update["model_explanation"] = talk.kept.text
    if talk.kept.holds or grounded.vote:
        update["name"] = name
    noted = _noted(answer, [*told, *_notes_on_vote(talk)], talk.prompt_context.language, talk.dropped)
    return noted.model_copy(update={"engine": noted.engine.model_copy(update=update)})


def _notes_on_vote(talk: _ModelExplanation) -> list[str]:
    """Say what the vote did, and what was left out of the model's words."""
    grounded = talk.grounded
    assert grounded is not None  # noqa: S101 - listened to
    by_rules = outcome_named(talk.prompt_context.assessment, talk.triage_context.library)
    rows: list[str] = []
    if grounded.vote is not None and grounded.vote.choice != by_rules:
        chosen = grounded.vote.choice
        what = "model.vote-decides" if talk.decided == chosen else "model.vote-kept"
        rows.append(Message(what, rules=by_rules, chosen=chosen))
    if talk.is_on_answer and not talk.kept.holds:
        rows.append(Message("model.little-model-explanation-checked"))
    if talk.prompt.suspects:
        rows.append(Message("model.lines-log-speak-model", suspects=talk.prompt.suspects))
    if grounded.vote is None and not talk.kept.holds:
        rows.append(Message("model.first-answer-stands"))
    return rows


def _with_changes(
    triage_context: TriageContext, answer: Diagnosis, picked: Sequence[ProposedChange], fused: Assessment
) -> Diagnosis:
    """Put the picked changes first; those of the rules that were not picked stay behind them."""
    if answer.verdict != "diagnosed" or not picked:
        return answer
    names = {(change.framework, change.key) for change in picked}
    # What the model chose rests on more than the cause.
    picked = [change.model_copy(update={"guess": False}) for change in picked]
    rest = [change for change in answer.changes if (change.framework, change.key) not in names]
    # What only helps to find out stays behind the cures. The model has read the rules' changes with their
    # proofs: its order stands, but for what it proposes of itself for what this job is not shown to have.
    theirs = {(change.framework, change.key) for change in answer.changes}

    def place(change: ProposedChange) -> int:
        if change in rest:
            return 1
        own = change.by == "model" and (change.framework, change.key) not in theirs
        return 2 if own and not is_of_job(change, fused, triage_context.library) else 0

    ordered = sorted(
        (*picked, *rest), key=lambda change: (change.purpose == "find-out", change.guess, place(change))
    )
    chosen = answer.model_copy(update={"changes": tuple(ordered[:MAX_CHANGES])})
    return triage_context.repatch(chosen, is_chosen=ordered[0] in picked)


def _with_quotes(
    answer: Diagnosis, quotes: Sequence[GroundedQuote], talk: _ModelExplanation
) -> tuple[Evidence, ...]:
    """Add the lines that the model quotes and the rules did not, as far as there is room.

    A line that sends its reader elsewhere is for those to find who read the log, not for a model to put
    forward.
    """
    judge = talk.judge()
    report = talk.prompt_context.report
    told = {(item.file or "", item.line) for item in answer.evidence}
    texts = report.texts
    more = []
    for found in quotes:
        place = report.place(found.number)
        if (
            (place.file, place.line) not in told
            and found.number in texts
            and not lead(NODES.sub("", texts[found.number]), judge.is_known)
            and (found.number in judge.telling or not _is_put_forward(texts[found.number], judge))
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


def _is_put_forward(text: str, judge: VerificationContext) -> bool:
    """Tell whether a line blames somebody, says that nothing is wrong, or what to do that is none of ours.

    Most lines are no sentences, and their words no orders: advice calls itself that.
    """
    advises = _ADVISES.search(text) is not None
    return bool(judge.failed and comforts(text)) or bool(
        blames(text) or (advises and misdirects(text, judge.own_advice))
    )


def _noted(
    answer: Diagnosis, note: Sequence[str], language: Language, dropped: Sequence[Dropped] = ()
) -> Diagnosis:
    told = reasons.translate_reasons(listed(dropped), language)
    engine = answer.engine.model_copy(
        update={"note": reasons.note(note, language), "dropped": (*answer.engine.dropped, *told)}
    )
    return answer.model_copy(update={"engine": engine})
