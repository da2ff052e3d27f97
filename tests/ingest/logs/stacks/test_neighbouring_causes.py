"""What tells neighbouring causes apart: whose call, of what, in which state of the program."""

from __future__ import annotations

import pytest

from tests.factories import ReadLog
from tests.tables import each_row

SITE = "/env/lib/python3.11/site-packages"
MAIN = ("/job/train.py", "main", "engine = build(args)")
SERVES = (f"{SITE}/vllm/v1/engine/core.py", "run_busy_loop", "self._process_engine_step()")
STARTS = (f"{SITE}/vllm/v1/worker/gpu_worker.py", "load_model", "self.model_runner.load_model()")
READS = (
    f"{SITE}/vllm/model_executor/model_loader/default_loader.py",
    "load_weights",
    "model.load_weights(w)",
)
PUTS = (f"{SITE}/vllm/model_executor/models/oak.py", "load_weights", "param = params_dict[name]")
HANDS = ("/job/trainer/worker_wrap.py", "update_weight", "self.model_runner.model.load_weights(weights)")
CAPTURES = (f"{SITE}/sglang/srt/model_executor/cuda_graph_runner.py", "capture", "run_once()")
FORWARD = (f"{SITE}/sglang/srt/models/oak.py", "forward", "a, b = self.metadata")
FETCH = (f"{SITE}/torch/utils/data/_utils/fetch.py", "fetch", "return self.collate_fn(data)")
LAYS = (f"{SITE}/torch/utils/data/_utils/collate.py", "collate_tensor_fn", "return torch.stack(batch, 0)")
PADS = (f"{SITE}/transformers/data/data_collator.py", "__call__", "batch = self.tokenizer.pad(")
SHARDS = (f"{SITE}/torch/distributed/fsdp/_collectives.py", "gather", "with torch.cuda.stream(s):")
LAZY = (f"{SITE}/torch/cuda/__init__.py", "_lazy_init", 'raise AssertionError("no")')
ENGINE = (f"{SITE}/deepspeed/runtime/engine.py", "forward", "loss = self.module(*inputs)")
OAK = (f"{SITE}/transformers/models/oak/modeling_oak.py", "rotate", "q = (q * cos) + (turned(q) * sin)")
EMBEDS = (f"{SITE}/torch/nn/functional.py", "embedding", "return torch.embedding(weight, input)")
NO_CUDA = "AssertionError: Torch not compiled with CUDA enabled"
TWO_PLACES = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
    "cuda:1 and cpu!"
)
SIZES = (
    "RuntimeError: The size of tensor a (64) must match the size of tensor b (32) at non-singleton "
    "dimension 0"
)
RAGGED = "RuntimeError: stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry 5"


def _traceback(calls: list[tuple[str, str, str]], message: str) -> str:
    rows = [f'  File "{file}", line 7, in {function}\n    {code}\n' for file, function, code in calls]
    return "".join(["Traceback (most recent call last):\n", *rows, message, "\n"])


def _cause(read: ReadLog, text: str) -> str | None:
    root = read(text).root
    assert root is not None
    return root.cause


@each_row(
    ("calls", "message", "expected"),
    [
        ([STARTS, READS, PUTS], "KeyError: 'layers.0.mlp.grafted_scale'", "checkpoint-mismatch"),
        ([PUTS], "KeyError: 'layers.0.mlp.grafted_scale'", "checkpoint-mismatch"),
        ([PUTS], "KeyError: 'grafted'", "checkpoint-mismatch"),
        ([STARTS, READS, PUTS], "NotImplementedError: boughs are not merged here", "model-unsupported"),
        ([MAIN, HANDS, PUTS], "KeyError: 'layers.0.mlp.grafted_scale'", "engine-weight-sync"),
        ([STARTS, READS, PUTS], SIZES, "checkpoint-mismatch"),
        ([MAIN, HANDS, PUTS], SIZES, "engine-weight-sync"),
    ],
)
def test_that_an_engine_which_reads_a_checkpoint_has_nothing_handed_over(
    calls: list[tuple[str, str, str]], message: str, expected: str, read: ReadLog
) -> None:
    assert _cause(read, _traceback(calls, message)) == expected


@each_row(
    ("calls", "expected"),
    [
        ([MAIN, CAPTURES, FORWARD], "framework-bug"),
        ([MAIN, STARTS, FORWARD], "framework-bug"),
        ([SERVES, FORWARD], "engine-crash"),
        ([SERVES, CAPTURES, FORWARD], "engine-crash"),
    ],
)
def test_that_an_engine_which_trips_as_it_starts_did_not_crash_as_it_served(
    calls: list[tuple[str, str, str]], expected: str, read: ReadLog
) -> None:
    message = "TypeError: cannot unpack non-iterable Metadata object"
    assert _cause(read, _traceback(calls, message)) == expected


@each_row(
    ("calls", "message", "expected"),
    [
        ([MAIN, FETCH, LAYS], RAGGED % ("[83]", "[38]"), "user-code-error"),
        ([MAIN, FETCH, LAYS], RAGGED % ("[3, 224]", "[1, 224]"), "dataset-schema"),
        ([MAIN, FETCH, PADS], "AttributeError: 'list' object has no attribute 'keys'", "user-code-error"),
        ([MAIN, FETCH, PADS], "KeyError: 'labels'", "dataset-schema"),
    ],
)
def test_that_what_rows_are_is_the_codes_and_what_they_hold_the_datas(
    calls: list[tuple[str, str, str]], message: str, expected: str, read: ReadLog
) -> None:
    assert _cause(read, _traceback(calls, message)) == expected


@each_row(
    ("file", "function", "code", "expected"),
    [
        (f"{SITE}/torch/optim/adamw.py", "__init__", "if not 0.0 <= lr:", "config-key-invalid"),
        (f"{SITE}/quux/settings.py", "_validate_rates", "assert rate > 0", "config-key-invalid"),
        # No check: the program's own arithmetic met what it did not expect.
        (f"{SITE}/quux/layers.py", "forward", "best = max(scores)", "user-code-error"),
        ("/job/model.py", "forward", "if score < best:", "user-code-error"),
    ],
)
def test_that_a_check_which_cannot_compare_its_argument_refuses_a_setting(
    file: str, function: str, code: str, expected: str, read: ReadLog
) -> None:
    message = "TypeError: '<=' not supported between instances of 'float' and 'str'"
    assert _cause(read, _traceback([MAIN, (file, function, code)], message)) == expected


@each_row(
    ("calls", "expected"),
    [
        ([MAIN, SHARDS, LAZY], "framework-bug"),
        ([MAIN, LAZY], "gpu-not-visible"),
        ([MAIN, (f"{SITE}/torch/nn/modules/module.py", "cuda", "t.cuda()"), LAZY], "gpu-not-visible"),
    ],
)
def test_that_cuda_which_pytorchs_sharding_asks_for_by_itself_is_no_hidden_card(
    calls: list[tuple[str, str, str]], expected: str, read: ReadLog
) -> None:
    assert _cause(read, _traceback(calls, NO_CUDA)) == expected


@each_row(
    ("calls", "expected"),
    [
        ([MAIN, ENGINE, OAK], "framework-bug"),
        ([MAIN, ENGINE, EMBEDS], "placement-misconfigured"),
        ([MAIN, EMBEDS], "user-code-error"),
    ],
)
def test_that_a_table_which_a_packages_model_made_for_itself_was_not_the_jobs_to_move(
    calls: list[tuple[str, str, str]], expected: str, read: ReadLog
) -> None:
    assert _cause(read, _traceback(calls, TWO_PLACES)) == expected


def test_that_the_calls_of_what_came_of_an_exception_tell_whom_it_called(read: ReadLog) -> None:
    """A connection that fails below a download is the hub's, however far below."""
    first = _traceback([(f"{SITE}/urllib3/connection.py", "connect", "sock.connect(sa)")], "")
    second = _traceback(
        [MAIN, (f"{SITE}/huggingface_hub/hf_api.py", "list_repo_tree", "get(url)")],
        "requests.exceptions.ConnectionError: (MaxRetryError('quux'))",
    )
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    reset = "OSError: [Errno 101] Network is unreachable\n"
    assert _cause(read, first.rstrip("\n") + "\n" + reset + link + second) == "hub-unreachable"
    assert _cause(read, first.rstrip("\n") + "\n" + reset) == "external-service-failed"


@pytest.mark.parametrize("margin", ["      ", "\t", "> ", "  > "])
def test_that_a_margin_before_a_processs_name_is_the_pages(margin: str, read: ReadLog) -> None:
    """A list of Markdown or a quotation moves rows to the right: their calls are read all the same."""
    rows = _traceback([MAIN, SHARDS, LAZY], NO_CUDA).splitlines()
    for name in ("[rank0]: ", "(WorkerDict pid=411) ", "(Worker_TP0 pid=7, ip=10.0.0.2) "):
        text = "\n".join(["Here it is:", *(f"{margin}{name}{row}" for row in rows), ""])
        root = read(text).root
        assert root is not None
        assert (root.line, root.cause) == (len(rows) + 1, "framework-bug")
        assert [frame.function for frame in root.frames] == ["main", "gather", "_lazy_init"]
