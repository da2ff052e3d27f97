"""Reasons in Chinese: each that the program can give is known, and what is not ours stays as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import ingest.configfiles
import service.patching
from service.composition import reasons
from service.schemas.diagnosis import CauseTelemetry, Dropped, Telemetry, TelemetryReading
from tests.tables import each_row

PATCHING = [Path(package.__file__ or "").parent for package in (ingest.configfiles, service.patching)]
# What stands for a number, a name or a value in a reason.
SAMPLE = "x7"


@each_row(
    ("english", "chinese"),
    [
        ("the job has this value already", "作业已是这个值"),
        ("9 is over the greatest value 8", "9 大于最大值 8"),
        ("not in the catalogue for version 0.8.5", "目录中没有版本 0.8.5 的这项设置"),
        (
            "line 4: its value is computed there (${PORT:-29500})",
            "第 4 行：它的值是在那里算出来的（${PORT:-29500}）",
        ),
        ("`a.b` in line 12 is no mapping", "第 12 行的 `a.b` 不是映射"),
        (
            "it is a directive of the batch script, which a YAML file of settings does not hold",
            "它是批处理脚本的指令，YAML 设置文件中没有这种内容",
        ),
        ("cites [L9], which was not sent", "引用了 [L9]，而它没有发送给模型"),
        ("not in the snapshot", "快照中没有"),
        ("NVML: Driver/library version mismatch", "NVML: Driver/library version mismatch"),
        ("任何比例都不够", "任何比例都不够"),
    ],
)
def test_that_a_reason_is_told_in_chinese_with_its_names(english: str, chinese: str) -> None:
    assert reasons.reason(english, "zh") == chinese
    assert reasons.reason(english, "en") == english


@each_row(
    ("english", "chinese"),
    [
        (
            "The model did not answer within 20 s. The first answer stands.",
            "模型没有在 20 秒内回答。以最初的答案为准。",
        ),
        (
            "The model refuses: I must not say. The first answer stands.",
            "模型拒绝回答：I must not say. 以最初的答案为准。",
        ),
        ("Two causes fit; the model decided for disk-full.", "有两个原因都说得通；模型选择了 disk-full。"),
        ("", ""),
    ],
)
def test_that_a_note_is_told_sentence_by_sentence(english: str, chinese: str) -> None:
    assert reasons.note(english, "zh") == chinese
    assert reasons.note(english, "en") == english


def test_that_what_was_dropped_is_told_with_its_name() -> None:
    given = [
        Dropped(what="patch of run.sh", why="line 1: cannot be read as bash"),
        Dropped(what="verl: a.b=2", why="the job has this value already"),
    ]
    told = reasons.translate_reasons(given, "zh")
    assert [(item.what, item.why) for item in told] == [
        ("run.sh 的补丁", "第 1 行：无法按 bash 解析"),
        ("verl: a.b=2", "作业已是这个值"),
    ]
    assert reasons.translate_reasons(told, "zh") == told
    assert reasons.translate_reasons(given, "en") == tuple(given)


def test_that_a_missing_reading_tells_its_reason_and_a_known_one_stays() -> None:
    readings = (
        TelemetryReading(name="host.mem", unavailable="not in the snapshot"),
        TelemetryReading(name="gpu.xid", value=79),
    )
    said = Telemetry(
        causes=(CauseTelemetry(cause="disk-full", says="not available", why="", readings=readings),)
    )
    missing, known = reasons.translate_readings(said, "zh").causes[0].readings
    assert (missing.unavailable, known) == ("快照中没有", readings[1])
    assert reasons.translate_readings(said, "en") is said


def texts(node: ast.expr) -> Iterator[str]:
    """Give a reason's wordings, with a sample in each place that differs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else SAMPLE for part in node.values)
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


def raised(path: Path) -> Iterator[str]:
    """Give the reasons that a module of the patcher can raise, as far as they stand there as text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and ast.unparse(node.exc.func) == "NotPatchableError"
        ):
            yield from texts(node.exc.args[0])


def test_that_every_reason_of_the_patcher_is_known_in_chinese() -> None:
    # These two are clauses whose inner words are told by rows of their own.
    inner = {
        f"line {SAMPLE} has {SAMPLE}",
        f"line {SAMPLE} holds {SAMPLE} there",
        f"it is {SAMPLE}, which a YAML file of settings does not hold",
    }
    found = {text for folder in PATCHING for path in folder.rglob("*.py") for text in raised(path)}
    assert len(found) > 100
    assert [text for text in found - inner if not re.search(r"[一-鿿]", reasons.reason(text, "zh"))] == []
