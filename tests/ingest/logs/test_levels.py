"""What a line's own level says of it: who warns has gone on, but a core's warning may be its last word."""

from __future__ import annotations

from tests.factories import OOM, ReadLog, steps, traceback
from tests.tables import each_row


@each_row(
    "line",
    [
        (
            "2026-01-03T09:12:44.120331Z  WARN text_generation_launcher::gpu: No compute capability: "
            "ModuleNotFoundError: No module named 'torch'"
        ),
        (
            "2026-01-03 09:12:44.120331: W tensorflow/core/loader.cc:59] Could not load dynamic library "
            "'libcudart.so.11.0'; dlerror: none"
        ),
        "W0103 09:12:44.120331 811 loader.py:59] ModuleNotFoundError: No module named 'flash_attn'",
    ],
)
def test_that_what_a_logger_warns_of_in_general_words_is_no_failure(line: str, read: ReadLog) -> None:
    events = read(f"{steps(1, 3)}{line}\n{steps(4, 9)}").events
    assert [event.kind for event in events] == ["warning"] * len(events)


def test_that_a_core_which_warns_of_its_own_trouble_may_name_the_cause(read: ReadLog) -> None:
    text = (
        "[W103 09:12:44.120331504 socket.cpp:759] [c10d] The IPv4 network addresses of (head-0, 29500) "
        "cannot be retrieved "
        "(gai error: -2 - Name or service not known).\n"
    )
    events = read(text).events
    assert [(event.kind, event.cause) for event in events] == [("error", "rendezvous-failed")]


def test_that_an_error_of_a_rust_server_stands(read: ReadLog) -> None:
    text = (
        "2026-01-03T09:12:44.120331Z ERROR text_generation_launcher: ModuleNotFoundError: No module named "
        "'flash_attn'\n"
    )
    assert [event.kind for event in read(text).events] == ["error"]


def test_that_what_nccl_remarks_in_general_words_gives_way_to_a_failure(read: ReadLog) -> None:
    remark = (
        "gpu-3:811:902 [1] NCCL INFO dlvsym failed on ibv_reg - /lib/libmlx5.so: undefined symbol: ibv_reg"
    )
    root = read(f"{remark}\n{steps(1)}{OOM}\n").root
    assert root is not None
    assert root.cause == "gpu-oom-training"


REFUSED = "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
CAUGHT = f"(WARNING)[restore.py:31]  {REFUSED}\n(INFO)[restore.py:40]  starting with a new optimizer\n"
SHAPE = traceback("RuntimeError: shape '[4, 8]' is invalid for input of size 30")


def test_that_what_a_program_warns_of_gives_way_to_the_exception_that_ends_it(read: ReadLog) -> None:
    root = read(CAUGHT + SHAPE).root
    assert root is not None
    assert root.exception == "RuntimeError"


def test_that_the_same_words_uncaught_are_the_root(read: ReadLog) -> None:
    root = read(traceback(f"ValueError: {REFUSED}") + SHAPE).root
    assert root is not None
    assert root.exception == "ValueError"


BAR = "Iteration:   4%|5         | 161/4582 [04:22<1:44:44,  1.42s/it]"
WARNED = "01/03/2026 09:12:44 - WARNING - utils -   Could not find the answer in row 7\n"
CLOSED = "01/03/2026 09:20:01 - INFO - train -   Finished training.\n"


@each_row(
    "text, fails",
    [
        (BAR + WARNED + CLOSED, False),
        (WARNED + CLOSED, False),
        (BAR + WARNED, True),
        (BAR + WARNED.replace("WARNING", "ERROR") + CLOSED, True),
        (CLOSED + WARNED, True),
    ],
)
def test_that_a_good_end_undoes_what_a_logger_warned_of(text: str, fails: bool, read: ReadLog) -> None:
    """Also where the record stands behind a progress bar that was left open."""
    assert (read(text).root is not None) == fails


_WHERE = "W0103 09:12:44.120331 811 site-packages/torch/_dynamo/convert_frame.py:1125]"


def test_that_an_exception_that_a_warning_of_one_letter_holds_gives_way_to_the_one_that_ends_it(
    read: ReadLog,
) -> None:
    caught = traceback("torch._inductor.exc.CppCompileError: C++ compile error").splitlines()
    text = "".join(f"{_WHERE} {row}\n" for row in ("WON'T CONVERT forward", "due to:", *caught))
    root = read(text + traceback(OOM)).root
    assert root is not None
    assert root.cause == "gpu-oom-training"
    alone = read(traceback("torch._inductor.exc.CppCompileError: C++ compile error")).root
    assert alone is not None
    assert alone.cause == "jit-build-failed"
