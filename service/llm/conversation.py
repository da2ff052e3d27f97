"""A conversation about one diagnosis: follow-up questions, constraints that stay, the same grounding."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from corpus.message import Message
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor
from service.composition import reasons
from service.llm.claim_verifier import VerifiedText, listed, verification_context, verify_text
from service.llm.claims import ModelReply
from service.llm.client import LlmClient, added_tokens
from service.llm.deadline import FIRST_SHARE, Deadline
from service.llm.grounding import offered
from service.llm.investigation import SINGLE_SHOT, Investigation, LookLimits, budget_beside_tools
from service.llm.line_questions import missing_lines
from service.llm.log_view import LogView
from service.llm.models import ChatMessage, ChatModel
from service.llm.prompt import for_turn
from service.llm.prompt_context import Prompt, PromptContext, build_prompt_context
from service.llm.prose import blocks
from service.llm.replies import FollowUpQuestion, reply
from service.llm.spending import Spending
from service.llm.stages import LookStage, TextStage
from service.llm.triage_context import TriageContext
from service.remediation.constraints import Constraint, remaining_changes, stated_constraints
from service.schemas.diagnosis import Diagnosis, Dropped, Engine, Tokens, TraceStep
from service.schemas.errors import ModelError

MAX_QUESTION = 2000
MAX_TURNS = 40


@dataclass(frozen=True)
class Turn:
    """The answer to one question.

    `diagnosis` is the answer as it stands now, without what the constraints rule out; `constraints` all that
    were stated so far, in the user's words.
    """

    text: str
    diagnosis: Diagnosis
    engine: Engine
    constraints: tuple[str, ...] = ()


@dataclass
class _ModelReply:
    """What became of one question: the answer of the model `name`, None where none gave one."""

    answer: ModelReply | None = None
    name: str = ""
    looking: Investigation | None = None
    failures: list[str] = field(default_factory=list)
    taken: list[Tokens] = field(default_factory=list)
    trace: list[TraceStep] = field(default_factory=list)


class Conversation:
    """Turns about one inquiry.

    Without a model the answers come from the diagnosis, the cases and the catalogue.
    """

    def __init__(
        self,
        triage_context: TriageContext,
        near: Callable[[str], Sequence[str]],
        models: Sequence[ChatModel] = (),
        seconds: float = 60.0,
        budget: int = 8000,
        limits: LookLimits = SINGLE_SHOT,
        spending: Spending | None = None,
    ) -> None:
        """Begin; of `models` the next is asked where one fails, and without any nothing is sent.

        `limits` bounds how often a model may look into the log before it answers a question.
        """
        self._triage_context = triage_context
        self._near = near
        self._models = models
        self._seconds = seconds
        self._budget = budget
        self._limits = limits
        self._spending = spending
        self._prompt_context = build_prompt_context(triage_context)
        self._constraints: dict[str, Constraint] = {}
        self._talk: list[ChatMessage] = []

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What the user said cannot be changed, in any turn so far."""
        return tuple(self._constraints.values())

    @property
    def _ruled_out(self) -> tuple[str, ...]:
        """Each sentence in which the user ruled something out."""
        return tuple(dict.fromkeys(item.said for item in self.constraints))

    def resume(self, talk: Iterable[ChatMessage]) -> None:
        """Take up a conversation that was left off: what was said, and what it ruled out."""
        for message in talk:
            if message.role == "user":
                self._rule_out(message.text)
            self._talk.append(message)
        self._talk = self._talk[-MAX_TURNS:]

    def _rule_out(self, said: str) -> list[Constraint]:
        new = [
            item
            for item in stated_constraints(said, self._prompt_context.offered)
            if item.topic.name not in self._constraints
        ]
        self._constraints |= {item.topic.name: item for item in new}
        return new

    def _with_named_lines(self, said: str) -> PromptContext:
        """Give the context with the lines that a question names, as far as the output is at hand."""
        report = self._prompt_context.report
        missing = missing_lines(said, report)
        if not missing:
            return self._prompt_context
        view = LogView(report, self._triage_context.reopen, Deadline(self._seconds))
        rows = view.lines((number, number) for number in missing)
        # A log that was put together from its excerpt has blank lines for what was not kept.
        return self._prompt_context.with_lines({line: row for line, row in rows.items() if row.strip()})

    def ask(self, question: str) -> Iterator[LookStage | TextStage | Turn]:
        """Answer a question: a model's looks, the paragraphs as they stand, then the whole turn."""
        said = message_text(question)
        new = self._rule_out(said)
        prompt_context = replace(
            self._prompt_context, offered=remaining_changes(self._prompt_context.offered, self.constraints)
        )
        self._talk = [*self._talk, ChatMessage("user", said)][-MAX_TURNS:]
        plain = reply(
            FollowUpQuestion(said, self._with_named_lines(said), prompt_context.offered, tuple(new)),
            self._near,
        )
        text, engine = plain, Engine()
        if self._models:
            text, engine = yield from self._spoken(prompt_context, plain)
        if text == plain:
            yield TextStage(plain)
        self._talk.append(ChatMessage("assistant", text))
        standing = self._triage_context.first
        if self._constraints and standing.verdict == "diagnosed":
            # Without what is ruled out; what steps in for it has been offered before.
            left = standing.model_copy(update={"changes": prompt_context.offered})
            standing = self._triage_context.repatch(left)
        yield Turn(text, standing, engine, self._ruled_out)

    def _spoken(
        self, prompt_context: PromptContext, plain: str
    ) -> Generator[LookStage | TextStage, None, tuple[str, Engine]]:
        """Let a model answer; where all fail or too little stands, give the plain answer and say so."""
        heard = _ModelReply()
        yield from self._listen(prompt_context, heard)
        language, looking, answer = prompt_context.language, heard.looking, heard.answer
        engine = Engine(tokens=added_tokens(heard.taken), trace=tuple(heard.trace))
        if answer is None or looking is None:
            said = [*heard.failures, Message("model.answer-known-without-model")]
            return plain, engine.model_copy(update={"note": reasons.note(said, language)})
        prompt, kept = looking.prompt, VerifiedText()
        asked = " ".join(message.text for message in self._talk if message.role == "user")
        prompt_context = prompt_context.with_lines(looking.rows)
        for block in self._checked(answer, prompt_context, prompt, kept, asked):
            yield TextStage(block)
        dropped = listed([*_dropped(answer, prompt_context, prompt), *kept.dropped])
        too_little = [] if kept.holds else [Message("model.little-model-answer-checked")]
        update = {
            "note": reasons.note([*heard.failures, *too_little], language),
            "dropped": reasons.translate_reasons(dropped, language),
            "omitted": dict(prompt.omitted),
        }
        if kept.holds:
            return kept.text, engine.model_copy(update={**update, "name": heard.name})
        return plain, engine.model_copy(update=update)

    def _listen(self, prompt_context: PromptContext, heard: _ModelReply) -> Iterator[LookStage]:
        """Ask one model after the other until one answers, and pass on what each looks at."""
        deadline = Deadline(self._seconds)
        room = budget_beside_tools(self._budget, self._limits, prompt_context.language)
        prompt = for_turn(prompt_context, room, self._talk, self._ruled_out)
        for place, model in enumerate(self._models, 1):
            time = deadline if place == len(self._models) else Deadline(self._seconds * FIRST_SHARE)
            language = prompt_context.language
            asker = LlmClient(model, time, self._budget, self._spending, language=language)
            heard.failures += [Message("model.asked-instead", name=model.name)] if heard.failures else []
            heard.name = model.name
            heard.looking = looking = Investigation(
                self._triage_context, prompt_context, prompt, self._limits, self._budget, ModelReply
            )
            text = ""
            try:
                for came in looking.listen(asker, lambda: False):
                    text = came if isinstance(came, str) else ""
                    if isinstance(came, TraceStep):
                        yield LookStage(came)
                heard.answer = asker.read(ModelReply, text)
            except ModelError as error:
                heard.failures.append(str(error))
            heard.taken += [asker.tokens] if asker.was_asked else []
            heard.trace += looking.trace
            if heard.answer is not None:
                return

    def _checked(
        self,
        answer: ModelReply,
        prompt_context: PromptContext,
        prompt: Prompt,
        kept: VerifiedText,
        asked: str,
    ) -> list[str]:
        judge = replace(
            verification_context(
                prompt_context, prompt, prompt_context.offered, prompt_context.first.cause, self.constraints
            ),
            asked=asked,
        )
        good = [made for block in blocks(answer.answer) if (made := verify_text(block, judge, kept))]
        return good if kept.holds else []


def message_text(question: str) -> str:
    """Give a question as it is kept and sent: bounded, without secrets and control characters."""
    return printable(Redactor().clean(question[:MAX_QUESTION]), "\t\n").strip()


def _dropped(answer: ModelReply, prompt_context: PromptContext, prompt: Prompt) -> list[Dropped]:
    made = [
        Dropped(what=Message("dropped.case", name=name[:120]), why=Message("model.not-among-were-sent"))
        for name in answer.cases
        if name not in prompt.cases
    ]
    made += [
        Dropped(
            what=Message(
                "dropped.change", framework=pick.framework[:40], key=pick.key[:120], to=str(pick.to)[:120]
            ),
            why=Message("model.not-among-changes-left"),
        )
        for pick in answer.changes
        if offered(pick, prompt_context) is None
    ]
    return made
