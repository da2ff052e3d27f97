"""A value that the program does not know, and that the job's own files write in nearly the same letters."""

from __future__ import annotations

from dataclasses import replace

from ingest.configfiles.settings import Spelling
from service.remediation.near_values import near_values
from tests.service.factories import failed, report, setting
from tests.tables import each_row

CODE = "if data == 'corpus_small':\n    run('corpus_large')\nload.py"


@each_row(
    ("value", "spelled", "body", "found"),
    [
        ("corpus_smal", "flag", "Unsupported data set: corpus_smal", [("--data", "corpus_small")]),
        # The program knows the value, does not speak of it, or complains of something else.
        ("corpus_large", "flag", "Unsupported data set: corpus_large", []),
        ("corpus_smal", "flag", "Unsupported data set: other", []),
        ("corpus_smal", "flag", "corpus_smal has 12 rows, 16 are needed", []),
        # What code falls back to was not given, and a number is no slip of a name.
        ("corpus_smal", "dump", "Unsupported data set: corpus_smal", []),
        ("1234", "flag", "Unsupported data set: 1234", []),
    ],
)
def test_that_a_slip_of_a_value_is_told_by_the_jobs_own_code(
    value: str, spelled: Spelling, body: str, found: list[tuple[str, str]]
) -> None:
    given = [replace(setting("--data", value), spelled=spelled)]
    told = report(failed(body=body), launches=(CODE,))
    assert [(option.key, option.value) for option in near_values(told, given)] == found


def test_that_the_same_setting_elsewhere_counts_before_a_name_of_the_code() -> None:
    """A script gives `--data corpus_smal` in one row and `DATA=corpus_smart` in another."""
    given = [
        replace(setting("--data", "corpus_smal"), spelled="flag"),
        replace(setting("DATA", "corpus_smart"), spelled="env"),
    ]
    told = report(failed(body="Unknown data set 'corpus_smal'"), launches=(CODE,))
    assert [option.value for option in near_values(told, given)] == ["corpus_smart"]
