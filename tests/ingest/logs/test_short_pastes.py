"""What a few pasted rows still tell: a margin of links, a cut stack, a last line without its calls."""

from __future__ import annotations

import pytest

from tests.factories import ReadLog
from tests.tables import each_row

SITE = "/usr/local/lib/python3.12/dist-packages"
HEAD = "IndexError                                Traceback (most recent call last)\n"
CELL = (
    "[/tmp/ipython-input-3966.py](https://localhost:8080/#) in <cell line: 0>()\n"
    "----> 1 {code}\n      2 x = 1\n\n"
)
CALL = (
    f"[{SITE}/quux/oak.py](https://localhost:8080/#) in grow(rings)\n"
    "     11     # rings are counted\n---> 12     return rings[0]\n     13 \n\n"
)
END = "IndexError: list index out of range\n"


@each_row(
    ("code", "cause"),
    [
        ("from quux import Oak", "package-incompatible"),
        ("import quux.oak", "package-incompatible"),
        ("quux.oak.grow([])", "user-code-error"),
    ],
)
def test_that_a_notebooks_calls_are_read_behind_the_links_of_its_page(
    code: str, cause: str, read: ReadLog
) -> None:
    """Colab folds calls and links the files of the others; what the cell did is the row at its arrow."""
    for folded in ("", "1 frames\n", "14 frames\n"):
        root = read(HEAD + CELL.format(code=code) + folded + CALL + END).root
        assert root is not None
        assert [frame.code for frame in root.frames] == [code, "return rings[0]"]
        assert root.cause == cause


def test_that_a_notebooks_calls_are_read_where_markup_took_the_names(read: ReadLog) -> None:
    """What stands in pointed brackets is gone from a page: a cell, and the top level of a module."""
    call = CALL.replace(" in grow(rings)", " in ()")
    root = read(f"{HEAD}in ()\n----> 1 import quux\n\n3 frames\n{call}{END}").root
    assert root is not None
    assert [(frame.function, frame.code) for frame in root.frames] == [("<module>", "return rings[0]")]


def test_that_a_notebooks_code_keeps_its_brackets_behind_a_word(read: ReadLog) -> None:
    """What markup took is a name in the head of a call, never one of the code below it."""
    code = "assert size in (16, 32)"
    root = read(f"{HEAD}{CELL.format(code=code)}{CALL.replace('return rings[0]', code)}{END}").root
    assert root is not None
    assert [frame.code for frame in root.frames] == [code, code]


SET = (
    'ValueError: Trying to set a tensor of shape torch.Size([8, 4]) in "weight" (which has shape '
    "torch.Size(%s)), this look incorrect."
)
DIVIDES = (
    f'  File "{SITE}/vllm/distributed/utils.py", line 5, in ensure_divisibility\n'
    "    assert numerator % denominator == 0\n"
)
STACK = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in main\n    build(args)\n'


@each_row(
    ("rows", "exception", "cause"),
    [
        (DIVIDES, "AssertionError", "parallelism-invalid"),
        (
            '  File "/job/batches.py", line 5, in check\n    assert args.batch_size % n_gpus == 0\n',
            "AssertionError",
            "batch-not-divisible",
        ),
        (
            '  File "/job/rows.py", line 5, in check\n    raise ValueError("these rows hold no tokens")\n',
            "ValueError",
            "user-code-error",
        ),
    ],
)
def test_that_a_stack_cut_at_a_statement_which_can_only_raise_tells_what_it_raised(
    rows: str, exception: str, cause: str, read: ReadLog
) -> None:
    root = read(STACK + rows).root
    assert root is not None
    assert (root.exception, root.cause) == (exception, cause)


@pytest.mark.parametrize(
    "code", ["assert fits(rows)", "raise", "raise error", "model.step()", "assert (yield rows)"]
)
def test_that_a_stack_cut_at_a_statement_which_may_call_tells_nothing(code: str, read: ReadLog) -> None:
    root = read(f'{STACK}  File "/job/rows.py", line 5, in check\n    {code}\n').root
    assert root is not None
    assert (root.exception, root.cause) == ("", None)


@each_row(
    ("line", "cause"),
    [
        # A class of one package's own, by a name that nobody else's class has.
        (
            "AttributeError: 'DeepSpeedZeroOptimizer_Stage3' object has no attribute 'bloom'",
            "package-incompatible",
        ),
        ("AttributeError: 'AcceleratedOptimizer' object has no attribute 'bloom'", "package-incompatible"),
        # A tool's class is asked by everybody's code, and a name of one word is anybody's.
        ("AttributeError: 'DistributedDataParallel' object has no attribute 'bloom'", "user-code-error"),
        ("AttributeError: 'Linear' object has no attribute 'bloom'", "user-code-error"),
        ("AttributeError: 'OakGrower' object has no attribute 'bloom'", "user-code-error"),
        ("报错信息为：No module named 'quux.bloom'", "package-incompatible"),
        ("报错：No module named 'quux'", "package-missing"),
        ("ValueError: `FlatParameter` requires uniform `requires_grad`", "config-key-invalid"),
        (
            "ValueError: `FlatParameter` requires uniform dtype but got torch.float16 and torch.float32",
            "dtype-unsupported",
        ),
        (
            "ValueError: Must flatten tensors on the same device but got both cpu and cuda:0",
            "placement-misconfigured",
        ),
    ],
)
def test_that_a_last_line_alone_tells_its_cause(line: str, cause: str, read: ReadLog) -> None:
    root = read(f"{line}\n").root
    assert root is not None
    assert root.cause == cause


@each_row(
    ("line", "cause"),
    [
        # What CUDA's runtime says of each of its errors, whoever asks it.
        ("RuntimeError: CUDA error: named symbol not found", "abi-mismatch"),
        ("torch.AcceleratorError: CUDA error: invalid program counter", "cuda-illegal-access"),
        ("RuntimeError: CUDA error: peer access has not been enabled", "nccl-p2p-topology"),
        (
            "RuntimeError: CUDA error: API call is not supported in the installed CUDA driver",
            "gpu-driver-mismatch",
        ),
        (
            "RuntimeError: CUDA error: exclusive-thread device already in use by a different thread",
            "gpu-memory-occupied",
        ),
        (
            "torch.AcceleratorError: CUDA error: OS call failed or operation not supported on this OS",
            "process-limits",
        ),
        ("Error invalid configuration argument at line 117 in file /git/csrc/ops.cu", "framework-bug"),
        (
            "Error an illegal memory access was encountered at line 117 in file /git/csrc/ops.cu",
            "cuda-illegal-access",
        ),
        ("RuntimeError: tensorDesc->finalize()", "cublas-failure"),
        (SET % "[0]", "config-key-invalid"),
        (SET % "[10]", "checkpoint-mismatch"),
        (
            "Cannot open data/dataset_info.json due to Extra data: line 9 column 1 (char 80).",
            "config-key-invalid",
        ),
        (
            "Cannot open data/dataset_info.json due to [Errno 13] Permission denied: 'data'.",
            "file-missing-or-denied",
        ),
        ("ValueError: Expected a xpu device, but got: cpu", "placement-misconfigured"),
        ("`.half()` is not supported for quantized model.", "user-code-error"),
        ("  -> aclrtMallocHostWithCfg, error code 207001", "cpu-offload-pressure"),
        ("aclrtMalloc failed, error code: 207001", "gpu-oom-training"),
        ("RuntimeError: BWD: Unsupported hidden_size or types: 5120HalfHalf", "dtype-unsupported"),
    ],
)
def test_that_a_message_of_a_family_is_known_by_its_reason(line: str, cause: str, read: ReadLog) -> None:
    root = read(f"{line}\n").root
    assert root is not None
    assert root.cause == cause


def test_that_a_quoted_traceback_is_read_as_what_was_quoted(read: ReadLog) -> None:
    """Each row of a quotation begins with its sign; a lone one, or an interpreter's prompt, is none."""
    rows = [
        *STACK.splitlines(),
        f'  File "{SITE}/torch/distributed/elastic/agent/server/api.py", line 5, in run',
    ]
    rows += ["    store.multi_get(keys)", "torch.distributed.DistStoreError: Socket Timeout"]
    root = read("I get:\n" + "".join(f"> {row}\n" for row in rows) + ">\nany idea?\n").root
    assert root is not None
    assert (root.line, root.cause) == (len(rows) + 1, "rendezvous-failed")
    assert [frame.function for frame in root.frames] == ["main", "run"]
    prompted = read(">>> import quux\n" + "\n".join(rows) + "\n> \n").root
    assert prompted is not None
    assert prompted.line == len(rows) + 1
