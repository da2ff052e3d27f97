"""Questions whether a value is enough: "would 0.95 be enough?", answered by the log's own arithmetic."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.keys import last_level
from corpus.message import in_language, words
from service.llm.prompt_context import PromptContext
from service.remediation.constraints import TOPICS
from service.remediation.setting_values import misfit_reason
from service.schemas.diagnosis import ProposedChange

_ENOUGH = re.compile(
    r"\b(?:enough|suffices?|sufficient)\b|\bwould\b[^?]{1,60}\b(?:do|fit|cure|work)\b|够|行吗|可以吗|管用吗",
    re.IGNORECASE,
)
# A number that is no part of a word, of a version or of a range; a Chinese character may stand beside it.
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.-])(?P<number>-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"
    r"(?:\s?(?P<unit>%|[kKmM](?![A-Za-z])|[kKmMgGtT]i?[bB]\b))?(?![A-Za-z0-9_-]|[.,][A-Za-z0-9_])"
)
# What a number counts, where it is no value of a setting, and what stands before a version.
_COUNTED = re.compile(
    r"\s*(?:more |other )?(?:gpus?|nodes?|cards?|machines?|hosts?|ranks?|devices?|workers?|cpus?|hours?|"
    r"minutes?|seconds?|days?|块|张|台|个?节点|个?\s*(?:GPU|卡)|小时|分钟|秒)",
    re.IGNORECASE,
)
_VERSION = re.compile(r"(?:\bversions?|\bv|版本)\s*$", re.IGNORECASE)
# The words of a question that names nothing but a number.
_BARE = re.compile(
    r"\b(?:would|will|is|be|are|enough|suffices?|sufficient|do|does|fit|cure|work|it|that|this|a|the|value|"
    r"of|to|at|if|i|we|set|setting|use|used|using|go|went|with|then|so|and|or|just|only|already|also|even|"
    r"still|ok|okay|well|what|about|how|but|lower|raise|put|make|made|instead|for|me|us|here|now|please|hi|"
    r"thanks)\b|"
    r"[够吗行可以管用如果若是否我设置为改成到取值呢了的会不就那这样只把调降升低高大小足么吧得还它也请问]|"
    r"[\s?!.,;:'\"`？！。，；：（）()=]",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z][\w.-]*[_.-]\w[\w.-]*")
_GIB = re.compile(r"(?:^|[_.-])gi?b(?:$|[_.-])")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
# A change that was left out, as it is named.
_LEFT_OUT = re.compile(r"[\w.-]+: (?P<key>\S+?)=(?P<value>\S+)")


def answer_sum(text: str, prompt_context: PromptContext, changes: Sequence[ProposedChange]) -> str:
    """Say whether a value that a question names keeps to what the log's numbers ask for.

    Empty where it asks no such thing. Of the changes the one counts whose setting is named; where nothing but
    a number is, the first whose value was worked out from the log.
    """
    text = _without_lines(text)
    numbers = list(_NUMBER.finditer(text)) if _ENOUGH.search(text) else []
    if not numbers:
        return ""
    language = prompt_context.language
    # One that counts cards or the like, or is of a version, is no value of a setting.
    meant = [
        number
        for number in numbers
        if not (_COUNTED.match(text, number.end()) or _VERSION.search(text, 0, number.start()))
    ]
    asked = (meant or numbers)[0]
    change = (
        _change_named(text, [change for change in changes if _value(change.to) is not None])
        if meant
        else None
    )
    if change is None or change.proof is None:
        weighed = _weighed(text, asked, prompt_context) if meant else ""
        return weighed or words("replies.sum-unknown", language, asked=asked[0].strip())
    # Of two values at once the arithmetic of one tells nothing.
    verdict, reason = _verdict(asked, change, prompt_context) if len(meant) == 1 else ("compare", "")
    if verdict == "misfit" and (weighed := _weighed(text, asked, prompt_context)):
        # It is none of that setting, but of another one that the log's numbers speak of.
        return weighed
    values = {
        "asked": asked[0].strip(),
        "key": change.key,
        "to": f"{change.to}",
        "proof": change.proof.rstrip(".。"),
        "reason": in_language(reason, language),
    }
    return words(f"replies.sum-{verdict}", language, **values)


def _weighed(text: str, asked: re.Match[str], context: PromptContext) -> str:
    """Say why a change that is named, or whose value is asked for, was left out; empty where none was."""
    number = asked["number"].replace(",", "")
    for dropped in context.first.engine.dropped:
        found = _LEFT_OUT.fullmatch(str(dropped.what))
        if found is None or _value(found["value"]) is None:
            continue
        spelled = "[-_ ]?".join(map(re.escape, re.split("[-_]", last_level(found["key"]).strip("-"))))
        if re.search(rf"(?i)(?<![\w]){spelled}(?![\w])", text) or float(number) == _value(found["value"]):
            setting, reason = f"{found['key']}={found['value']}", in_language(dropped.why, context.language)
            return words("replies.sum-weighed", context.language, setting=setting, reason=reason)
    return ""


def _without_lines(text: str) -> str:
    """Take out what names a line of the log or a rank: its number is no value."""
    return re.sub(
        r"\b(?:L\d+|(?:line|rank|step)s? \d+|(?:instead of|rather than) [\d.,]+\d%?)|第\s*\d+\s*[行步]",
        " ",
        text,
    )


def _change_named(text: str, changes: Sequence[ProposedChange]) -> ProposedChange | None:
    """Give the change whose setting is named, by its key or as people call it; None for another."""
    for change in changes:
        # The key's last level, with dashes, underscores or spaces.
        spelled = "[-_ ]?".join(map(re.escape, re.split(r"[-_]", last_level(change.key))))
        if re.search(rf"(?<![A-Za-z0-9_]){spelled}(?![A-Za-z0-9_-])", text, re.IGNORECASE):
            return change
    if _NAME.search(text):
        return None
    called = [topic for topic in TOPICS if topic.words.search(text)]
    if called:
        named = [
            change
            for change in changes
            if any(topic.keys.search(f"{change.kind} {change.framework} {change.key}") for topic in called)
        ]
        # Two settings of one kind are told apart by their names alone.
        return named[0] if len(named) == 1 else None
    if _BARE.sub("", _NUMBER.sub(" ", text)):
        return None
    return next((change for change in changes if change.proof is not None), next(iter(changes), None))


def _verdict(asked: re.Match[str], change: ProposedChange, context: PromptContext) -> tuple[str, str]:
    """Tell whether a value is one of the setting and keeps to the bounds, and why it is none."""
    version = context.report.version(change.framework)
    spec = context.library.setting(change.framework, change.key, version)
    wanted = float(asked["number"].replace(",", ""))
    unit = (asked["unit"] or "").lower().replace("i", "")
    # A share is also said in percent, a length in thousands, a size in the unit that its key names.
    is_share = spec is not None and spec.type == "float" and spec.max is not None and spec.max <= 1
    if unit == "%" and (is_share or 0 < (_value(change.to) or 0) < 1):
        wanted /= 100
    elif unit == "k":
        wanted *= 1024
    elif unit and not (unit in ("g", "gb") and _GIB.search(change.key.lower())):
        return "unit", ""
    value = int(wanted) if wanted == int(wanted) else wanted
    if spec is not None and (reason := misfit_reason(value, spec)):
        return "misfit", reason
    if change.bounds is None:
        return "compare", ""
    return ("enough" if change.bounds.hold(wanted) else "short"), ""


def _value(value: object) -> float | None:
    """Read a plain number; a switch, words and sizes with units are none."""
    plain = "" if isinstance(value, bool) else str(value).replace(",", "").strip()
    return float(plain) if _PLAIN.fullmatch(plain) else None
