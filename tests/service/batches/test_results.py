"""The results of a batch as files."""

from __future__ import annotations

import csv
import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from service.batches.answers import job_result
from service.batches.results import COLUMNS, csv_lines, escape_formula, json_lines
from service.schemas.diagnosis import Diagnosis, Engine, Tokens
from service.schemas.records import JobRecord
from tests.service.batches.outcomes import NOON, answer, job, lookup
from tests.service.factories import proposal
from tests.tables import each_row


def _rows(*jobs: JobRecord) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(csv_lines(jobs, lookup(*jobs))), newline="")))


JOBS = (
    job(1, answer(changes=(proposal(),)), nodes=2, gpu_hours=3.5, ended=NOON),
    job(2, same_as="B-1", fingerprint="f1", root_line=99, root_text="Killed, too"),
    job(3, state="failed", error="Its worker died (3 tries)", fingerprint=""),
    job(4, state="queued"),
)


def test_that_each_line_is_the_contract_of_one_job() -> None:
    """A job that ended has a line, and says which job it is; one that has not ended has none."""
    found = [Diagnosis.model_validate_json(line) for line in json_lines(JOBS, lookup(*JOBS))]
    assert [(one.id, one.source, one.job.state if one.job else "") for one in found] == [
        ("B-1", "job 1", "done"),
        ("B-2", "job 2", "done"),
        ("B-3", "job 3", "failed"),
    ]
    assert json.loads(next(json_lines(JOBS, lookup(*JOBS))))["schema"] == "whycrash.diagnosis/1"


@each_row(
    ("own", "others", "patched"), [("a", "a", True), ("a", "b", False), ("", "a", False), ("", "", False)]
)
def test_that_a_patch_is_given_to_jobs_with_the_same_files_and_tokens_to_one(
    own: str, others: str, patched: bool
) -> None:
    """Without files of its own, the patch is of the command in the other one's log.

    Whoever adds up tokens counts each once.
    """
    first = job(
        1,
        answer(patch="--- a/run.sh", engine=Engine(name="openai:x", tokens=Tokens(sent=9, received=9))),
        config=others,
    )
    told = job_result(job(2, same_as="B-1", config=own), first)
    assert (told.patch is not None, told.engine.name, told.engine.tokens) == (patched, "openai:x", None)
    assert job_result(first).engine.tokens is not None


def test_that_a_job_of_the_same_crash_has_the_answer_and_its_own_line() -> None:
    """The answer is the representative's, the root line its own."""
    _, same, _ = (Diagnosis.model_validate_json(line) for line in json_lines(JOBS, lookup(*JOBS)))
    assert (same.cause, same.evidence[0].line, same.job.same_as if same.job else "") == (
        "host-oom-kill",
        99,
        "B-1",
    )


def test_that_an_answer_that_is_gone_is_told() -> None:
    """A representative that cannot be found leaves a job without an answer, not the file without its end."""
    rows = _rows(job(2, same_as="B-9"), job(3, answer()))
    assert [(row["id"], row["verdict"]) for row in rows] == [("B-2", "unknown"), ("B-3", "diagnosed")]


def test_that_a_spreadsheet_has_a_row_for_each_job() -> None:
    """The columns are those that people sort and filter by."""
    first, second, third = _rows(*JOBS)
    assert list(first) == list(COLUMNS)
    assert (
        first["cause"],
        first["line"],
        first["root"],
        first["change"],
        first["nodes"],
        first["gpu_hours"],
    ) == ("host-oom-kill", "7", "Killed", "data.size=128", "2", "3.5")
    assert first["ended"] == "2026-11-20T12:00:00+00:00"
    assert (second["same_as"], second["cause"], second["line"]) == ("B-1", "host-oom-kill", "99")
    assert (third["state"], third["error"], third["cause"]) == (
        "failed",
        "Its worker died (3 tries)",
        "insufficient-evidence",
    )


@each_row("cell", ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "=cmd|' /C calc'!A0"])
def test_that_no_cell_is_a_formula(cell: str) -> None:
    """What a job, its log or its error says is text in a spreadsheet."""
    (row,) = _rows(job(1, answer(headline=cell), name=cell))
    assert (row["job"], row["headline"]) == (f"'{cell}", f"'{cell}")


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=2, max_size=2))
def test_that_any_text_comes_back_from_a_cell(texts: list[str]) -> None:
    """Quotes, commas and line ends of a log do not break a row."""
    name, headline = texts
    (row,) = _rows(job(1, answer(headline=headline), name=name))
    assert (row["job"], row["headline"]) == (escape_formula(name), escape_formula(headline))


def test_that_results_come_as_they_are_read() -> None:
    """A line is given before the next job is asked for."""
    asked = []

    def jobs() -> object:
        for one in JOBS[:2]:
            asked.append(one.id)
            yield one

    lines = json_lines(jobs(), lookup(*JOBS))  # type: ignore[arg-type]
    next(lines)
    assert asked == ["B-1"]
