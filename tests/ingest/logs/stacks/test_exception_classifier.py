"""Whose code raised what no pattern knows: owner, exception and message together tell."""

from __future__ import annotations

from corpus import exceptions
from ingest.logs.stacks.exception_classifier import classify_exception
from ingest.logs.stacks.own_calls import own_call
from ingest.logs.stacks.stack import Frame
from tests.factories import ReadLog, event
from tests.tables import each_row

SITE = "/env/lib/python3.11/site-packages"
USER = ("/job/train.py", "main")
OWN = ("/job/model.py", "forward")
VERL = (f"{SITE}/verl/trainer/ppo/ray_trainer.py", "fit")
STARTED = (f"{SITE}/verl/trainer/main_ppo.py", "main")
PLAIN = (f"{SITE}/quux/layers.py", "forward")
TOOL = (f"{SITE}/einops/layers.py", "forward")
VLLM = (f"{SITE}/vllm/v1/engine/core.py", "run_busy_loop")
SGLANG = (f"{SITE}/sglang/srt/managers/scheduler.py", "event_loop_normal")
TORCH = (f"{SITE}/torch/nn/modules/module.py", "_call_impl")
SCATTER = (f"{SITE}/torch/nn/parallel/comm.py", "scatter")
COLUMNS = (f"{SITE}/pandas/core/indexes/base.py", "get_loc")
STANDARD = ("/usr/lib/python3.11/json/decoder.py", "raw_decode")
MEANINGS = exceptions.load()
NONE_SHAPE = "AttributeError: 'NoneType' object has no attribute 'shape'"
OWNERS = {
    "user": (USER, OWN),
    "engine": (USER, VLLM),
    "sglang": (USER, SGLANG),
    "framework": (STARTED, VERL),
    "installed": (USER, PLAIN),
}


def cause(calls: tuple[tuple[str, str], ...], message: str, code: str = "", **fields: object) -> str | None:
    """Give the cause of an exception that was raised at the innermost of these calls."""
    frames = tuple(
        Frame(file, 10, function, code if place == len(calls) - 1 else "")
        for place, (file, function) in enumerate(calls)
    )
    made = {
        "body": message,
        "exception": message.partition(":")[0],
        "frames": frames,
        "cause": None,
        "strength": "hints",
    }
    return classify_exception(event(1, **{**made, **fields}), MEANINGS).cause


@each_row(
    ("message", "user", "engine", "framework"),
    [
        ("KeyError: 'reward'", "user-code-error", "engine-crash", "framework-bug"),
        ("IndexError: list index out of range", "user-code-error", "engine-crash", "framework-bug"),
        (
            "AttributeError: 'NoneType' object has no attribute 'x'",
            "user-code-error",
            "engine-crash",
            "framework-bug",
        ),
        (
            "TypeError: step() missing 1 required positional argument: 'batch'",
            "user-code-error",
            "engine-crash",
            "framework-bug",
        ),
        ("NameError: name 'x' is not defined", "user-code-error", "engine-crash", "framework-bug"),
        ("ZeroDivisionError: division by zero", "user-code-error", "engine-crash", "framework-bug"),
        (
            "RecursionError: maximum recursion depth exceeded",
            "user-code-error",
            "engine-crash",
            "framework-bug",
        ),
        # What is no slip says nothing of whose it is, unless the message tells of a wrong value.
        ("ValueError: the moon is in the wrong house", None, None, None),
        ("RuntimeError: the moon is in the wrong house", None, None, None),
        ("OSError: the moon is gone", None, None, None),
        ("odd.Kind: of trouble", None, None, None),
        (
            "ValueError: too many values to unpack (expected 2)",
            "user-code-error",
            "engine-crash",
            "user-code-error",
        ),
        (
            "ValueError: could not convert string to float: 'x'",
            "user-code-error",
            "engine-crash",
            "user-code-error",
        ),
        (
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x2)",
            "user-code-error",
            "engine-crash",
            "user-code-error",
        ),
        (
            "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
            "user-code-error",
            "engine-crash",
            "user-code-error",
        ),
        (
            "RuntimeError: Trying to backward through the graph a second time",
            "user-code-error",
            "engine-crash",
            "user-code-error",
        ),
        # What a framework will not do is the configuration's, or the model's, where it says so.
        (
            "ValueError: offload is not supported with this option",
            None,
            "config-key-invalid",
            "config-key-invalid",
        ),
        ("ValueError: batch must be a multiple of 8", None, "batch-not-divisible", "batch-not-divisible"),
        (
            "ValueError: Unknown backend 'quux'",
            "config-key-invalid",
            "config-key-invalid",
            "config-key-invalid",
        ),
        (
            "ValueError: Model architecture Quux is not supported",
            None,
            "model-unsupported",
            "model-unsupported",
        ),
        (
            "NotImplementedError: this model type is not yet implemented",
            "user-code-error",
            "model-unsupported",
            "model-unsupported",
        ),
        (
            "AssertionError: The model is not supported",
            "user-code-error",
            "model-unsupported",
            "model-unsupported",
        ),
        (
            "RuntimeError: model quux is not yet supported by the exporter",
            None,
            "model-unsupported",
            "model-unsupported",
        ),
        (
            "RuntimeError: no topology was found. Pass --bind-nodes explicitly or disable --bind.",
            None,
            "config-key-invalid",
            "config-key-invalid",
        ),
        ("AssertionError: please set tp to 1", "user-code-error", "config-key-invalid", "config-key-invalid"),
        ("KeyError: 'mode must be set'", "user-code-error", "engine-crash", "framework-bug"),
    ],
)
def test_owner_exception_and_message_tell_the_cause(
    message: str, user: str | None, engine: str | None, framework: str | None
) -> None:
    """The same exception is the user's slip in a script, a crash in an engine, a bug in a framework, or
    nobody's. What is installed and no framework is more often called wrongly than wrong.
    """
    found = {owner: cause(calls, message) for owner, calls in OWNERS.items()}
    assert found == {
        "user": user,
        "engine": engine,
        "sglang": engine,
        "framework": framework,
        "installed": user if framework in (None, "framework-bug") else framework,
    }


@each_row(
    ("row", "expected"),
    [
        (r"C:\jobs\net\train.py", "user-code-error"),
        (r"C:\jobs\.venv\Lib\site-packages\torch\nn\modules\conv.py", "user-code-error"),
        (r"D:\Anaconda\envs\net\lib\site-packages\transformers\trainer.py", "user-code-error"),
        (r"D:\Anaconda\envs\net\lib\json\decoder.py", "user-code-error"),
        ("pandas/_libs/index.pyx", "user-code-error"),
        ("/home/me/.cache/huggingface/modules/metrics/f1/0a1b/f1.py", "user-code-error"),
    ],
)
def test_that_code_is_known_by_its_folder_on_every_system(row: str, expected: str, read: ReadLog) -> None:
    """Paths of Windows, of compiled modules and of a hub's scripts are not taken for the job's own."""
    called = '  File "C:\\jobs\\train.py", line 3, in main\n    run()\n'
    report = read(
        f'Traceback (most recent call last):\n{called}  File "{row}", line 9, in f\n    g()\n'
        "AttributeError: 'Net' object has no attribute 'run'\n"
    )
    assert report.root is not None
    assert report.root.cause == expected
    own = own_call(report.root.frames)
    assert own is not None
    assert (own.line == 9) == (row.endswith("train.py"))


@each_row(
    ("place", "message", "expected"),
    [
        ("torch/functional.py:einsum", "RuntimeError: einsum(): an operand is wanting", "user-code-error"),
        (
            "torch/nn/modules/linear.py:forward",
            "RuntimeError: mat2 must be a matrix, got 1-D tensor",
            "user-code-error",
        ),
        ("numpy/lib/stride_tricks.py:broadcast_to", "ValueError: must not be negative", "user-code-error"),
        ("torch/nn/functional.py:conv2d", "RuntimeError: cuDNN had a bad day", None),
        ("torch/nn/functional.py:conv2d", "RuntimeError: no memory to be had", None),
        ("torch/utils/data/dataloader.py:next", "RuntimeError: the moon is in the wrong house", None),
        ("quux/patching.py:patch", "ValueError: Quux is patched. Call unpatch() first", "user-code-error"),
    ],
)
def test_that_what_an_operation_refuses_is_its_callers(
    place: str, message: str, expected: str | None
) -> None:
    """A tensor's operation knows no settings: what it is called with comes of the script."""
    file, function = place.split(":")
    made = Frame(f"{SITE}/{file}", 10, function, "")
    frames = (Frame("/job/model.py", 7, "forward", "y = op(x)"), made)
    raised = event(1, body=message, exception=message.partition(":")[0], frames=frames, cause=None)
    assert classify_exception(raised, MEANINGS).cause == expected


@each_row(
    ("calls", "expected"),
    [
        ((USER, OWN, STANDARD), "user-code-error"),
        ((USER, OWN, TORCH), "user-code-error"),
        ((USER, OWN, TORCH, ("<string>", "forward")), "user-code-error"),
        ((STARTED, VERL, TORCH), "framework-bug"),
        ((USER, VERL, TORCH), "user-code-error"),
        ((USER, OWN, (VERL[0], "__getattr__")), "user-code-error"),
        ((VERL, VLLM, TORCH, STANDARD), "engine-crash"),
        ((VLLM, OWN), "user-code-error"),
        ((STANDARD,), None),
        ((TORCH, ("<frozen importlib._bootstrap>", "_find_and_load")), None),
        ((), None),
    ],
)
def test_the_innermost_call_outside_the_standard_library_owns_it(
    calls: tuple[tuple[str, str], ...], expected: str | None
) -> None:
    """Python, PyTorch and NumPy only do what they are called for."""
    assert cause(calls, "KeyError: 'x'") == expected


@each_row(
    ("code", "expected"),
    [
        ("assert world_size % tp_size == 0", "parallelism-invalid"),
        ("assert num_heads % n == 0", "parallelism-invalid"),
        ("assert train_batch_size % micro == 0", "batch-not-divisible"),
        ("assert n % dp_size == 0", "batch-not-divisible"),
        ("assert len(ckpt_files) == 4", "checkpoint-mismatch"),
        ("assert param.shape == loaded.shape", "checkpoint-mismatch"),
        ("assert config.mode in MODES", "config-key-invalid"),
        ("assert args.lr", "config-key-invalid"),
        ("assert total", "framework-bug"),
        ("", "framework-bug"),
    ],
)
def test_a_bare_assertion_is_told_by_its_code(code: str, expected: str) -> None:
    """What it asked for names the cause, where it has no words of its own."""
    assert cause(OWNERS["framework"], "AssertionError", code) == expected


@each_row(
    ("code", "expected"),
    [
        ('optimizer.load_state_dict(checkpoint["optimizer"])', "checkpoint-mismatch"),
        ("model.load_state_dict(torch.load(path)[name])", "checkpoint-mismatch"),
        ("start = ckpt['epoch'] + 1", "checkpoint-mismatch"),
        ("lr = saved_state[key]", "checkpoint-mismatch"),
        ("label = row['answer']", "user-code-error"),
        ("save(checkpoint, names[key])", "user-code-error"),
        ("", "user-code-error"),
    ],
)
def test_that_a_key_which_a_saved_state_lacks_is_the_checkpoints(code: str, expected: str) -> None:
    assert cause((USER, OWN), "KeyError: 'optimizer'", code) == expected


@each_row("message", ["KeyError: 'x'", "ValueError: the moon is in the wrong house"])
@each_row(
    ("file", "function", "expected"),
    [
        (f"{SITE}/verl/workers/fsdp_workers.py", "load_checkpoint", "checkpoint-mismatch"),
        (f"{SITE}/verl/utils/dataset/rl_dataset.py", "__getitem__", "dataset-schema"),
        (f"{SITE}/transformers/data/data_collator.py", "collate_fn", "dataset-schema"),
        (f"{SITE}/omegaconf/base.py", "_format_and_raise", "config-key-invalid"),
        (f"{SITE}/triton/compiler/compiler.py", "make_ir", "jit-build-failed"),
    ],
)
def test_what_a_framework_was_doing_tells_more_than_what_it_raised(
    file: str, function: str, expected: str, message: str
) -> None:
    """The functions on the way name the trouble, whatever the exception."""
    assert cause((USER, (file, function)), message) == expected


@each_row("owner", [USER, VERL, PLAIN])
def test_a_reward_that_fails_is_the_rewards(owner: tuple[str, str]) -> None:
    """Whoever calls it; but only if it is near the end of the calls."""
    reward = ("/job/rewards/math.py", "compute_score")
    assert cause((owner, reward), "ValueError: the moon is in the wrong house") == "reward-function-failed"
    assert cause((owner, reward, VERL, VERL, VERL), "KeyError: 'x'") == "user-code-error"


@each_row(
    "fields",
    [
        {"cause": "disk-full", "strength": "states"},
        {"cause": "disk-full", "strength": "hints"},
        {"cause": "user-code-error", "strength": "states"},
        {"cause": "framework-bug", "strength": "suggests"},
    ],
)
def test_what_a_pattern_knows_is_not_judged_anew(fields: dict[str, str]) -> None:
    """Blame is the last resort."""
    assert cause(OWNERS["engine"], "KeyError: 'x'", **fields) == fields["cause"]


@each_row("owner", ["user-code-error", "framework-bug"])
def test_a_hint_at_whose_it_is_gives_way_to_the_calls(owner: str) -> None:
    """A pattern that only guesses the owner is put right."""
    assert cause(OWNERS["engine"], "KeyError: 'x'", cause=owner) == "engine-crash"


@each_row(
    ("calls", "expected"),
    [((USER, VERL), "user-code-error"), ((STARTED, VERL), "framework-bug"), ((USER, VLLM), "engine-crash")],
)
def test_that_a_slip_below_a_frameworks_call_is_of_what_the_job_handed_over(
    calls: tuple[tuple[str, str], ...], expected: str
) -> None:
    """Where the job's own code made the call; what a framework or an engine started is its own."""
    assert cause(calls, "TypeError: object of type 'generator' has no len()") == expected


def test_without_an_exception_nobody_is_blamed() -> None:
    """Calls alone say nothing."""
    assert cause(OWNERS["engine"], "boom", exception="") is None


@each_row(
    ("message", "calls", "expected"),
    [
        ("KeyError: 'x'", (USER, OWN, TOOL), "user-code-error"),
        ("KeyError: 'x'", (STARTED, VERL, TOOL), "framework-bug"),
        ("KeyError: 'x'", (USER, VLLM, TOOL), "engine-crash"),
        ("KeyError: 'x'", (TOOL,), None),
        ("ValueError: too many values to unpack (expected 2)", (USER, TOOL), "user-code-error"),
        ("ValueError: batch must be a multiple of 8", (USER, TOOL), "user-code-error"),
        ("RuntimeError: chunk expects a tensor of one dimension", (USER, VERL, SCATTER), "user-code-error"),
        ("RuntimeError: chunk expects a tensor of one dimension", (USER, VLLM, SCATTER), "engine-crash"),
        ("KeyError: 'label'", (USER, COLUMNS), "dataset-schema"),
    ],
)
def test_that_what_a_tool_raises_is_its_callers(
    message: str, calls: tuple[tuple[str, str], ...], expected: str | None
) -> None:
    assert cause(calls, message) == expected


NEMO = ("/opt/NeMo/nemo/collections/nlp/models/bert.py", "__init__")
MEGATRON = ("/opt/megatron-lm/megatron/core/transformer/spec_utils.py", "build_module")
SCRIPT = ("/opt/NeMo/examples/nlp/tune.py", "main")


@each_row(
    ("calls", "message", "expected"),
    [
        # A source tree is no code of the job's, wherever it lies; what one hands another is its own.
        ((SCRIPT, NEMO, MEGATRON), NONE_SHAPE, "package-incompatible"),
        ((NEMO, MEGATRON, MEGATRON), "TypeError: f() got an odd argument", "package-incompatible"),
        ((NEMO,), NONE_SHAPE, "framework-bug"),
        ((MEGATRON,), NONE_SHAPE, "framework-bug"),
        ((USER, MEGATRON), NONE_SHAPE, "user-code-error"),
        ((NEMO, MEGATRON), "ValueError: the moon is in the wrong house", None),
    ],
)
def test_that_a_framework_that_trips_inside_another_does_not_go_with_it(
    calls: tuple[tuple[str, str], ...], message: str, expected: str | None
) -> None:
    assert cause(calls, message) == expected


TOKENS = (f"{SITE}/transformers/tokenization_utils_fast.py", "__init__")
SAFE = (f"{SITE}/safetensors/torch.py", "load_file")


@each_row(
    ("message", "called", "expected"),
    [
        ("Exception: expected `,` or `}` at line 2 column 10", TOKENS, "tokenizer-template"),
        ("Exception: EOF while parsing a value at line 1 column 0", TOKENS, "tokenizer-template"),
        ("Exception: unknown variant `WordParts` at line 9 column 3", TOKENS, "tokenizer-template"),
        ("Exception: trailing characters at line 9 column 3", SAFE, "checkpoint-corrupt"),
        ("quux.OddError: key must be a string at line 1 column 2", PLAIN, "dataset-unreadable"),
        ("Exception: the moon at line 9 column 3", TOKENS, None),
    ],
)
def test_that_what_compiled_parsers_of_json_say_is_broken_data(
    message: str, called: tuple[str, str], expected: str | None
) -> None:
    """serde_json/src/error.rs: packages written in Rust hand it on with no type of its own."""
    assert cause((USER, called), message) == expected


@each_row(
    ("message", "expected"),
    [
        ("redis.exceptions.ReadOnlyError: You can't write against a replica.", "external-service-failed"),
        ("redis.asyncio.whatever.MasterNotFoundError: No master found", "external-service-failed"),
        ("botocore.errorfactory.NoSuchUpload: An error occurred", "external-service-failed"),
        ("tarfile.StreamError: seeking backwards is not allowed", "dataset-unreadable"),
        ("_csv.Error: line contains NUL", "dataset-unreadable"),
        ("safetensors_rust.SafetensorError: the buffer is odd", "checkpoint-corrupt"),
        ("omegaconf.errors.GrammarParseError: token recognition error", "config-key-invalid"),
        ("polars.exceptions.ColumnNotFoundError: lang", "dataset-schema"),
        ("filelock._error.Timeout: waited for 600 s", "stale-state"),
        ("cupy.cuda.memory.OutOfMemoryError: asked 9 GB", "gpu-oom-training"),
        ("quux.errors.NaNError: at step 9", "nan-or-inf"),
        ("quux.errors.FeedConnectionError: gone", "external-service-failed"),
        ("quux.errors.RunConfigError: mode", "config-key-invalid"),
        ("quux.errors.ShardDecodeError: row 9", "dataset-unreadable"),
        ("quux.errors.OddError: trouble", None),
        # What the message says counts before the class.
        ("redis.exceptions.ConnectionError: [Errno 98] Address already in use", "port-in-use"),
        ("lmdb.Error: /data/a.lmdb: No such file or directory", "file-missing-or-denied"),
        ("quux.errors.OddError: database is locked", "stale-state"),
        ("quux.errors.OddError: a sample needs info['task_id']", "dataset-schema"),
        # What one process hands on of another's exception is that one.
        ("quux.errors.OddError: FileNotFoundError('/data/a.bin: no such')", "file-missing-or-denied"),
        ("quux.errors.OddError: ValueError(\"rollout requires info['task_id']\")", "dataset-schema"),
        ("quux.errors.OddError: the ValueError('x') was odd", None),
    ],
)
def test_that_class_and_message_tell_what_is_amiss_whoever_raised_it(
    message: str, expected: str | None
) -> None:
    assert {cause(calls, message) for calls in ((USER, OWN), (USER, PLAIN), (USER, VERL))} == {expected}


@each_row(
    ("calls", "expected"),
    [
        ((USER, OWN), "external-service-failed"),
        ((USER, (f"{SITE}/huggingface_hub/file_download.py", "hf_hub_download"), TOOL), "hub-unreachable"),
        ((USER, (f"{SITE}/torch/distributed/rendezvous.py", "_create_c10d_store")), "rendezvous-failed"),
        ((USER, ("/job/rewards/judge.py", "ask"), OWN, OWN, TOOL), "reward-function-failed"),
    ],
)
def test_that_the_calls_tell_whom_a_connection_was_to(
    calls: tuple[tuple[str, str], ...], expected: str
) -> None:
    assert cause(calls, "quux.NetworkError: gone") == expected


@each_row(
    ("pattern_hint", "message", "expected"),
    [
        (
            "external-service-failed",
            "requests.exceptions.ConnectionError: gone",
            ("external-service-failed", "suggests"),
        ),
        ("rendezvous-failed", "OSError: Name or service not known", ("rendezvous-failed", "hints")),
        ("rendezvous-failed", "KeyError: 'x'", ("rendezvous-failed", "hints")),
    ],
)
def test_that_a_hint_is_made_surer_by_the_kind_and_never_replaced_by_its_commonest_cause(
    pattern_hint: str, message: str, expected: tuple[str, str]
) -> None:
    made = event(1, body=message, exception=message.partition(":")[0], cause=pattern_hint, strength="hints")
    told = classify_exception(made, MEANINGS)
    assert (told.cause, told.strength) == expected


def test_that_an_exception_that_was_handled_has_the_calls_of_what_came_of_it() -> None:
    """Python shows of it only the calls below the handler; the way there stands in the last of the chain."""
    made = event(
        1,
        body="urllib3.exceptions.NewConnectionError: gone",
        exception="urllib3.exceptions.NewConnectionError",
        frames=(Frame(f"{SITE}/urllib3/connection.py", 1, "connect"),),
        cause=None,
    )
    outer = (Frame("/job/train.py", 1, "main"), Frame(f"{SITE}/modelscope/hub/api.py", 1, "get"))
    assert classify_exception(made, MEANINGS).cause == "external-service-failed"
    assert classify_exception(made, MEANINGS, outer).cause == "hub-unreachable"


@each_row(
    ("message", "code", "expected"),
    [
        ("quux.OddError: the moon", "raise OddError(moon)", "user-code-error"),
        ("RuntimeError: only 3 of 4 experts got a gradient", "raise RuntimeError(text)", "user-code-error"),
        ("ValueError: mode must be fast", "raise ValueError(text)", "config-key-invalid"),
        ("ValueError: clips must have the same length", "raise ValueError(text)", "user-code-error"),
        ("ValueError: `clip_len` must be even", "raise ValueError(text)", "config-key-invalid"),
        ("AssertionError: non-finite loss nan in step 7", "assert isfinite(loss), text", "nan-or-inf"),
        ("AssertionError: loss is not of shape (2, 3)", "assert ok, text", "user-code-error"),
        ("sqlite3.OperationalError: no such table: shards", "cursor.execute(query)", "dataset-schema"),
        ("sqlite3.OperationalError: disk I/O error", "cursor.execute(query)", "file-missing-or-denied"),
        ("sqlite3.DatabaseError: file is not a database", "cursor.execute(query)", "dataset-unreadable"),
        ("OSError: cannot find empty port in range: 7860-7860", "raise OSError(text)", "port-in-use"),
        ("ValueError: found 0 images in /data/x", "raise ValueError(text)", "dataset-unreadable"),
        ("ValueError: column 'score' is missing", "raise ValueError(text)", "dataset-schema"),
        ("ValueError: the moon is in the wrong house", "value = parse(text)", "user-code-error"),
        ("RuntimeError: the moon is in the wrong house", "value = parse(text)", "user-code-error"),
        ("OSError: [Errno 9] Bad file descriptor", "name = input()", "user-code-error"),
        ("FileNotFoundError: Dataset not found.", "raise FileNotFoundError(text)", "file-missing-or-denied"),
    ],
)
def test_that_a_scripts_own_check_is_its_own_unless_it_says_more(
    message: str, code: str, expected: str | None
) -> None:
    assert cause((USER, OWN), message, code) == expected


@each_row(
    ("code", "expected"),
    [
        ("config = json.load(open(args.ds_config))", "config-key-invalid"),
        ("rows = [json.loads(text) for text in handle]", "dataset-unreadable"),
        ("rows = read(args.train_file)", "dataset-unreadable"),
    ],
)
def test_that_the_scripts_statement_tells_what_could_not_be_read(code: str, expected: str) -> None:
    """Python's own frames below it say nothing of whose file it was."""
    frames = (
        Frame(USER[0], 10, "main"),
        Frame(OWN[0], 10, "load", code),
        Frame(STANDARD[0], 10, "decode", "raise"),
    )
    made = event(
        1, body="json.JSONDecodeError: odd", exception="json.JSONDecodeError", frames=frames, cause=None
    )
    assert classify_exception(made, MEANINGS).cause == expected


@each_row(
    ("calls", "message", "expected"),
    [
        (
            (
                f"{SITE}/transformers/models/t5/tokenization_t5.py:__init__",
                f"{SITE}/sentencepiece/__init__.py:Load",
            ),
            "TypeError: not a string",
            "tokenizer-template",
        ),
        (
            (f"{SITE}/transformers/models/t5/modeling_t5.py:__init__",),
            "TypeError: not a string",
            "user-code-error",
        ),
        (
            (
                f"{SITE}/torch/utils/data/_utils/fetch.py:fetch",
                f"{SITE}/torch/utils/data/_utils/collate.py:collate",
            ),
            "RuntimeError: size mismatch, got 3 and 4",
            "dataset-schema",
        ),
        (("/job/model.py:forward",), "RuntimeError: size mismatch, got 3 and 4", "user-code-error"),
    ],
)
def test_that_the_place_of_an_exception_tells_what_was_given_to_it(
    calls: tuple[str, ...], message: str, expected: str
) -> None:
    placed = [call.partition(":")[::2] for call in calls]
    assert cause((USER, *placed), message) == expected


@each_row(
    ("message", "rest", "expected"),
    [
        ("SystemError: add raises an exception.", "Out of memory error on GPU 0.", "gpu-oom-training"),
        ("KeyError: 'reward'", "Out of memory error on GPU 0.", "user-code-error"),
        ("SystemError: add raises an exception.", "the moon", None),
    ],
)
def test_that_the_lines_below_a_message_tell_where_it_says_nothing_itself(
    message: str, rest: str, expected: str | None
) -> None:
    known = "user-code-error" if expected == "user-code-error" else None
    assert cause((USER, TORCH), message, rest=rest, cause=known) == expected


def test_that_what_is_told_in_plain_words_is_read_with_its_fields() -> None:
    """A logger may print the error behind the message, and any role is good enough for it."""
    line = 'level=fatal msg="cannot open device" error="open /dev/fuse: permission denied"'
    made = event(
        1, body="cannot open device", text=line, pattern_role="wrapper", cause=None, strength="hints"
    )
    assert classify_exception(made, MEANINGS).cause is None
    assert classify_exception(made, MEANINGS, in_plain_words=True).cause == "file-missing-or-denied"


@each_row(
    ("message", "wanted"),
    [
        ("torch.distributed.DistBackendError: connection timed out to 10.0.0.7", "nccl-network"),
        ("torch.distributed.DistNetworkError: connection refused by 10.0.0.7", "rendezvous-failed"),
        ("quux.ConnectTimeout: connection timed out to 10.0.0.7", "external-service-failed"),
        ("RuntimeError: step failed, message=Out-Of-Bounds Memory Access", "cuda-illegal-access"),
        ("RuntimeError: index 7 is out of bounds", "user-code-error"),
    ],
)
def test_that_what_a_device_or_the_jobs_own_network_met_is_no_outside_service(
    message: str, wanted: str
) -> None:
    assert cause((USER, OWN), message) == wanted


@each_row(
    ("calls", "message", "expected"),
    [
        ((USER, (f"{SITE}/torch/optim/adamw.py", "__init__")), "ValueError: Invalid learning rate: -1", True),
        (
            (USER, (f"{SITE}/torch/utils/data/dataloader.py", "__init__")),
            "ValueError: sampler option is mutually exclusive with shuffle",
            True,
        ),
        ((USER, (f"{SITE}/quux/layers.py", "__init__")), "ValueError: mode must be one of ['a', 'b']", True),
        ((USER, (f"{SITE}/quux/setup.py", "__post_init__")), "TypeError: expected one of a, b", True),
        ((USER, (f"{SITE}/quux/setup.py", "validate_config")), "ValueError: size has to be positive", True),
        # As it runs, what a layer refuses is what it was called with.
        ((USER, (f"{SITE}/torch/nn/modules/linear.py", "forward")), "RuntimeError: x must be 2-D", False),
        ((USER, (f"{SITE}/quux/layers.py", "__init__")), "KeyError: 'mode'", False),
    ],
)
def test_what_a_class_refuses_as_it_is_made_is_an_argument(
    calls: tuple[tuple[str, str], ...], message: str, expected: bool
) -> None:
    assert (cause(calls, message) == "config-key-invalid") is expected


@each_row(
    ("code", "message", "expected"),
    [
        ("path = sorted(glob.glob(f'{args.out}/*.pt'))[-1]", "IndexError: list index out of range", "found"),
        ("first = next(folder.iterdir())", "StopIteration", "found"),
        ("newest = max(glob('*.pt'))", "ValueError: max() arg is an empty sequence", "found"),
        ("newest = max(glob('*.pt'))", "ValueError: max() iterable argument is empty", "found"),
        ("row = rows[9]", "IndexError: list index out of range", "user-code-error"),
        ("h, w = cv2.imread(path).shape[:2]", NONE_SHAPE, "image"),
        ("h, w = head.shape[:2]", NONE_SHAPE, "user-code-error"),
    ],
)
def test_that_nothing_listed_and_no_image_read_are_the_datas(code: str, message: str, expected: str) -> None:
    """By the failing statement itself: a folder without such files, an image that OpenCV could not read."""
    named = {"found": "file-missing-or-denied", "image": "dataset-unreadable"}
    calls = (USER, ("/job/data.py", "load_image" if expected == "image" else "main"))
    assert cause(calls, message, code) == named.get(expected, expected)


@each_row(
    ("owner", "message", "expected"),
    [
        ("user", "RuntimeError: probability tensor contains either `inf` or `nan`", "nan-or-inf"),
        ("user", "AssertionError: rank 3: found NaN in the loss", "nan-or-inf"),
        ("user", "RuntimeError: Expected a tensor of scalar type Long but got Half", "dtype-unsupported"),
        ("framework", "RuntimeError: tensors must be of the same dtype, odd ones", "dtype-unsupported"),
        ("user", "AssertionError: quux was not compiled with CUDA", "gpu-not-visible"),
        ("framework", "odd.Kind: No supported gpu backend found!", "gpu-not-visible"),
        ("installed", "KeyError: 'Non-existent config key: MODEL.DEPTH'", "config-key-invalid"),
        ("framework", "ValueError: Quux does not support Flash Attention 2", "attention-backend-unsupported"),
        ("framework", "AssertionError: train_batch_size must be divisible by n_gpus", "batch-not-divisible"),
        ("engine", "quux.OutOfMemoryError: CUDA out of memory", "gpu-oom-rollout"),
        ("framework", "quux.OutOfMemoryError: CUDA out of memory", "gpu-oom-training"),
        ("user", "RuntimeError: Error reading parquet file a.parquet: odd", "dataset-unreadable"),
    ],
)
def test_that_words_which_no_pattern_knows_name_what_they_are_about(
    owner: str, message: str, expected: str
) -> None:
    """Numbers, cards, keys, kernels, shares and rows are told by their words, whoever says them."""
    assert cause(OWNERS[owner], message) == expected


@each_row(
    ("words", "expected"),
    [
        ("--use-fused requires --dtype", "config-key-invalid"),
        ("--use-fused requires --beams >= 2", "config-key-invalid"),
        ("--use-fused requires oddlib>=2.0", "package-incompatible"),
        ("--use-fused requires oddlib to be installed", None),
    ],
)
def test_that_an_option_which_asks_for_a_package_is_no_wrong_one(words: str, expected: str | None) -> None:
    assert cause((USER, PLAIN), f"ValueError: {words}") == expected
