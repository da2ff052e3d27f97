"""Reasons in the answer's language: of what was dropped, of missing readings, of what became of a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import service.patching
from corpus.message import Message
from ingest import configfiles
from service.composition import reasons
from service.schemas.diagnosis import CauseTelemetry, Dropped, Telemetry, TelemetryReading
from tests.tables import each_row

FOLDERS = [Path(module.__file__ or "").parent for module in (configfiles, service.patching)]
FIRST = Message("model.first-answer-stands")


@each_row(
    ("parts", "english", "chinese"),
    [
        (
            [Message("model.model-not-answer-within", seconds="20"), FIRST],
            "The model did not answer within 20 s. The first answer stands.",
            "模型没有在 20 秒内回答。以最初的答案为准。",
        ),
        (
            [Message("model.model-refuses", bounded="I must not say."), FIRST],
            "The model refuses: I must not say. The first answer stands.",
            "模型拒绝回答：I must not say. 以最初的答案为准。",
        ),
        ([""], "", ""),
    ],
)
def test_that_a_note_is_told_sentence_by_sentence(parts: Sequence[str], english: str, chinese: str) -> None:
    assert reasons.note(parts, "zh") == chinese
    assert reasons.note(parts, "en") == english


def test_that_what_was_dropped_is_told_with_its_name() -> None:
    given = [
        Dropped(
            what=Message("dropped.patch", name="run.sh"), why=Message("patch.line-cannot-read-bash", line=1)
        ),
        Dropped(what="verl: a.b=2", why="任何比例都不够"),
    ]
    told = reasons.translate_reasons(given, "zh")
    assert [(item.what, item.why) for item in told] == [
        ("run.sh 的补丁", "第 1 行：无法按 bash 解析"),
        ("verl: a.b=2", "任何比例都不够"),
    ]
    assert reasons.translate_reasons(told, "zh") == told
    assert reasons.translate_reasons(given, "en") == tuple(given)


def test_that_a_missing_reading_tells_its_reason_and_a_known_one_stays() -> None:
    readings = (
        TelemetryReading(name="host.mem", unavailable=Message("readings.not-snapshot")),
        TelemetryReading(name="gpu.temperature", unavailable="NVML: Driver/library version mismatch"),
        TelemetryReading(name="gpu.xid", value=79),
    )
    said = Telemetry(
        causes=(CauseTelemetry(cause="disk-full", says="not available", why="", readings=readings),)
    )
    missing, foreign, known = reasons.translate_readings(said, "zh").causes[0].readings
    assert (missing.unavailable, foreign.unavailable, known) == (
        "快照中没有",
        "NVML: Driver/library version mismatch",
        readings[2],
    )
    assert reasons.translate_readings(said, "en") == said


def raised(path: Path) -> Iterator[ast.Call]:
    """Give the calls by which a module of the patcher says why it cannot change a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "NotPatchableError":
            yield node


def test_that_every_reason_of_the_patcher_is_a_message() -> None:
    found = [
        (path.name, call)
        for path in sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))
        for call in raised(path)
    ]
    assert len(found) > 100
    assert [
        f"{name}:{call.lineno}"
        for name, call in found
        if isinstance(call.args[0], ast.Constant | ast.JoinedStr)
    ] == []
