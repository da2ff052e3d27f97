"""What single lines tell by their wording alone.

A count of a part only, a failure with another try, the marks of who quotes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from corpus.log_patterns import Pattern
from ingest.logs.lines import Line, message_of

# Ranks and steps say the same again and again: of so many lines it is remembered what they tell.
REMEMBERED = 256

# Whoever says so goes on without what failed.
_SHRUGGED = re.compile(
    r"(?i)\bignor(?:e|ing|ed) (?:\w+ )?(?:import|error|exception|failure)|import error msg|fall(?:ing|s)? "
    r"?back (?:to|on)|will be (?:disabled|skipped|ignored)|"
    r"continuing (?:without|(?:to|with|on) (?:the )?(?:next|rest|remaining|others?))|"
    r"(?:mov(?:e|ing)|go(?:ing)?) on (?:to|with) (?:the )?(?:next|rest|remaining|others?)|"
    r"继续处理(?:下一|其余|剩余)|^\W{0,3}skip(?:ped|ping)?\b|"
    r"[,;:—-] ?skipp(?:ing|ed)(?: (?:it|this|them))?[ .!]*$|"
    r"non-?fatal|not fatal|inotify_(?:add_watch|init)|(?:error|exception|failure)s? "
    r"(?:is|are|was|were|will be)? ?ignored"
)
# What general words of a failure are beside: the run has another try, does without, counts none, or ends
# since it gets no better.
_GOES_ON = re.compile(
    r"(?i)\b(?:retr(?:y|ies|ied|ying)|re-?start(?:ed|ing)|re-?connect(?:ed|ing)|"
    r"skip(?:ped|ping)|(?<=^\[)skip(?=\])|recover(?:ed|ing)|resum(?:ed|ing)|"
    r"(?:0|no) (?:\w+ )?(?:fail(?:ed|ures?)|errors?|crash\w*)|"
    r"without (?:\w+ ){0,3}(?:fail(?:ed|ing|ures?)|errors?|exceptions?|crash\w*|oom|out of memory)\b|"
    r"(?:did|does|do|has|have)(?: not|n't) (?:fail|crash|run out of memory)(?:ed)?\b|"
    r"(?:fail(?:ed|ures?)|errors?)[ =:]{1,3}0\b|not a git "
    r"repository|(?:no|without(?: any)?|(?:did|has|have) not) (?:\w+ )?improv(?:e|ed|ements?)\b|"
    r"early[ -]?stopping (?:was |is )?(?:triggered|activated|reached)\b)|"
    r"忽略|跳过|重试|重启|恢复|失败(?:数|次数)?[:：= ]{0,2}0\b|没有(?:失败|错误|异常)"
)
# What has not happened: a warning, advice, or what a program looks for.
_SUPPOSED = re.compile(
    r"(?i)\b(?:may|might|could|can|would)(?: \w+){0,2}? (?:cause|lead|result|run|fail|hit|encounter|trigger|"
    r"raise|crash|hang|abort|die|exit|kill|be (?:killed|aborted|terminated)|OOM)|"
    r"\b(?:to|for) (?:avoid|prevent|reduc)(?:e|ing)?\b|\b(?:avoid|prevent)(?:s|ing)\b|"
    r"\b(?:if|in case|whenever) (?:of|you|there|it|the|an?|this|any)\b|"
    r"可能(?:会|导致|引起)|避免|防止|以免|如果|万一"
)
_ENDED = re.compile(r"(?i)(?<!be )\b(?:killed|aborted|terminated|stopped|failed|died|crashed|exited)\b")
_DIED = re.compile(r"(?i)\b(?:killed|aborted|failed|died|dead|crashed|vanished)\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
# Clauses of words, and how many of them a program's message may have.
_CLAUSE = re.compile(r"[\u3400-\u9fff]{4,}[，。！？；：、,]|[a-z]{2,}(?: [a-z']{1,20}){4,}[.!?](?= [A-Z]|$)")
FEW_CLAUSES = 6
# What waits for an end, and what says when something else is.
_AWAITS = re.compile(r"(?:等待|等到|直到|直至|如果|若|一旦)[^，。；！,;]*\Z")
_FORETELLS = re.compile(
    r"(?i)\b(?:when|once|if|unless|until|till|as soon as|whether|will|shall|to be|going to|"
    r"wait(?:s|ing)? for)\b(?![-\]])[^.;!]*\Z"
)
_AROUND = re.compile(r"之?[前后时]|以[前后]")
_EPOCH = re.compile(r"(?i)\bepochs?\b\W{0,4}(\d+(?:\.\d+)?)(?: ?/ ?(\d+))?")
# What a bar counts that comes before a job's work, or serves it.
_PREPARES = re.compile(
    r"(?i)\b(?:load|download|fetch|upload|sav|writ|extract|unpack|unzip|map|filter|tokeni[sz]|pack|truncat|"
    r"cach|index|prepar|process|preprocess|resolv|shard|captur|compil|warm|quantiz|convert|merg|scan|read|"
    r"copy|profil|split|clean)\w{0,7}\b|加载|下载|预处理|分词"
)
_IN_PART = re.compile(r"(?i)\b(?:epoch|batch|eval\w*|val|valid\w*|test\w*)\b")
# What counts, behind an end, what failed of it.
COUNTS_FAILED = (
    r"(?i)(?<![\d.])0*[1-9]\d{0,8} (?:of|out of|/) ?\d{1,9} (?:\w{1,20} ){0,3}"
    r"(?:failed|crashed)\b|"
    r"\bwith (?:\d{1,9} |some )?(?:errors|failures)\b"
)
_PART_FAILED = re.compile(COUNTS_FAILED)
_STATEMENT = re.compile(
    r"\s*(?:\$ )?(?:(?:\w+\.)*(?:print|printf|info|debug|warning|error|log|write|puts|println!?)\(|"
    r"echo |printf )"
)
# What stands before a quoted message, and behind it.
_OPENING = "`*>"
_CLOSING = "`*.,;!)] \t。！"


@lru_cache(REMEMBERED)
def has_many_clauses(body: str) -> bool:
    """Tell whether a line is of several sentences, as people and models write them and no program reports."""
    return len(_CLAUSE.findall(body)) > FEW_CLAUSES


def says_it_continues(body: str) -> bool:
    """Tell whether a line says that its program goes on without what failed."""
    return _SHRUGGED.search(body) is not None


@lru_cache(REMEMBERED)
def goes_on(body: str) -> bool:
    """Tell whether a line that speaks of a failure says too that the run goes on, or that there was none.

    Who died without an error has died.
    """
    found = _GOES_ON.search(body)
    is_without = found is not None and found[0].lower().startswith("without")
    return found is not None and not (is_without and _DIED.search(body, 0, found.start()))


@lru_cache(REMEMBERED)
def happened(body: str) -> str:
    """Give a line without its sentences that speak of a failure that may come, and of none that has."""
    if _SUPPOSED.search(body) is None:
        return body
    parts = _SENTENCE.split(body)
    return " ".join(part for part in parts if _ENDED.search(part) or not _SUPPOSED.search(part))


def counts_part(body: str) -> bool:
    """Tell whether a line's count is of one epoch or evaluation, whose end is not the run's."""
    epoch = _EPOCH.search(body)
    if epoch is None:
        return _IN_PART.search(body) is not None
    return not (epoch[2] and float(epoch[1]) >= float(epoch[2]))


def counts_failed(text: str) -> bool:
    """Tell whether a line that may speak of an end counts what of it failed."""
    return _PART_FAILED.search(text) is not None


def prepares(body: str) -> bool:
    """Tell whether a progress bar's description is of loading, preparing or saving something.

    What counts through an epoch is the work itself, whatever else it is called.
    """
    described = body.split("%|", 1)[0]
    return _PREPARES.search(described) is not None and _EPOCH.search(described) is None


def is_statement(body: str) -> bool:
    """Tell whether a line is a statement of a program or script that prints something, and no output."""
    return _STATEMENT.match(body) is not None


def unquoted(body: str) -> str:
    """Give a message without what ends it as a sentence or closes what was opened before it."""
    return body.rstrip(_CLOSING)


def holds(pattern: Pattern, line: Line) -> bool:
    """Tell whether a pattern that the scanner proposed for a line holds for it.

    Of an anchored one the scanner does not know what stands before the message, nor what follows it. A shell
    writes on where a progress bar left the row open.
    """
    if pattern.kind in ("end", "finish") and (_is_awaited(pattern, line.text) or counts_failed(line.text)):
        return False
    if not pattern.is_anchored:
        return True
    texts = (line.body, line.text, message_of(line.text))
    return any(says(pattern, text) for text in dict.fromkeys(texts))


def _is_awaited(pattern: Pattern, text: str) -> bool:
    """Tell whether a text speaks of an end that is to come or depends, or in Chinese of what is around it."""
    found = pattern.compiled.search(text)
    if found is None:
        return False
    if text.isascii():
        return _FORETELLS.search(text[: found.start()]) is not None
    return bool(_AWAITS.search(text[: found.start()]) or _AROUND.match(text, found.end()))


def says(pattern: Pattern, text: str) -> bool:
    """Tell whether a text is what a pattern finds, as it stands or quoted.

    Who quotes a message may end it as a sentence, or close what it opened.
    """
    forms = (text, unquoted(text), unquoted(text.lstrip(_OPENING)))
    return any(pattern.compiled.search(form) for form in dict.fromkeys(forms))
