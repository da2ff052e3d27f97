"""Lines are found however they are pasted: each example of each pattern, in all variants of `pasted.py`."""

from __future__ import annotations

import io
from functools import cache, partial

import pytest

from corpus.log_patterns import PatternTable
from ingest.errors import InputError
from ingest.logs.inputs.sources import LogSource
from ingest.logs.pastes import MOST_BYTES
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from tests.factories import ReadLog
from tests.ingest.logs.pasted import VARIANTS, Pasted, examples
from tests.tables import each_row

# The least share of examples that is found in each variant and in all.
LEAST, LEAST_IN_ALL = 0.975, 0.993


def found(read: ReadLog, text: str) -> set[str]:
    """Give the ids of the patterns that a report of a text knows; none where it cannot be read."""
    try:
        report = read(text)
    except InputError:
        return set()
    known = {name for event in report.events for name in (event.pattern, *event.also)}
    return known | report.seen


def recall(read: ReadLog, chosen: list[Pasted]) -> dict[str, tuple[int, int, list[str]]]:
    """Give for each variant how many examples are found, how many there are, and those that are not.

    An example counts where its pattern is told of it as it is: a notice beside which nothing fails is not.
    """
    # A tenth of the variants leave their example as it is, or as another one does.
    known = cache(partial(found, read))
    told = [one for one in chosen if one.row.id in known(one.text)]
    table = {}
    for name, variant in VARIANTS.items():
        texts = [(one.row.id, text) for one in told if (text := variant(one)) is not None]
        missed = [f"{row}: {text!r}" for row, text in texts if row not in known(text)]
        table[name] = (len(texts) - len(missed), len(texts), missed)
    return table


def weak(table: dict[str, tuple[int, int, list[str]]]) -> list[str]:
    """Name the variants that are found too seldom, with what is missed."""
    hits, texts = (sum(row[place] for row in table.values()) for place in (0, 1))
    wrong = [
        f"{name}: {good} of {count}: {'; '.join(missed[:8])}"
        for name, (good, count, missed) in table.items()
        if good < LEAST * count
    ]
    return wrong + ([f"{hits} of {texts} in all"] if hits < LEAST_IN_ALL * texts else [])


@pytest.mark.long
def test_that_every_example_is_found_in_every_variant(table: PatternTable, read: ReadLog) -> None:
    assert len(VARIANTS) > 12
    chosen = list(examples(table.rows))
    assert len(chosen) > 2000
    assert weak(recall(read, chosen)) == []


OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 79.15 GiB of which 1.25 GiB is free. Including non-PyTorch memory, this process has 77.9 GiB in use."
)


def _root(report: CrashReport) -> tuple[int, str | None]:
    return (report.root.line, report.root.cause) if report.root else (0, None)


@each_row(
    ("text", "line"),
    [
        (f"Hello,\n\n{OUT_OF_MEMORY[:80]}\n{OUT_OF_MEMORY[80:160]}\n{OUT_OF_MEMORY[160:]}\n\nThanks", 3),
        (f"a\n\n\nb\nIt says `{OUT_OF_MEMORY}`, why?", 5),
        (f"| rank | error |\n|---|---|\n| 0 | {OUT_OF_MEMORY} |\n| 1 | ok |", 3),
        ("a\nb\n&quot;loss&quot;: 1\n" + OUT_OF_MEMORY.replace(" ", "&nbsp;"), 4),
    ],
)
def test_that_lines_keep_the_numbers_of_the_pasted_text(read: ReadLog, text: str, line: int) -> None:
    assert _root(read(text)) == (line, "gpu-oom-training")
    assert read(text).limits.lines == text.count("\n") + 1


def test_that_the_calls_of_a_traceback_escaped_on_one_line_are_read(read: ReadLog) -> None:
    text = (
        '"step 1\\nTraceback (most recent call last):\\n  File \\"/job/t.py\\", line 3, in fit\\n    go()\\n'
        f'{OUT_OF_MEMORY}\\n"'
    )
    (event,) = read(text).events
    assert [(frame.file, frame.line, frame.function) for frame in event.frames] == [("/job/t.py", 3, "fit")]


@each_row(
    "function",
    # As wide as its paragraph's widest row, and not: a terminal would have broken it in no other way.
    ["__getattr__", "__getattr__of_a_class_with_a_long_name_indeed"],
)
def test_that_a_call_which_is_as_wide_as_its_paragraph_keeps_its_own_statement(
    function: str, read: ReadLog
) -> None:
    statement = "raise AttributeError(f\"'{type(self).__name__}' object has no attribute '{name}'\")"
    text = (
        'Traceback (most recent call last):\n  File "/job/t.py", line 3, in <module>\n    net.go\n'
        f'  File "/opt/envs/lark/lib/python3.9/site-packages/torch/nn/modules/module.py", line 1729, '
        f"in {function}\n"
        f"    {statement}\nAttributeError: 'Net' object has no attribute 'go'\n"
    )
    # What a text said before it says no more below, and a joined row would seem to say it anew.
    (event,) = read("at /opt/envs/lark/lib/python3.9/runpy.py\n\n" * 9 + text).events
    assert (event.frames[-1].function, event.frames[-1].code) == (function, statement)


@each_row("escaped", [rb"\ud83d\ude00", rb"\ud83d", rb"\udfff", rb"\udc80", rb"\ude00\ud83d"])
def test_that_escaped_halves_of_characters_are_joined_or_replaced(reader: Reader, escaped: bytes) -> None:
    """Whatever a record escapes is read, also amid bytes that are no UTF-8."""
    for record in (b'{"note": "bus %b\\nAssertionError"}', b'\xff"a %b\\nAssertionError\\nb"'):
        report = reader.read(LogSource("log", io.BytesIO(record % escaped)))
        assert [event.pattern for event in report.events] == ["python.assertion-bare"], record


@each_row(
    "text",
    [
        "KILLED",
        "TERMINATED",
        "SEGMENTATION FAULT (CORE DUMPED)",
        "BUS ERROR",
        "ABORTED (CORE DUMPED)",
        "FLOATING POINT EXCEPTION",
        "EXIT STATUS 17",
        "BASH: TORCHRUN: COMMAND NOT FOUND",
        "./RUN.SH: LINE 12: DEEPSPEED: COMMAND NOT FOUND",
        "MAKE: *** [TRAIN] ERROR 1",
        "CUDA OUT OF MEMORY",
        "CUDA OUT OF MEMORY. TRIED TO ALLOCATE 2.00 GIB.",
        "RUNTIMEERROR: CUDA ERROR: DEVICE-SIDE ASSERT TRIGGERED",
    ],
)
def test_that_what_a_shell_or_a_console_shouts_is_found(read: ReadLog, text: str) -> None:
    assert _root(read(text))[0] == 1


WELL = "step 40/100 loss 2.1 lr 0.1\nstep 41/100 loss 2.0 lr 0.1\n"


@each_row(
    "text",
    [
        WELL + "INFO we keep `RuntimeError` apart",
        WELL + "the table below | has no | meaning",
        "step 100/100 loss 0.1 lr 0.0\n",
        WELL * 40 + "INFO saved to /ckpt/41\n",
    ],
)
def test_that_a_text_without_a_failure_has_none_in_another_reading(read: ReadLog, text: str) -> None:
    """What only looks like a wrapped line, a cell or a quotation says nothing new."""
    assert _root(read(text)) == (0, None)


def test_that_a_programs_own_long_log_is_read_as_it_stands(read: ReadLog) -> None:
    """Another reading is for what people paste."""
    text = WELL * (MOST_BYTES // len(WELL) + 1) + "it says &quot;x&quot;\n"
    assert text.splitlines()[-1] in dict(read(text).tail).values()
    assert 'it says "x"' in dict(read(WELL + "it says &quot;x&quot;\n").tail).values()


@each_row(
    ("text", "shown"),
    [
        ("“a” ‘b’", "\"a\" 'b'"),
        ("a&nbsp;&lt;b&gt;&#39;&amp;&#x27;", "a <b>'&'"),
        ("&unknown; &#10;", "&unknown;"),
        ("\u200ba\u00a0b…", "a b..."),
        ("run —nproc_per_node 8 — or not", "run --nproc_per_node 8 — or not"),
        ('<pre class="x">a</pre><br/>', "a"),
        ("in <module> of <lambda>", "in <module> of <lambda>"),
        ("[31mred[0m and [12m", "red and [12m"),
    ],
)
def test_that_characters_are_shown_as_they_were_before_they_were_copied(
    read: ReadLog, text: str, shown: str
) -> None:
    assert [row for _, row in read(text).tail] == [shown]
