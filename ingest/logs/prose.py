"""What somebody wrote beside the lines of a pasted log, which tells in which language to answer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from corpus.message import CHINESE
from ingest.logs.lines import parse_line
from ingest.logs.samples import without_samples

# A longer text is a program's.
MOST_ROWS = 120
# So many characters make a sentence, and at least this share of it: names of packages and commands are Latin.
_LEAST, _SHARE = 4, 8
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`")
# An address that a sentence links to.
_ADDRESS = re.compile(r"https?://[^\s()\u3000-\u9fff\uff00-\uffef]+")
# What a sentence may go on with: the exception that it speaks of, in the program's own words.
_RAISED = re.compile(r"\b(?:\w{1,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception)\b", re.ASCII)
# A field that a program prints before a value, a record, a list, a bar: no sentence begins so.
_PRINTED = re.compile(r"\s*(?:[\w.\[\]-]{1,40} ?[:=] ?|[{\[(<|>#]|\d+[%|/]|File |Traceback )")


def is_written_in_chinese(rows: Iterable[str]) -> bool:
    """Tell whether the sentences around a pasted log are Chinese, whatever the log's own lines are.

    Quoted texts and samples of data are nobody's sentences, nor is what a program logs with its time.
    """
    texts = list(rows)
    # Behind a sign that people end a clause with, a log may go on in the same row.
    parts = (part for row in texts for part in (row, row.partition("\uff1a")[0], _RAISED.split(row, 1)[0]))
    return len(texts) <= MOST_ROWS and any(map(_is_sentence, parts))


def _is_sentence(row: str) -> bool:
    bare = _ADDRESS.sub("", _QUOTED.sub("", row))
    count = len(CHINESE.findall(bare))
    if count < _LEAST or count * _SHARE < len(bare) or _PRINTED.match(row):
        return False
    line = parse_line(row.encode("utf-8", "surrogateescape"), 1)
    return not (line.time or line.level) and without_samples(row) == row
