"""Calls of the root's stack in a prompt: the job's own ones stay, whatever of the packages is left out."""

from __future__ import annotations

from dataclasses import replace

from ingest.logs.inputs import sources
from ingest.logs.stacks.stack import Frame
from service.llm.call_lines import kept_frames
from service.pipeline.triage import Triage
from tests.factories import OOM, steps
from tests.service.llm.answering import asked_of, context_and_prompt
from tests.tables import each_row

WRAPPED = "".join(
    f'  File "/opt/lib/python3.10/site-packages/torch/nn/modules/module.py", line {line}, in _call_impl\n'
    f"    return forward_call_{line}(*args, **kwargs)\n"
    for line in range(1501, 1541)
)


def test_a_long_stack_shows_own_calls(triage: Triage) -> None:
    """Forty calls of a package stand between the job's own two, and these are sent all the same."""
    stack = (
        "Traceback (most recent call last):\n"
        '  File "/job/train.py", line 735, in <module>\n'
        "    train_engine(config=cfg)\n"
        '  File "/job/engine.py", line 165, in train_engine\n'
        "    out = model(frames=batch)\n"
    )
    log = steps(*range(1, 60)) + stack + WRAPPED + f"{OOM}\n"
    at_hand = replace(asked_of(triage, log), reopen=lambda: sources.from_text(log))
    _, prompt = context_and_prompt(at_hand, 5000)
    body = prompt.messages[1].text
    assert [f"{place}," in body for place in ('train.py", line 735', 'engine.py", line 165')] == [True, True]
    assert "train_engine(config=cfg)" in body
    assert "out = model(frames=batch)" in body
    assert "forward_call_1540(" in body
    assert "forward_call_1510(" not in body
    # Where the log is not at hand any more, the report's own list of calls names them.
    _, prompt = context_and_prompt(asked_of(triage, log), 5000)
    stacks = [row for row in prompt.messages[1].text.split("\n") if "] stack: " in row]
    assert "/job/train.py:735 <module> > /job/engine.py:165 train_engine > ... > torch/nn" in stacks[0]


def _frames(told: str) -> list[Frame]:
    files = {"o": "/job/train.py", "p": "/opt/lib/python3.10/site-packages/torch/nn/modules/module.py"}
    return [Frame(files[letter], line, "call") for line, letter in enumerate(told, 1)]


@each_row(
    ("told", "most", "kept"),
    [
        ("oo", 4, [1, 2]),
        ("oppppp", 3, [1, None, 5, 6]),
        ("pppoop", 3, [None, 4, 5, 6]),
        ("ppppo", 2, [None, 4, 5]),
        ("oooo", 2, [1, 2, 3, 4]),
        ("", 3, []),
    ],
)
def test_a_short_stack_keeps_own_calls(told: str, most: int, kept: list[int | None]) -> None:
    """Own calls and the innermost are kept first, then packages' from below; gaps are marked."""
    assert [frame and frame.line for frame in kept_frames(_frames(told), most)] == kept
