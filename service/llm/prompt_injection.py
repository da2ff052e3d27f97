"""Log text made fit for a prompt: it stays data, and what in it speaks to a model is withheld.

The defence is that a model's answer has a fixed form and each claim is checked; this only makes a model less
likely to be led astray, and tells when the log tries to, so that its word then weighs less.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from ingest.logs.lines import printable

OPEN = "<<<log"
CLOSE = "log>>>"
WITHHELD = "[withheld: text written to a model]"
# Settings of a row that is withheld which are named all the same.
MOST_NAMED = 8
# Characters of a row that are shown.
LONGEST_ROW = 600
# The same of a row that decides: the root's message and the lines of the proof.
LONGEST_DECIDING = 2000
# A shorter row is not worth two pieces of it.
LEAST_PARTS = 120

# What would end the fence, or begin another role, in one of the usual chat templates.
_FENCES = re.compile(
    r"`{3,}|~{3,}|<{3,}|>{3,}|<\|[^|>\n]{0,40}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|user|assistant|s)>",
    re.IGNORECASE,
)
INVISIBLE = re.compile(
    "[\u00ad\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0]|[\U000e0000-\U000e0fff]"
)

# What is said to nobody but a reader of the diagnosis.
_ORDERS = (
    # An order to forget, in the languages that logs are poisoned in.
    (
        r"(?:ignore|disregard|forget|override|bypass|do not follow|don't "
        r"follow)\b.{0,40}\b(?:previous|prior|above|earlier|preceding|all|any|your|these|"
        r"system)\b.{0,40}\b(?:instruction|prompt|rule|message|direction|guideline|context|analysis)"
    ),
    r"(?:忽略|无视|忘记|忘掉|不要理会|不要遵守|请勿遵循|覆盖).{0,16}(?:指令|提示|规则|说明|要求|设定|内容|系统)",
    (
        r"(?:ignorez?|oubliez?|ignora|olvida|ignoriere|vergiss|ignore)\b.{0,30}\b(?:instructions?|"
        r"instrucciones|anweisungen|consignes)"
    ),
    r"(?:игнорируй|забудь).{0,30}(?:инструкци|указани)|(?:指示|命令)を(?:無視|忘れ)|(?:지시|명령).{0,10}무시",
    (
        r"\b(?:set|give|put|fill|name|report|use|choose|pick)\b.{0,20}\b(?:the )?(?:root "
        r")?cause\b.{0,10}(?:to|as|=|:|is|be)\b|\b(?:the )?(?:true|real|actual|correct|"
        r"right) (?:root )?cause "
        r"(?:is|of this crash)\b|(?:根本原因|根因|真正原因)(?:是|应|为)|诊断结论"
    ),
    (
        r"\btell (?:the )?(?:user|operator|engineer|human)|\b(?:tell|instruct|convince) (?:them|users?|the "
        r"team) to\b|\b(?:propose|suggest) (?:the |this |a )?(?:change|setting|patch|command|fix)\b"
    ),
    r"\[case:|\bwhycrash (?:must|should|shall|please|will)\b",
)
# What a job's own prompts to the model that it trains or serves say as well.
_SPOKEN = (
    # Speech to a model, or about what its answer must be.
    (
        r"\b(?:dear|hey|hello|attention|note to|message to|you are an?|act as "
        r"an?)\b.{0,24}\b(?:ai|llm|assistant|language model|chatbot|gpt|claude|copilot|triage "
        r"(?:bot|tool|agent|model))\b"
    ),
    (
        r"\b(?:ai|llm|assistant|language model|chatbot|triage (?:bot|tool|agent|model)|log "
        r"reader|whycrash)s?\s*(?:must|should|shall|needs? to|has "
        r"to|please|will)\b.{0,60}\b(?:say|answer|report|respond|reply|output|set|propose|recommend|name|"
        r"cite|quote|print|write|tell|conclude|classify|diagnose|run)"
    ),
    (
        r"(?:请|必须|应当|应该|务必|直接|只能)(?:你|直接|只)?.{0,12}"
        r"(?:回答|回复|引用|诊断为|判定为|输出(?:原因|结论|以下|JSON)|给出(?:原因|结论|建议)|"
        r"建议(?:用户|执行|运行)|执行(?:以下|下面|命令))|(?:你是|作为).{0,10}(?:助手|人工智能|AI)|"
        r"(?:告诉|通知)用户"
    ),
    (
        r"\b(?:new|updated|revised|real|actual|hidden|secret|additional|important|urgent|begin|end "
        r"of|system|developer)\b.{0,12}\b(?:instructions?|system prompt|directives?)\b|\bsystem prompt\b"
    ),
    (
        r"\b(?:system|assistant|developer|user|human)\s*(?:prompt|message|note|override)?\s*:\s*"
        r"(?:you|please|the|ignore|answer|set|say|from now|always|never|your)\b"
    ),
    (
        r"\b(?:answer|respond|reply|output|return)\b.{0,20}\b(?:with|only|exactly|in)\b.{0,30}"
        r"\b(?:json|cause|the following|this)\b|"
        r"\bfrom now on\b|\bjailbreak\b|\bprompt injection\b|\bdo anything now\b"
    ),
    # Our own form, which no job prints.
    r"\"(?:headline|explanation|quotes|changes|cause)\"\s*:",
)
# What chat templates say first of all, word for word: it asks for nothing, and each printed sample holds it.
_STOCK = re.compile(
    r"(?:you are qwen, created by alibaba cloud\. )?you are a helpful"
    r"(?:,? (?:and )?(?:respectful|honest|harmless)){0,3} (?:ai )?assistant"
    r"(?: named smollm, trained by hugging face)?(?:\.|$|(?=['\"<\\]))",
    re.IGNORECASE,
)
_ORDER = re.compile("|".join(f"(?:{row})" for row in _ORDERS), re.IGNORECASE)
_SUSPECT = re.compile("|".join(f"(?:{row})" for row in (*_ORDERS, *_SPOKEN)), re.IGNORECASE)
# A row of a file that goes on with a text: a remark, or words without a sign of code.
_TEXT_ROW = re.compile(r"\s*(?:\d+: )?\s*(?:#.*|(?![\w.-]+\s*:)[^=(\[{]*)")
# Rows below one that speaks to a model that may go on with it.
BELOW = 5
# A name of more words may be a sentence.
MOST_WORDS = 4
# A name with a value that can say nothing: a number or a truth value.
_PLAIN_VALUE = re.compile(
    r"(?<![\w.])-{0,2}(?P<name>[A-Za-z_][\w.-]{1,40})\\?['\"]?\s*"
    r"(?:[:=]|,[^=]{0,20}(?:=\w{1,12},\s*)?\bdefault=)\s*"
    r"(?P<value>-?\d[\d_.]*(?:e[+-]?\d+)?|True|False|true|false|None|null)(?![\w.])"
)


def neutralize(text: str, limit: int = LONGEST_ROW) -> str:
    """Give one line without control characters, invisible signs and look-alikes of fences."""
    flat = INVISIBLE.sub("", printable(" ".join(text.split("\n"))))
    # NFKC first: a fence of full-width signs folds into a real one.
    folded = unicodedata.normalize("NFKC", flat) if not flat.isascii() else flat
    return _FENCES.sub("'", printable(folded))[:limit]


def addresses_a_model(text: str, ids: Collection[str] = ()) -> bool:
    """Tell whether a line looks written to a model; `ids` are names that only our own answers use."""
    return _suspected(neutralize(text, 4000), ids) is not None


def withhold_in_file(rows: Sequence[str], ids: Collection[str] = ()) -> tuple[tuple[str, ...], int]:
    """Make rows of a job's file fit for a prompt; gives them and how many order about a reader.

    The text of a prompt is withheld, with the rows that go on with it, and is no order by itself: jobs train
    and serve models that are spoken to.
    """
    made: list[str] = []
    orders, last = 0, -BELOW - 1
    for place, row in enumerate(rows):
        flat = neutralize(row, 4000)
        orders += _ORDER.search(flat) is not None
        if _suspected(flat, ids) is not None:
            last = place
            made.append(withhold(row, ids))
        elif place - last <= BELOW and row.strip() and _TEXT_ROW.fullmatch(flat):
            made.append(_withheld(flat))
        else:
            last = last if _TEXT_ROW.fullmatch(flat) else -BELOW - 1
            made.append(withhold(row, ids))
    return tuple(made), orders


def withhold(text: str, ids: Collection[str] = (), limit: int = LONGEST_ROW) -> str:
    """Give a line fit for a prompt, its end withheld from where it speaks to a model."""
    flat = neutralize(text, 4000)
    begin = _suspected(flat, ids)
    if begin is None:
        return shortened(flat, limit)
    return f"{flat[:begin][:limit].rstrip()} {WITHHELD}".lstrip()


def _withheld(text: str) -> str:
    """Give what stands for a row beside text to a model, with its settings whose values can say nothing.

    Of that text itself nothing is named: a word of an order may stand before a number as a name does.
    """
    if _SUSPECT.search(text):
        return WITHHELD
    named = {
        match["name"]: f"{match['name']}={match['value']}"
        for match in _PLAIN_VALUE.finditer(text)
        if len(re.split(r"[_.-]+", match["name"])) <= MOST_WORDS
        and _SUSPECT.search(re.sub(r"[_.-]", " ", match["name"])) is None
    }
    settings = ", ".join(list(named.values())[:MOST_NAMED])
    return f"{WITHHELD} it sets {settings}" if settings else WITHHELD


def shortened(text: str, limit: int) -> str:
    """Give a row of at most so many characters: its begin and its end, which often says what decides."""
    if len(text) <= limit:
        return text
    mark = f" [... {len(text) - limit} characters ...] "
    rest = limit - len(mark)
    if rest < LEAST_PARTS:
        return text[:limit]
    return f"{text[: rest - rest // 3]}{mark}{text[len(text) - rest // 3 :]}"


def _suspected(text: str, ids: Collection[str]) -> int | None:
    found = _SUSPECT.search(_STOCK.sub(lambda match: " " * len(match[0]), text))
    begins = [found.start()] if found else []
    lowered = text.lower()
    begins += [place for name in ids if (place := lowered.find(name)) >= 0]
    return min(begins, default=None)


def excerpt(
    lines: Mapping[int, str],
    kept: Collection[int],
    ids: Collection[str] = (),
    limits: Mapping[int, int] = MappingProxyType({}),
) -> tuple[dict[int, str], int]:
    """Make lines fit for a prompt; gives them and how many hold text to a model.

    Lines beside such a line, as an instruction goes on over several, are withheld too; of the lines in
    `kept`, which are failures themselves, only what speaks to a model. `limits` are how many characters of
    some are shown, where these are more than LONGEST_ROW.
    """
    suspects = {number for number, text in lines.items() if addresses_a_model(text, ids)}
    shadow = {number + step for number in suspects for step in range(-2, 6)}
    made = {
        number: _withheld(neutralize(text, 4000))
        if number in shadow and number not in kept
        else withhold(text, ids, limits.get(number, LONGEST_ROW))
        for number, text in lines.items()
    }
    return made, len(suspects)


def fence(rows: list[str]) -> str:
    """Put rows of log text between marks that no row can hold."""
    return "\n".join([OPEN, *rows, CLOSE])
