"""Who only reports an end is no root where a program has said above it why it ended."""

from __future__ import annotations

from tests.factories import ReadLog, traceback
from tests.tables import each_row

SRUN = "srun: error: gpu-07: task 0: Exited with exit code 1\n"
SCRIPTED = """Traceback (most recent call last):
  File "/job/run.py", line 9, in <module>
    out = net(x)
  File "/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1102, in _call_impl
    return forward_call(*args)
RuntimeError: The following operation failed in the TorchScript interpreter.
Traceback of TorchScript, serialized code (most recent call last):
  File "code/__torch__/net.py", line 20, in forward
    _1 = torch.matmul(q, k)
         ~~~~~~~~~~~~ <--- HERE
Traceback of TorchScript, original code (most recent call last):
  File "/job/net.py", line 44, in forward
    scores = torch.matmul(q, k)
             ~~~~~~~~~~~~ <--- HERE
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x512 and 768x512)
"""


@each_row(
    "text, line, cause",
    [
        ("loading\n[ERROR] Data directory /data/v3 does not exist\n" + SRUN, 2, "file-missing-or-denied"),
        ("loading\nERROR: No training samples found in /data/v3\n" + SRUN, 2, "dataset-unreadable"),
        ("./run.sh: line 7: NODE_RANK: unbound variable\n" + SRUN, 1, "config-key-invalid"),
        # What says nothing of the cause leaves the report as it is, and so does what stands below it.
        ("loading\n[ERROR] giving up\n" + SRUN, 3, None),
        (SRUN + "[ERROR] Data directory /data/v3 does not exist\n", 1, None),
        # A failure that is known stays the root.
        ("[ERROR] Data directory /data/v3 does not exist\n" + traceback("KeyError: 'x'") + SRUN, 7, None),
    ],
)
def test_that_plain_words_above_a_report_of_the_end_are_the_root(
    text: str, line: int, cause: str | None, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert root.line == line
    assert cause is None or root.cause == cause


@each_row("level, strength", [("INFO", "suggests"), ("WARNING", "suggests")])
def test_that_a_launcher_tells_of_a_signal_at_any_level(level: str, strength: str, read: ReadLog) -> None:
    told = (
        f"[2025-02-20 20:27:14,902] [{level}] [launch.py:328:handler] Main process received SIGINT, exiting"
    )
    root = read(told + "\n").root
    assert root is not None
    assert (root.cause, root.strength) == ("scheduler-terminated", strength)


def test_that_a_torchscript_failure_is_what_its_own_stack_ends_with(read: ReadLog) -> None:
    root = read(SCRIPTED).root
    assert root is not None
    assert root.line == 15
    assert [frame.file for frame in root.frames] == ["/job/net.py"]
    assert root.cause == "user-code-error"


@each_row(
    "path, cause",
    [
        ("/env/lib/python3.11/site-packages/quux/types.json", "package-incompatible"),
        ("/data/quux/types.json", None),
    ],
)
def test_that_a_file_which_a_package_brings_along_is_the_packages(
    path: str, cause: str | None, read: ReadLog
) -> None:
    root = read(traceback(f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'")).root
    assert root is not None
    assert (root.cause == "package-incompatible") == (cause is not None)


@each_row(
    "message, cause",
    [
        ("ModuleNotFoundError: No module named 'src.data.shards'", "user-code-error"),
        ("ModuleNotFoundError: No module named 'quux.data.shards'", "package-incompatible"),
        ("ImportError: cannot import name 'Net' from 'models.unet' (/job/unet.py)", "user-code-error"),
        ("ImportError: cannot import name 'Net' from 'quux.unet' (/env/unet.py)", "package-incompatible"),
    ],
)
def test_that_a_folder_of_the_jobs_own_is_no_package(message: str, cause: str, read: ReadLog) -> None:
    root = read(traceback(message)).root
    assert root is not None
    assert root.cause == cause
