"""A path that is missed for a slip at the end of the value that names it."""

from __future__ import annotations

from dataclasses import replace

from ingest.configfiles.settings import Spelling
from service.remediation.near_files import stray_signs
from tests.service.factories import failed, report, setting
from tests.tables import each_row

MISSED = "[Errno 2] No such file or directory: '/job/src/out,/logs/run_7'"


@each_row(
    ("value", "spelled", "body", "found"),
    [
        ("./out,", "flag", MISSED, [("--out", "./out")]),
        ("out;", "flag", MISSED.replace("out,", "out;"), [("--out", "out")]),
        # The path that is missed has no such part, the value no such sign, and a print is no command.
        ("./log,", "flag", MISSED, []),
        ("./out", "flag", MISSED, []),
        ("./out,", "dump", MISSED, []),
        ("./out,", "flag", "[Errno 13] Permission denied: '/job/src/out,/logs'", []),
    ],
)
def test_that_a_sign_too_many_is_taken_off(
    value: str, spelled: Spelling, body: str, found: list[tuple[str, str]]
) -> None:
    given = [replace(setting("--out", value), spelled=spelled)]
    made = stray_signs(report(failed(body=body)), given)
    assert [(option.key, option.value) for option in made] == found
