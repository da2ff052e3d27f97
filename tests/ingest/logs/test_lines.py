"""Lines: who printed them, when, and what they say."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.logs.lines import MAX_TEXT, Line, parse_line
from tests.tables import each_row

PIECES = (
    b"(W pid=1, ip=::1) ",
    b"[rank3]: ",
    b" 3: ",
    b"2025-03-02T10:00:00Z ",
    b"stderr F ",
    b"[pod/a/b] ",
    b"ERROR ",
    b"ERROR:a:",
    b"[",
    b"]",
    b"(",
    b")",
    b'{"log":',
    b'"',
    b"\\",
    b'time="',
    b"level=",
    b'msg="',
    b"Mar  2 10:00:00 a b[1]: ",
    b"<6>",
    b"[12.123456] ",
    b"| ",
    b" - ",
    b"\r",
    b"\t",
    b"\x1b[0m",
)


@each_row(
    ("raw", "expected"),
    [
        ("boom", {"body": "boom"}),
        ("(WorkerDict pid=42) boom", {"actor": "WorkerDict", "pid": "42"}),
        ("(WorkerDict pid=42, ip=10.0.0.3) boom", {"actor": "WorkerDict", "pid": "42", "node": "10.0.0.3"}),
        ("(func rank=5 pid=9) boom", {"actor": "func", "rank": "5", "pid": "9"}),
        ("(raylet) boom", {"actor": "raylet"}),
        ("(raylet, ip=10.0.0.9) boom", {"actor": "raylet", "node": "10.0.0.9"}),
        ("(EngineCore_0 pid=77) boom", {"actor": "EngineCore_0", "pid": "77"}),
        ("(autoscaler +12s) boom", {"actor": "autoscaler", "time": "+12s"}),
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
        (
            "[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] boom",
            {"level": "E", "time": "1103 10:00:00.123456789"},
        ),
        (
            "[E302 10:00:00.123456789 ProcessGroupNCCL.cpp:629] boom",
            {"level": "E", "time": "302 10:00:00.123456789"},
        ),
        ("I20250302 10:00:00.123456  81 main.cc:5] boom", {"level": "I", "time": "20250302 10:00:00.123456"}),
        ("E0302 10:00:00.123456    4242 file.go:12] boom", {"level": "E", "time": "0302 10:00:00.123456"}),
        ("[E ProcessGroupNCCL.cpp:475] boom", {"level": "E"}),
        (
            "[2025-03-02 10:00:00,123 E 81 99] (raylet) node_manager.cc:3069: boom",
            {"level": "E", "pid": "81", "actor": "raylet", "time": "2025-03-02 10:00:00,123"},
        ),
        ("(pid=42) boom", {"pid": "42"}),
        (
            "(Critic(gpu=1, name=a) pid=42, ip=10.0.0.3) boom",
            {"actor": "Critic(gpu=1, name=a)", "pid": "42", "node": "10.0.0.3"},
        ),
        ("(reward worker: two[rank=1] pid=42) boom", {"actor": "reward worker: two[rank=1]", "pid": "42"}),
        ("(autoscaler +1m2s) boom", {"actor": "autoscaler", "time": "+1m2s"}),
        ("[36m(WorkerDict pid=42)[0m boom", {"actor": "WorkerDict", "pid": "42"}),
        ("(EngineCore_DP0 pid=77) boom", {"actor": "EngineCore_DP0", "pid": "77"}),
        (
            "(VllmWorker rank=3 pid=9) ERROR 03-02 10:00:00 worker.py:12] boom",
            {"actor": "VllmWorker", "rank": "3", "pid": "9", "level": "ERROR", "time": "03-02 10:00:00"},
        ),
        ("[trainer2|0]:boom", {"actor": "trainer", "rank": "2"}),
        ("[worker3]: boom", {"actor": "worker", "rank": "3"}),
        ("[1,3]<stderr>:boom", {"rank": "3"}),
        ("[1,mpirank:2,algo-1]<stdout>:boom", {"rank": "2", "node": "algo-1"}),
        ("[node7:00888] Signal code: boom", {"node": "node7", "pid": "00888", "body": "Signal code: boom"}),
        ("node7:888:1201 [3] NCCL WARN boom", {"node": "node7", "pid": "888", "body": "NCCL WARN boom"}),
        ("dgx-07.example.org: boom", {"node": "dgx-07.example.org"}),
        ("train-1  | boom", {"node": "train-1"}),
        ("grpo-7c9d8f6b5d-x2k4p main boom", {"node": "grpo-7c9d8f6b5d-x2k4p"}),
        ("grpo-worker-0 pytorch boom", {"node": "grpo-worker-0"}),
        ("wandb: boom", {"actor": "wandb"}),
        ("[2025-03-02 10:00:00 TP3] boom", {"time": "2025-03-02 10:00:00", "told": "TP3"}),
        ("[2025-03-02 10:00:00 DP1 TP3 EP0] boom", {"time": "2025-03-02 10:00:00", "told": "DP1 TP3 EP0"}),
        (" [2025-03-02 10:00:00.123456] boom", {"time": "2025-03-02 10:00:00.123456"}),
        (
            "2025-03-02 10:00:00.123 | ERROR    | job.step:fit:41 - boom",
            {"time": "2025-03-02 10:00:00.123", "level": "ERROR"},
        ),
        ("ERROR:job.step:boom", {"level": "ERROR"}),
        ("ERROR:2025-03-02 10:00:00,123:boom", {"level": "ERROR", "time": "2025-03-02 10:00:00,123"}),
        ("INFO:     boom", {"level": "INFO"}),
        (
            "[WARNING|trainer.py:41] 2025-03-02 10:00:00,123 >> boom",
            {"level": "WARNING", "time": "2025-03-02 10:00:00,123"},
        ),
        (
            "[INFO|2025-03-02 10:00:00] llamafactory.hparams:41 >> boom",
            {"level": "INFO", "time": "2025-03-02 10:00:00"},
        ),
        ("[INFO:swift] boom", {"level": "INFO"}),
        ("[NeMo W 2025-03-02 10:00:00 nemo_logging:361] boom", {"level": "W", "time": "2025-03-02 10:00:00"}),
        (
            "[2025-03-02 10:00:00,123] [ERROR] [engine.py:41:step] boom",
            {"level": "ERROR", "time": "2025-03-02 10:00:00,123"},
        ),
        (
            "[2025-03-02 10:00:00,123] [INFO] [axolotl.train:41] [PID:9] [RANK:2] boom",
            {"level": "INFO", "time": "2025-03-02 10:00:00,123", "told": "2"},
        ),
        (
            "2025-03-02 10:00:00,123 - job.step - ERROR - boom",
            {"level": "ERROR", "time": "2025-03-02 10:00:00,123"},
        ),
        (
            "2025-03-02 10:00:00,123\tINFO worker.py:1234 -- boom",
            {"level": "INFO", "time": "2025-03-02 10:00:00,123"},
        ),
        (
            "2025-03-02 10:00:00.123456: E tensorflow/x.cc:12] boom",
            {"level": "E", "time": "2025-03-02 10:00:00.123456"},
        ),
        ("ERROR 2025-03-02T10:00:00.123Z boom", {"level": "ERROR", "time": "2025-03-02T10:00:00.123Z"}),
        ("2025-03-02T10:00:00+0000 gpu7 kernel: boom", {"time": "2025-03-02T10:00:00+0000", "node": "gpu7"}),
        ("Mar 02 10:00:00 gpu7 python[42]: boom", {"time": "Mar 02 10:00:00", "node": "gpu7", "pid": "42"}),
        ("<6>[12345.678901] boom", {"time": "12345.678901"}),
        ("kern  :err   : [12345.678901] boom", {"time": "12345.678901", "level": "err"}),
        ("[12345.678901][ T4242] boom", {"time": "12345.678901"}),
        ("[  +0.000012] boom", {"time": "+0.000012"}),
        ("[1763460000.123] boom", {"time": "1763460000.123"}),
        ("03/02/2025 10:00:00 boom", {"time": "03/02/2025 10:00:00"}),
        ("[02/Mar/2025:10:00:00 +0000] boom", {"time": "02/Mar/2025:10:00:00 +0000"}),
        ("25/03/02 10:00:00 ERROR boom", {"time": "25/03/02 10:00:00", "level": "ERROR"}),
        ("[10:00:00] boom", {"time": "10:00:00"}),
        ("(WARNING)[loader.py:47]  boom", {"level": "WARNING"}),
        ("(ERROR) boom", {"level": "ERROR"}),
        ("10:00:00 INFO boom", {"time": "10:00:00", "level": "INFO"}),
        (
            '{"log":"boom\\n","stream":"stderr","time":"2025-03-02T10:00:00.1Z"}',
            {"time": "2025-03-02T10:00:00.1Z"},
        ),
        (
            '{"log":"[rank3]: boom\\n","stream":"stderr","time":"2025-03-02T10:00:00.1Z"}',
            {"time": "2025-03-02T10:00:00.1Z", "rank": "3"},
        ),
        (
            '{"level":"error","message":"boom","timestamp":"2025-03-02T10:00:00Z"}',
            {"time": "2025-03-02T10:00:00Z", "level": "ERROR"},
        ),
        (
            '{"jsonPayload":{"message":"boom"},"severity":"ERROR","timestamp":"2025-03-02T10:00:00Z"}',
            {"time": "2025-03-02T10:00:00Z", "level": "ERROR"},
        ),
        (
            '{"MESSAGE":"boom","_HOSTNAME":"gpu7","_PID":"42","__REALTIME_TIMESTAMP":"1763460000123456"}',
            {"time": "1763460000.123456", "node": "gpu7", "pid": "42"},
        ),
        ("MESSAGE=boom", {}),
        (
            "ERROR 2025-03-02T10:00:00.1Z [resource.labels.containerName: gpu-7] [rank3]: boom",
            {"level": "ERROR", "time": "2025-03-02T10:00:00.1Z", "node": "gpu-7", "rank": "3"},
        ),
        (
            'time="2025-03-02T10:00:00Z" level=error msg="boom" error="x"',
            {"time": "2025-03-02T10:00:00Z", "level": "ERROR"},
        ),
    ],
)
def test_a_prefix_is_taken_off_and_understood(raw: str, expected: dict[str, str]) -> None:
    """Each launcher's prefix gives its fields and leaves the message."""
    line = parse_line(raw.encode(), 7)
    filled = {
        name: getattr(line, name)
        for name in ("actor", "pid", "node", "rank", "time", "level", "told")
        if getattr(line, name)
    }
    assert (line.number, line.text, line.body) == (7, raw, expected.get("body", "boom"))
    assert filled == {name: value for name, value in expected.items() if name != "body"}


@each_row(
    ("raw", "source", "time"),
    [
        (
            "2025-03-02T10:00:00.1Z stderr F  3: (WorkerDict pid=42) boom",
            "WorkerDict rank=3 pid=42",
            "2025-03-02T10:00:00.1Z",
        ),
        (
            "[rank3]:[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] boom",
            "rank=3",
            "1103 10:00:00.123456789",
        ),
        (
            "(WorkerDict pid=42, ip=10.0.0.3) ERROR 03-02 10:00:00 [w.py:1] boom",
            "WorkerDict pid=42 ip=10.0.0.3",
            "03-02 10:00:00",
        ),
        (
            "[pod/job-0/main] 2025-03-02 10:00:00,123 [rank0]: boom",
            "rank=0 ip=job-0",
            "2025-03-02 10:00:00,123",
        ),
        ("(TaskRunner pid=1) 2025-03-02 10:00:00,123 boom", "TaskRunner pid=1", "2025-03-02 10:00:00,123"),
    ],
)
def test_nested_prefixes_are_all_taken_off(raw: str, source: str, time: str) -> None:
    """Prefixes of several layers on one line each say their part; the source names the process."""
    line = parse_line(raw.encode(), 1)
    assert (line.body, line.source, line.time) == ("boom", source, time)


@each_row(
    "text",
    [
        "(see the docs) for more",
        "(a, b) = f(x)",
        "[1, 2, 3]",
        "10:30 is late",
        "12:34:56 up 3 days",
        "Error: x",
        "node has left",
        "f(x) == 3: no",
        "2025 was a year",
        'File "/a.py", line 3, in f',
        "(min, max) time across ranks (ms):",
        "[step100]: loss 0.1",
        "[Errno 2] No such file",
        "llama-3 is great",
        "gpt-2 main thing",
        '{"loss": 1.0, "step": 3}',
        '{"message": "hi", "role": "user"}',
        '{"broken":',
        "level playing",
        "[trainer.py:12] said",
        "panic: no",
        "kernel: no time before it",
    ],
)
def test_a_message_that_looks_a_little_like_a_prefix_stays_whole(text: str) -> None:
    """Ordinary text loses nothing and has no source."""
    line = parse_line(text.encode(), 1)
    assert (line.body, line.source) == (text, "")


@each_row(
    "prefix",
    [
        "",
        "(W pid=1) ",
        "[rank0]: ",
        "3: ",
        "2025-03-02T10:00:00.1Z stderr F ",
        "2025-03-02T10:00:00.1Z ",
        "2025-03-02 10:00:00,123 ",
        "[pod/a/b] ",
        "ERROR 03-02 10:00:00 [w.py:1] ",
    ],
)
def test_indentation_after_a_prefix_is_kept(prefix: str) -> None:
    """Tracebacks are told by it."""
    assert parse_line(f"{prefix}    raise ValueError()".encode(), 1).body == "    raise ValueError()"


@each_row(
    ("raw", "told", "node"),
    [
        ("[E ProcessGroupNCCL.cpp:475] [Rank 3] Watchdog caught it", "3", ""),
        ("[rank 3] out of it", "3", ""),
        ("[PG 0 Rank 12] Timeout at NCCL work: 4", "12", ""),
        ("srun: error: node3: task 3: Exited with exit code 1", "", "node3"),
        ("slurmstepd: error: *** STEP 12.0 ON node3 CANCELLED AT 2025-03-02T10:00:00 ***", "", "node3"),
        ("srun: error: Unable to create step for job 12", "", ""),
    ],
)
def test_what_a_message_says_of_its_rank_or_node_is_heard_and_stays(raw: str, told: str, node: str) -> None:
    """It is part of the message, and the rank no part of the stream's name."""
    line = parse_line(raw.encode(), 1)
    assert (line.told, line.node, line.rank) == (told, node, "")
    assert line.body == raw.removeprefix("[E ProcessGroupNCCL.cpp:475] ")


def test_a_number_behind_the_processs_name_is_no_label() -> None:
    """Calls of a backtrace are numbered as Slurm labels its tasks."""
    assert parse_line(b"[rank3]:    0: core::panicking", 1).body == "   0: core::panicking"


@each_row("prefix", ["(WorkerDict pid=42)", "[rank3]:", "2025-03-02T10:00:00.1Z stderr F", "3:"])
def test_an_empty_line_is_its_processs_too(prefix: str) -> None:
    """The white space behind a prefix that ends a line is gone."""
    assert parse_line(prefix.encode(), 1).body == ""


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    pieces=st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=24),
    column=st.none() | st.integers(0, 400),
)
def test_any_bytes_are_a_line(pieces: list[bytes], column: int | None) -> None:
    """Nothing that a line may hold raises, and what is left of it is printable and part of what was there."""
    line = parse_line(b"".join(pieces), 3, column)
    assert line.number == 3
    assert line.body.replace("\t", "").isprintable()


@each_row(
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
def test_of_a_redrawn_line_the_part_that_is_asked_for_counts(
    raw: bytes, column: int | None, expected: str
) -> None:
    """A carriage return redraws a line: the match's part is shown, else what stood there last."""
    assert parse_line(raw, 1, column).text == expected


@each_row("column", [0, 999, 50_000, 99_990])
def test_a_long_line_is_cut_around_what_was_found(column: int) -> None:
    """The found place is in the cut text, wherever it stands."""
    raw = bytearray(b"." * 100_000)
    raw[column : column + 4] = b"boom"
    text = parse_line(bytes(raw), 1, column).text
    assert len(text) == MAX_TEXT
    assert "boom" in text


@each_row(
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
    assert parse_line(raw, 1).text == expected


def test_a_record_brings_no_control_characters_in() -> None:
    """What JSON escapes is text again behind it, and as harmless as the rest."""
    line = parse_line(rb'{"message": "a\u001b[31mb\u202ec", "time": "x\u0007", "hostname": "h\u001b]0;i"}', 1)
    assert (line.body, line.time, line.node) == ("a[31mbc", "x", "h]0;i")


def test_lines_of_one_process_have_equal_sources() -> None:
    """The time of a line is no part of who printed it."""
    first, second = (
        parse_line(f"2025-03-02 10:00:0{second},123 (W pid=1) x".encode(), second) for second in (1, 2)
    )
    assert isinstance(first, Line)
    assert first.source == second.source == "W pid=1"
