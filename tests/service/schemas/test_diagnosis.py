"""The answer's contract: names, words, and that every claim can be led back to what it cites."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from corpus.schema import Action
from ingest.redaction.redactor import Redactor
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis, Standing, Verdict
from tests.service.factories import diagnosis, proposal
from tests.tables import each_row
from tests.warm import EVERY, answered, explained, log_lines

# The names that DESIGN.md fixes; consumers of the JSON rely on each.
CONTRACT = {
    "schema",
    "id",
    "source",
    "verdict",
    "cause",
    "category",
    "confidence",
    "standing",
    "action",
    "alternatives",
    "headline",
    "explanation",
    "evidence",
    "sources",
    "cascade",
    "cases",
    "changes",
    "patch",
    "suggestion",
    "command",
    "steps",
    "checks",
    "telemetry",
    "frameworks",
    "engine",
    "outcome",
    "redactions",
    "limits",
    "timings_ms",
    "job",
    "resumption",
    "confirmed",
    "statements",
    "seconds",
    "fingerprint",
    "curves",
}
PARTS = {
    "alternatives": {"cause", "confidence", "tell_apart"},
    "evidence": {"line", "text", "role", "why"},
    "sources": {
        "line",
        "package",
        "versions",
        "version",
        "path",
        "source_line",
        "symbol",
        "exception",
        "settings",
        "url",
    },
    "cascade": {"line", "time", "source", "event", "role", "count"},
    "cases": {"id", "title", "score", "urls"},
    "changes": {"framework", "kind", "key", "from", "to", "why", "costs", "from_case", "status"},
    "frameworks": {"name", "version", "line"},
}
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shown(raw: str) -> str:
    """Give a log line as an answer may show it: redacted, without escapes."""
    plain = "".join(char for char in _ESCAPE.sub("", raw) if char == "\t" or char.isprintable())
    return Redactor().clean(plain)


def published(answer: Diagnosis) -> dict[str, Any]:
    """Give the object that `--json` prints."""
    data: dict[str, Any] = json.loads(answer.to_json())
    return data


@each_row("name", EVERY)
def test_every_field_of_the_contract_is_there_under_its_name(name: str, triage: Triage) -> None:
    """The object has the contract's fields, whatever the verdict."""
    data = published(answered(triage, name))
    assert set(data) == CONTRACT
    assert data["schema"] == "whycrash.diagnosis/1"
    assert set(data["engine"]) == {
        "name",
        "votes",
        "trace",
        "dropped",
        "note",
        "tokens",
        "omitted",
        "model_explanation",
    }
    assert set(data["limits"]) == {"bytes", "lines", "truncated", "cut", "omitted"}


@each_row("part", PARTS)
def test_every_part_has_its_fields(part: str, triage: Triage) -> None:
    """Lists hold objects with the contract's fields; each list is filled in some real answer."""
    found = [item for name in EVERY for item in published(answered(triage, name))[part]]
    assert found
    assert all(PARTS[part] <= set(item) for item in found)


def test_from_is_called_from() -> None:
    """Python's keyword does not leak: the value is `from` in JSON, and both names are read."""
    data = published(diagnosis(changes=(proposal(from_="256"),)))
    assert data["changes"][0]["from"] == "256"
    assert "from_" not in data["changes"][0]
    assert Diagnosis.model_validate(data).changes[0].from_ == "256"
    assert proposal(**{"from": "7"}).from_ == "7"


@each_row("name", EVERY)
def test_the_json_reads_back_as_the_same_answer(name: str, triage: Triage) -> None:
    """What was published validates, and is equal to what was meant."""
    answer = answered(triage, name)
    assert Diagnosis.model_validate_json(answer.to_json()).to_json() == answer.to_json()
    assert Diagnosis.model_validate_json(answer.to_json(indent=2)).to_json() == answer.to_json()


@each_row(
    "wrong",
    [
        {"verdict": "maybe"},
        {"standing": "sure"},
        {"action": "panic"},
        {"schema": "whycrash.diagnosis/2"},
        {"extra": 1},
        {"evidence": [{"line": 1, "text": "x", "role": "cause", "why": "y"}]},
        {"limits": {"bytes": 1}},
        {"headline": None},
    ],
)
def test_what_is_not_of_the_contract_is_refused(wrong: dict[str, Any]) -> None:
    """Other words, missing fields and unknown fields are errors at the border."""
    with pytest.raises(ValidationError):
        Diagnosis.model_validate({**published(diagnosis()), **wrong})


def test_an_answer_cannot_be_changed() -> None:
    """An answer is a value."""
    with pytest.raises(ValidationError):
        diagnosis().cause = "other"


@each_row("name", EVERY)
def test_evidence_is_verbatim(name: str, triage: Triage) -> None:
    """Each text of the evidence stands in the line that it names, after redaction."""
    rows = log_lines(name)
    assert [
        item.line for item in answered(triage, name).evidence if item.text not in shown(rows[item.line - 1])
    ] == []


@each_row(
    "log",
    [
        (
            "\x1b[31mERROR\x1b[0m \x1b[1mtorch.OutOfMemoryError\x1b[0m: CUDA out of memory. "
            "Tried to allocate 2.00 GiB."
        ),
        (
            " 10%|#   | 1/10\r 20%|##  | 2/10\rtorch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
            "2.00 GiB."
        ),
        "\r\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\r",
        "password=hunter2222 OSError: [Errno 28] No space left on device: '/data/\u202eevil\u0000'",
        "x" * 5000
        + " ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory. "
        + "y" * 5000,
        (
            "显存不足\n日志：ray.exceptions.OutOfMemoryError: "
            "Task was killed due to the node running low on memory."
        ),
    ],
)
def test_evidence_of_awkward_lines_is_verbatim(log: str, triage: Triage) -> None:
    """Escapes, redrawn lines, secrets and long lines change nothing of that."""
    answer = explained(triage, log + "\n")
    rows = log.split("\n")
    assert answer.evidence
    assert all(item.text in shown(rows[item.line - 1]) for item in answer.evidence)


@each_row("language", ["en", "zh"])
@each_row("name", EVERY)
def test_every_citation_leads_to_something(name: str, language: str, triage: Triage) -> None:
    """A cited case is among `cases`; a cited line exists and is not empty."""
    answer = answered(triage, name, language)
    rows = log_lines(name)
    cited = set(re.findall(r"\[case:([^\]]+)\]", answer.explanation))
    assert cited <= {hit.id for hit in answer.cases}
    assert all(rows[int(number) - 1].strip() for number in re.findall(r"\[L(\d+)\]", answer.explanation))
    assert {change.from_case for change in answer.changes} - {None} <= {hit.id for hit in answer.cases}


@each_row("name", EVERY)
def test_names_and_numbers_are_of_the_corpus_and_the_log(name: str, triage: Triage) -> None:
    """Causes, categories, roles and line numbers are ones that exist; a confidence is a probability."""
    answer = answered(triage, name)
    causes = triage.library.causes
    lines = [item.line for item in answer.evidence] + [item.line for item in answer.cascade]
    lines += [item.line for item in answer.frameworks]
    assert answer.cause is None or causes[answer.cause].category == answer.category
    assert {item.cause for item in answer.alternatives} <= set(causes) - {answer.cause}
    assert all(
        0 <= sure <= 1 for sure in (answer.confidence, *(item.confidence for item in answer.alternatives))
    )
    assert all(1 <= line <= answer.limits.lines for line in lines)
    assert answer.verdict in get_args(Verdict)
    assert answer.standing in get_args(Standing)
    assert answer.action in get_args(Action)
    assert answer.limits.lines == len(log_lines(name)) - (log_lines(name)[-1] == "")


@each_row("name", EVERY)
def test_the_root_comes_first_and_once(name: str, triage: Triage) -> None:
    """One entry of evidence and cascade is the root, the same line in both, and leads the evidence."""
    answer = answered(triage, name)
    assert (
        [item.line for item in answer.cascade if item.role == "root"]
        == [item.line for item in answer.evidence if item.role == "root"]
        == [item.line for item in answer.evidence[:1]]
    )
    assert [item.line for item in answer.cascade] == sorted(item.line for item in answer.cascade)


def test_answers_have_ids_of_their_own(triage: Triage) -> None:
    """The same log explained twice gives two ids and, but for ids and times, the same answer."""
    log = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
    first, second = (published(explained(triage, log)) for _ in range(2))
    assert first["id"] != second["id"]
    assert {**first, "id": "", "timings_ms": {}} == {**second, "id": "", "timings_ms": {}}
