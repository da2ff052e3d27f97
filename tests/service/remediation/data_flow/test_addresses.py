"""An address is no path, and a check is the one whose words the message has."""

from __future__ import annotations

import ast

from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.evidence import is_address
from service.remediation.data_flow.failing_parts import guards_of
from service.remediation.data_flow.job_program import JobProgram
from tests.tables import each_row

CODE = """def start(size, rank, cards):
    if rank >= cards:
        raise RuntimeError(
            f"rank {rank} but only {cards} cards are visible")
    if size > 1:
        raise RuntimeError(
            f"size={size} requires a launcher")
"""


@each_row(
    ("values", "message", "found"),
    [
        (["http://localhost:11434"], "Model 'llama' not found in the service", True),
        (["http://localhost:11434"], "http://localhost:11434/api: not found", False),
        (["data/train.bin"], "data/train.bin: not found", False),
        ([], "not found", False),
    ],
)
def test_an_address_that_the_message_does_not_tell_is_no_missing_path(
    values: list[str], message: str, found: bool
) -> None:
    """What is not found behind an address is not the address."""
    assert is_address(values, message) is found


@each_row(
    ("message", "guards"),
    [
        ("rank 4 but only 2 cards are visible", ["rank >= cards"]),
        ("size=2 requires a launcher", ["size > 1"]),
        ("nothing of the kind is said here", []),
    ],
)
def test_the_guard_is_that_of_the_statement_which_says_the_message(message: str, guards: list[str]) -> None:
    """A row of an edited file may begin with the same words and raise something else."""
    frame = Frame("/job/start.py", 3, "start", "raise RuntimeError(")
    program = JobProgram([frame], [JobFile("start.py", CODE)])
    assert [ast.unparse(each) for each in guards_of(program.calls[-1], message)][:1] == guards
