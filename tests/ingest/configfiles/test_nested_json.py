"""JSON that is nested without end, wherever a job's files or words may be JSON."""

from __future__ import annotations

from collections.abc import Callable

from ingest.configfiles.run_record import read_record
from ingest.configfiles.shell.runtime_env import held_json
from ingest.configfiles.shell.words import CharacterUnit, Word
from tests.tables import each_row

DEEP = "[" * 100_000


@each_row(
    "read",
    [
        lambda: read_record('{"args": [], "program": "a.py", "startedAt": ' + DEEP),
        lambda: held_json(Word((CharacterUnit(DEEP, 0, len(DEEP), ""),), 0, len(DEEP), DEEP)),
    ],
)
def test_what_is_nested_too_deeply_is_read_as_no_json(read: Callable[[], object]) -> None:
    """As any other text that is none, and not with an error of the parser's own."""
    assert read() is None
