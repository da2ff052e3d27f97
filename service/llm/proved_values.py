"""Which values of a model's own something else speaks for, and which are its word alone.

A log's author can word what a model proposes for a setting. So a value is passed on where something other
than a row of the log speaks for it: the catalogue's choices, the same setting or a choice in the job's own
files, the form of the present value, words of which settings' values are made, a number of a size that
settings have. Of any other the setting is told, and the value is left to whoever reads it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection

from corpus import advice_words
from corpus.keys import canonical, last_level
from corpus.library import chinese_guidance
from corpus.vocabulary import pairs, stem, stems
from ingest.configfiles.remarks import without_remarks
from ingest.configfiles.settings import Setting
from ingest.logs.report import CrashReport
from service.llm.directives import OwnAdvice
from service.llm.plain_names import DIGITS_OF_NAME, MOST_DIGITS, is_measure, is_plain_name
from service.remediation.free_proposals import INSTALL
from service.remediation.setting_values import is_guidance

# Parts of a value that is a name, and digits in one of them.
MOST_PARTS, DIGITS_OF_PART = 5, 4
# Of the pairs of signs in a value's Chinese words, at most such a part may be none of ours.
FOREIGN_PAIRS = 0.2
_NUMBER = re.compile(
    r"(?i)[-+]?(?P<whole>\d+)(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?\s?(?:[kmgt]?i?[bhms%]?|ms|min)"
)
_VERSION = re.compile(
    r"(?:[=<>!~]=?=?|v)?\s*\d{1,4}(?:\.(?:\d{1,4}|\*))*(?:(?:a|b|rc|\.?post|\.?dev)\d{1,8})?(?:\+\w{2,8})?"
)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z]+|\d+|[^\W\d_]")
_DIGITS = re.compile(r"\d{1,6}")
# How words in place of a value begin: with what they name, a measure, or what is taken away.
_VALUE_WORDS = re.compile(
    r"(?i)(?:(?:in|on|at|from|as|under|below|above|over|near|to)\s+)?(?:an?|the|one|two|another|any|"
    r"some|its|each|every|half|twice|only|about|at (?:most|least)|up to|less|fewer|more|lower|higher|"
    r"smaller|larger|shorter|longer|earlier|later|newer|older|same|none|unset|unchanged|"
    r"without|not|no|left?|leave|true|false|enough|several|all|what|where|how many)\b|^\W*\d"
)
_LITERALS = re.compile(r"'([^'\n]{1,120})'|\"([^\"\n]{1,120})\"")
# `libcudnn.so.9` looks like a host.
LIBRARY = re.compile(r"(?<![\w./-])lib[\w+-]{1,60}\.so(?:\.\d{1,4}){0,3}(?![\w./-])")
_PLACE = re.compile(r"[^\s/]*(?:/[^\s/]+)+/?")
# Files whose texts are looked through for literals, in characters.
_LONGEST_FILE = 400_000


def is_proved(
    key: str,
    to: str,
    report: CrashReport,
    settings: Collection[Setting],
    own: OwnAdvice,
    known: Collection[str] = (),
) -> bool:
    """Tell whether something speaks for a value but the log and the model.

    `known` are texts of ours on the setting.
    """
    plain = to.strip().strip("'\"")
    if is_guidance(to) or _CHINESE.search(to):
        return _is_said(key, to, report, settings, own, known)
    return (
        plain in own.library.choices
        or plain == INSTALL
        or _is_measure(plain, report)
        or _VERSION.fullmatch(plain) is not None
        or _is_of_setting(key, plain, settings)
        or _is_literal(plain, report)
        or is_file_at_hand(plain, report)
        or _is_own_place(key, plain, report, settings, own)
        or _is_made_of_names(plain, own)
    )


def _is_measure(plain: str, report: CrashReport) -> bool:
    """Tell whether a value is a number of a size that settings have, a round one, or of the failure."""
    found = _NUMBER.fullmatch(plain)
    if found is None:
        return False
    whole = found["whole"]
    is_told = any(re.search(rf"(?<!\d){whole}(?!\d)", event.text) for event in report.standing)
    return is_measure(whole) or is_told


def _is_of_setting(key: str, plain: str, settings: Collection[Setting]) -> bool:
    """Tell whether the job's files give the setting this value, or one of this form."""
    wanted = last_level(canonical(key))
    present = [item.value for item in settings if last_level(canonical(item.key)) == wanted and item.value]
    if plain in present:
        return True
    # Another number at one place, such as a checkpoint's; addresses and accounts have no form to trust.
    numbers = re.findall(r"\d+", plain)
    if len(numbers) != 1 or len(numbers[0]) > MOST_DIGITS or "://" in plain or "@" in plain:
        return False
    form = _DIGITS.sub("0", plain)
    return any(_DIGITS.sub("0", value) == form for value in present)


def _is_literal(plain: str, report: CrashReport) -> bool:
    """Tell whether the job's code holds a value as a text of its own: remarks count for nothing."""
    if not re.search(r"\w", plain):
        return False
    for text in report.launches:
        body, _, name = text[:_LONGEST_FILE].rpartition("\n")
        if name.endswith((".py", ".ipynb")) and plain in body:
            found = _LITERALS.finditer(without_remarks(text[:_LONGEST_FILE]))
            if any(plain in match.groups() for match in found):
                return True
    return False


def is_file_at_hand(value: str, report: CrashReport) -> bool:
    """Tell whether a relative path names one of the files that were handed in with the log: its user did."""
    path = value.strip().strip("'\"").replace("\\", "/").removeprefix("./")
    if "." not in posixpath.basename(path) or path.startswith("/") or ".." in path.split("/"):
        return False
    names = [text.rpartition("\n")[2].replace("\\", "/") for text in report.launches]
    # A file may have been handed in without its folder.
    return any(
        name == path or name.endswith(f"/{path}") or ("/" not in name and path.endswith(f"/{name}"))
        for name in names
    )


def _is_own_place(
    key: str, plain: str, report: CrashReport, settings: Collection[Setting], own: OwnAdvice
) -> bool:
    """Tell whether a path is nearly the present value, or one of the failing calls' files, or beside it."""
    if not _PLACE.fullmatch(plain) or ".." in plain.split("/")[2:]:
        return False
    wanted = last_level(canonical(key))
    present = [
        item.value for item in settings if last_level(canonical(item.key)) == wanted and "/" in item.value
    ]
    places = [*present, *(frame.file for event in report.standing for frame in event.frames)]
    folder, last = posixpath.split(plain.rstrip("/"))
    end = plain.rstrip("/").split("/")[-2:]
    is_near = any(place.rstrip("/").split("/")[-2:] == end for place in places)
    is_beside = folder.count("/") > 1 and any(f"{place}/".startswith(f"{folder}/") for place in places)
    return is_near or (is_beside and is_plain_name(last, own.library, "\n".join(present)))


def _is_made_of_names(plain: str, own: OwnAdvice) -> bool:
    """Tell whether a value is made of what settings and their values are called, and of small numbers."""
    parts = _WORD.findall(plain)
    grave = advice_words.load().grave
    return (
        bool(parts)
        and plain.isascii()
        and len(parts) <= MOST_PARTS
        and sum(sign.isdigit() for sign in plain) <= DIGITS_OF_NAME
        and all(
            len(part) <= DIGITS_OF_PART
            if part.isdecimal()
            else len(part) == 1
            or (part.lower() in own.library.vocabulary.choices and stem(part.lower()) not in grave)
            for part in parts
        )
    )


def _is_said(
    key: str,
    to: str,
    report: CrashReport,
    settings: Collection[Setting],
    own: OwnAdvice,
    known: Collection[str],
) -> bool:
    """Tell whether words in place of a value say which one: what they name is of cause, setting or job."""
    if not to.isascii():
        return to in chinese_guidance() or _is_said_in_chinese(to, own, report)
    first = to.split(None, 1)[0].strip("`'\",.;:()")
    if not _VALUE_WORDS.match(to) and not is_proved(key, first, report, settings, own):
        return False
    words = advice_words.load()
    said = {*words.ordinary, *words.value}
    said.update(word for sentence in own.sentences for word in sentence)
    said.update(stems(re.sub(r"[\W_]", " ", " ".join((key, *known)))))
    wanted = last_level(canonical(key))
    present = (item.value for item in settings if last_level(canonical(item.key)) == wanted)
    names = {
        *(item.key for item in settings),
        *present,
        *(text.rpartition("\n")[2] for text in report.launches),
    }
    said.update(stems(re.sub(r"[\W_]", " ", " ".join(names))))
    # The library that the failing line misses is what a folder is named by.
    told = "\n".join(event.text for event in report.standing)
    plain = LIBRARY.sub(lambda match: "" if match[0] in told else match[0], to)
    foreign = [word for word in stems(re.sub(r"[\W_]", " ", plain)) if word not in said]
    digits = re.findall(r"\d{5,}", to)
    return not foreign and all(_is_measure(number, report) for number in digits)


def _is_said_in_chinese(to: str, own: OwnAdvice, report: CrashReport) -> bool:
    told = pairs(to)
    strange = sum(pair not in own.vocabulary.pairs for pair in told)
    names = re.findall(r"[A-Za-z0-9][\w./-]*", to)
    files = "\n".join(report.launches)
    return strange <= FOREIGN_PAIRS * len(told) and all(
        is_plain_name(name, own.library, files) for name in names
    )
