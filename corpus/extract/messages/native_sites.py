"""The sites of C++ and CUDA sources: check macros, errors that are thrown or logged; read by expression."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpus.extract.messages.sites import FoundSite, Pieces, joined_names, named_in, runs_of
from corpus.message_atlas import SiteKind

# What raises what: PyTorch's c10/util/Exception.h, Ray's util/logging.h, NCCL's debug.h, glog.
_EXCEPTIONS = {
    "TORCH_CHECK_INDEX": "IndexError", "TORCH_CHECK_VALUE": "ValueError", "TORCH_CHECK_TYPE": "TypeError",
    "TORCH_CHECK_NOT_IMPLEMENTED": "NotImplementedError", "TORCH_CHECK_LINALG": "LinAlgError",
    "TORCH_CHECK_IF_NOT_ON_CUDA": "RuntimeError",
}  # fmt: skip
_SITE = re.compile(
    r"\b(?P<check>TORCH_(?:CHECK|INTERNAL_ASSERT)\w*|C10_(?:CUDA_)?CHECK\w*|AT_ASSERTM?|TVM_FFI_I?CHECK\w*|"
    r"FLASHINFER_CHECK|HOST_ASSERT|TLLM_CHECK\w*|CHECK_WITH_INFO)\s*\("
    r"|\b(?P<fail>AT_ERROR|TORCH_CHECK_FAIL|C10_THROW_ERROR|TLLM_THROW|FLASHINFER_ERROR)\s*\("
    r"|\bthrow\s+(?:std::|c10::|py::|pybind11::|\w+::)*(?P<thrown>\w+)\s*[({]"
    r"|\b(?P<log>LOG\s*\(\s*(?:ERROR|FATAL)\s*\)|RAY_LOG\s*\(\s*(?:ERROR|FATAL)\s*\)|"
    r"(?:RAY_)?CHECK\w*\s*(?=\())|\b(?P<warn>WARN|TLLM_LOG_ERROR|fprintf\s*(?=\(\s*stderr))\s*\("
)
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# A definition begins at the left; bounded, as some sources are tables of numbers of megabytes.
_FUNCTION = re.compile(
    r"^(?=[A-Za-z_~])[^\n;{}()]{0,160}?\b(?P<name>[\w:~]+)\([^;{}]{0,600}\)[^;{}()]{0,80}\{", re.MULTILINE
)
_KEYWORDS = frozenset({"if", "for", "while", "switch", "catch", "return", "sizeof", "else", "do"})
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*")', re.DOTALL)
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\t": " ", "\\'": "'", "\\\\": "\\"}
_ESCAPE = re.compile(r"\\.")
_PRINTF = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j)?[diouxXeEfFgGcsp]|\{[^{}\s]{0,12}\}")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]{2,}(?:_[A-Z0-9]+)+\b")
_LONGEST = 3000


def read_sites(text: str) -> list[FoundSite]:
    """Give the sites of a source file."""
    # Strings stay, and of comments their line ends, by which lines are counted.
    clean = _COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n") or " ", text)
    functions = [
        (match.start(), match["name"])
        for match in _FUNCTION.finditer(clean)
        # A name in capitals is a macro's.
        if match["name"].split("::")[-1] not in _KEYWORDS and not match["name"].isupper()
    ]
    return list(_sites(clean, functions))


def _sites(text: str, functions: list[tuple[int, str]]) -> Iterator[FoundSite]:
    place, symbol, line, counted = 0, "", 1, 0
    for match in _SITE.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        while place < len(functions) and functions[place][0] < match.start():
            symbol = functions[place][1]
            place += 1
        kind, exception = _kind(match)
        own, condition, pieces = _message(text, match)
        runs = runs_of(pieces)
        if runs:
            names = joined_names(_VARIABLE.findall(condition), named_in(pieces))
            yield FoundSite(symbol, line, kind, own or exception, runs, names)


def _kind(match: re.Match[str]) -> tuple[SiteKind, str]:
    if match["check"]:
        return "check", _EXCEPTIONS.get(match["check"], "RuntimeError")
    if match["fail"]:
        return "raise", "RuntimeError"
    if match["thrown"]:
        return "raise", match["thrown"]
    return "log", ""


def _message(text: str, match: re.Match[str]) -> tuple[str, str, Pieces]:
    """Give a site's own type, its condition and its message.

    The message is the strings of a call, or of a stream up to its end.
    """
    begin = text.find("(", match.start())
    end = _closing(text, begin) if begin >= 0 else match.end()
    inside = text[begin + 1 : end]
    if match["log"]:
        stop = text.find(";", end)
        streamed = text[end + 1 : min(stop if stop > 0 else end, end + _LONGEST)]
        return "", "", _pieces(streamed)
    if not match["check"]:
        return "", "", _pieces(inside)
    # The check of an error of one's own names its type before the condition.
    begin = _comma(inside) + 1 if match["check"].startswith("TORCH_CHECK_WITH") else 0
    comma = _comma(inside, begin)
    own = inside[: max(begin - 1, 0)].strip()
    return own, inside[begin:comma], _pieces(inside[comma + 1 :]) if comma >= 0 else []


def _closing(text: str, begin: int) -> int:
    """Give the place of the bracket that closes the one at `begin`."""
    depth, place = 0, begin
    last = min(len(text), begin + _LONGEST)
    while place < last:
        sign = text[place]
        if sign == '"':
            string = _STRING.match(text, place)
            place = string.end() if string else place + 1
            continue
        depth += (sign in "({") - (sign in ")}")
        if depth == 0:
            return place
        place += 1
    return last


def _comma(text: str, begin: int = 0) -> int:
    """Give the place of the first comma from `begin` on that no bracket encloses; -1 without one."""
    depth, place = 0, begin
    while place < len(text):
        sign = text[place]
        if sign == '"':
            string = _STRING.match(text, place)
            place = string.end() if string else place + 1
            continue
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            return place
        place += 1
    return -1


def _pieces(code: str) -> Pieces:
    """Give the strings of some code, with a hole wherever more than a joint parts two of them."""
    found: Pieces = []
    last = 0
    for match in _STRING.finditer(code):
        between = code[last : match.start()].strip(" \t\n\\")
        if between and not (between == "," or between == "<<" or between == "+"):
            found.append(None)
        text = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[0], " "), match[1])
        first, *others = _PRINTF.split(text)
        found.append(first)
        for other in others:
            found += [None, other]
        last = match.end()
    return found
