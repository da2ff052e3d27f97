"""A model's prose, paragraph by paragraph and sentence by sentence: kept, or dropped with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from corpus import advice_words
from corpus.keys import canonical, last_level
from corpus.library import Library
from corpus.message import Message, edited
from corpus.schema import Language
from corpus.vocabulary import stems
from ingest.logs.events import Event
from service.llm import contacts
from service.llm.comfort import comforts
from service.llm.directives import OwnAdvice, misdirects, own_advice, says_foreign
from service.llm.log_values import climbs
from service.llm.prompt_context import Prompt, PromptContext
from service.llm.prompt_injection import addresses_a_model
from service.llm.prose import CITED, CODE, is_in, is_safe, sentences
from service.remediation.constraints import Constraint
from service.remediation.free_proposals import sets_what_loads_code
from service.schemas.diagnosis import Dropped, ProposedChange

_SHOWN = 120
# What is cited where a paragraph rests on readings of the machine, which stand in no line.
TELEMETRY = "telemetry"
_CITATION = re.compile(rf"\s*{CITED.pattern}")
_LINE_MARK = re.compile(r"(?:.+:)?L\d+")
_MARKUP = re.compile(r"<[a-zA-Z/!][^>]*>|!\[|\]\(|&#?\w+;|javascript:|data:\w+/", re.IGNORECASE)
# A name that only a setting has: assigned, dotted with underscores, a flag, an environment variable, or with
# an underscore.
_ASSIGNED = re.compile(
    r"(?<![\w.\[/-])(?P<key>[+~]{0,2}-{0,2}[A-Za-z][\w.@/-]*)\s*(?:=|:=|==)\s*(?P<value>[^\s,;`)\]。，；]+)"
)
_NAMED = re.compile(
    r"(?<![\w./-])(?:--?[A-Za-z][\w.-]+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|"
    r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+)"
)
_PATH = re.compile(r"(?<![\w.])/[\w.-]+(?:/[\w.-]+)+")
_BARE_NAME = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")
# The same value told in words: `KEY to 8`, `KEY from 16 to 8`.
_MOVED = re.compile(
    r"(?<![\w./-])(?P<key>[+~]{0,2}-{0,2}[A-Za-z][\w.@/-]*)[`*]*\s*(?::|：|\bto\b|\bfrom\s+\S+\s+to\b|为|到|至|"
    r"设为|改为|降到|提高到)\s*[`*]*(?P<value>-?\d[\w.]*)"
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)*(?![\w]*\.\w)")
# Rows that every traceback has beside its calls: its head, the marks below them, in a box or without one, and
# what stands between two.
_OF_TRACEBACK = re.compile(
    r"Traceback \(|^(?=[^\w^~]*[\^~])\W+$|(?:^|\s)(?:frame )?#\d+[: ]|[│╭╰❱]|"
    r"During handling of the above|The above exception was the direct cause"
)
_ABBREVIATED = frozenset({"e.g", "i.e", "a.k.a"})
# A small number counts parts of the text itself; a larger one is a claim; one of so many digits may be an
# account's.
_SMALL, _LONG_NUMBER = 3, 7


@dataclass(frozen=True)
class VerificationContext:
    """What prose is held against: what was sent, the named cause, and the changes that may be spoken of.

    `own` are names and values of the settings in the job's own files; `telling` are the numbers of the lines
    that speak for the cause, `readings` what the rules read of others, by their numbers, `below` the rows
    and calls below the failures of that cause, and `asked` what a reader asks about the answer.
    """

    prompt: Prompt
    library: Library
    language: Language
    cause: str | None
    allowed: frozenset[str]
    changes: tuple[ProposedChange, ...]
    failed: bool = True
    barred: tuple[Constraint, ...] = ()
    evidence: str = ""
    own: frozenset[str] = frozenset()
    telling: frozenset[int] = frozenset()
    readings: Mapping[int, str] = field(default_factory=dict)
    below: str = ""
    asked: str = ""

    @cached_property
    def sent(self) -> str:
        """All text that was sent of the log and of ours."""
        return "\n".join(
            [
                self.prompt.ours,
                *self.prompt.looked,
                *self.prompt.lines.values(),
                *(message.text for message in self.prompt.messages[1:]),
            ]
        )

    @cached_property
    def numbers(self) -> frozenset[str]:
        """All numbers that were sent."""
        return frozenset(match[0].replace(",", "") for match in re.finditer(r"\d[\d,]*(?:\.\d+)*", self.sent))

    def is_known(self, name: str) -> bool:
        """Tell whether a dotted name is one of ours: a setting, or a word of a cause or a case.

        A log decides nothing here.
        """
        wanted = _spelled(name)
        if wanted in self.settings or any(
            wanted in (_spelled(key), _spelled(key).rsplit(".", 1)[-1]) for _, key in self.library.specs
        ):
            return True
        texts = (text for case in self.library.cases.values() for text in (case.body.en, case.body.zh))
        return any(name in text and is_word_of(name, text) for text in texts)

    @cached_property
    def own_advice(self) -> OwnAdvice:
        """What our own knowledge says about the causes and cases in question."""
        return own_advice(self.library, self.allowed, self.prompt.cases, self.changes)

    @cached_property
    def topic(self) -> frozenset[str]:
        """The stems of what is known and shown of the cause: texts on it, lines that tell of it, settings."""
        told = [line for mark, line in self.prompt.lines.items() if self.prompt.numbers[mark] in self.telling]
        parts = (
            *told,
            *self.readings.values(),
            self.evidence,
            self.below,
            *self.own,
            *self.settings,
            self.asked,
        )
        ours = (word for sentence in self.own_advice.sentences for word in sentence)
        return frozenset((*ours, *stems(re.sub(r"[\W_]", " ", "\n".join(parts)))))

    @cached_property
    def settings(self) -> frozenset[str]:
        """The names of settings that may be spoken of, as they are spelled and by their last part."""
        keys = {_spelled(change.key) for change in self.changes}
        return frozenset(keys | {key.rsplit(".", 1)[-1] for key in keys})


def verification_context(
    prompt_context: PromptContext,
    prompt: Prompt,
    changes: Sequence[ProposedChange],
    cause: str | None,
    barred: Sequence[Constraint] = (),
    failed: bool | None = None,
) -> VerificationContext:
    """Make a judge of prose about a log; beside its cause, a text may name those that stand beside it."""
    rivals = {candidate.cause for candidate in prompt_context.candidates} | {
        item.cause for item in prompt_context.first.alternatives
    }
    return VerificationContext(
        prompt,
        prompt_context.library,
        prompt_context.language,
        cause,
        frozenset(rivals | {cause or ""}),
        tuple(changes),
        prompt_context.first.verdict != "no-failure" if failed is None else failed,
        tuple(barred),
        "\n".join(item.text for item in prompt_context.first.evidence),
        # What stands in the job's own files, and not in a log.
        frozenset(
            name
            for item in prompt_context.assessment.settings
            if item.line == 0
            for name in (item.key, last_level(item.key), item.value)
        ),
        frozenset(_telling(prompt_context, cause, prompt)),
        _readings(prompt_context),
        " ".join(
            part
            for event in _speaking(prompt_context, cause)
            for part in (
                event.rest,
                *(f"{frame} {frame.code}" for frame in event.frames if " " not in frame.file),
            )
        ),
    )


def _speaking(prompt_context: PromptContext, cause: str | None) -> Iterator[Event]:
    report = prompt_context.report
    return (event for event in report.events if event is report.root or (cause and event.cause == cause))


def _telling(prompt_context: PromptContext, cause: str | None, prompt: Prompt) -> Iterator[int]:
    """Yield the numbers of the lines that speak for a cause, and of the job's command.

    Whatever else stands in a log may have been written for whoever reads it, amid the rows of a traceback
    too: it can be cited, and its words excuse none.
    """
    yield from (item.line for item in prompt_context.first.evidence)
    yield prompt_context.report.command[0]
    texts = {number: prompt.lines[mark] for mark, number in prompt.numbers.items() if mark in prompt.lines}
    for event in _speaking(prompt_context, cause):
        yield event.line
        codes = [frame.code.strip() for frame in event.frames if frame.code.strip()]
        codes += [f'"{frame.file}", line' for frame in event.frames if " " not in frame.file]
        for number in range(event.traceback or event.line, event.line):
            text = texts.get(number, "")
            if _OF_TRACEBACK.search(text) or any(code in text for code in codes):
                yield number


def _readings(prompt_context: PromptContext) -> dict[int, str]:
    """Give the settings and facts that the rules read in each line, and no other word of it.

    A setting that no framework has may have been made up for the reader.
    """
    report = prompt_context.report
    found: dict[int, list[str]] = {}
    for setting in report.settings:
        if prompt_context.library.is_setting(setting.key):
            found.setdefault(setting.line, []).append(f"{setting.key}={setting.value}")
    for fact in report.facts:
        found.setdefault(fact.line, []).extend(f"{name}={value}" for name, value in fact.fields.items())
    return {line: " ".join(parts) for line, parts in found.items()}


def _spelled(key: str) -> str:
    return canonical(key).lower()


def _citations(text: str, judge: VerificationContext) -> Iterator[tuple[str, bool]]:
    """Yield each citation with whether it exists."""
    for match in CITED.finditer(text):
        if match["kind"]:
            yield match[0], match["what"] in judge.prompt.cases
            continue
        for mark in re.split(r"\s*[,;，；]\s*", match["what"]):
            if mark == TELEMETRY:
                yield f"[{mark}]", judge.prompt.has_telemetry
            elif _LINE_MARK.fullmatch(mark):
                yield f"[{mark}]", mark in judge.prompt.lines


def _miscited(text: str, judge: VerificationContext) -> str:
    wrong = next((mark for mark, exists in _citations(text, judge) if not exists), "")
    return Message("model.cites-not-sent", wrong=wrong) if wrong else ""


def _shaped(text: str, judge: VerificationContext) -> str:
    return (
        Message("model.holds-markup")
        if _MARKUP.search(text)
        else contacts.lead(_uncited(text, judge), judge.is_known)
    )


def _uncited(text: str, judge: VerificationContext) -> str:
    """Give a text without its citations and the names of changes that may be spoken of.

    The blank before a citation goes with it: what is left between a word and a full stop looks like a dot of
    an address. A variable that is on offer may be called a token.
    """
    plain = _CITATION.sub("", text)
    names = [
        re.escape(change.key) for change in judge.changes if change.by == "rules" and len(change.key) > 3
    ]
    return re.sub(rf"(?<![\w.])(?:{'|'.join(names)})(?![\w.])", "it", plain) if names else plain


def _barred(text: str, judge: VerificationContext) -> str:
    broken = next((item for item in judge.barred if item.is_broken_by(text)), None)
    return Message("model.proposes-change-cannot", name=broken.topic.name) if broken else ""


def _renaming(text: str, judge: VerificationContext) -> str:
    plain = CITED.sub("", text).lower()
    for cause in judge.library.causes.values():
        if cause.id not in judge.allowed and (
            cause.id in plain or cause.title.to(judge.language).lower() in plain
        ):
            return Message("model.names-nothing-log-speaks", id=cause.id)
    return ""


def _cited(text: str, judge: VerificationContext) -> str:
    """Give the words that citations allow: of lines that speak for the cause, and what was read of others."""
    marks = [mark[1:-1] for mark, exists in _citations(text, judge) if exists]
    told = [
        judge.prompt.lines[mark] if number in judge.telling else judge.readings.get(number, "")
        for mark in marks
        if (number := judge.prompt.numbers.get(mark, -1)) >= 0 and mark in judge.prompt.lines
    ]
    return " ".join([*told, judge.below]) if told else ""


def _setting(text: str, judge: VerificationContext) -> str:
    plain = CITED.sub("", text)
    cited = _cited(text, judge)
    # No line is a reason to load code by a variable, nor to leave the folder that a path begins with.
    ours = {change.key for change in judge.changes if change.by == "rules"}
    assigned = (match["key"] for match in _ASSIGNED.finditer(plain) if match["key"] not in ours)
    if key := next((key for key in assigned if sets_what_loads_code(f"{key}=")), ""):
        return Message("model.sets-value-not-among", key=key)
    known = "\n".join((cited, judge.evidence, judge.prompt.ours, *judge.own))
    paths = _PATH.findall(plain)
    if path := next((path for path in paths if climbs(path) or path.rstrip("./") not in known), ""):
        return Message("model.names-neither-among-changes", name=path)
    shown = " ".join(judge.prompt.lines.get(mark[1:-1], "") for mark, _ in _citations(text, judge))
    for match in _ASSIGNED.finditer(plain):
        if not _is_known_value(match["key"], match["value"].strip("'\"*."), judge) and not is_word_of(
            match[0].rstrip("'\"*."), cited
        ):
            return Message("model.sets-value-not-among", key=match["key"])
    for match in _MOVED.finditer(plain):
        if _spelled(match["key"]) in judge.settings and not _is_known_value(
            match["key"], match["value"].rstrip("."), judge
        ):
            return Message("model.sets-value-not-among", key=match["key"])
    for match in _NAMED.finditer(_ASSIGNED.sub("", plain)):
        name = match[0].rstrip(".-")
        is_told = name in _ABBREVIATED or name in judge.own or _spelled(name) in judge.settings
        # A bare name of the job's own says nothing that it could be followed in.
        said = shown if _BARE_NAME.fullmatch(name) else cited
        if not is_told and not is_word_of(name, said):
            return Message("model.names-neither-among-changes", name=name)
    return ""


def is_word_of(words: str, line: str) -> bool:
    """Tell whether a line holds these words as they are.

    As a piece of longer ones (`size=1` in `size=16`) they do not count.
    """
    told = r"\s*".join(map(re.escape, re.split(r"\s*(:?=+)\s*", words)))
    return re.search(rf"(?<!\w)(?<!\w-){told}(?![\w-]|\.\w)", line) is not None


def _is_known_value(key: str, value: str, judge: VerificationContext) -> bool:
    wanted = _spelled(key)
    same = [
        change
        for change in judge.changes
        if wanted in (_spelled(change.key), _spelled(change.key).rsplit(".", 1)[-1])
    ]
    return any(value.lower() in (str(change.to).lower(), str(change.from_).lower()) for change in same)


def _counting(text: str, judge: VerificationContext) -> str:
    plain = CITED.sub("", text)
    for match in _NUMBER.finditer(re.sub(r"^\s*\d+[.)]\s", "", plain, flags=re.MULTILINE)):
        number = match[0].replace(",", "").rstrip(".")
        is_long = number.isdecimal() and len(number) >= _LONG_NUMBER
        if is_long and not is_word_of(number, f"{_cited(text, judge)}\n{judge.evidence}".replace(",", "")):
            return Message("model.holds-number-not-sent", number=number)
        if number not in judge.numbers and not (number.isdecimal() and int(number) <= _SMALL):
            return Message("model.holds-number-not-sent", number=number)
    return ""


def _quoting(text: str, judge: VerificationContext) -> str:
    for match in CODE.finditer(text):
        words = match[1].strip()
        if _bare(words) not in _bare(judge.sent):
            return Message("model.quotes-not-sent", words=repr(words[:60]))
    return ""


def _straying(text: str, judge: VerificationContext) -> str:
    """Say of which word a sentence speaks where hardly a word of it is of its topic; else nothing.

    Advice of a log's author in common words is of anything: `nothing to fix`, `reboot every node hourly`.
    """
    common = advice_words.load()
    said = [
        word
        for word in stems(re.sub(r"[\W_]", " ", CITED.sub("", text)))
        if word in judge.topic or word not in common.ordinary | common.value | common.story
    ]
    stray = [word for word in said if word not in judge.topic]
    # Where nothing failed there is no cause to speak of.
    is_astray = bool(stray) and judge.failed and 3 * len(stray) >= 2 * len(said)
    return Message("model.off-topic", word=stray[0]) if is_astray else ""


# What a sentence is asked, in order; the first reason given drops it.
_RULES: Sequence[Callable[[str, VerificationContext], str]] = (
    _shaped,
    _miscited,
    lambda text, _: (
        Message("model.repeats-text-written-model") if addresses_a_model(CITED.sub("", text)) else ""
    ),
    lambda text, judge: Message("model.says-nothing-failed") if judge.failed and comforts(text) else "",
    _barred,
    _renaming,
    _setting,
    _quoting,
    _counting,
    lambda text, judge: misdirects(CITED.sub("", text), judge.own_advice),
    lambda text, judge: says_foreign(
        CITED.sub("", text),
        "\n".join((_cited(text, judge), judge.evidence, *judge.own, *judge.settings)),
        judge.own_advice,
    ),
    _straying,
)


@dataclass
class VerifiedText:
    """What stands of a text so far."""

    blocks: list[str] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    sentences: int = 0
    lost: int = 0

    @property
    def text(self) -> str:
        """The paragraphs that stand."""
        return "\n\n".join(self.blocks)

    @property
    def holds(self) -> bool:
        """Tell whether enough stands to be read as an answer: something, and more than was lost."""
        return bool(self.blocks) and self.lost <= self.sentences - self.lost


def verify_text(block: str, judge: VerificationContext, kept: VerifiedText) -> str:
    """Judge one paragraph and add what stands of it; gives that, or the empty string."""
    rows = [
        [
            (sentence, next((why for rule in _RULES if (why := rule(sentence, judge))), ""))
            for sentence in sentences(row)
        ]
        for row in is_safe(block).split("\n")
    ]
    every = [pair for row in rows for pair in row]
    kept.sentences += len(every)
    good = "\n".join(
        " ".join(text for text, why in row if not why) for row in rows if any(not why for _, why in row)
    ).strip()
    if why := _unfounded(good, judge):
        kept.lost += len(every)
        kept.dropped.extend(Dropped(what=text[:_SHOWN], why=reason or why) for text, reason in every)
        return ""
    kept.lost += sum(1 for _, reason in every if reason)
    kept.dropped.extend(Dropped(what=text[:_SHOWN], why=reason) for text, reason in every if reason)
    if good:
        kept.blocks.append(good)
    return good


def _unfounded(block: str, judge: VerificationContext) -> str:
    """Say why a whole paragraph cannot stand, or give the empty string."""
    if not block:
        return ""
    if not any(char.isalpha() for char in CITED.sub("", block)):
        return Message("model.says-nothing")
    # What is harmless in each sentence may be an address in two.
    if why := _shaped(block, judge):
        return why
    if not any(exists for _, exists in _citations(block, judge)):
        return Message("model.cites-neither-line-nor")
    return "" if is_in(judge.language, block) else Message("model.another-language")


def listed(dropped: Iterable[Dropped]) -> list[Dropped]:
    """Give what was dropped of a model's answer fit to be shown.

    Without the addresses and numbers for which it was.
    """
    return [
        Dropped(what=edited(item.what, contacts.masked), why=edited(item.why, contacts.masked))
        for item in dropped
    ]


def _bare(text: str) -> str:
    return " ".join(text.split()).lower()
