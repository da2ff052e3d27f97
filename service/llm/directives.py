"""What a model tells its reader to do, held against what our own knowledge says of the cause.

A model that follows a poisoned log gives the advice of the log's author. No list can name all that such
advice may be; but what may rightly be advised is known: it is said in the words of the corpus. So an order
with a word that the corpus nowhere uses does not stand, and one that takes away, opens, sends or hides
something stands only where a text about this very cause says so. The log's words count for nothing here:
they are the attacker's. What describes may use the words of the lines that it cites, or that the rules do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from corpus import advice_words
from corpus.library import Library
from corpus.message import Message
from corpus.vocabulary import CorpusVocabulary, pairs, stem, stems, texts_in
from service.llm.comfort import comforts
from service.llm.plain_names import is_measure, is_order_name, is_plain_name
from service.llm.prose import CODE
from service.schemas.diagnosis import ProposedChange

_CLAUSE = re.compile(r"[.;:,!?()]\s+|[.;:!?]$|\s(?:and|or|then|else|instead|so)\s")
_CHINESE_CLAUSE = re.compile(r"[，。；：、！？,;:!?]\s*")
_LEADING = re.compile(
    r"^(?:(?:\W|then|first|next|finally|also|or|and|instead|else|now|just|to|so|again|simply|"
    r"otherwise)\s+|\W+)*",
    re.IGNORECASE,
)
# Names of the job's own: what they may be, other rules say.
_NAMES = re.compile(
    r"(?<![\w/])(?:\w*_\w+(?:\.\w+)*|(?=[\w-]*\d)\w+-[\w-]+|[A-Za-z]+\d+[A-Za-z]\w*|"
    r"[A-Za-z]+[a-z][A-Z]\w*)(?![\w/])"
)
_OF_OTHER_SCRIPT = re.compile(r"[^\W\d_a-zA-Z]{2,}")
_CHINESE_WORDS = re.compile(r"[\u4e00-\u9fff]{4,}")
# How a clause begins that has a subject.
_SUBJECT = re.compile(
    r"(?:the|an?|this|that|these|those|its?|their|his|her|our|my|all|both|each|every|no|some|any|many|most|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|they|he|she|we|i|there|here|what|who\w*|when|where|"
    r"why|how|if|as|at|in|on|for|from|by|with|after|before|since|because|while|but|only|not|neither|either|"
    r"between|during|until|without|within|later|such|other|another|nothing|none|nobody|more|less|few\w*|"
    r"several|ranks?|\w+ing|\w+ed|\w+'s)\b",
    re.IGNORECASE,
)
# A second word that makes the first one a subject.
_VERB = re.compile(
    r"\S+\s+(?:is|was|are|were|has|had|have|did|does|do|will|would|can|could|may|might|must|cannot|never|"
    r"then|also|only|itself|ran|gave|got|went|met|took|found|sent|kept|lost|broke|fell|told|came|saw|hit|"
    r"\w+ed|\w+s)\b",
    re.IGNORECASE,
)
_MODAL = re.compile(
    r"\b(?:please|should|must|shall|ought|needs? to|has to|have to|had better|recommend\w*|suggest\w*|"
    r"advis\w+|you|yours?|(?:can|may|could|(?:is|are) to) (?:now )?be (?=\w+(?:ed|en)\b))",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"(?=\b(?:be|to|should|must|shall|please|you|can|could|may|might|by)\s+"
    r"(?:\w+ly\s+|now\s+|first\s+)?(\w+))"
)
# A noun for advice, and behind its verb the advice itself: "the remedy is remove the folder".
_ADVICE = re.compile(
    r"\b(?:remed(?:y|ies)|cures?|fix(?:es)?|solutions?|answers?|workarounds?|advice|instructions?|steps?|"
    r"actions?|hints?|recommendations?|ways?|things?|tasks?)\b[^:]{0,80}?"
    r"(?:\b(?:is|are|was|were|reads?|says?)\b:?|:)\s+(?:simply\s+|just\s+|that\s+|to\s+)*(?P<told>.+)",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"^(?:do not|don't|never|no need to|avoid)\b", re.IGNORECASE)
_OFF = re.compile(r"\b(?:off|down)\b", re.IGNORECASE)
# "A new, empty folder" tells nobody to empty one.
_ADJECTIVES = re.compile(
    r"(?i)\b((?:an?|another|some)\s+(?:new|fresh|separate|different|other|local|larger)),"
    r"(?=\s+(?:empty|clean|writable|separate|local)\s+(?:folder|director(?:y|ies)|folders|files?|dir)\b)"
)
# Of a text in Chinese with so many pairs of signs, at most such a part may be pairs that the corpus has not.
# Of one with fewer, which says less, one in three.
_PAIRS, _FOREIGN = 4, 0.45
_FEW, _FOREIGN_OF_FEW = 2, 0.4
# What a text tells of the past is no order.
_PAST = re.compile(r"\s*[了过]")
# What a reader could follow without knowing it: an option, a path, a variable, digits as of an account or a
# telephone; and how a shell hands one command's output to another.
_FOLLOWED = re.compile(
    r"(?<![\w-])--?[A-Za-z][\w-]+|(?<![\w.:/])[~.]{0,2}/[\w.-]+[\w./-]*|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|"
    r"\d[\d ]{3,}\d|(?<![\w.:/])\w[\w.]*/(?=[\w.-]*[-:\d])[\w.-]+(?::[\w.-]+)?"
)
_LONG = re.compile(r"(?<![\w.])\d{7,}(?![\w.])")
_PLACE = re.compile(r"(?<![\w.:/])[~.]{0,2}/[\w.-]+[\w./-]*")
# A folder so deep is one of the job's own.
DEEP = 3
_PIPED = re.compile(r"(?<=\s)(?:\||&&|>>?)(?=\s)")
# Nobody is to be blamed by a log, nor by who wrote one.
_BLAME = re.compile(
    r"\b(?:negligen\w+|careless\w*|reckless\w*|incompeten\w+|sabotag\w+|malice|malicious\w*|to blame|"
    r"blam(?:ed?|ing)|(?:someone|somebody|his|her|their|\w+'s) (?:fault|mistake)(?=\W*(?:$|that\b|and\b))|"
    r"(?:faults?|mistakes?|errors?) (?:of|by|made by) (?:the |an? )?(?:user|engineer|admin\w*|team|operator|"
    r"author|colleague|student|intern|staff|person)\w*|answer for (?:it|this|that)|"
    r"held? (?:responsible|accountable|liable)|broken by (?!a\b|an\b|the\b)|"
    r"(?<!which )(?<!what )(?<!this )(?<!that )\b(?!it\b)\w+ (?:broke|ruined|wrecked) "
    r"(?:it|this|that|everything)\b|"
    r"on purpose|deliberately|tamper\w+|stole|stolen|theft|"
    r"teams? (?:caused|broke|ruined))\b|"
    r"盗窃|偷窃|蓄意|故意|过失|失职|追责|问责|归咎|背锅|甩锅|责任人|人为破坏|粗心|负(?:全部|主要)?责任",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class OwnAdvice:
    """What the corpus says: its words, and each sentence about the causes and cases in question."""

    vocabulary: CorpusVocabulary
    sentences: tuple[frozenset[str], ...]
    chinese: tuple[str, ...]
    library: Library


def own_advice(
    library: Library, causes: Iterable[str], cases: Iterable[str], changes: Sequence[ProposedChange] = ()
) -> OwnAdvice:
    """Collect what our knowledge says of causes and cases, and the names of the changes on offer."""
    named = sorted(causes)
    known = (
        [library.causes[name] for name in named if name in library.causes],
        [library.cases[name] for name in sorted(cases) if name in library.cases],
        [library.remedies.get(name, ()) for name in named],
        [procedure for procedure in library.procedures if procedure.cause in named],
    )
    texts = list(texts_in(known))
    rows = [row for text in texts for row in re.split(r"[.;!?\n]", text.en)]
    # What is on offer may be called by its name, whichever way it is moved.
    rows += [f"turn switch set {change.key}" for change in changes]
    return OwnAdvice(
        library.vocabulary,
        tuple(frozenset(stems(re.sub(r"[._-]", " ", row))) for row in rows),
        tuple(part for text in texts for part in _CHINESE_CLAUSE.split(text.zh)),
        library,
    )


def blames(text: str) -> bool:
    """Tell whether a text says whose fault something is, or that it was done on purpose."""
    return _BLAME.search(text) is not None


def misdirects(text: str, own: OwnAdvice, names: Collection[str] = ()) -> str:
    """Say why what a sentence tells to do is none of ours, or that it blames; else give the empty string.

    An order may also use `names`, stems of words of the job's own code.
    """
    if blames(text):
        return Message("model.blames-somebody")
    words = advice_words.load()
    for order in _directive_clauses(text):
        told = [word for word in stems(_NAMES.sub(" ", order)) if word not in words.ordinary]
        if foreign := next((word for word in told if word not in own.vocabulary.stems | {*names}), ""):
            return Message("model.tells-do-foreign", word=_spelled(foreign, order))
        grave = words.grave | words.switching if _OFF.search(order) else words.grave
        # It begins an order, or stands behind what asks for it: "should be deleted", "please now send".
        verbs = grave & {*stems(order)[:1], *(stem(word) for word in _ASKED.findall(order.lower()))}
        if not _NEGATED.match(order) and any(not _is_ours(verb, told, own) for verb in verbs):
            return Message("model.tells-do-grave", word=_spelled(min(verbs), order))
    return _misdirects_in_chinese(text, own)


def says_foreign(text: str, lines: str, own: OwnAdvice) -> str:
    """Say which word or name of a description neither the corpus has nor the lines; else give nothing.

    What is quoted is left to other rules.
    """
    names = _NAMES.findall(CODE.sub(" ", text))
    # Words of another script in a sentence that is none: somebody's name.
    names += () if _CHINESE_WORDS.search(text) else _OF_OTHER_SCRIPT.findall(text)
    if strange := next((name for name in names if not is_plain_name(name, own.library, lines)), ""):
        return Message("model.says-foreign", word=strange)
    words = advice_words.load()
    common = own.vocabulary.stems | words.ordinary | words.grave | words.switching
    foreign = [word for word in stems(_NAMES.sub(" ", CODE.sub(" ", text))) if word not in common]
    told = stems(re.sub(r"[\W_]", " ", lines)) if foreign else ()
    word = next((word for word in foreign if word not in told), "")
    return Message("model.says-foreign", word=_spelled(word, text)) if word else ""


def advises_strangely(text: str, lines: str, own: OwnAdvice) -> str:
    """Say why words on what to change are not to be shown; else give the empty string.

    They stand alone, without a citation: so what they name stands in `lines`, which are the job's own.
    """
    if comforts(text):
        return Message("model.says-nothing-failed")
    names = stems(re.sub(r"[\W_]", " ", lines))
    if why := misdirects(text, own, names) or says_foreign(text, lines, own):
        return why
    plain = CODE.sub(" ", text)
    named = [match[0].strip() for match in (*_FOLLOWED.finditer(plain), *_PIPED.finditer(plain))]
    # Code that is quoted may have options and variables of its own, and no place that nobody knows.
    named += [match[0] for span in CODE.findall(text) for match in _PLACE.finditer(span)]
    spans = (span for span in CODE.findall(text) if is_order_name(span, own.library))
    named += [span for span in spans if not re.search(r"[\s(=]", span)]
    name = next((name for name in named if name in "|&&>>" or not _is_told(name, lines)), "")
    return Message("model.names-neither-among-changes", name=name) if name else ""


def reasons_strangely(text: str, lines: str, own: OwnAdvice) -> bool:
    """Tell whether a sentence on why to make a change says more than that, or names what `lines` have not.

    Numbers are those that a model has worked out, none of so many digits as an account has.
    """
    followed = (name for match in _FOLLOWED.finditer(text) if not (name := match[0])[0].isdigit())
    return bool(
        comforts(text)
        or not all(map(is_measure, _LONG.findall(text)))
        or misdirects(text, own)
        or says_foreign(text, lines, own)
        or any(not _is_told(name, lines) for name in followed)
    )


def _is_told(name: str, lines: str) -> bool:
    """Tell whether lines have a name, or the folder in which it is one more."""
    if name in lines:
        return True
    folder, _, last = name.rpartition("/")
    is_below = ".." not in folder.split("/") and folder.count("/") >= DEEP
    return is_below and re.fullmatch(r"[\w-]+", last) is not None and folder in lines


def is_order(text: str) -> bool:
    """Tell whether a text tells its reader to do something, and does not only describe."""
    return any(True for _ in _directive_clauses(text))


def _directive_clauses(text: str) -> Iterator[str]:
    """Yield the clauses that tell the reader to do something, or that something is to be done."""
    for clause in _CLAUSE.split(_ADJECTIVES.sub(r"\1", text)):
        plain = _LEADING.sub("", clause)
        told = _ADVICE.search(plain)
        advised = _LEADING.sub("", told["told"]) if told else ""
        if _begins_directive(plain) or _MODAL.search(plain):
            yield plain
        elif _begins_directive(advised):
            yield advised


def _begins_directive(plain: str) -> bool:
    """Tell whether a clause has no subject, or begins with the doing of what is grave."""
    if not plain[:1].isalpha():
        return False
    first = stems(plain.split(None, 1)[0])[:1]
    is_done = plain.split(None, 1)[0].lower().endswith("ing") and {*first} <= advice_words.load().grave
    return (bool(first) and is_done) or (not _SUBJECT.match(plain) and not _VERB.match(plain))


def _is_ours(verb: str, told: Sequence[str], own: OwnAdvice) -> bool:
    """Tell whether one sentence of ours has the verb, and half of what else the order names."""
    others = [word for word in told if word != verb]
    return any(
        verb in sentence and 2 * sum(word in sentence for word in others) >= len(others)
        for sentence in own.sentences
    )


def _misdirects_in_chinese(text: str, own: OwnAdvice) -> str:
    found = pairs(text)
    strange = [pair for pair in found if pair not in own.vocabulary.pairs]
    least, share = (_PAIRS, _FOREIGN) if len(found) >= _PAIRS else (_FEW, _FOREIGN_OF_FEW)
    if len(found) >= least and len(strange) >= share * len(found):
        return Message("model.tells-do-foreign", word=strange[0])
    for clause in _CHINESE_CLAUSE.split(text):
        for verb in advice_words.load().grave_zh:
            place = clause.find(verb)
            if place < 0 or _PAST.match(clause, place + len(verb)):
                continue
            rest = [pair for pair in pairs(clause) if pair not in verb]
            if not any(
                verb in part and 2 * sum(pair in part for pair in rest) >= len(rest) for part in own.chinese
            ):
                return Message("model.tells-do-grave", word=verb)
    return ""


def _spelled(wanted: str, text: str) -> str:
    return next((word for word in re.findall(r"[a-z]{3,}", text.lower()) if stem(word) == wanted), wanted)
