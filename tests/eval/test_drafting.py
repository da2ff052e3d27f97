"""A wrong triage becomes a case draft that loads, applies to its log, and leads to the right answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.library import Library, parse_case
from eval import drafting, incidents
from eval.drafting import Truth
from eval.errors import EvalError
from ingest.logs.inputs import sources
from ingest.logs.report import CrashReport
from service.pipeline.triage import ReadJob, Triage
from service.scoring.retrieval import signature_applies
from service.settings import Settings
from tests.tables import each_row

LOG = (
    "python3 -m verl.trainer.main_ppo data.train_batch_size=64 "
    "trainer.token=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/env/lib/python3.10/site-packages/verl/odd/corner.py", line 7, in turn\n'
    "    raise OddCornerError(side)\n"
    "verl.odd.corner.OddCornerError: the corner is odd\n"
)


def read(triage: Triage, text: str = LOG) -> CrashReport:
    """Read a log."""
    return triage.reader.read(sources.from_text(text))


def test_a_draft_is_a_case_that_applies(triage: Triage, tmp_path: Path) -> None:
    """What is drafted parses as a case, and its signature holds for the log it came from."""
    report = read(triage)
    path, _ = drafting.write(
        report, Truth("framework-bug", "Take the next release."), LOG, triage.library, tmp_path
    )
    case = parse_case(path.read_text(encoding="utf-8"), path)
    assert case.cause == "framework-bug"
    assert "Take the next release." in case.body.en
    assert signature_applies(case, report.view())
    assert not signature_applies(case, read(triage, LOG.replace("OddCornerError", "EvenCornerError")).view())


def test_a_drafted_case_changes_the_answer(triage: Triage, warm: Path, tmp_path: Path) -> None:
    """With the draft in the corpus, the log that was unknown is explained as its people said."""
    report = read(triage)
    case = parse_case(
        drafting.case_draft(report, Truth("framework-bug"), triage.library), tmp_path / "case.md"
    )
    again = Triage(Settings(home=warm, embedding_model="hash"))
    again.__dict__ |= {"reader": triage.reader, "index": triage.index, "embedder": triage.embedder}
    known = triage.library
    assert again.diagnose(ReadJob(report, "en")).first.verdict == "unknown"
    again.__dict__.pop("retriever", None)
    again.__dict__["library"] = Library(known.causes, {**known.cases, case.id: case}, known.specs)
    answer = again.diagnose(ReadJob(report, "en")).first
    assert (answer.verdict, answer.cause) == ("diagnosed", "framework-bug")


def test_a_drafted_incident_is_redacted_and_sound(triage: Triage, tmp_path: Path) -> None:
    """The incident loads, keeps its line numbers, and holds no secret."""
    _, folder = drafting.write(read(triage), Truth("framework-bug"), LOG, triage.library, tmp_path)
    found = incidents.load(folder.parent)[0]
    assert found.label.root_lines == (5,)
    assert "OddCornerError" in found.lines[4]
    assert "hf_abcdef" not in found.text
    assert incidents.findings([found], triage.library.causes) == []


@each_row(
    ("text", "cause", "message"),
    [(LOG, "no-such-cause", "no cause"), ("all is well\n", "framework-bug", "no failure")],
)
def test_what_cannot_be_drafted_is_told(
    triage: Triage, tmp_path: Path, text: str, cause: str, message: str
) -> None:
    """A cause that nobody knows, or a log without a failure, gives a sentence."""
    with pytest.raises(EvalError, match=message):
        drafting.write(read(triage, text), Truth(cause), text, triage.library, tmp_path)
