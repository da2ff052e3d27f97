"""What becomes of a log's line on its way into a question: quoted, cut, wrapped, escaped, put into a table.

Each variant is a function of an example and of the part of it that its pattern matches; None where it would
change what the line says.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from corpus.log_patterns import Pattern

WIDTH = 80
# One prefix of each form of `ingest/logs/prefixes.py`, at a level that calls a line no remark.
PREFIXES = (
    "(WorkerDict pid=42, ip=10.0.0.3) ",
    "(func rank=5 pid=9) ",
    "(raylet, ip=10.0.0.9) ",
    "[36m(EngineCore_0 pid=77)[0m ",
    "[pod/job-0/main] ",
    "[rank3]: ",
    "[default11]:",
    "[trainer2|0]:",
    "[1,3]<stderr>:",
    "[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] ",
    "E0302 10:00:00.123456    4242 file.go:12] ",
    "[2025-03-02 10:00:00,123 E 81 99] (raylet) node_manager.cc:3069: ",
    "[2025-03-02 10:00:00 TP3] ",
    "[ERROR|trainer.py:41] 2025-03-02 10:00:00,123 >> ",
    "[NeMo E 2025-03-02 10:00:00 nemo_logging:361] ",
    "[ERROR:swift] ",
    "[12345.678901] ",
    "[Sun Mar  2 10:00:00 2025] ",
    "[10:00:00] ",
    "2025-03-02T10:00:00.123456789Z stderr F ",
    "2025-03-02 10:00:00,123 - ",
    "2025-03-02 10:00:00.123 | ERROR    | job.step:fit:41 - ",
    "2025-03-02 10:00:00,123 ERROR worker.py:12 -- ",
    " 3: ",
    "03/02/2025 10:00:00 - ERROR - ",
    "10:00:00.123 ERROR ",
    "ERROR 03-02 10:00:00 [llm.py:12] ",
    "(VllmWorker rank=3 pid=9) ERROR 03-02 10:00:00 worker.py:12] ",
    "Mar  2 10:00:00 gpu7 job[88]: ",
    "<3>",
    "kern  :err   : [12.123456] ",
    "ERROR:2025-03-02 10:00:00,123:",
    "ERROR:    ",
    "ERROR:job.step:",
    "[ERROR] ",
    "ERROR: ",
    "dgx-07.example.org: ",
    "wandb: ",
    "train-1  | ",
    "grpo-7c9d8f6b5d-x2k4p main ",
    "[2025-03-02 10:00:00,123] [ERROR] [engine.py:41:step] ",
    "2025-03-02T10:00:00Z ERROR text_generation_launcher: ",
    "(TaskRunner pid=7) [rank1]: 2025-03-02 10:00:00,123 - ERROR - ",
)
# What a page or a tool shows beside a line, which is copied along with it.
NUMBERS = ("{}: ", " {}  ", "   {}\t", "{} | ", "{}| ", "L{}: ", "[{}] ", "   {}→")
CLOCKS = (
    "10:00:00 AM ",
    "[10:23 AM] ",
    "10:23 ",
    "Mar 2, 2025 @ 10:00:00.123\t",
    "Mar 2, 2025, 10:00:00 AM ",
    "2025-03-02 10:00:00\t",
    "2025-03-02T10:00:00.123Z\t",
    "2025/03/02 10:00 ",
    "10:00:00 | ",
    "00:12:31 ",
    "Sun, 02 Mar 2025 10:00:00 GMT ",
    "[0m",
)
_PUNCTUATION = ".!,;:"
_SPEECH = ("[rank0]: step is slow today", "   what does that mean?")


@dataclass(frozen=True)
class Pasted:
    """An example as it is pasted: its pattern, the whole line, where the match is in it, its number."""

    row: Pattern
    text: str
    begin: int
    end: int
    number: int

    @property
    def matched(self) -> str:
        """Give the part that the pattern matches."""
        return self.text[self.begin : self.end]


Variant = Callable[[Pasted], str | None]


def examples(rows: tuple[Pattern, ...]) -> Iterator[Pasted]:
    """Give each example of each row with the part of it that the row matches."""
    number = 0
    for row in rows:
        for text in row.examples:
            match = row.compiled.search(text)
            assert match, f"{row.id}: {text}"
            yield Pasted(row, text, match.start(), match.end(), number)
            number += 1


def _each(change: Callable[[str], str]) -> Variant:
    """Change each line of an example."""
    return lambda one: "\n".join(change(line) for line in one.text.split("\n"))


def _behind(prefixes: tuple[str, ...], step: int = 0) -> Variant:
    """Put a prefix before each line: one after the other, from example to example."""
    return lambda one: _each(lambda line: prefixes[(one.number + step) % len(prefixes)] + line)(one)


def _numbered(one: Pasted) -> str:
    """Put a counted number before each line."""
    form = NUMBERS[one.number % len(NUMBERS)]
    return "\n".join(form.format(place) + line for place, line in enumerate(one.text.split("\n"), 12))


def _wrapped(text: str) -> str:
    return "\n".join(text[place : place + WIDTH] for place in range(0, len(text), WIDTH))


def _wrapped_at_words(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)) or text


def _curled(text: str) -> str:
    """Replace quotes as an editor of prose does."""
    text = re.sub(r'(?<!\w)"', "“", text).replace('"', "”")
    return re.sub(r"(?<!\w)'", "‘", text).replace("'", "’")


def _without_stop(one: Pasted) -> str | None:
    bare = one.text.rstrip(_PUNCTUATION)
    return bare if len(bare) >= one.end and bare != one.text else None


def _doubled(one: Pasted) -> str:
    """Give what two ranks print at once, row by row."""
    rows = [f"[rank{rank}]: {row}" for row in one.text.split("\n") for rank in range(2)]
    return "\n".join(rows)


def _record(one: Pasted) -> str:
    return json.dumps({"time": "2025-03-02T10:00:00Z", "level": "ERROR", "message": one.text})


def _escaped(one: Pasted) -> str:
    return json.dumps("\n".join((_SPEECH[0], one.text, _SPEECH[1])))


VARIANTS: Mapping[str, Variant] = {
    "as it is": lambda one: one.text,
    "cut before the message": lambda one: one.text[one.begin :],
    "cut behind the message": lambda one: one.text[: one.end],
    "the message alone": lambda one: one.matched,
    "with a full stop": lambda one: (
        f"{one.text.rstrip(_PUNCTUATION)}." if _without_stop(one) else f"{one.text}."
    ),
    "with an exclamation": lambda one: f"{one.text}!",
    "without its last mark": _without_stop,
    "quoted": _each(lambda line: f"> {line}"),
    "quoted twice": _each(lambda line: f"> > {line}"),
    "as code": lambda one: None if "\n" in one.text else f"`{one.text.strip()}`",
    "bold": lambda one: None if "\n" in one.text else f"**{one.text.strip()}**",
    "listed": lambda one: f"- {one.text.strip()}",
    "in a sentence": lambda one: (
        None if "\n" in one.text else f"My job dies with `{one.text.strip()}` on all ranks, why?"
    ),
    "in quotes": lambda one: None if "\n" in one.text else f'It says "{one.text.strip()}" and stops.',
    "indented": _each(lambda line: f"    {line}"),
    "indented by a tab": _each(lambda line: f"\t{line}"),
    "wrapped": lambda one: _wrapped(one.text) if len(one.text) > WIDTH and "\n" not in one.text else None,
    "wrapped at words": lambda one: (
        _wrapped_at_words(one.text) if len(one.text) > WIDTH and "\n" not in one.text else None
    ),
    "in a block": lambda one: f"```\n{one.text}\n```",
    "in a block with its language": lambda one: f"Hi all,\n\n```console\n{one.text}\n```\nany idea?",
    "in a block of Slack": lambda one: f"```{one.text.strip()}```",
    "escaped for HTML": lambda one: html.escape(one.text),
    "with curled quotes": lambda one: _curled(one.text),
    "with hard spaces": lambda one: one.text.replace(" ", "\u00a0"),
    "with a mark of its beginning": lambda one: f"\ufeff{one.text}",
    "with spaces without width": lambda one: f"\u200b{one.text}\u200b",
    "behind a prefix": _behind(PREFIXES),
    "behind another prefix": _behind(PREFIXES, 17),
    "behind a clock": _behind(CLOCKS),
    "behind a number": _numbered,
    "of two ranks": _doubled,
    "of two ranks on one line": lambda one: None if "\n" in one.text else f"{one.text}{one.text}\n\n",
    "with CR LF": lambda one: f"before\r\n{one.text.replace(chr(10), chr(13) + chr(10))}\r\n",
    "escaped on one line": _escaped,
    "in a record": _record,
    "in a list of Python's": lambda one: repr(["a", one.text]),
    "in a table": lambda one: (
        None if "\n" in one.text else f"| rank | error |\n|---|---|\n| 3 | {one.text.strip()} |"
    ),
    "in a row of columns": lambda one: None if "\n" in one.text else f"3\tgpu-7\t{one.text.strip()}\t10:00",
    "ended by dots": lambda one: f"{one.text}...",
    "ended by one sign of dots": lambda one: f"{one.text}…",
    "cut with dots": lambda one: f"{one.text[: one.end]}...",
    "with spaces behind": _each(lambda line: f"{line}   "),
    "amid prose": lambda one: f"{_SPEECH[1]}\n\n{one.text}\n\nThanks in advance.",
}
