"""An end from outside: what it follows of, what comes of it, and what only met what was left."""

from __future__ import annotations

from tests.factories import ReadLog, prefixed, steps, traceback
from tests.tables import each_row

LOGGED = """Traceback (most recent call last):
  File "/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/env/lib/python3.11/site-packages/torch/distributed/elastic/multiprocessing/api.py", line 84, in on
    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)
torch.distributed.elastic.multiprocessing.api.SignalException: Process 2219 got signal: {number}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/env/lib/python3.11/logging/__init__.py", line 1711, in isEnabledFor
    return self._cache[level]
KeyError: 30
"""
HUP = "run.sh: line 12:  8156 Hangup                  python3 main.py\n"
SLURM_HUP = "srun: error: gpu-08: tasks 8-15: Hangup\n"
TERMINATED = "srun: error: gpu-08: tasks 8-15: Terminated\n"
TIME_LIMIT = (
    "slurmstepd: error: *** JOB 77 ON gpu-07 CANCELLED AT 2025-11-07T11:30:22 DUE TO TIME LIMIT ***\n"
)
SLIP = traceback("KeyError: 'lora_rank'")
UNCAUGHT = SLIP.replace("in main", "in <module>")
INTERRUPTED = traceback("KeyboardInterrupt")


@each_row(
    "text, line, cause",
    [
        # A session that closes follows no failure of the job, and what its handler meets comes of it.
        (steps(1, 2) + LOGGED.replace("{number}", "1"), 8, "scheduler-terminated"),
        (steps(1, 2) + HUP, 3, "scheduler-terminated"),
        (steps(1, 2) + SLURM_HUP, 3, "scheduler-terminated"),
        (SLURM_HUP + SLIP, 1, "scheduler-terminated"),
        # What launchers send to their own processes does.
        (TERMINATED + SLIP, 1 + SLIP.count("\n"), "user-code-error"),
        (SLIP + SLURM_HUP, SLIP.count("\n"), "user-code-error"),
    ],
)
def test_that_a_signal_from_outside_stands_by_itself(text: str, line: int, cause: str, read: ReadLog) -> None:
    root = read(text).root
    assert root is not None
    assert (root.line, root.cause) == (line, cause)


@each_row(
    "text, role",
    [
        (UNCAUGHT + TIME_LIMIT, "collateral"),
        # Whoever caught its exception may have gone on until the limit.
        (SLIP + TIME_LIMIT, "origin"),
        (UNCAUGHT + steps(1, 2, 3) + TIME_LIMIT, "origin"),
    ],
)
def test_that_a_time_limit_only_met_what_an_uncaught_exception_had_left(
    text: str, role: str, read: ReadLog
) -> None:
    events = {event.line: event for event in read(text).events}
    assert events[text.count("\n")].pattern_role == role


def test_that_the_main_process_shows_where_workers_were_interrupted(read: ReadLog) -> None:
    """The workers' stacks come first and are Python's own; the job's own call is in the main process's."""
    worker = INTERRUPTED.replace("/job/", "/env/lib/python3.11/multiprocessing/")
    root = read(3 * worker + INTERRUPTED).root
    assert root is not None
    assert root.frames[-1].file == "/job/trainer.py"


REPORT = (
    "E0206 09:31:24.396000 3859 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) "
    "local_rank: {rank} (pid: 3860) of binary: /env/bin/python\n"
)
LOST = prefixed("[rank0]: ", UNCAUGHT)
OTHERS = "".join(f"Packing:  1{part}%|#   | 1{part}/99 [00:0{part}<00:12, 8.9 rows/s]\n" for part in range(4))
CLOSED = prefixed(
    "[rank1]: ", traceback("RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:99")
)


@each_row(
    "text, rank",
    [
        (LOST + OTHERS + CLOSED + REPORT.format(rank=0), "0"),
        # Nothing says that the first one ended its rank: what went on shows that it was survived.
        (LOST + OTHERS + CLOSED + REPORT.format(rank=1), "1"),
    ],
)
def test_that_another_ranks_work_is_no_recovery_of_one_that_the_launcher_reports(
    text: str, rank: str, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert root.rank == rank


MESSAGE = "Cannot access gated repo for url https://huggingface.co/org/net/resolve/main/config.json.\n"
WARNED = (
    "{before}/env/lib/python3.10/site-packages/peft/utils/other.py:689: UserWarning: Unable to fetch: 401\n"
    "{among}" + MESSAGE + "Access to it is restricted. - silently ignoring the lookup.\n  warnings.warn(\n"
)


@each_row(
    "before, among",
    [
        ("", ""),
        (" " * 40, ""),
        ("", "\n"),
        (" " * 40, "Train step:  14%|#   | 24/176 [38:45<4:02, 9.47s/it]\n"),
    ],
)
def test_that_a_message_within_a_python_warning_is_no_root_beside_an_exception(
    before: str, among: str, read: ReadLog
) -> None:
    text = WARNED.format(before=before, among=among) + SLIP
    root = read(text).root
    assert root is not None
    assert root.line == text.count("\n")


def test_that_the_same_message_without_a_warning_is_the_root(read: ReadLog) -> None:
    root = read(MESSAGE + SLIP).root
    assert root is not None
    assert root.line == 1


DIED = "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n"
TAKEN = prefixed(
    "(WorkerDict pid=7) ",
    traceback(
        "RuntimeError: The server socket has failed to listen on any local network address. "
        "port: 30129, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use"
    ),
)


UNTOLD = traceback("RuntimeError: the kernel of this was left out").replace("in main", "in <module>")
CANCELLED = TIME_LIMIT.replace(" DUE TO TIME LIMIT", "")


@each_row(
    "text, exception",
    [
        # Each rank says the same once: that is no life after it, whether its cause is known or not.
        (steps(1, 2) + 3 * UNTOLD + TIME_LIMIT, "RuntimeError"),
        (steps(1, 2) + 3 * UNCAUGHT + TIME_LIMIT, "KeyError"),
        (steps(1, 2) + UNTOLD + CANCELLED, "RuntimeError"),
        (steps(1, 2) + UNTOLD + HUP, "RuntimeError"),
        # Who caught it may have gone on, and work shows that somebody did.
        (steps(1, 2) + 3 * UNTOLD.replace("in <module>", "in main") + TIME_LIMIT, ""),
        (UNTOLD + steps(1, 2, 3, 4) + TIME_LIMIT, ""),
    ],
)
def test_that_ranks_that_died_before_an_end_from_outside_outweigh_it(
    text: str, exception: str, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert root.exception == exception


@each_row(
    "text, cause",
    [
        (TAKEN + steps(1, 2) + DIED, "port-in-use"),
        # So far above, the process that died need not be the one that said so.
        (TAKEN + steps(*range(1, 90)) + DIED, None),
        (steps(1, 2) + DIED, None),
    ],
)
def test_that_a_process_whose_death_is_reported_died_of_its_last_exception(
    text: str, cause: str | None, read: ReadLog
) -> None:
    """The others' work between the exception and the report does not undo it."""
    root = read(text).root
    assert root is not None
    assert root.cause == cause


@each_row("file", ["rows.csv", "train.jsonl", "run.bin"])
def test_that_a_file_which_is_not_there_is_missing_whatever_it_would_hold(file: str, read: ReadLog) -> None:
    root = read(traceback(f"FileNotFoundError: [Errno 2] No such file or directory: 'data/{file}'")).root
    assert root is not None
    assert root.cause == "file-missing-or-denied"


def test_that_a_shell_which_says_nothing_else_tells_of_an_end_from_outside(read: ReadLog) -> None:
    """Its own foreground command was terminated; a failure that stands says more."""
    ended = steps(1, 2) + "run.sh: line 12:  8156 Terminated              python3 main.py\n"
    root = read(ended).root
    assert root is not None
    assert (root.cause, root.strength) == ("scheduler-terminated", "suggests")
    failed = read(
        steps(1, 2) + SLIP + "run.sh: line 12:  8156 Terminated              python3 main.py\n"
    ).root
    assert failed is not None
    assert failed.cause == "user-code-error"


WELL = "2025-11-07 {clock} INFO Training complete. Model saved to out/m.pt\n"


@each_row(
    "text, is_root",
    [
        # A session that nobody closed.
        (WELL.format(clock="03:04:05") + TIME_LIMIT, False),
        (WELL.format(clock="03:04:05") + "Results saved to out/r.json\n" + TIME_LIMIT * 2, True),
        (
            WELL.format(clock="03:04:05")
            + "2025-11-07 03:04:06 INFO Results saved to out/r.json\n"
            + TIME_LIMIT,
            False,
        ),
        # The time ran out as it ended, nobody knows when it ended, or it went on.
        (WELL.format(clock="11:30:05") + TIME_LIMIT, True),
        ("Training complete.\n" + TIME_LIMIT, True),
        (WELL.format(clock="03:04:05") + "uploading 3 files\n" + TIME_LIMIT, True),
        (WELL.format(clock="03:04:05") + steps(1, 2, 3) + TIME_LIMIT, True),
    ],
)
def test_that_a_time_limit_long_after_a_good_end_ended_nothing(
    text: str, is_root: bool, read: ReadLog
) -> None:
    report = read(text)
    assert (report.root is not None) == is_root
    assert is_root or report.log_end.kind == "closed"
