"""Lines: who printed them, when, and what they say."""

from __future__ import annotations

import pytest

from ingest.logs.lines import MAX_TEXT, Line, parse


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("boom", {"body": "boom"}),
        ("(WorkerDict pid=42) boom", {"actor": "WorkerDict", "pid": "42"}),
        ("(WorkerDict pid=42, ip=10.0.0.3) boom", {"actor": "WorkerDict", "pid": "42", "node": "10.0.0.3"}),
        ("(func rank=5 pid=9) boom", {"actor": "func", "rank": "5", "pid": "9"}),
        ("(raylet) boom", {"actor": "raylet"}),
        ("(raylet, ip=10.0.0.9) boom", {"actor": "raylet", "node": "10.0.0.9"}),
        ("(EngineCore_0 pid=77) boom", {"actor": "EngineCore_0", "pid": "77"}),
        ("(autoscaler +12s) boom", {"actor": "autoscaler"}),
        ("[rank3]: boom", {"rank": "3"}),
        ("[default11]:boom", {"rank": "11"}),
        (" 3: boom", {"rank": "3"}),
        ("127: boom", {"rank": "127"}),
        ("2025-03-02T10:00:00.123456789Z stderr F boom", {"time": "2025-03-02T10:00:00.123456789Z"}),
        ("2025-03-02T10:00:00+08:00 stdout P boom", {"time": "2025-03-02T10:00:00+08:00"}),
        ("2025-03-02T10:00:00.123456789Z boom", {"time": "2025-03-02T10:00:00.123456789Z"}),
        ("[pod/job-0/main] boom", {"node": "job-0"}),
        ("2025-03-02 10:00:00,123 - boom", {"time": "2025-03-02 10:00:00,123"}),
        ("[2025-03-02 10:00:00,123] boom", {"time": "2025-03-02 10:00:00,123"}),
        ("INFO 03-02 10:00:00 [llm.py:12] boom", {"level": "INFO", "time": "03-02 10:00:00"}),
        ("ERROR: boom", {"level": "ERROR"}),
        ("[WARNING] boom", {"level": "WARNING"}),
        ("Mar  2 10:00:00 gpu7 kernel: boom", {"time": "Mar  2 10:00:00", "node": "gpu7"}),
        ("[12345.678901] boom", {"time": "12345.678901"}),
        ("[Sun Mar  2 10:00:00 2025] boom", {"time": "Sun Mar  2 10:00:00 2025"}),
        ("worker-3: boom", {"node": "worker-3"}),
        ("[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] boom", {"level": "E", "time": "10:00:00.123456789"}),
        ("[E302 10:00:00.123456789 ProcessGroupNCCL.cpp:629] boom", {"level": "E", "time": "10:00:00.123456789"}),
        ("I20250302 10:00:00.123456  81 main.cc:5] boom", {"level": "I", "time": "10:00:00.123456"}),
        ("[2025-03-02 10:00:00,123 E 81 99] (raylet) node_manager.cc:3069: boom",
         {"level": "E", "pid": "81", "actor": "raylet", "time": "2025-03-02 10:00:00,123"}),
    ],
)
def test_a_prefix_is_taken_off_and_understood(raw: str, expected: dict[str, str]) -> None:
    """Each launcher's prefix gives its fields and leaves the message."""
    line = parse(raw.encode(), 7)
    filled = {name: getattr(line, name) for name in ("actor", "pid", "node", "rank", "time", "level") if getattr(line, name)}
    assert (line.number, line.text, line.body) == (7, raw, "boom")
    assert filled == {name: value for name, value in expected.items() if name != "body"}


@pytest.mark.parametrize(
    ("raw", "source", "time"),
    [
        ("2025-03-02T10:00:00.1Z stderr F  3: (WorkerDict pid=42) boom", "WorkerDict rank=3 pid=42", "2025-03-02T10:00:00.1Z"),
        ("[rank3]:[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] boom", "rank=3", "10:00:00.123456789"),
        ("(WorkerDict pid=42, ip=10.0.0.3) ERROR 03-02 10:00:00 [w.py:1] boom", "WorkerDict pid=42 ip=10.0.0.3", "03-02 10:00:00"),
        ("[pod/job-0/main] 2025-03-02 10:00:00,123 [rank0]: boom", "rank=0 ip=job-0", "2025-03-02 10:00:00,123"),
        ("(TaskRunner pid=1) 2025-03-02 10:00:00,123 boom", "TaskRunner pid=1", "2025-03-02 10:00:00,123"),
    ],
)
def test_nested_prefixes_are_all_taken_off(raw: str, source: str, time: str) -> None:
    """Prefixes of several layers on one line each say their part; the source names the process."""
    line = parse(raw.encode(), 1)
    assert (line.body, line.source, line.time) == ("boom", source, time)


@pytest.mark.parametrize(
    "text",
    ["(see the docs) for more", "(a, b) = f(x)", "[1, 2, 3]", "10:30 is late", "12:34:56 up 3 days", "Error: x",
     "node has left", "f(x) == 3: no", "2025 was a year", "File \"/a.py\", line 3, in f"],
)
def test_a_message_that_looks_a_little_like_a_prefix_stays_whole(text: str) -> None:
    """Ordinary text loses nothing and has no source."""
    line = parse(text.encode(), 1)
    assert (line.body, line.source) == (text, "")


@pytest.mark.parametrize("prefix", ["", "(W pid=1) ", "[rank0]: ", "3: ", "2025-03-02T10:00:00.1Z stderr F ",
                                    "2025-03-02T10:00:00.1Z ", "2025-03-02 10:00:00,123 ", "[pod/a/b] ", "ERROR 03-02 10:00:00 [w.py:1] "])
def test_indentation_after_a_prefix_is_kept(prefix: str) -> None:
    """Tracebacks are told by it."""
    assert parse(f"{prefix}    raise ValueError()".encode(), 1).body == "    raise ValueError()"


@pytest.mark.parametrize(
    ("raw", "column", "expected"),
    [
        (b"one\rtwo\rthree", None, "three"),
        (b"one\rtwo\rthree", 5, "two"),
        (b"one\rtwo\rthree", 0, "one"),
        (b"one\rtwo\r", None, "two"),
        (b"boom\r", 2, "boom"),
        (b"boom\r", None, "boom"),
        (b"\r\r", None, ""),
    ],
)
def test_of_a_redrawn_line_the_part_that_is_asked_for_counts(raw: bytes, column: int | None, expected: str) -> None:
    """A carriage return redraws a line: the match's part is shown, else what stood there last."""
    assert parse(raw, 1, column).text == expected


@pytest.mark.parametrize("column", [0, 999, 50_000, 99_990])
def test_a_long_line_is_cut_around_what_was_found(column: int) -> None:
    """The found place is in the cut text, wherever it stands."""
    raw = bytearray(b"." * 100_000)
    raw[column : column + 4] = b"boom"
    text = parse(bytes(raw), 1, column).text
    assert len(text) == MAX_TEXT
    assert "boom" in text


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"caf\xe9 \x07bell", "caf\ufffd bell"),
        ("a\u202eb\u200bc".encode(), "abc"),
        (b"nul\x00 tab\there  ", "nul tab\there"),
        ("显存不足 ▌".encode(), "显存不足 ▌"),
    ],
)
def test_a_lines_text_can_be_printed_anywhere(raw: bytes, expected: str) -> None:
    """Control and direction marks are gone, letters of all languages stay."""
    assert parse(raw, 1).text == expected


def test_lines_of_one_process_have_equal_sources() -> None:
    """The time of a line is no part of who printed it."""
    first, second = (parse(f"2025-03-02 10:00:0{second},123 (W pid=1) x".encode(), second) for second in (1, 2))
    assert isinstance(first, Line)
    assert first.source == second.source == "W pid=1"
