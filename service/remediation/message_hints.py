"""What a failing message itself advises: the settings that it names, which way to move them, and to what.

`hinted_settings` looks for them in the job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from service.remediation.chinese_advice import in_english
from service.remediation.stated_rows import NEEDING
from service.remediation.worded_names import MOST_WORDS, spellings, words_naming

Way = Literal["up", "down", "on", "off", "set", "denied", "named", "checked"]

# A flag, a variable or dotted key, one word in quotes, alone or with its value (`packing=False`), or one that
# is called an option; never part of a path, a call or a module's name.
_NAME = re.compile(
    r"(?<![\w-])--[A-Za-z][\w-]{1,60}(?:\.[\w-]{1,40}){0,3}"
    r"|(?<![\w/.@-])(?:self\.)?(?:args|cfg|opts?|hparams)\.[a-z]\w{2,60}(?![\w/(.-])"
    r"|(?<![\w/.@-])[A-Za-z][A-Za-z0-9]{0,40}(?:_[A-Za-z0-9]{1,40}){1,9}(?:\.\w{1,60}){0,4}(?![\w/(-])"
    r"|(?<![\w/.@-])[a-z][a-z0-9]{1,20}(?:\.[a-z]\w{1,40}){0,3}\.[a-z][a-z0-9]{0,40}(?:_[a-z0-9]{1,40}){1,6}"
    r"(?![\w/(.-])"
    r"|(?<=[`'\"])(?<!\w\([`'\"])[a-z][\w.]{2,80}(?=[`'\"]|=[\w'\"]|: ['\"]?\w)"
    r"|(?<![\w/.@-])(?!(?:the|this|that|any|each|which|first|last|next|other|same|new|one|valid)\b)"
    r"[a-z]{3,40}(?= option\b)"
)
_VERBS: tuple[tuple[Way, str], ...] = (
    ("up", r"increas(?:e|ing)|rais(?:e|ing)|enlarg(?:e|ing)|extend(?:ing)?"),
    ("down", r"decreas(?:e|ing)|reduc(?:e|ing)|lower(?:ing)?|shrink(?:ing)?|limit(?:ing)?"),
    (
        "off",
        r"disabl(?:e|ing)|(?:turn|switch)(?:ing)? off|remov(?:e|ing)|(?:omit|unset)(?:ting)?|drop(?:ping)?",
    ),
    ("on", r"enabl(?:e|ing)|turn(?:ing)? on|switch(?:ing)? on"),
    (
        "set",
        (
            r"set(?:ting)?|pass(?:ing)?|us(?:e|ing)|specify(?:ing)?|provid(?:e|ing)|add(?:ing)?|"
            r"adjust(?:ing)?|chang(?:e|ing)|export(?:ing)?|"
            r"(?:re)?(?:run|launch|start|serv)(?:n?ing|e)? (?:\w{1,12} )?with"
        ),
    ),
)
_VERB = re.compile("|".join(rf"\b(?P<{way}>(?:{words}))\b(?! in\b)" for way, words in _VERBS), re.IGNORECASE)
# What stands before a verb that advises: the sentence's begin, or a word that leads over to it.
_ADVISING = re.compile(
    r"(?:^|[.;:,!?(]|\b(?:please|or|and|try|consider|by|to|should|must|can|could|may|either|then|just|"
    r"instead|otherwise|else|recommend(?:ed)?|suggest|"
    r"requires?|need|also|alternatively|do|explicitly))\s*[`'\"]?$",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?:\bnot|n't|\bnever|\bcannot|\bunable|\bfailed|\bfails|\btr(?:ied|ying)|\battempt(?:ed|ing)?|"
    r"\bwithout|\bable|\ballowed|\bsupported)(?:\s+\w+)?\s+(?:to\s+)?$",
    re.IGNORECASE,
)
_LISTED = re.compile(
    r"^[`'\"\s,/]*(?:\([^()]{0,80}\)\s*)?(?:,?\s*(?:or|and|and/or)\b)?\s*(?:the\s+)?[`'\"\s]*$", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[A-Z`'\"(-])|\n")
# A sentence that helps to look at the failure, or to hide it, mends nothing.
_LOOKING = re.compile(
    r"(?i)\bdebug|\bfor (?:more )?(?:details|information)|\bmore information|\bto see\b|stack "
    r"?trace|suppress|silence|\bto hide\b|\bthis warning\b|verbos|"
    r"at your own risk|may cause system|reserved but unallocated|fragmentation|\bsee (?:https?:|the doc)"
)
# Advice for the run that saves, which mends nothing where its checkpoint is read by now.
_FOR_SAVING = re.compile(r"(?i)\b(?:during|when|while|before|at) (?:\w{1,20} ){0,2}sav(?:ing|e)\b(?! time)")
_AT_LOADING = re.compile(r"(?i)\b(?:resum(?:e|ing)|load(?:ing|ed)?|from (?:the |a )?checkpoint)\b")
_LOOKING_NAME = re.compile(
    r"(?i)DEBUG|VERBOS|BLOCKING|FULL_ERROR|LOG_?LEVEL|SHOW_CPP|_DSA$|TRACE|ALLOC_CONF$|LD_LIBRARY_PATH"
)
# By which a library or a script is loaded into each program: no message is a reason for that.
_PRELOADING = re.compile(r"(?i)LD_(?:PRELOAD|AUDIT)|BASH_ENV|PYTHONSTARTUP")
_VALUE = re.compile(
    r"^[`'\"]?\s*(?:={1,2}\s*|:\s+(?=(?i:true|false|null)\b)|\s+to\s+(?=[`'\"\d]|True\b|False\b|None\b))"
    r"[`'\"]?(?P<value>[A-Za-z0-9][\w.-]{0,40}?(?:\([^()\s]{0,40}\))?)[`'\"]{0,2}(?=[\s,;)]|\.(?!\w)|$)"
)
# The same of a key in a file, in quotes together with it: `type: chat`.
_FILED_VALUE = re.compile(r"^: ['\"]?(?P<value>[A-Za-z0-9][\w./-]{0,40}(?:\.\*)?)['\"]?(?=[`'\"])")
_FLAG_VALUE = re.compile(r"^\s+[`'\"]?(?P<value>[A-Za-z0-9][\w-]{0,40})[`'\"]?(?=[.,;)]|$)")
_APPENDED = re.compile(r"\[type=\w+.*$", re.DOTALL)
# What holds a program's settings in its code; their own names begin behind it.
_HOLDER = re.compile(
    r"^(?:self\.)?(?:(?:\w{1,20}_)?args|cfg|config|opts?|hparams)\.(?=[a-z])|^self\.(?=[a-z])"
)
# What a sentence asks of the name that stands before: it must be set, and to what.
_ASKED = re.compile(
    r"^[`'\"]?\s*(?:must be|(?:has|have|needs?) to be) (?:set|specified|given|provided|passed|defined)\b"
    r"(?: to (?:be )?[`'\"]?(?P<value>True|False|\d[\w.-]{0,20}|(?<=[`'\"])[\w.-]{1,40})[`'\"]?"
    r"(?=[\s,.;)]|$))?"
    r"|^[`'\"]?\s*(?:argument |option |flag |parameter |environment variable |variable )?"
    r"(?:(?:is|are|was) (?:required|mandatory)\b(?! (?:by|if|when|for the)\b)"
    r"|(?:is |are |was |were )?not (?:set|specified|provided|given|defined|found)\b"
    r"|to be (?:set|specified|provided|given|defined)\b)"
)
# What a sentence needs of the name behind it, with its value: `requires --dtype bfloat16`.
_NEEDED = re.compile(
    r"(?:\brequires?|\bneeds?|\bonly (?:supports?|works? with|supported with)|\bmust (?:use|have)) "
    r"(?:the )?(?:option |flag |argument |parameter )?[`'\"]?$",
    re.IGNORECASE,
)
# What a sentence refuses of the name that stands before, or behind: a switch is to be off then.
_REFUSED = re.compile(
    r"^[`'\"]?(?:\s*=\s*True\b)?[`'\"]?,? (?:(?:option|flag|argument|mode) )?(?:(?:is|are) (?:currently )?"
    r"(?:not (?:yet |currently )?(?:supported|compatible|allowed|available)|incompatible|unsupported)"
    r"|(?:can ?not|can't|must not|should not) be (?:set|used|enabled|specified|combined|true)\b"
    r"|conflicts with)",
    re.IGNORECASE,
)
_REFUSING = re.compile(
    r"(?:\b(?:does|do|are|is)(?: not|n't)(?: yet)? (?:support|compatible with|allow|work with)(?:ed|ing)?"
    r"|\b(?:can ?not|can't) (?:use|set|specify|enable)|\bincompatible with) (?:the )?[`'\"]?$",
    re.IGNORECASE,
)
# The one value that a sentence leaves to a name whose others it refuses.
_NO_OTHER = re.compile(
    r"^[`'\"]?,? (?:(?:values?|set|to be) )?(?:different (?:than|from|to)|other than|!=) [`'\"]?"
    r"(?P<value>True|False|\d[\w.]{0,20}|(?<=[`'\"])\w{1,30})[`'\"]?(?=[\s,.;)(]|$)"
    r"(?P<denied>\)? (?:is|are) (?:\w+ )?not\b)?"
)
# What is used in a way that the sentence says does not work is its subject, and no advice.
_SUBJECT = re.compile(
    r"(?i)(?:[\w.]+(?:Error|Exception): )?\W*(?:using|setting|passing|enabling|specifying|combining)\b"
    r"[^.:;]{1,100}?\b(?:(?:is|are) (?:\w+ly )?(?:not|impossible|incompatible|unsupported)|cannot|can't|"
    r"does not|doesn't)\b"
)
_BY_MEANS = re.compile(r"(?i) (?:it|this|them|that) (?:with|by|via|using|through)\b")
# So much of a message is read, and so far before a name its verb may stand.
_LONGEST_READ, _REACH = 4000, 48
# The bounds that a message gives for a setting, right behind its name.
_RANGE = re.compile(
    r"^[`'\"]?\s*(?:must be |should be |has to be |may be |values? )?(?:of |from |between |in (?:the "
    r"range )?[\[(]?)?\s*(?P<low>\d+)\s*(?:through|to|and|-|,|\.\.)\s*(?P<high>\d+)(?![\w.]*%)"
)
_ASKS = r"^[`'\"]?(?:\s*\([^)]{1,20}\))?\s*(?:must|should|has to|needs to|can)"
_IS, _IS_NOT = rf"{_ASKS} be", rf"{_ASKS} ?not(?: be)?"
# The bound itself, or what has it: `at least the prompt length 3000`.
_BY = r" (?:the )?(?:[a-z]+ ){0,3}?"
_MOST = re.compile(
    rf"(?:{_IS} (?:at most|no more than|<=|less than or equal to)"
    rf"|{_IS_NOT} (?:exceed|greater than|larger than|more than)){_BY}(?P<high>\d+)\b"
    rf"|{_IS} (?:less than|smaller than|below|lower than){_BY}(?P<under>\d+)\b"
)
_LEAST = re.compile(
    rf"(?:{_IS} (?:at least|no less than|>=|greater than or equal to)"
    rf"|{_IS_NOT} (?:less than|smaller than|below|lower than)){_BY}(?P<low>\d+)\b"
    rf"|{_IS} (?:greater than|larger than|more than|above){_BY}(?P<over>\d+)\b"
)
# A comparison, as checks are told: `num_workers > 0`.
_COMPARED = re.compile(r"^[`'\"]?\s*(?P<sign>[<>]=?)\s*(?P<number>\d{1,9})(?![\w.%])")
# Two settings that a check compares, each with its value: `max_num_seqs (8) is smaller than batch_size (16)`.
_PAIR = re.compile(
    r"[`'\"]?(?P<one>--?[A-Za-z][\w-]{1,60}|[A-Za-z]\w*_\w{1,60}(?:\.\w{1,60}){0,4})[`'\"]?"
    r" ?(?:\(|= ?|: ?|\(= ?)(?P<first>\d{1,9})\)?,? (?:\w+ ){0,4}(?:than|exceeds?|at (?:least|most)|[<>]=?)"
    r" (?:or equal to |(?:the )?(?:value of )?)?"
    r"[`'\"]?(?P<other>--?[A-Za-z][\w-]{1,60}|[A-Za-z]\w*_\w{1,60}(?:\.\w{1,60}){0,4})[`'\"]?"
    r" ?(?:\(|= ?|: ?|\(= ?)(?P<second>\d{1,9})\b"
)
# A number that is over or under the setting which limits it: `LoRA rank 32 is greater than max_lora_rank 16`.
_LIMIT = re.compile(
    r"(?<![\w.-])(?P<number>\d{1,9})\)?,? (?:\w+ ){0,2}?"
    r"(?:(?P<over>(?:greater|larger|longer|more|higher|bigger) than|exceed(?:s|ed|ing)?|above|over|beyond)"
    r"|(?P<under>(?:smaller|lower|less|fewer|shorter) than|below|under))"
    r" (?:or equal to )?(?:the )?(?:\w+ (?:value |limit )?of )?(?:configured |allowed |present |current )?"
    r"[`'\"]?(?P<name>--[A-Za-z][\w-]{1,60}|[A-Za-z][A-Za-z0-9]*_\w{1,60}(?:\.\w{1,60}){0,4})"
    r"(?![\w/(]|\.\w)"
)
# Words behind a verb that may be a setting's name, written in words: `Decrease GPU memory utilization`.
_PHRASE = re.compile(r"\s+(?:the |your )?(?P<words>[A-Za-z][A-Za-z0-9-]*(?: [A-Za-z][A-Za-z0-9-]*){1,5})")
# One word is a name where the message asks for it, and nothing else is said.
_MISSING = re.compile(
    r"(?i)\bplease (?:specify|provide|input|give|set) (?:the |a |an |your )?(?:training |input )?"
    r"(?P<word>[a-z]+)(?= (?:for|path|name|file|to|in|when|via)\b|[.!]?$)"
)
# What an object lacks, by its class: "`Trainer` that has no logger".
_OF_OWNER = re.compile(
    r"`(?P<owner>[A-Z]\w{2,40})`,? (?:that |which )?(?:has|with) no (?P<word>[a-z]{3,30})\b"
)


@dataclass(frozen=True)
class NamedSetting:
    """A setting that a message names.

    It has what the message says to do with it, and the value or the bounds that it gives, if any.
    """

    name: str
    way: Way
    value: str = ""
    low: int | None = None
    high: int | None = None


def read_hints(message: str) -> list[NamedSetting]:
    """Read the names of a message that it advises to change, and those that it only names.

    What a run should have saved with helps no run that loads that checkpoint.
    """
    told = NEEDING.sub(r"\g<needs>", _APPENDED.sub("", in_english(message[:_LONGEST_READ])))
    advised = [
        named
        for sentence in _SENTENCE.split(told)
        if not _LOOKING.search(sentence) and not (_FOR_SAVING.search(sentence) and _AT_LOADING.search(told))
        for named in _of(sentence)
    ]
    return [*advised, *_compared(told), *_limited(told)]


def read_phrases(message: str) -> Iterator[tuple[NamedSetting, ...]]:
    """Read what a message advises to change in words alone.

    Each has the names that it may have, the longest first.
    """
    for sentence in _SENTENCE.split(_APPENDED.sub("", message)):
        for verb in () if _LOOKING.search(sentence) else _VERB.finditer(sentence):
            phrase = _PHRASE.match(sentence, verb.end())
            way = _way(sentence, verb.end(), verb.start()) if phrase else None
            if phrase and way in ("up", "down", "on", "off"):
                found = phrase["words"].lower().replace("-", "_").split()[:MOST_WORDS]
                names = ("_".join(found[:count]) for count in range(len(found), 1, -1))
                yield tuple(NamedSetting(name, way) for full in names for name in spellings(full))
        if missing := _MISSING.search(sentence):
            yield (NamedSetting(missing["word"].lower(), "set"),)


def read_words(message: str, is_setting: Callable[[str], bool]) -> Iterator[tuple[NamedSetting, ...]]:
    """Read the settings that a message names in words anywhere: `does not work with gradient checkpointing`.

    Each has the spellings that it may have. `is_setting` tells which names any framework has, so that only
    such words are looked at.
    """
    for sentence in _SENTENCE.split(_APPENDED.sub("", message)):
        if _LOOKING.search(sentence):
            continue
        for name, begin, end in words_naming(sentence, is_setting):
            way = _way(sentence, begin, 0)
            is_denied = _REFUSED.match(sentence[end:]) or _REFUSING.search(sentence, 0, begin)
            told = way or ("denied" if is_denied else "named")
            yield tuple(NamedSetting(each, told, "", *_bounds(sentence[end:])) for each in spellings(name))
        for match in _OF_OWNER.finditer(sentence):
            yield (NamedSetting(f"{match['owner']}.{match['word']}", "set"),)


def _limited(message: str) -> Iterator[NamedSetting]:
    """Give the setting that a number of the message is beyond, with what it must be to allow that."""
    for found in () if _PAIR.search(message) else _LIMIT.finditer(message):
        number = int(found["number"])
        if found["over"]:
            yield NamedSetting(found["name"], "up", low=number)
        else:
            yield NamedSetting(found["name"], "down", high=number)


def _compared(message: str) -> Iterator[NamedSetting]:
    """Give both ways out of a comparison that fails: the less raised to the greater, or the reverse."""
    for found in _PAIR.finditer(message):
        first, second = int(found["first"]), int(found["second"])
        if first != second:
            less, greater = ("one", "other") if first < second else ("other", "one")
            yield NamedSetting(found[less], "up", low=max(first, second))
            yield NamedSetting(found[greater], "down", high=min(first, second))


def _of(sentence: str) -> Iterator[NamedSetting]:
    end, way, taken = 0, None, 0
    for match in _NAME.finditer(sentence):
        if match.start() < taken:
            continue  # a value that is itself a name: `type: chat_template`
        lead = sentence[end : match.start()]
        # A list shares its verb: lower `this` or `that`.
        way = way if way and end and _LISTED.match(lead) else _way(sentence, match.start(), end)
        end = match.end()
        if not _LOOKING_NAME.search(match.group()) and not _PRELOADING.search(match.group()):
            rest = sentence[end:]
            name = _HOLDER.sub("", match.group())
            found = _VALUE.match(rest) or (_FLAG_VALUE.match(rest) if name.startswith("--") else None)
            is_quoted = sentence[: match.start()].endswith(("`", "'", '"'))
            found = found or (_FILED_VALUE.match(rest) if is_quoted else None)
            asked = None if way else _ASKED.match(rest)
            is_denied = _REFUSED.match(rest) or _REFUSING.search(sentence, 0, match.start())
            left = _NO_OTHER.match(rest)
            left = left if left and (is_denied or left["denied"]) else None
            # With blanks around its sign an equation tells a state, and no option as one writes it.
            is_written = found is not None and not found[0].startswith(" = ")
            is_needed = is_written and _NEEDED.search(sentence, 0, match.start()) is not None
            way = way or ("set" if asked or left or is_needed else "denied" if is_denied else None)
            told = left or found if asked is None or asked["value"] is None else asked
            taken = end + found.end() if found else taken
            value = (told["value"] or "").rstrip(".") if way not in (None, "denied") and told else ""
            yield NamedSetting(name, way or "named", value, *_bounds(rest))


def _way(sentence: str, begin: int, since: int) -> Way | None:
    """Tell what the sentence says to do with the name that begins there.

    The nearest verb that advises counts.
    """
    if (subject := _SUBJECT.match(sentence)) and begin < subject.end():
        return "denied"
    for verb in reversed(list(_VERB.finditer(sentence, max(since, begin - _REACH), begin))):
        if ":" in sentence[verb.end() : begin]:
            continue  # what stands behind a colon is another part: `reduce the prompt: max_len is 8`
        before = f"{'-' * (verb.start() > _REACH)}{sentence[max(0, verb.start() - _REACH) : verb.start()]}"
        if _ADVISING.search(before) and not _DENIED.search(before):
            if _BY_MEANS.match(sentence, verb.end()):
                return "set"
            return next(way for way, _ in _VERBS if verb[way])
    return None


def _bounds(rest: str) -> tuple[int | None, int | None]:
    """Give the least and the greatest value that a message allows for the name before."""
    if found := _COMPARED.match(rest):
        number, strict = int(found["number"]), len(found["sign"]) == 1
        return (number + strict, None) if found["sign"][0] == ">" else (None, number - strict)
    if found := _RANGE.match(rest):
        low, high = int(found["low"]), int(found["high"])
        return (low, high) if low < high else (None, None)
    most, least = _MOST.match(rest), _LEAST.match(rest)
    least_allowed = int(least["low"] or int(least["over"]) + 1) if least else None
    return least_allowed, int(most["high"] or int(most["under"]) - 1) if most else None
