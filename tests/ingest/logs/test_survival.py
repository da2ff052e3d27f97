"""What a process logged and lived on after is no root of an end that has a reason of its own."""

from __future__ import annotations

from ingest.logs.lines import parse_line
from ingest.logs.survival import calm, names_in
from tests.factories import ReadLog, prefixed, steps, traceback
from tests.tables import each_row

STAMP = "2025-10-01 10:00:0{second},001 {level} {name}: {text}\n"
CAUGHT = STAMP.format(second=0, level="ERROR", name="index", text="could not fetch the index") + traceback(
    "requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='idx.local', port=443): Max retries"
)
CALM = "".join(
    STAMP.format(second=number, level="INFO", name="setup", text=text)
    for number, text in enumerate(("using the local copy", "12044 rows", "1.2 B parameters"), 1)
)
SLIP = traceback("KeyError: 'cosine_warm'", code="schedule = SCHEDULES[name]")
RAISED = traceback("quux.OddError: the moon", code="raise OddError(text)")
SAME = traceback("requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='other.local', port=443): odd")
TIED = "2025-10-01 10:00:00,001 ERROR ops: could not build\n" + traceback(
    "ImportError: Failed to import the compiled CUDA ops of fused_rope"
)
LOADED = "WARNING: could not load the library fused_rope: libx.so.11.0: cannot open shared object file: odd\n"
MISSED = traceback("AttributeError: '_OpNamespace' 'ops' object has no attribute 'fused_rope'")


@each_row(
    "text, is_last",
    [
        (CAUGHT + CALM + SLIP, True),
        # The process has not shown that it lives, or the end is what it makes of the failure.
        (CAUGHT + SLIP, False),
        (CAUGHT + CALM + RAISED, False),
        (CAUGHT + CALM + SAME, False),
        # Nobody caught the first one: its process ended by it, and another went on.
        (traceback("KeyError: 'x'") + CALM + SLIP, False),
        # Another process's life says nothing of this one's.
        (prefixed("(Worker pid=11) ", CAUGHT) + CALM + SLIP, False),
        # What the end misses is what could not be made before.
        (TIED + CALM + MISSED, False),
        (LOADED + CALM + MISSED, False),
    ],
)
def test_that_a_logged_failure_is_survived_where_another_ends_a_calm_process(
    text: str, is_last: bool, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert (root.line == text.count("\n")) == is_last


def test_that_a_job_lives_with_what_it_caught_over_steps(read: ReadLog) -> None:
    """Sixty samples that could not be scored, the last one behind the last step, are no end; a crash of each
    rank is one, however many ranks and restarts print it.
    """
    caught = "".join(traceback(f"ValueError: no answer in sample {number}") for number in range(20))
    lived_with = caught + steps(1) + caught + steps(2) + caught
    assert read(lived_with).root is None
    uncaught = caught.replace("in main", "in <module>")
    for text in (uncaught + steps(1) + uncaught + steps(2) + uncaught, steps(1, 2, 3) + caught * 3, caught):
        assert read(text).root is not None, text


@each_row(
    "rows, expected",
    [
        (["loaded", "12 rows"], 2),
        (["loaded", "WARNING: odd", "12 rows"], 1),
        (["loaded", "  indented"], 1),
        (["connection refused"], 0),
        (["loaded", "第 3 步加载失败", "12 rows"], 1),
    ],
)
def test_that_calm_lines_are_counted_to_the_nearest_of_trouble(rows: list[str], expected: int) -> None:
    assert calm(parse_line(row.encode(), 1) for row in rows) == expected


@each_row(
    "text, expected",
    [
        ("could not load fused_rope: gone", {"fused_rope"}),
        ("no module named flash_attn_2_cuda.ops", {"flash_attn_2_cuda"}),
        ("the moon is in the wrong house", set()),
    ],
)
def test_that_names_are_told_from_plain_words(text: str, expected: set[str]) -> None:
    assert names_in(text) == expected


def at_statement(number: int, error: str) -> str:
    """Write the stack of a script's own statement."""
    place = f'  File "/job/predict.py", line {number}, in <module>'
    return f"Traceback (most recent call last):\n{place}\n    go()\n{error}\n"


@each_row(
    "text, is_last",
    [
        (at_statement(76, "ValueError: too long") + CALM + at_statement(99, "KeyError: 'a'"), True),
        # A script that ran again, or ranks of it, fail at one statement; a loop's may come back to it.
        (at_statement(76, "ValueError: too long") + CALM + at_statement(76, "KeyError: 'a'"), False),
        (at_statement(99, "ValueError: too long") + CALM + at_statement(76, "KeyError: 'a'"), False),
        # Two processes that write into one log fail together.
        (at_statement(76, "ValueError: too long") + at_statement(99, "KeyError: 'a'"), False),
    ],
)
def test_that_a_script_which_came_to_a_later_statement_had_caught_what_it_printed(
    text: str, is_last: bool, read: ReadLog
) -> None:
    """An exception that nobody catches ends a script at the statement that its stack begins with."""
    root = read(text).root
    assert root is not None
    assert (root.line == text.count("\n")) == is_last


@each_row(
    "words",
    ["Continuing to next case in 60s", "continuing with the remaining files", "moving on to the next sample"],
)
def test_that_a_line_which_says_that_its_program_goes_on_is_no_failure(words: str, read: ReadLog) -> None:
    """Whoever says what comes next has lived through what the line tells."""
    error = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"
    assert read(f"An error occurred: {error}. {words}\n" + steps(3)).root is None


def test_that_what_a_handler_meets_is_a_failure_of_its_own(read: ReadLog) -> None:
    """What it raises is the first exception in other words."""
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    absent = traceback("KeyError: 'cached'", code="path = known[name]")
    denied = "PermissionError: [Errno 13] Permission denied: '/shared/cache/x'"
    for code, is_last in (("os.mkdir(path, mode)", True), ("raise PermissionError(13, text, path)", False)):
        text = absent + link + traceback(denied, code=code)
        root = read(text).root
        assert root is not None
        assert (root.line == text.count("\n")) == is_last, code


def logged(loss: str, number: int) -> str:
    """Write a step as Transformers' trainer logs it."""
    return f"{{'loss': {loss}, 'grad_norm': {loss}, 'learning_rate': 1e-05, 'epoch': 0.{number}}}\n"


DONE = "{'train_runtime': 1234.5, 'train_samples_per_second': 3.2, 'train_loss': 0.12, 'epoch': 1.0}\n"
LOST = "".join(logged("nan", number) for number in (2, 3, 4))
KEPT = "step:{number} - actor/pg_loss:nan - actor/grad_norm:nan - critic/rewards/mean:0.0\n"


@each_row(
    "text, is_lost",
    [
        (logged("1.2", 1) + LOST + DONE, True),
        ("".join(KEPT.format(number=number) for number in (1, 2, 3)) + "Training finished.\n", True),
        # Too few of them, steps that count again, or the loss of a validation without data.
        (logged("1.2", 1) + logged("nan", 2) + DONE, False),
        (LOST + logged("1.2", 5) + logged("1.1", 6) + logged("1.0", 7) + DONE, False),
        (3 * "epoch 1 train_loss: 0.4 val_loss: nan\n" + DONE, False),
    ],
)
def test_that_no_end_is_good_of_a_run_whose_loss_is_no_number(
    text: str, is_lost: bool, read: ReadLog
) -> None:
    root = read(text).root
    assert (root.cause if root else None) == ("nan-or-inf" if is_lost else None)


BARS = "".join(f"Mapping:   {part}%|#   | {part}/100 [00:0{part}<00:20,  9.1it/s]\n" for part in range(1, 8))
UNCAUGHT = traceback("UnboundLocalError: local variable 'rows' referenced before assignment")
UNCAUGHT = UNCAUGHT.replace("in main", "in <module>")
EXITED = (
    "[2025-10-01 10:00:09,027] [ERROR] [launch.py:322:sigkill_handler] ['python', 'train.py'] exits with "
)


@each_row(
    "text, is_root",
    [
        (UNCAUGHT + BARS + EXITED + "return code = 1\n", True),
        # Nobody reports an end: another program of the script may have gone on.
        (UNCAUGHT + BARS, False),
        (UNCAUGHT.replace("in <module>", "in main") + BARS + EXITED + "return code = 1\n", False),
    ],
)
def test_that_bars_of_other_ranks_undo_no_exception_whose_end_a_launcher_reports(
    text: str, is_root: bool, read: ReadLog
) -> None:
    """Also where no line tells which rank it was."""
    root = read(text).root
    assert (root is not None and root.body.startswith("UnboundLocalError")) == is_root


APEX = (
    "/env/lib/python3.10/site-packages/shard/layer.py:45: UserWarning: Please install apex from source "
    '(https://github.com/NVIDIA/apex) to use the fused kernel\n  warnings.warn("Please install apex from '
    'source (https://github.com/NVIDIA/apex) to use the fused kernel")\n'
)


def test_that_bars_of_other_ranks_undo_no_watchdog_whose_abort_a_launcher_reports(read: ReadLog) -> None:
    """Without the report, a watchdog that fired and work that went on are two things of one log."""
    fired = (
        "[E ProcessGroupNCCL.cpp:737] [Rank 3] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800710 milliseconds before "
        "timing out.\n"
    )
    bars = "".join(f"Mapping:  {n}%|█         | {n * 8}/800 [00:0{n}<02:00,  8.0ba/s]\n" for n in range(1, 6))
    report = (
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: 3 (pid: 4711) "
        "of binary: /env/bin/python\n"
    )
    root = read(fired + bars + report).root
    assert root is not None
    assert (root.line, root.pattern) == (1, "torch.nccl-watchdog")
    assert read(fired + bars + "all rows mapped\n" + bars.replace("00:0", "00:1")).root is None


def test_that_a_warning_of_python_is_no_failure_of_a_log_that_goes_on(read: ReadLog) -> None:
    """Alone it is what somebody asks about."""
    assert read(APEX).root is not None
    assert read(APEX + "".join(f"did {number} of many\n" for number in range(90))).root is None


REMARK = "Fast path is off: No module named 'fastpath'. Please pip install fastpath >= 0.2\n"
LOADING = (
    "Loading weights:   0%|          | 0/27 [00:00<?, ?it/s]\rLoading weights: 100%|█| 27/27 [00:00<00:00]\n"
)
BAR = "  0%|          | 0/5600 [00:00<?, ?it/s]\n"


@each_row(
    "text, is_outlived",
    [
        # The end has nothing of what the program said that it goes on without.
        (REMARK + "12 rows\n" + SLIP, True),
        (REMARK + SLIP, True),
        # It names what was missed, in its message or in a call.
        (REMARK + "12 rows\n" + traceback("ValueError: attention of FastPath is not there"), False),
        (REMARK + "12 rows\n" + traceback("ValueError: odd", code="out = fastpath.run(x)"), False),
        # It meets the name that was left without a value.
        (REMARK + "12 rows\n" + traceback("TypeError: 'NoneType' object is not callable"), False),
        # It is what the program makes of the remark, right below.
        (REMARK + RAISED, False),
        # Work of two kinds goes on behind the remark; a single bar may be another process's.
        (REMARK + LOADING + BAR, True),
        (REMARK + BAR, False),
        (REMARK, False),
    ],
)
def test_that_a_remark_on_a_missing_module_is_outlived_by_work_and_by_an_end_of_another_kind(
    text: str, is_outlived: bool, read: ReadLog
) -> None:
    event = next(event for event in read(text).events if event.pattern == "python.module-not-found")
    assert (event.role == "recovered") == is_outlived


DIED = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. "
    "Worker ID: {}\n"
)
AGAIN = "(raylet) Task clean failed. There are {} retries remaining, so the task will be retried. Error: \n"
LATE = " [repeated 2x across cluster]\n"


@each_row(
    "text, is_standing",
    [
        # What Ray tells late and together was said before, and the tasks were run anew.
        (
            DIED.format("a1" * 14)
            + AGAIN.format(5)
            + "cleaned 40 of 40 rows\n"
            + DIED.format("b2" * 14).strip()
            + LATE,
            False,
        ),
        (
            DIED.format("a1" * 14) + "cleaned 39 of 40 rows\n" + DIED.format("b2" * 14) + AGAIN.format(5),
            False,
        ),
        (DIED.format("a1" * 14) + "cleaned 39 of 40 rows\n" + DIED.format("b2" * 14), True),
        (DIED.format("a1" * 14) + AGAIN.format(0).replace("be retried", "fail"), True),
    ],
)
def test_that_a_task_which_ray_runs_anew_is_no_failure(text: str, is_standing: bool, read: ReadLog) -> None:
    """A worker that died for good stands, and so does a task whose tries are used up."""
    assert (read(text).root is not None) is is_standing


PACKAGES = "/opt/env/lib/python3.11/site-packages"


def of_import(error: str, package: str = "fastops", level: str = "ERROR") -> str:
    """Write what a package logs that catches the failure of a part of its own as it is imported."""
    said = STAMP.format(second=0, level=level, name=package, text="could not load the native part")
    module = f'  File "{PACKAGES}/{package}/native.py", line 85, in <module>\n    lib = load()\n'
    inner = f'  File "{PACKAGES}/{package}/native.py", line 72, in load\n    return ctypes.CDLL(path)\n'
    return f"{said}Traceback (most recent call last):\n{module}{inner}{error}\n"


BINARY = (
    f"OSError: {PACKAGES}/bitsandbytes/libbitsandbytes_cpu.so: cannot open shared object file: No such file"
)
SYMBOL = (
    f"ImportError: {PACKAGES}/fastops/_C.so: undefined symbol: _ZN3c1015SmallVectorBaseIjE8grow_podEPKvmm"
)
OPTIMIZER = traceback("NameError: name 'str2optimizer32bit' is not defined").replace(
    "/job/trainer.py", f"{PACKAGES}/bitsandbytes/functional.py"
)


@each_row(
    "text, is_last",
    [
        (of_import(BINARY, "bitsandbytes") + SLIP, True),
        (of_import(SYMBOL) + SLIP, True),
        (of_import(SYMBOL) * 2 + "Killed by the kernel's OOM killer\n" + SLIP, True),
        # The end misses what the package could not load, by a call of it or by its name.
        (of_import(BINARY, "bitsandbytes") + OPTIMIZER, False),
        (of_import(SYMBOL) + traceback("RuntimeError: fastops has no kernel for this card"), False),
        # A launcher's program calls others: it ended by what one of them raised.
        (of_import(SYMBOL).replace("fastops/native.py", "launcher/run.py", 1) + SLIP, False),
        # Nobody said that it was caught: a program that stands among the packages ended by it.
        (of_import(SYMBOL, level="INFO") + CALM + SLIP, False),
    ],
)
def test_that_what_a_package_logs_of_its_import_ends_no_job(text: str, is_last: bool, read: ReadLog) -> None:
    root = read(text).root
    assert root is not None
    assert (root.line == text.count("\n")) == is_last


def test_that_what_a_package_logs_of_its_import_is_no_failure_of_a_job_that_works_on(read: ReadLog) -> None:
    assert read(of_import(SYMBOL) + steps(1, 2, 3)).root is None


def caught(error: str, function: str = "try_kernel") -> str:
    """Write an exception that a function of the job's own caught and printed."""
    frames = f'  File "/job/judge.py", line 71, in {function}\n    out = model(x)\n'
    return f"Traceback (most recent call last):\n{frames}{error}\nanswer is wrong\n"


WRONG = "TypeError: launch() missing 1 required positional argument: 'BLOCK'"
TOO_WIDE = "ValueError: numel (4194304) exceeds triton maximum tensor numel (1048576)"
FAULT = "Memory access fault by GPU node-2 (Agent handle: 0x59b634aec180) on address 0x7ffd03d53000."


@each_row(
    "text, is_last",
    [
        (caught(WRONG) + caught(TOO_WIDE) + caught(WRONG) + FAULT + "\n", True),
        (caught(WRONG) + caught(TOO_WIDE) * 2 + at_statement(9, "KeyError: 'a'"), True),
        # Ranks that fail together say the same, and what only follows an end is none.
        (caught(WRONG) * 4 + FAULT + "\n", False),
        (caught(WRONG) + caught(TOO_WIDE) * 2 + "Aborted (core dumped)\n", False),
        # Two functions, or the program itself, prove nothing of who went on.
        (caught(WRONG) + caught(TOO_WIDE, "main") + caught(WRONG, "load") + FAULT + "\n", False),
        (caught(WRONG, "<module>") + caught(TOO_WIDE, "<module>") * 2 + FAULT + "\n", False),
    ],
)
def test_that_what_one_function_caught_again_and_again_ended_nothing(
    text: str, is_last: bool, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert (root.line == text.count("\n")) == is_last


def unlogged(error: str) -> str:
    """Write how a logger tells that it could not log, and where that was."""
    emit = '  File "/usr/lib/python3.11/logging/__init__.py", line 1085, in emit\n    self.flush()\n'
    place = '  File "/job/train.py", line 90, in <module>\n    log.info(text, step)\n'
    head = "--- Logging error ---\nTraceback (most recent call last):\n"
    return f"{head}{emit}{error}\nCall stack:\n{place}Message: 'step %d'\nArguments: (200, 1.1)\n"


UNLOGGED = unlogged("TypeError: not all arguments converted during string formatting")


def test_that_what_a_logger_could_not_log_ends_nothing(read: ReadLog) -> None:
    """Python prints it and goes on (`logging.raiseExceptions`)."""
    for text in (UNLOGGED, unlogged("OSError: [Errno 5] Input/output error"), steps(1) + UNLOGGED + steps(2)):
        assert read(text).root is None, text
    root = read(UNLOGGED + at_statement(9, "KeyError: 'a'")).root
    assert root is not None
    assert root.exception == "KeyError"


SMASHED = "*** stack smashing detected ***: terminated\n"
MISSING = "RuntimeError: aclnnFusedScan or aclnnFusedScanGetWorkspaceSize not found."


@each_row(
    "text, cause",
    [
        (SMASHED * 3 + at_statement(9, MISSING), "accelerator-runtime"),
        # It stands far below, states nothing, or its program logged it.
        (SMASHED * 3 + "another row\n" * 60 + at_statement(9, MISSING), "native-crash"),
        (SMASHED * 3 + at_statement(9, "quux.OddError: the moon"), "native-crash"),
        (SMASHED * 3 + "2026-01-05 03:04:05,000 ERROR ops: x\n" + at_statement(9, MISSING), "native-crash"),
        (SMASHED * 3, "native-crash"),
    ],
)
def test_that_a_bare_word_of_a_crash_gives_way_to_what_one_process_states(
    text: str, cause: str, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert root.cause == cause


PRINTED = """Traceback (most recent call last):
  File "/job/grade.py", line 31, in grade
    choice = out.split("Answer:")[1]
IndexError: list index out of range
"""
ANSWERED = "".join(f"[{number}/200] question answered, score 0.{number % 10}\n" for number in range(41, 60))


@each_row(
    "text, is_root",
    [
        (ANSWERED + PRINTED + ANSWERED, False),
        (ANSWERED + "[40/200] failed: list index out of range\n" + PRINTED + ANSWERED, False),
        # Where no such row stands above, another process may print those below.
        (PRINTED + ANSWERED, True),
        # Nothing goes on, or too little; somebody gives up; who only waits does nothing.
        (ANSWERED + PRINTED, True),
        (PRINTED + "one row\nanother of them\nand a third\n", True),
        (PRINTED + ANSWERED + "giving up, cannot go on\n", True),
        (PRINTED + "waiting for 3 workers\n" * 20, True),
        # Nobody caught it: others went on.
        (PRINTED.replace("in grade", "in <module>") + ANSWERED, True),
        # A framework caught it, and what goes on below is its own.
        (PRINTED.replace("/job/", "/env/lib/python3.11/site-packages/vllm/") + ANSWERED, True),
        # Another process's rows say nothing of this one's.
        (PRINTED + prefixed("(Worker pid=11) ", ANSWERED), True),
    ],
)
def test_that_a_program_lives_on_after_an_exception_below_which_its_loop_goes_on(
    text: str, is_root: bool, read: ReadLog
) -> None:
    report = read(text)
    assert (report.root is not None) == is_root
    assert is_root or report.log_end.kind == "open"
