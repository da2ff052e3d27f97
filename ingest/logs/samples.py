"""Text that a job prints as data: prompts, answers, dialogue, records of a data set.

What such text says of errors, steps or ends is nobody's report of this job. It counts as data only where
both of its ends are seen: the quotes of a value under a name that samples have, or a heading above and, below
it, a later heading of the same sample. What stands behind the last heading may be the job's own words again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice

from corpus.log_patterns import Pattern, PatternTable
from ingest.logs.lines import MAX_TEXT, SHAPED, Line, bare_text
from ingest.logs.matches import Headings
from ingest.logs.scan_windows import LONGEST_SAMPLE
from ingest.logs.scanner import Block
from ingest.logs.stacks.stack import parsed_at

# How many proposed headings are tried, and among how many marks of all kinds.
TRIED = 6
NEAR = 60

# Names under which samples stand in records; the second ones have other uses, so that one alone is none.
_NAMES = (
    r"prompts?|responses?|completions?|questions?|answers?|quer(?:y|ies)|instructions?|chosen|rejected|"
    r"ground_truths?|messages|conversations?|dialogues?|trajector(?:y|ies)|rollouts?|generated_texts?|"
    r"problems?"
)
_OTHERS = r"content|text|inputs?|outputs?|role|value|labels?|solution|targets?|sample|example|system"
_KEY = re.compile(
    rf"(?<![\w.])['\"]?(?:(?P<name>(?:\w+_)?(?:{_NAMES})(?:_text|_str|_\d+)?)|(?P<other>{_OTHERS}))['\"]?"
    r"\s?[=:]\s?"
)
# Prose of a data set: so many words, this share of them words of grammar, and nothing that a job has. A word
# of failure in it is the story's.
_WORD = re.compile(r"[A-Za-z][a-z'’]*")
_PROSE_WORDS = 14
_PROSE_SHARE = 0.3
# Among so many words one may be a job's too: strikers are workers.
_JOB_WORD_IN = 30
# How many characters on either side of such a word are looked at.
_AROUND = 250
_GRAMMAR = re.compile(
    r"(?i)\b(?:a|about|after|all|also|among|an|and|are|as|at|be|became|because|been|before|between|both|"
    r"but|by|can|could|did|during|each|for|from|had|has|have|he|her|hers|him|his|how|however|i|"
    r"if|in|into|is|it|its|many|more|most|my|never|no|nor|not|of|on|one|or|our|out|over|she|"
    r"since|so|some|such|than|that|the|their|them|then|there|these|they|this|those|though|"
    r"through|to|under|until|up|upon|was|we|were|what|when|where|whereas|which|while|who|whom|"
    r"whose|why|will|with|within|would|you|your)\b"
)
_OF_JOBS = re.compile(
    r"(?i)\b(?:jobs?|train\w*|runs?|process\w*|workers?|servers?|ranks?|gpus?|cuda|nodes?|hosts?|models?|"
    r"scripts?|engines?|files?|folders?|director(?:y|ies)|memory|ram|vram|checkpoints?|configs?|"
    r"configurations?|datasets?|errors?|exceptions?|traceback|tokenizers?|weights?|batch\w*|"
    r"steps?|epochs?|kernels?|drivers?|devices?|clients?|connections?|ports?|threads?|tasks?|"
    r"actors?|modules?|packages?|librar(?:y|ies)|arguments?|options?|programs?|requests?|logs?|"
    r"pods?|containers?|optimi[sz]ers?|loss(?:es)?|shards?|cache\w*|tokens?|timeouts?)\b"
    r"|[/\\_]\w|\w\(\)|\b0x|\d{5}|\b(?:ERROR|CRITICAL|FATAL|WARN(?:ING)?|INFO|DEBUG)\b"
)
# A mapping's strings stand under names of their own.
_STRING = re.compile(r"[\[(\s]{0,3}[bfru]?(?P<quote>['\"])")
# A quote that closes: behind it the value, the record or the line ends, or the next value begins.
_CLOSE = re.compile(r"(?<!\\)(?P<quote>['\"])(?=\s*(?:[,}\]);]|$|\s\w+=))")
# Behind a comma the list goes on, unless the string there is the next value's name.
_CONTINUED = re.compile(r"\s*,\s*(?=['\"])(?!(?P<quote>['\"])[\w. -]{1,60}(?P=quote)\s*:)")
# The marks that belong together, in the order in which those of a sample follow each other.
_FAMILIES: tuple[Mapping[str, int], ...] = (
    {"asked": 0, "answered": 1, "judged": 2},
    {"opens": 0, "closes": 1},
    {"begins": 0, "ends": 1},
)


@lru_cache(256)
def without_samples(text: str) -> str:
    """Give a line without what stands in it as a sample's value; the line itself where there is none."""
    keys = [*_KEY.finditer(text)]
    if not any(key["name"] for key in keys) and len({key["other"] for key in keys}) < 2:
        return text
    kept: list[str] = []
    place = 0
    for key in keys:
        if key.start() < place:
            continue  # a name inside another sample's text
        end = _value_end(text, key.end())
        if end:
            kept.append(text[place : key.end()])
            place = end
    return "".join([*kept, text[place:]]) if kept else text


# Several patterns ask for the same line.
@lru_cache(256)
def is_prose(text: str) -> bool:
    """Tell whether a line is a sentence of a story, an article or a talk, and of no program."""
    text = text.replace("\\n", " ")
    words = _WORD.findall(text)
    if len(words) < _PROSE_WORDS:
        return False
    allowed = len(words) // _JOB_WORD_IN
    if next(islice(_OF_JOBS.finditer(text), allowed, None), None) is not None:
        return False  # most lines of a job have such a word soon
    return len(_GRAMMAR.findall(text)) >= _PROSE_SHARE * len(words)


def spoken_rows(rows: list[Pattern], line: Line) -> list[Pattern]:
    """Give the patterns that match what a line says itself, beside the samples that it quotes."""
    kept = []
    for row in rows:
        # Prose may stand around what a last resort finds; a record may hold a whole book in one line.
        found = row.compiled.search(line.body) if row.last_resort else None
        if found is None or not is_prose(line.body[max(0, found.start() - _AROUND) : found.end() + _AROUND]):
            kept.append(row)
    body = without_samples(line.body)
    if body == line.body:
        return kept
    text = without_samples(line.text)
    return [row for row in kept if row.compiled.search(body) or row.compiled.search(text)]


def _value_end(text: str, begin: int) -> int:
    """Give where the string or the list of strings that begins at a place ends; 0 where none is seen to."""
    end = 0
    while opened := _STRING.match(text, begin):
        quotes = _CLOSE.finditer(text, opened.end())
        close = next((match for match in quotes if match["quote"] == opened["quote"]), None)
        if close is None:
            break
        end = close.end()
        further = _CONTINUED.match(text, end)
        if further is None:
            break
        begin = further.end()
    return end


class SampleMarks:
    """The headings and delimiters of samples in one block, as the scanner proposes them."""

    def __init__(
        self, table: PatternTable, block: Block, headings: Headings, parsed: dict[int, Line]
    ) -> None:
        """Take a block's proposed marks; `parsed` keeps its parsed lines, as in `PlacedLine`."""
        self._block, self._parsed = block, parsed
        self._marks, self._lines = headings, headings.lines
        self._rows = {row: table.rows[row] for row in set(headings.rows)}
        # The places of the marks of each family, and what each of them is in the family's order.
        self._families: list[tuple[list[int], list[int]]] = []
        for order in _FAMILIES:
            kinds = {row: str(each.sample) for row, each in self._rows.items()}
            at = {row: order[kind] for row, kind in kinds.items() if kind in order}
            places = [place for place, row in enumerate(headings.rows) if row in at] if at else []
            if len(places) > 1:
                self._families.append((places, [at[headings.rows[place]] for place in places]))
        # The streams of those marks that were looked at, by their place among all, and by number what lines
        # say that hold some, each with its stream.
        self._told: dict[int, str | None] = {}
        self._shown: dict[int, tuple[str, str]] = {}

    def enclose(self, number: int, source: str) -> bool:
        """Tell whether a line of a stream stands between headings of one sample, or its delimiters."""
        if not self._families:
            return False
        place = bisect_right(self._lines, number)
        for places, orders in self._families:
            at = bisect_left(places, place)
            if not 0 < at < len(places) or number - self._lines[places[at - 1]] > LONGEST_SAMPLE:
                continue
            # Few steps, where to search the places for the first and the last takes many.
            first, last = max(0, at - TRIED), min(len(places), at + TRIED)
            while places[first] < place - NEAR:
                first += 1
            while places[last - 1] >= place + NEAR:
                last -= 1
            # Only what comes later in a sample than one above can close it. As a rule no such mark is one,
            # and neither questions below nor anything above needs to be parsed.
            least = min(orders[first:at], default=3)
            for later in range(at, last):
                if orders[later] > least and self._stream(places[later]) == source:
                    break
            else:
                continue
            below = self._first(range(at, last), places, number, source)
            if below is None or least >= orders[below]:
                continue
            above = self._first(range(at - 1, first - 1, -1), places, number, source)
            if above is not None and orders[above] < orders[below]:
                return True
        return False

    def _first(self, among: range, places: Sequence[int], number: int, source: str) -> int | None:
        """Give which of some of a family's proposed marks is the first that is one, of the stream."""
        for at in among:
            place = places[at]
            if abs(self._lines[place] - number) > LONGEST_SAMPLE:
                return None
            if self._stream(place) == source:
                return at
        return None

    def _stream(self, place: int) -> str | None:
        """Give the stream that printed a proposed mark; None where it is none."""
        if place not in self._told:
            number = self._lines[place]
            told = self._shown.get(number) or self._read_line(self._marks.offsets[place], number)
            self._told[place] = told[1] if self._rows[self._marks.rows[place]].finds(told[0]) else None
        return self._told[place]

    def _read_line(self, offset: int, number: int) -> tuple[str, str]:
        """Give what a line says, and the stream that printed it; of a redrawn one the part there."""
        data = self._block.data
        begin, end = self._block.line_bounds(offset)
        # Most are a dialogue's own rows.
        text = bare_text(data[begin:end]) if end - begin <= SHAPED else None
        if text is not None:
            told = text, ""
        else:
            mark = parsed_at(self._block, offset, number, self._parsed)
            told = mark.body, mark.source
            if end - begin > MAX_TEXT or b"\r" in data[begin:end]:
                return told
        self._shown[number] = told
        return told
