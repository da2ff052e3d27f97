"""What a person says to steer, answered without a model: "look at rank 3", "it is not the network"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.message import words
from corpus.schema import Cause, Language
from ingest.logs.lines import parse_line
from service.composition.diagnosis_view import diagnosis_view, percent
from service.llm.prompt_context import PromptContext

_RANK = re.compile(r"\brank\s*#?(?P<en>\d{1,6})\b|(?P<zh>\d{1,6})\s*号(?:\s*rank|\s*卡|进程)", re.IGNORECASE)
DENIED = re.compile(
    r"\b(?:it|this|that|the (?:cause|problem|reason|issue))"
    r"(?:(?: is|'s| was| can) ?not|\s+(?:isn|wasn|can)'?t)\b"
    r"|\bnot (?:a|an|the) [\w -]{1,40}(?:problem|issue|failure|error)\b"
    r"|^(?:这|那|它|原因|问题)?(?:并)?不是|与.{1,12}无关",
    re.IGNORECASE,
)
CHANGED = re.compile(
    r"\b(?:we|i|they)(?: have|'ve|'d| had)? (?:only |just )?"
    r"(?:changed|upgraded|updated|switched|replaced|moved)\b"
    r"|\bnothing (?:else )?(?:was |has |is )?(?:been )?(?:changed|different)\b"
    r"|只(?:改|换|升级|更新|动)了|刚(?:刚)?(?:改|换|升级|更新)",
    re.IGNORECASE,
)
RESUMES = re.compile(
    r"\bresum\w*|\b(?:go|carry|start) on\b|\brestart\w*|\bcontinu\w*"
    r"|\bfrom (?:the|which|what) (?:last )?checkpoint"
    r"|续(?:训|跑)|恢复(?:训练|运行)?|继续(?:训练|跑|运行)|重启|断点",
    re.IGNORECASE,
)
# Lines of a rank that are shown, and how much of each.
_MOST, _QUOTED = 4, 240
_OTHERS = 3


def say(name: str, language: Language, **values: object) -> str:
    """Give a sentence of an answer to a question."""
    return words(f"replies.{name}", language, **values)


def describe_rank(text: str, context: PromptContext) -> str:
    """Say what failed on a rank that is named, and what else of it is at hand; empty where none is named."""
    found = _RANK.search(text)
    if found is None:
        return ""
    rank, report, language = int(found["en"] or found["zh"]), context.report, context.language
    root = report.root
    rows = [
        f"- [{report.place(event.line)}] `{_quote(event.body)}`"
        for event in report.events
        if event.rank == str(rank) or rank in event.ranks
    ]
    parts = ["\n".join([say("rank-failed", language, rank=rank), "", *rows[:_MOST]])] if rows else []
    if not rows:
        is_silent = root is not None and rank in root.silent
        parts.append(say("rank-silent" if is_silent else "rank-unknown", language, rank=rank))
        read = ((line, parse_line(row.encode(), line)) for line, row in sorted(report.texts.items()))
        own = [line for line, row in read if (row.rank or row.told) == str(rank)]
        said = [f"- [{report.place(line)}] `{_quote(report.texts[line])}`" for line in own[-_MOST:]]
        parts += ["\n".join([say("rank-last", language), "", *said])] if said else []
    return "\n\n".join(parts)


def _quote(text: str) -> str:
    return text.strip().replace("`", "'")[:_QUOTED]


def deny(denied: Sequence[Cause], context: PromptContext) -> str:
    """Say what stands where a person rules causes out: the answer, or what else it may be."""
    language, first = context.language, context.library.causes.get(context.first.cause or "")
    if not denied or first is None:
        return ""
    names = {cause.id for cause in denied}
    rows = [
        f"- **{context.library.causes[other.cause].title.to(language)}** ({percent(other.confidence)} %): "
        f"{other.tell_apart}"
        for other in context.first.alternatives
        if other.cause not in names and other.cause in context.library.causes
    ][:_OTHERS]
    if first.id not in names:
        return say(
            "denied-other", language, title=denied[0].title.to(language), first=first.title.to(language)
        )
    told = say("denied-first" if rows else "denied-all", language, title=first.title.to(language))
    return "\n".join([told, "", *rows]) if rows else told


def describe_resumption(context: PromptContext) -> str:
    """Say from which checkpoint the job can go on, with what to write, or that its log names none."""
    view = diagnosis_view(context.first, context.language)
    if not view.resume:
        return say("resume-unknown", context.language)
    if not view.resumes_with:
        return view.resume
    return f"{view.words('resume-how', resume=view.resume)} `{view.resumes_with}`"
