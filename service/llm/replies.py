"""Answers to follow-up questions without a model: from the diagnosis, the cases and the catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from corpus.message import is_message, words
from corpus.schema import Cause, Language
from ingest.logs.timeline import Place
from service.llm import setting_lookups
from service.llm.line_questions import describe_lines
from service.llm.prompt_context import PromptContext
from service.llm.steering import CHANGED, DENIED, RESUMES, deny, describe_rank, describe_resumption
from service.llm.sums import answer_sum
from service.remediation.constraints import Constraint
from service.schemas.diagnosis import ProposedChange

_WHY_NOT = re.compile(
    r"\bwhy (?:not|isn't|is it not|is this not|rule out|do you rule)|\b(?:could|can|might|may) "
    r"(?:it|this) (?:not )?be|\bis (?:it|this) (?:not )?(?:a|an|the|because)|\bwhat about|\bhow "
    r"about|\bisn't (?:it|this)|为什么不是|为何不是|会不会是|是不是|有没有可能|难道不是|怎么不是",
    re.IGNORECASE,
)
_COST = re.compile(
    r"\bcosts?\b|\bslow(?:er|down)?\b|\bspeed\b|\bthroughput\b|\btrade-?offs?\b|\bdownsides?\b|\bprice\b|"
    r"\bpenalt|\bside effects?\b|代价|影响|变慢|速度|吞吐|副作用|性能",
    re.IGNORECASE,
)
_CONFIRM = re.compile(
    r"\b(?:how sure|how certain|confirm|verify|prove|proof|evidence|how do (?:you|we|i) "
    r"know|check)\b|确认|验证|证据|确定|怎么知道|凭什么",
    re.IGNORECASE,
)
_DO = re.compile(
    r"\bwhat (?:else|should|can|do|now|to)\b|\bhow "
    r"(?:do|can|should|to)\b|\bfix\b|\bchange\b|\bsolve\b|怎么办|怎么改|如何(?:改|解决|修)|还能|还有什么|怎样",
    re.IGNORECASE,
)
_EXPLAIN = re.compile(
    r"\bwhy\b|\bexplain|\bwhat (?:happened|went wrong|does (?:that|this|it) mean|is the "
    r"(?:cause|reason|problem))|\breasons?\b|\bin (?:short|other "
    r"words|detail)\b|为什么|为何|原因|解释|什么意思|发生了什么|怎么回事",
    re.IGNORECASE,
)
# Chinese has no blanks: each pair of characters may be a word.
_WORD = re.compile(r"[a-z0-9]+|(?=([\u4e00-\u9fff]{2}))")
_PLAIN = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "it",
        "this",
        "not",
        "why",
        "be",
        "could",
        "about",
        "what",
        "how",
        "can",
        "of",
        "by",
        "or",
        "and",
        "in",
        "to",
        "for",
        "because",
        "failure",
        "error",
        "failed",
        "too",
        "changed",
        "nothing",
        "but",
        *("什么", "为什", "么不", "不是", "是不", "问题", "原因", "错误", "失败", "的问", "我们"),
    ]
)

# What people call a cause that has no such word in its name.
_CALLED: Mapping[str, str] = {
    "nccl": "nccl collective",
    "network": "nccl network interconnect",
    "leak": "leak",
    "oom": "oom memory",
    "out of memory": "oom",
    "驱动": "driver",
    "端口": "port",
    "gpu": "gpu",
    "hardware": "hardware xid ecc",
    "disk": "disk storage",
    "网络": "nccl network",
    "泄漏": "leak",
    "泄露": "leak",
    "显存": "gpu oom",
    "内存": "host memory",
    "磁盘": "disk",
    "硬件": "hardware",
}


@dataclass(frozen=True)
class FollowUpQuestion:
    """A follow-up question with what it may draw on. `new` are the constraints that it states itself."""

    text: str
    prompt_context: PromptContext
    changes: tuple[ProposedChange, ...]
    new: tuple[Constraint, ...] = ()

    @property
    def language(self) -> Language:
        """The language of the answer."""
        return self.prompt_context.language


def reply(question: FollowUpQuestion, near: Callable[[str], Sequence[str]]) -> str:
    """Answer a question; `near` gives the ids of cases that are nearest to some words, best first."""
    if question.new:
        return _constrained(question)
    if said := answer_sum(question.text, question.prompt_context, question.changes):
        return said
    if said := describe_lines(question.text, question.prompt_context):
        return said
    if said := describe_rank(question.text, question.prompt_context):
        return said
    if asked := setting_lookups.named_settings(
        question.text, question.prompt_context.library, question.prompt_context.report
    ):
        return "\n\n".join(
            setting_lookups.describe_setting(spec, question.prompt_context.report, question.language)
            for spec in asked
        )
    for pattern, answer in _ANSWERS:
        if pattern.search(question.text) and (said := answer(question)):
            return said
    return _nearest(question, near(question.text))


def _say(name: str, language: Language, **values: object) -> str:
    return words(f"replies.{name}", language, **values)


def _constrained(question: FollowUpQuestion) -> str:
    # A topic of `constraints.TOPICS` is named in words, a setting by its own name.
    names = [constraint.topic.name for constraint in question.new]
    rows = [f"topic-{re.sub(r'[^a-z]+', '-', name.lower())}" for name in names]
    topics = [
        _say(row, question.language) if is_message(f"replies.{row}") else name
        for row, name in zip(rows, names, strict=True)
    ]
    between = _say("topics-and", question.language)
    parts = [_say("noted", question.language, topics=between.join(topics)), _changes(question)]
    if not question.changes:
        cause = _first(question.prompt_context)
        parts += (
            [cause.advice.to(question.language, question.prompt_context.assessment.holds)] if cause else []
        )
    return "\n\n".join(parts)


def _changes(question: FollowUpQuestion) -> str:
    if not question.changes:
        return _say("none-left" if question.prompt_context.offered else "no-changes", question.language)
    rows = [f"- `{change.key}` = `{change.to}`: {change.why}{_case(change)}" for change in question.changes]
    return "\n".join(
        [
            _say(
                "left" if len(question.changes) < len(question.prompt_context.offered) else "all",
                question.language,
            ),
            "",
            *rows,
        ]
    )


def _case(change: ProposedChange) -> str:
    return f" [case:{change.from_case}]" if change.from_case else ""


def _costs(question: FollowUpQuestion) -> str:
    if not question.changes:
        return _changes(question)
    free = _say("free", question.language)
    rows = [
        f"- `{change.key}` = `{change.to}`: {change.costs or free}{_case(change)}"
        for change in question.changes
    ]
    return "\n".join([_say("costs", question.language), "", *rows])


def _confirm(question: FollowUpQuestion) -> str:
    first = question.prompt_context.first
    rows = [f"- {check}" for check in first.checks]
    seen = [
        f"- [{Place(item.file or '', item.line)}] `{item.text.replace('`', chr(39))[:200]}`: {item.why}"
        for item in first.evidence[:3]
    ]
    parts = [(_say("sure", question.language), seen), (_say("confirm", question.language), rows)]
    return "\n\n".join("\n".join([head, "", *lines]) for head, lines in parts if lines)


def _against(other: Cause, question: FollowUpQuestion) -> str:
    first, language = _first(question.prompt_context), question.language
    title = other.title.to(language)
    if first is not None and other.id == first.id:
        return _say("is-it", language, title=title)
    candidate = next((item for item in question.prompt_context.candidates if item.cause == other.id), None)
    lines = (
        [question.prompt_context.report.place(event.line) for event in candidate.events[:3]]
        if candidate
        else []
    )
    if candidate is not None and first is not None:
        told = (
            _say("for", language, title=title, first=first.title.to(language))
            + " "
            + ", ".join(f"[{place}]" for place in lines)
        )
    else:
        told = _say("against", language, title=title)
    return f"{told.strip()}\n\n{_say('apart', language)} {_tells(first, other, language)}"


def _tells(first: Cause | None, other: Cause, language: Language) -> str:
    pairs = ((first, other), (other, first)) if first is not None else ()
    confusions = (
        confusion for one, two in pairs for confusion in one.confused_with if confusion.cause == two.id
    )
    if confusion := next(confusions, None):
        return confusion.to(language)
    # A follow-up names a cause by itself: what is said of every job comes before what is of some.
    check = next((check for check in other.checks if not check.when), None)
    return (check or other.means).to(language)


def meant_setting(text: str, prompt_context: PromptContext) -> list[Cause]:
    """Give the causes that a question names, the likeliest first.

    By id, by words of the title, or as people call them.
    """
    lowered = text.lower()
    words = _words_of(lowered) - _PLAIN
    words |= {word for called, more in _CALLED.items() if called in lowered for word in more.split()}
    known = {item.cause for item in prompt_context.candidates} | {
        item.cause for item in prompt_context.first.alternatives
    }
    scores: dict[str, float] = {}
    for cause in prompt_context.library.causes.values():
        own = set(cause.id.split("-"))
        told = _words_of(f"{cause.title.en} {cause.title.zh} {cause.category}".lower()) - own
        likeness = 10.0 if cause.id in lowered else 2.0 * len(own & words) + 0.4 * len(told & words)
        scores[cause.id] = likeness + 0.5 * (cause.id in known)
    best = max(scores.values(), default=0.0)
    return [
        prompt_context.library.causes[name]
        for name, score in sorted(scores.items(), key=lambda item: -item[1])
        if score >= max(1.0, best)
    ]


def _words_of(text: str) -> set[str]:
    return {found[0] or found[1] for found in _WORD.finditer(text)}


def _first(prompt_context: PromptContext) -> Cause | None:
    return prompt_context.library.causes.get(prompt_context.first.cause or "")


def _nearest(question: FollowUpQuestion, near: Sequence[str]) -> str:
    found = [
        question.prompt_context.library.cases[name]
        for name in near
        if name in question.prompt_context.library.cases
    ][:2]
    if not found:
        return _say("nothing", question.language)
    rows = [f"- {case.title.to(question.language)} [case:{case.id}]" for case in found]
    return "\n".join([_say("near", question.language), "", *rows])


def _compared(question: FollowUpQuestion) -> str:
    """Hold the causes that a question names against the answer."""
    meant = meant_setting(question.text, question.prompt_context)[:2]
    return "\n\n".join(_against(cause, question) for cause in meant)


_ANSWERS: Sequence[tuple[re.Pattern[str], Callable[[FollowUpQuestion], str]]] = (
    (_WHY_NOT, _compared),
    (
        DENIED,
        lambda question: deny(meant_setting(question.text, question.prompt_context), question.prompt_context),
    ),
    (CHANGED, _compared),
    (RESUMES, lambda question: describe_resumption(question.prompt_context)),
    (_COST, _costs),
    (_CONFIRM, _confirm),
    (_DO, _changes),
    (_EXPLAIN, lambda question: question.prompt_context.first.explanation),
)
