"""Every row of the table of code edits makes of its examples what they say, and nothing of the others."""

from __future__ import annotations

import re

from corpus.code_edits import CodeEditExample, CodeEditRow, known_code_edits, may_follow
from service.remediation.code_edits.checks import code_edit_findings, edit_of_example, example_findings
from service.remediation.code_edits.source_text import parsed
from tests.tables import each_row

EXAMPLES = [(row, example) for row in known_code_edits().rows for example in row.examples]


@each_row("row", list(known_code_edits().rows), ids=lambda row: row.id)
def test_a_row_edits_its_examples_as_they_say(row: CodeEditRow) -> None:
    assert list(example_findings(row)) == []


@each_row("row, example", EXAMPLES, ids=lambda row: getattr(row, "id", ""))
def test_an_edit_is_no_edit_of_what_it_has_made(row: CodeEditRow, example: CodeEditExample) -> None:
    """What an edit writes parses, changes the code, and leaves the rest of the file to the byte."""
    edit = edit_of_example(row, example)
    if edit is None or edit.file is None:
        return
    assert parsed(edit.text) is not None
    assert edit.text != example.file
    before, after = example.file.split("\n"), edit.text.split("\n")
    same = [line for line in before if line in after]
    assert len(same) >= len(before) - 2 - len(edit.row.spreads) - 2 * len(edit.row.also)


def test_the_table_is_sound() -> None:
    assert code_edit_findings() == []


def test_that_rows_speak_of_their_message_and_not_of_one_job() -> None:
    """No expression holds a path, an address or a date, which only one job's message has."""
    assert [
        row.id
        for row in known_code_edits().rows
        if re.search(r"/(?:home|root|data|mnt|workspace)/|\b20\d\d-\d\d|0x[0-9a-f]{6}", row.expression)
    ] == []


def test_that_the_cues_alone_tell_whether_the_table_is_needed() -> None:
    """They are read from the file's rows of text, which must hold what the table holds."""
    assert all(may_follow(row.cue) for row in known_code_edits().rows)
    assert not may_follow("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
