"""Whole logs, read with the real patterns into a report."""

from __future__ import annotations

import pytest

from ingest.logs.report import CrashReport
from ingest.logs.scanner import BLOCK
from tests.factories import (
    CRI,
    OOM,
    RAY,
    SLURM,
    STAMP,
    STRANGE,
    TORCHRUN,
    ReadLog,
    interleaved,
    prefixed,
    steps,
    traceback,
)
from tests.tables import each_row

ANSI = "\x1b[36m(WorkerDict pid=4242, ip=10.0.0.3)\x1b[0m "
KUBECTL = "2025-03-02T10:00:00.123456789Z "
WATCHDOG = (
    "[rank1]:[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective "
    "operation timeout: "
    "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 "
    "milliseconds before timing out."
)


def told(report: CrashReport) -> list[tuple[str, int, str, int]]:
    """Give pattern, line, role and count of each event."""
    return [(event.pattern, event.line, event.role, event.count) for event in report.events]


@each_row(
    ("prefix", "source"),
    [
        ("", ""),
        (RAY, "WorkerDict pid=4242 ip=10.0.0.3"),
        (ANSI, "WorkerDict pid=4242 ip=10.0.0.3"),
        (TORCHRUN, "rank=3"),
        (SLURM, "rank=3"),
        (CRI, ""),
        (KUBECTL, ""),
        (STAMP, ""),
        (f"{CRI}{ANSI}", "WorkerDict pid=4242 ip=10.0.0.3"),
        (f"{SLURM}{STAMP}", "rank=3"),
    ],
    ids=["bare", "ray", "ansi", "torchrun", "slurm", "cri", "kubectl", "stamp", "cri-ray", "slurm-stamp"],
)
@each_row("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_the_same_crash_is_read_behind_any_prefix(
    read: ReadLog, prefix: str, source: str, ending: str
) -> None:
    """Line, cause, frames, facts and process do not depend on who wrapped the output."""
    log = prefixed(prefix, "all is well\n\n" + traceback(OOM)).replace("\n", ending)
    report = read(log)
    assert told(report) == [("torch.cuda-oom", 8, "root", 1)]
    root = report.root
    assert root is not None
    assert (root.body, root.source, root.exception) == (OOM, source, "torch.OutOfMemoryError")
    assert [(frame.function, frame.code) for frame in root.frames] == [
        ("main", "trainer.fit()"),
        ("step", "loss = self.model(batch)"),
    ]
    assert root.facts == {"asked_gib": 2.0, "gpu": 0, "capacity_gib": 79.15, "free_gib": 1.25}


@each_row("bars", [1, 50])
def test_a_carriage_return_starts_no_line(read: ReadLog, bars: int) -> None:
    """A bar redrawn before an error on the same line moves no number, and the error's own part is its
    text.
    """
    bar = "".join(f"  {number}%|x    | {number}/100 [00:01<00:02]\r" for number in range(bars))
    report = read(f"start\n{bar}{OOM}\nend\n")
    assert told(report) == [("torch.cuda-oom", 2, "root", 1)]
    assert report.root is not None
    assert report.root.body == OOM
    assert report.limits.lines == 3


def test_every_number_of_a_report_points_at_its_line(read: ReadLog) -> None:
    """Surroundings and tail carry the line's own number, redrawn lines and escapes notwithstanding."""
    rows = [f"\x1b[3{number % 8}mnote\x1b[0m {number}\rrow {number}" for number in range(1, 60)]
    rows[29] = OOM
    report = read("\n".join(rows) + "\n")
    assert {number: text for number, text in report.surroundings if number != 30} == {
        number: f"row {number}" for number in range(22, 39) if number != 30
    }
    assert report.tail == tuple((number, f"row {number}") for number in range(48, 60))
    assert report.limits.lines == 59


def test_a_traceback_across_a_block_border_is_whole(read: ReadLog) -> None:
    """Frames before and the exception after the border are one traceback, at its true line, once."""
    crash = prefixed(RAY, traceback(STRANGE))
    for cut in (
        crash.index("Traceback") + 3,
        crash.index("trainer.py"),
        crash.index("ValueError") + 2,
        len(crash),
    ):
        filler = "all is well\n" * ((BLOCK - cut) // 12)
        padding = "." * (BLOCK - cut - len(filler) - 1) + "\n"
        report = read(filler + padding + crash + "all is well\n" * 30_000)
        line = filler.count("\n") + 1 + 6
        assert told(report) == [("python.exception", line, "root", 1)]
        assert report.root is not None
        assert [frame.function for frame in report.root.frames] == ["main", "step"]


def test_interleaved_tracebacks_of_two_ranks_are_two_events(read: ReadLog) -> None:
    """Each rank keeps its own frames and exception, though their lines alternate."""
    report = read(
        interleaved(
            prefixed("[rank0]: ", traceback("ValueError: a sad thing", "alpha")),
            prefixed("[rank1]: ", traceback("LookupError: another thing", "beta")),
        )
    )
    found = {
        event.source: (event.exception, event.line, [frame.function for frame in event.frames])
        for event in report.events
    }
    assert found == {
        "rank=0": ("ValueError", 11, ["main", "alpha"]),
        "rank=1": ("LookupError", 12, ["main", "beta"]),
    }


@each_row("message", [OOM, STRANGE], ids=["known", "unknown"])
def test_one_error_of_eight_ranks_is_one_event(read: ReadLog, message: str) -> None:
    """It counts eight and names the streams, whether tracebacks follow each other or interleave."""
    ranks = [
        prefixed(f"[rank{rank}]: ", traceback(message.replace("GPU 0", f"GPU {rank}"))) for rank in range(8)
    ]
    for log in ("".join(ranks), interleaved(*ranks)):
        (event,) = read(log).events
        assert (event.count, event.role, event.sources) == (
            8,
            "root",
            tuple(f"rank={rank}" for rank in range(8)),
        )


def test_rays_folded_repetitions_count(read: ReadLog) -> None:
    """Ray prints an error of many workers once more with '[repeated 7x across cluster]': it is the same
    event.
    """
    line = f"(WorkerDict pid=1) {OOM}"
    (event,) = read(f"{line}\n{line} [repeated 7x across cluster]\n").events
    assert event.count == 8


def test_a_lone_other_error_stands_beside_the_crowd(read: ReadLog) -> None:
    """Seven ranks wait in a collective, one ran out of memory: the one is the root."""
    crowd = "".join(
        f"{WATCHDOG}\n".replace("ank1]", f"ank{rank}]").replace("Rank 1", f"Rank {rank}") for rank in range(7)
    )
    report = read(crowd + prefixed("[rank7]: ", traceback(OOM)))
    assert [(event.pattern, event.role, event.count) for event in report.events] == [
        ("torch.nccl-watchdog", "collateral", 7),
        ("torch.cuda-oom", "root", 1),
    ]


REMOTE = """\
Traceback (most recent call last):
  File "/job/main.py", line 10, in <module>
    ray.get(future)
  File "/site-packages/ray/_private/worker.py", line 2623, in get
    values = worker.get_objects(refs)
ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.actor_rollout_generate_sequences() (pid=99, ip=10.0.0.3)
  File "/site-packages/vllm/worker/worker.py", line 88, in execute_model
    logits = self.compute()
"""


def test_a_remote_error_of_ray_is_told_by_its_innermost_part(read: ReadLog) -> None:
    """The wrapper repeats; what the worker raised is the root, with the worker's frames and call."""
    root = read(REMOTE + OOM + "\n").root
    assert root is not None
    assert (root.pattern, root.line, root.remote) == (
        "torch.cuda-oom",
        9,
        "WorkerDict.actor_rollout_generate_sequences",
    )
    assert [str(frame) for frame in root.frames] == ["/site-packages/vllm/worker/worker.py:execute_model"]


def test_a_drivers_version_is_none_of_cuda(read: ReadLog) -> None:
    """`nvidia-smi` prints it beside the newest CUDA that it runs; the job's own is printed elsewhere."""
    table = "| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07   CUDA Version: 12.4     |\n"
    report = read(table)
    assert [found.version for found in report.frameworks if found.name == "cuda"] == [""]
    stated = [fact.fields for fact in report.facts if fact.kind == "gpu_driver"]
    assert stated == [{"driver_version": "550.90.07", "newest_cuda_version": "12.4"}]
    report = read(f"{table}Cuda compilation tools, release 11.8, V11.8.89\n")
    assert [found.version for found in report.frameworks if found.name == "cuda"] == ["11.8"]


def test_a_report_names_phase_and_frameworks_by_the_frames(read: ReadLog) -> None:
    """Paths of frames tell what ran and what it was doing."""
    report = read(REMOTE + OOM + "\n")
    assert report.phase == "rollout"
    assert {"vllm", "ray"} <= {found.name for found in report.frameworks}


@each_row(
    ("engine", "line"), [("vllm", "vLLM is using nccl==2.26.2"), ("sglang", "sglang is using nccl==2.21.5")]
)
def test_the_version_of_nccl_that_an_engine_prints_is_not_its_own(
    read: ReadLog, engine: str, line: str
) -> None:
    """Nor does it tell of another engine."""
    assert {(found.name, found.version) for found in read(f"{line}\n").frameworks} == {
        (engine, ""),
        ("nccl", line.rpartition("=")[2]),
    }


SERVED = 'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
SGLANG = "$ python3 -m sglang.launch_server --model-path /models/q --port 30000"
SHARDS = "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:01<00:03,  1.01s/it]"


@each_row(
    ("rows", "engines"),
    [
        ([SERVED], {"vllm"}),
        ([SGLANG, SERVED, SHARDS], {"sglang"}),
        # Whichever comes first.
        ([SERVED, SHARDS, SGLANG], {"sglang"}),
        ([SGLANG, "vLLM API server version 0.8.5", SERVED], {"sglang", "vllm"}),
    ],
)
def test_a_line_that_two_engines_print_shows_neither_beside_the_other(
    read: ReadLog, rows: list[str], engines: set[str]
) -> None:
    """Engines take code over from each other, and words with it."""
    report = read("\n".join([*rows, ""]))
    assert {found.name for found in report.frameworks} & {"vllm", "sglang"} == engines


@each_row(
    ("row", "kind", "fields"),
    [
        (
            "Memory cgroup out of memory: Killed process 71 (python) total-vm:9kB, anon-rss:8388608kB",
            "host_oom",
            {"anon_rss_gib": 8.0},
        ),
        (
            "/tmp/ray/session_1 is over 95% full, available space: 512 MB; capacity: 1.5 TB.",
            "disk",
            {"available_gib": 0.5, "capacity_gib": 1536.0},
        ),
        ("/tmp/ray/s is over 95% full, available space: 2153391718; capacity: 98306900000.", "disk", {}),
        ("step:4 - perf/cpu_memory_used_gb:412.5 - x:1", "host_memory", {"used_gib": 412.5}),
        (
            "Generating train split: 39900 examples [00:09, 4100.00 examples/s]",
            "preprocess",
            {"examples_n": 39900},
        ),
        ("Map (num_proc=16):  40%|████      | 4000/10000 [00:02<00:03]", "preprocess", {"percent": 40}),
    ],
)
def test_a_fact_has_the_unit_that_its_name_says(
    read: ReadLog, row: str, kind: str, fields: dict[str, float]
) -> None:
    """Sizes are GiB, shares are percent, and a count is neither."""
    (found,) = (fact.fields for fact in read(f"{row}\n").facts if fact.kind == kind)
    names = {"anon_rss_gib", "available_gib", "capacity_gib", "used_gib", "examples_n"} | (
        {"percent"} if kind == "preprocess" else set()
    )
    assert {name: value for name, value in found.items() if name in names} == fields


def test_each_line_under_a_validators_heading_is_a_failure_of_its_own(read: ReadLog) -> None:
    """The heading only counts them; what is wrong stands below it."""
    log = traceback("pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings") + (
        "  Value error, it takes max_images 1 through 4 [type=value_error, input_value=ArgsKwargs((), "
        "{}), input_type=ArgsKwargs]\n"
    )
    assert [one.line for one in read(log).standing if one.cause == "config-key-invalid"] == [6, 7]


@each_row(
    "prefix",
    ["", RAY, TORCHRUN, CRI, STAMP, KUBECTL],
    ids=["bare", "ray", "torchrun", "cri", "stamp", "kubectl"],
)
def test_code_that_a_traceback_quotes_is_no_event(read: ReadLog, prefix: str) -> None:
    """A line of source that mentions a message is not that message."""
    report = read(prefixed(prefix, traceback(STRANGE, code=f'raise RuntimeError("{OOM}")')))
    assert told(report) == [("python.exception", 6, "root", 1)]


@each_row(
    ("log", "expected"),
    [
        (traceback(OOM) + steps(1, 2, 3), [("torch.cuda-oom", 6, "recovered", 1)]),
        (traceback(STRANGE) + steps(1, 2, 3), [("python.exception", 6, "recovered", 1)]),
        (steps(1, 2) + traceback(OOM) + steps(3), [("torch.cuda-oom", 8, "root", 1)]),
        (steps(8) + traceback(OOM) + steps(1, 2, 3), [("torch.cuda-oom", 7, "recovered", 1)]),
        (
            traceback(STRANGE) + steps(1, 2, 3) + traceback(OOM),
            [("python.exception", 6, "recovered", 1), ("torch.cuda-oom", 15, "root", 1)],
        ),
        (traceback(OOM) + steps(1, 2, 3) + traceback(OOM), [("torch.cuda-oom", 6, "root", 2)]),
    ],
    ids=[
        "then-progress",
        "unknown-then-progress",
        "one-step-in-flight",
        "restarted-from-one",
        "two-failures",
        "it-comes-back",
    ],
)
def test_an_error_followed_by_progress_is_recovered(
    read: ReadLog, log: str, expected: list[tuple[str, int, str, int]]
) -> None:
    """Two rising steps are progress, also those of a restart; what comes back was not recovered from."""
    assert told(read(log)) == expected


def test_a_healthy_log_has_no_root(read: ReadLog) -> None:
    """Progress alone is no failure, and is counted."""
    report = read("loading\n" + steps(*range(1, 30)))
    assert (report.root, report.events, report.last_step) == (None, (), 29)
    assert report.marks >= 29
    assert report.fingerprint == ""


def test_a_chains_first_exception_is_read_and_the_second_too(read: ReadLog) -> None:
    """'During handling of ...' separates two tracebacks."""
    chain = (
        traceback("LookupError: first")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback(STRANGE)
    )
    assert [(event.exception, event.line) for event in read(chain).events] == [
        ("LookupError", 6),
        ("ValueError", 15),
    ]


def test_a_blank_line_after_a_message_is_no_event(read: ReadLog) -> None:
    """What an expression takes beyond its line counts nothing."""
    report = read(traceback("KeyError: 'k'") + "\n\nthe end\n")
    assert [(event.line, event.count) for event in report.events] == [(6, 1)]


@each_row("place", [0, 1 << 20, 4 << 20, 5_000_000])
def test_a_line_of_five_megabytes_is_searched_throughout(read: ReadLog, place: int) -> None:
    """What stands deep in one long line is found, shown, and on line 1."""
    report = read("." * place + f" {OOM} " + "." * (5_000_000 - place))
    assert told(report) == [("torch.cuda-oom", 1, "root", 1)]
    assert report.root is not None
    assert "Tried to allocate 2.00 GiB" in report.root.text
    assert report.limits.lines == 1


@each_row("width", [7_000, 40_000, 3_000_000])
def test_a_failure_behind_steps_in_one_line_is_found(read: ReadLog, width: int) -> None:
    """What a wide line says first does not hide what it says last: each is looked for around its own place."""
    steps = "loss=2.31 step=1180 " * (width // 20)
    report = read(steps + OOM)
    assert told(report) == [("torch.cuda-oom", 1, "root", 1)]
    assert report.root is not None
    assert "Tried to allocate 2.00 GiB" in report.root.text


def test_bytes_that_are_no_text_are_read_around(read: ReadLog) -> None:
    """Broken UTF-8 in a line hides neither it nor its neighbours."""
    report = read(b"\xff\xfa\n" + b"\xc3 " + OOM.encode() + b" \xe5\x86\n")
    assert told(report) == [("torch.cuda-oom", 2, "root", 1)]


def test_utf_16_is_read_as_text(read: ReadLog) -> None:
    """A log that PowerShell wrote gives the same report."""
    assert told(read(traceback(OOM).encode("utf-16"))) == told(read(traceback(OOM)))


def test_control_characters_do_not_reach_the_report(read: ReadLog) -> None:
    """A hostile log cannot drive the reader's terminal."""
    report = read(traceback(f"ValueError: \x1b]0;owned\x07 \x9b31m \u202egnirts \x08\x08 {STRANGE}"))
    texts = [event.text + event.body for event in report.events] + [
        text for _, text in (*report.surroundings, *report.tail)
    ]
    assert len(texts) > 5
    assert [char for text in texts for char in text if char != "\t" and not char.isprintable()] == []


SECRET = "hunter22verylongsecret"  # noqa: S105 - made up


@each_row(
    "log",
    [
        traceback(f"ValueError: login failed for password={SECRET}"),
        f"export DB_PASSWORD={SECRET}\n" + traceback(OOM),
        traceback(OOM, code=f'client.login(password="{SECRET}")'),
        f"+ python train.py --api_key {SECRET} x.password={SECRET}\n" + traceback(OOM),
        "Namespace(lr=1, password='" + SECRET + "')\n" + traceback(OOM),
    ],
    ids=["message", "neighbour", "quoted-code", "command", "dump"],
)
def test_a_secret_is_nowhere_in_the_report(read: ReadLog, log: str) -> None:
    """Texts, frames, facts, settings, surroundings: all are masked, and the mask is counted."""
    report = read(log)
    assert report.root is not None
    assert SECRET not in repr(report)
    assert report.redactions > 0


def test_a_secret_that_the_cut_of_a_long_line_halves_stays_hidden(read: ReadLog) -> None:
    """Masking comes before cutting: a secret without its beginning is still one."""
    token = "hf_" + "QwErTyUiOp" * 3 + "AsDf"
    for gap in range(700, 1010, 10):
        report = read("." * 5000 + f" {token} " + "." * gap + OOM + "." * 5000)
        assert report.root is not None
        assert token[-12:] not in repr(report), gap


def test_one_secret_counts_once(read: ReadLog) -> None:
    """The number of redactions is of the log's secrets, not of the places that show them."""
    assert read(traceback(f"ValueError: login failed for password={SECRET}")).redactions == 1


def test_crashes_of_one_kind_have_one_fingerprint(read: ReadLog) -> None:
    """Ids, numbers and paths do not count; another function does."""
    first, again, other = (
        read(log).fingerprint
        for log in (
            prefixed("[rank0]: ", traceback(OOM)),
            "hello\n" + prefixed(RAY, traceback(OOM.replace("2.00", "3.50"))),
            traceback(OOM, function="evaluate"),
        )
    )
    assert first == again != other
    assert len(first) == 16


def test_two_logs_read_after_each_other_do_not_mix(read: ReadLog) -> None:
    """Nothing of a log is left when the next is read."""
    alone = read(traceback(STRANGE))
    read(REMOTE + OOM + "\n")
    assert read(traceback(STRANGE)) == alone


@pytest.mark.long
def test_a_flood_of_tracebacks_is_bounded_and_keeps_the_first(read: ReadLog) -> None:
    """Thousands of different errors: the earliest stays, what is left out is told."""
    kinds = ["".join(chr(97 + number // 26**place % 26) for place in range(3)) for number in range(4000)]
    report = read("".join(traceback(f"ValueError: the {kind} is in the wrong house") for kind in kinds))
    assert report.root is not None
    assert report.root.line == 6
    assert report.limits.truncated
    assert int(report.limits.omitted["events"]) + sum(event.count for event in report.events) == 4000
