"""What a job of anybody's own counts in words is work, and no proof of a good end."""

from __future__ import annotations

from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained


@each_row(
    "text",
    [
        "cleaned 40 of 400 rows\n" * 3,
        "2026-01-05 03:04:05,001 INFO prep: tokenized 40/400 documents in 3.1 s\n",
        "fetched 400 of 400 files\n",
    ],
)
def test_that_work_which_is_counted_in_words_is_work_and_no_proof_of_an_end(
    text: str, triage: Triage
) -> None:
    """The log of a job that counts its rows is a job's, and where it breaks off nobody calls it done."""
    answer = explained(triage, text)
    assert (answer.verdict, answer.standing) == ("no-failure", "none")
