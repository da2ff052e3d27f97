"""What ties an option that reaches the failing statement to the message: its value, or its way."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import PurePath

from corpus.keys import last_level
from corpus.schema import Scalar
from service.remediation.data_flow.slices import COMPUTED, PASSED, FlowEnd

# Names of options whose value names a file, a folder or a model.
PATHS = re.compile(
    r"(?i)path|file|dir|folder|root|ckpt|checkpoint|weights?|resume|pretrained|dataset|data\b|model|output"
    r"|save|load|cache|log|config|tokenizer|vocab|name|url|location|source|target|csv|json|root"
)
# Options that count rows, rounds or processes are no size of a layer.
_COUNTS = re.compile(
    r"(?i)(?:^|_)(?:batch|bs|epochs?|seed|steps?|iters?|iterations?|lr|workers?|rank|world|port|freq|interval"
    r"|every|gpus?|nodes?|version|save|log|warmup|patience|verbose|debug)(?:_|$)"
)
_QUOTES = "'\""
_QUOTED = re.compile(r"['\"`](?P<text>[^'\"`\n]{1,400})['\"`]")
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[\w.@+=-]*(?:[/\\][\w.@+=-]+)+/?|[\w-]+\.[A-Za-z]\w{1,5}\b")
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w]|\.\d)")
_SHAPE = re.compile(r"[(\[]\d{1,9}(?:, ?\d{1,9}){1,6},?[)\]]")
_MATRICES = re.compile(r"\(\d{1,9}x(?P<columns>\d{1,9}) and (?P<rows>\d{1,9})x\d{1,9}\)")
# Words that messages have whatever an option is called.
_COMMON = frozenset(
    {"true", "false", "none", "null", "auto", "default", "cpu", "str", "int", "float", "train",
     "test", "val", "data", "model", "file", "name", "type", "list", "dict", "yes", "no", "linear",
     "mean", "max"}
)  # fmt: skip
# What a message says that it was given.
_GOT = re.compile(
    r"(?i)\b(?:but |instead )?(?:got|received|given)(?: ?:| value)? "
    r"['\"`]?(?P<word>[A-Za-z][\w/-]*(?:\.\w+)*)['\"`]?\W*$"
)
# What a message says that there is instead: names of that kind are not the ones that are missed.
_THERE = re.compile(
    r"(?i)\b(?:available|existing|valid|known|supported|possible|allowed)(?: [a-z]\w{1,20}){0,2}(?: are| is)?"
    r" ?: ?[\[({'\"].*$"
)
_LIST = re.compile(r"\[[^\[\]]{1,400}\]")
SMALL = 8


@dataclass(frozen=True)
class Tie:
    """How firmly an option is tied to the message, 0 the firmest, and the value by which it is.

    `to` is the one value that a check lets pass; None where it does not ask for one.
    """

    rank: int
    value: str | None = None
    to: Scalar | None = None


def paths_of(message: str) -> list[str]:
    """Give the paths that a message tells, those in quotes first."""
    quoted = [match["text"] for match in _QUOTED.finditer(message)]
    return list(dict.fromkeys([*quoted, *_PATH.findall(message)]))


def tied_by_path(end: FlowEnd, values: Sequence[str], message: str, *, by_levels: bool = False) -> Tie | None:
    """Tie an option whose value is, or is part of, a path of the message; of whole levels, `by_levels`."""
    for path in paths_of(message):
        for value in values:
            rank = _within(value, path, end)
            one, other = (f"/{text.strip(_QUOTES).removeprefix('./').strip('/')}/" for text in (value, path))
            if rank is not None and (not by_levels or one in other or one.startswith(other)):
                return Tie(rank, value)
    known = [value for value in values if value.strip("'\"").lower() not in ("", "none", "null")]
    if end.how == PASSED and known and (path := _same_file(known, paths_of(message))):
        return Tie(1, path)
    if known or end.kind in ("constant", "parameter") or not PATHS.search(last_level(end.key)):
        return None
    # A name in quotes is no path, unless it has a folder or an ending.
    told = [path for path in paths_of(message) if _PATH.search(path)]
    if not told:
        return None
    if end.how == PASSED and len(told) == 1:
        return Tie(2, told[0])
    return Tie(3) if end.how != COMPUTED else None


def is_path(value: str) -> bool:
    """Tell whether a value looks like a path or a file's name."""
    return bool(re.search(r"[/\\]|\.[A-Za-z]\w{1,11}$", value.strip("'\""))) and "\n" not in value


def is_address(values: Sequence[str], message: str) -> bool:
    """Tell whether a value is an address that the message does not tell: no path on this machine."""
    return any("://" in value and value.strip("'\"/") not in message for value in values)


def _same_file(values: Sequence[str], paths: Sequence[str]) -> str:
    """Give the one path of a message whose file is called as a value's: the run had another folder."""
    names = {PurePath(value.strip("'\"").replace("\\", "/")).name for value in values if "/" in value}
    alike = [path for path in paths if PurePath(path.replace("\\", "/")).name in names and "." in path]
    return alike[0] if len(set(alike)) == 1 else ""


def _within(value: str, path: str, end: FlowEnd) -> int | None:
    plain, whole = (
        text.strip("'\"").replace("\\", "/").removeprefix("./").rstrip("/") for text in (value, path)
    )
    if not plain or (plain.lower() in _COMMON and plain != whole):
        return None
    if plain == whole or (len(plain) > 1 and whole.startswith(f"{plain}/")):
        return 0
    # A folder above the option's own: what makes folders makes, or lacks, those first.
    if end.how != COMPUTED and whole.startswith("/") and plain.startswith(f"{whole}/"):
        return 0
    if end.how == COMPUTED and "/" not in plain and len(plain) < 5:
        return None
    if ("/" in plain or len(plain) > 2) and re.search(
        rf"(?<![A-Za-z0-9]){re.escape(plain)}(?![A-Za-z0-9])", whole
    ):
        return 0 if "/" in plain else 1
    if end.how != COMPUTED and re.fullmatch(r"-?\d{1,9}", plain) and abs(int(plain)) > 1:
        groups = re.findall(r"(?<![A-Za-z0-9])-?\d+(?![A-Za-z0-9])", whole.replace("_", " "))
        return 1 if any(int(group) == int(plain) for group in groups) else None
    return None


def tied_by_word(end: FlowEnd, values: Sequence[str], message: str) -> Tie | None:
    """Tie an option whose value is a word of the message; where that tells what it got, by that alone."""
    if got := _GOT.search(message):
        refused = got["word"]
        if any(value.strip("'\"").lower() == refused.lower() for value in values) and end.how != COMPUTED:
            return Tie(0, refused)
        is_named = re.search(rf"(?<![\w.]){re.escape(last_level(end.key))}(?!\w)", message) is not None
        return Tie(1, refused) if end.how == PASSED and is_named else None
    message = _THERE.sub("", message) or message
    quoted = {match["text"].lower() for match in _QUOTED.finditer(message)}
    for value in [item for whole in values for item in (whole, *_items(whole))]:
        plain = value.strip("'\"")
        low = plain.lower()
        if len(plain) < 2 or re.fullmatch(r"-?[\d.]+", plain):
            continue
        if low in quoted and (end.how != COMPUTED or low not in _COMMON):
            return Tie(0 if end.how != COMPUTED else 1, value)
        is_telling = low not in _COMMON and (end.how != COMPUTED or re.search(r"[\d_/-]", plain))
        is_handed = end.how == PASSED and low in ("cpu", "gpu")
        if (is_telling or is_handed) and re.search(
            rf"(?<![\w/.-]){re.escape(low)}(?![\w/-])", message.lower()
        ):
            return Tie(1, value)
    return None


def _items(value: str) -> list[str]:
    """Give the items of a list of plain words."""
    return [item.strip(" '\"") for item in value[1:-1].split(",")] if _LIST.fullmatch(value) else []


def tied_by_number(
    ends: Sequence[tuple[FlowEnd, Sequence[str]]], numbers: Sequence[int]
) -> list[tuple[FlowEnd, Tie]]:
    """Tie the options whose number the message has, or makes of them: an area, a product."""
    told = {number for number in numbers if number > 1}
    found: list[tuple[FlowEnd, Tie]] = []
    held: list[tuple[FlowEnd, int]] = []
    for end, values in ends:
        if _COUNTS.search(last_level(end.key)):
            continue
        for number in _whole_numbers(values):
            held.append((end, number))
            if number in told and (number >= SMALL or end.how != COMPUTED):
                found.append((end, Tie(0 if number >= SMALL else 1, str(number))))
                break
            if number >= SMALL and (number * number in told or number * number * 3 in told):
                found.append((end, Tie(1, str(number))))
                break
    if not found:
        for (one, a), (other, b) in combinations(held[:12], 2):
            high, low = max(a, b), min(a, b)
            patches = (high // low) ** 2 if low > 1 and high % low == 0 and high // low > 3 else 0
            made = {a * b} if low > 3 else set()
            made |= {patches, patches + 1, patches + 2} if patches else set()
            if made & told and one.key != other.key:
                pair = [(one, Tie(2, str(a))), (other, Tie(2, str(b)))]
                found += pair if a >= b else pair[::-1]
                break
    return found


def _whole_numbers(values: Sequence[str]) -> list[int]:
    found: list[int] = []
    for value in values:
        try:
            read = ast.literal_eval(value.strip("'\""))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        items = read if isinstance(read, list | tuple) else [read]
        found += [item for item in items if isinstance(item, int) and not isinstance(item, bool) and item > 1]
    return found[:6]


def numbers_of(message: str, *, of_weight: bool = False) -> list[int]:
    """Give the whole numbers of a message; of two shapes of one rank those in which they differ.

    Of a product of matrices the sides that must agree, or that of the second one, a layer's weight, alone.
    """
    if matrices := _MATRICES.search(message):
        sides = ("rows",) if of_weight else ("columns", "rows")
        return [int(matrices[side]) for side in sides]
    shapes = [[int(text) for text in _NUMBER.findall(match[0])] for match in _SHAPE.finditer(message)]
    first = shapes[0] if shapes else []
    alike = [shape for shape in shapes[1:] if len(shape) == len(first) and shape != first]
    if first and alike:
        return [number for pair in zip(first, alike[0], strict=True) if pair[0] != pair[1] for number in pair]
    return [int(text) for text in _NUMBER.findall(message)][:60]
