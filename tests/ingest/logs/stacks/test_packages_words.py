"""What packages say that have no pattern of their own: the words, the class and the place tell the cause."""

from __future__ import annotations

from corpus import exceptions
from ingest.logs.stacks.exception_classifier import classify_exception
from ingest.logs.stacks.stack import Frame
from tests.factories import ReadLog, event
from tests.tables import each_row

SITE = "/env/lib/python3.11/site-packages"
MEANINGS = exceptions.load()
USER = "/job/train.py:main"


def cause(message: str, *calls: str, code: str = "") -> str | None:
    """Give the cause of an exception below these calls, "file:function", of the job's own script first."""
    places = [call.rpartition(":") for call in (USER, *calls)]
    frames = tuple(
        Frame(file if file.startswith("/") else f"{SITE}/{file}", 10, function, code)
        for file, _, function in places
    )
    raised = event(1, body=message, exception=message.partition(":")[0], frames=frames, cause=None)
    return classify_exception(raised, MEANINGS).cause


@each_row(
    ("message", "call", "expected"),
    [
        ("ValueError: states differ across ranks", "quux/sync.py:check", "collective-desync"),
        (
            "FloatingPointError: norms are not equal between workers",
            "quux/sync.py:check",
            "collective-desync",
        ),
        (
            "RuntimeError: Cannot resume: the world size is 8, the checkpoint has a different world size",
            "quux/state.py:load",
            "checkpoint-mismatch",
        ),
        (
            "ValueError: restored and saved tree structures do not match",
            "quux/state.py:restore",
            "checkpoint-mismatch",
        ),
        (
            "ValueError: layer a expected 3 weights, but received 0 weights on loading",
            "quux/l.py:load",
            "checkpoint-mismatch",
        ),
        (
            "RuntimeError: quux 3.1 is loaded but not supported, use quux<3.0",
            "quux/a.py:check",
            "package-incompatible",
        ),
        ("RuntimeError: please upgrade quux to quux>=2.1", "quux/a.py:check", "package-incompatible"),
        ("RuntimeError: no suitable decoder for a.opus", "quux/io.py:read", "package-missing"),
        ("RuntimeError: failed to load libquux.so", "quux/io.py:<module>", "abi-mismatch"),
        (
            "ArrowInvalid: Column 1 named a expected length 4 but got length 3",
            "quux/w.py:put",
            "dataset-schema",
        ),
        (
            "QuuxError: the simulator shut down with return code -11 (SIGSEGV).",
            "quux/s.py:poll",
            "native-crash",
        ),
        ("QuuxError: the simulator ended with exit code -9", "quux/s.py:poll", None),
        ("ValueError: Unsupported worker_count value: all", "quux/w.py:run", "config-key-invalid"),
        ("torch._dynamo.exc.UserError: no guard on u0", "torch/_dynamo/exc.py:stop", "jit-build-failed"),
        ("ImportError: 'Sampler' requires either 'quux-lib' or 'foo'", "quux/s.py:sample", "package-missing"),
        ("RuntimeError: found 0 files below /data/x", "quux/io.py:scan", "dataset-unreadable"),
        ("ValueError: didn't find 'png' in ['key', 'txt']", "quux/tar.py:read", "dataset-schema"),
        ("RuntimeError: /data/index of the corpus was not found", "quux/io.py:read", None),
        ("RuntimeError: /data/index does not exist", "quux/io.py:read", "file-missing-or-denied"),
        ("RuntimeError: NVIDIA driver library cannot be found", "quux/gpu.py:init", "gpu-not-visible"),
        ("RuntimeError: failed to bind the proxy to '0.0.0.0:8000'", "quux/http.py:run", "port-in-use"),
        (
            "ValueError: dimension 0 must be divisible by 8, the mesh has 8, got 12",
            "jax/_src/a.py:put",
            "parallelism-invalid",
        ),
        (
            "ValueError: the result did not include the requested metric, make sure your loop reports it",
            "ray/tune/a.py:check",
            "config-key-invalid",
        ),
        ("ValueError: x is on device cuda:0 while y is on device cpu", "dgl/graph.py:add", "user-code-error"),
        (
            "ConnectionError: client connection timed out",
            "ray/util/client/worker.py:_go",
            "ray-control-plane",
        ),
    ],
)
def test_words_tell_the_cause(message: str, call: str, expected: str | None) -> None:
    """Whoever writes such a message means one thing by it, whatever the package is called."""
    assert cause(message, call) == expected


@each_row(
    "message",
    [
        "ValueError: need at least one array to concatenate",
        "RuntimeError: stack(): expected a non-empty list of Tensors",
    ],
)
def test_nothing_to_join(message: str) -> None:
    """Where a data set reads itself in and has nothing to join, its files are at fault, elsewhere not."""
    read = ("quux/dataset/base.py:full_init", "quux/dataset/base.py:_join")
    assert cause(message, *read) == "dataset-unreadable"
    assert cause(message, "quux/nn/pool.py:forward") != "dataset-unreadable"


def test_import_before_refusals() -> None:
    """What a package raises as it is imported refuses no setting: its releases do not go together."""
    message = "ValueError: mutable default <class 'q.Common'> for field c is not allowed"
    calls = ("/job/run.py:<module>", "quux/__init__.py:<module>", "quux/conf.py:<module>")
    frames = tuple(
        Frame(file if file.startswith("/") else f"{SITE}/{file}", 3, function, "")
        for file, _, function in (call.rpartition(":") for call in calls)
    )
    raised = event(1, body=message, exception="ValueError", frames=frames, cause=None)
    told = classify_exception(raised, MEANINGS)
    assert (told.cause, told.strength) == ("package-incompatible", "states")


@each_row("code", ["x = first_example['chosen']", 'return row["label"]'])
def test_keys_of_rows(code: str) -> None:
    """What a package looks up in a row is a column that the data lack."""
    assert cause("KeyError: 'chosen'", "quux/data_utils.py:split", code=code) == "dataset-schema"
    assert cause("KeyError: 'chosen'", "quux/state.py:get", code="self.table['chosen']") != "dataset-schema"


@each_row("name", ["__getstate__", "__reduce_ex__", "__deepcopy__"])
def test_names_of_pickle(name: str) -> None:
    """An object whose class takes each name for a key of its own cannot be written, whatever it holds."""
    assert cause(f"KeyError: '{name}'", "quux/config.py:__getattr__") == "user-code-error"
    assert cause(f"KeyError: '{name}'", "datasets/a.py:__getitem__") == "user-code-error"


def test_reason_of_a_remote_call(read: ReadLog) -> None:
    """A message that promises the reason is followed by what a remote call raised: that is the failure."""
    log = f"""Traceback (most recent call last):
  File "/job/app.py", line 4, in <module>
    serve.run(app)
  File "{SITE}/ray/serve/_private/client.py", line 28, in deploy
    raise RuntimeError(
RuntimeError: Deploying app quux failed: it did not start 3 times in a row. Error:
ray::ServeReplica:quux:Model.initialize() (pid=71, ip=10.0.0.4)
  File "/job/app.py", line 18, in __init__
    self.names = json.load(open("names.json"))
FileNotFoundError: [Errno 2] No such file or directory: 'names.json'
"""
    root = read(log).root
    assert root is not None
    assert (root.cause, root.line) == ("file-missing-or-denied", 10)
