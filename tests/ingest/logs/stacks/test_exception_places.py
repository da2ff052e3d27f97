"""What the place of an exception tells: an import, the environment, a choice that the job refuses."""

from __future__ import annotations

from tests.factories import ReadLog
from tests.tables import each_row

SITE = "/env/lib/python3.11/site-packages"


def _traceback(calls: list[tuple[str, str, str]], message: str) -> str:
    rows = [f'  File "{file}", line 7, in {function}\n    {code}\n' for file, function, code in calls]
    return "".join(["Traceback (most recent call last):\n", *rows, message, "\n"])


MAIN = ("/job/train.py", "<module>", "import quux")
QUUX = (f"{SITE}/quux/__init__.py", "<module>", "from . import kernels")
LOADS = (f"{SITE}/quux/kernels.py", "_load", "path = next(folder.glob(name))")


@each_row(
    ("calls", "message", "expected"),
    [
        ([MAIN, QUUX, LOADS], "StopIteration", "package-incompatible"),
        ([MAIN, QUUX], "AttributeError: type object 'Vine' has no attribute 'graft'", "package-incompatible"),
        (
            [MAIN, ("<frozen importlib._bootstrap>", "_load", ""), QUUX, LOADS],
            "TypeError: graft() takes 1 positional argument but 2 were given",
            "package-incompatible",
        ),
        # A module that is run, not imported: nothing of it says that packages disagree.
        ([("/job/train.py", "<module>", "main()"), LOADS], "IndexError: odd", "user-code-error"),
        # However deep the packages go before they do so: no choice of how to read a call is tried twice.
        (
            [MAIN, *[QUUX] * 40, ("/job/plugin.py", "register", "names[0]")],
            "IndexError: odd",
            "user-code-error",
        ),
        # A package that calls back into the job's own code as it is imported has been imported well so far.
        ([MAIN, QUUX, ("/job/plugin.py", "register", "names[0]")], "IndexError: odd", "user-code-error"),
        # What the world refuses is that, whoever is being imported.
        ([MAIN, QUUX, LOADS], "OSError: [Errno 28] No space left on device", "disk-full"),
    ],
)
def test_that_a_package_which_fails_as_it_is_imported_does_not_fit_its_neighbours(
    calls: list[tuple[str, str, str]], message: str, expected: str, read: ReadLog
) -> None:
    root = read(_traceback(calls, message)).root
    assert root is not None
    assert root.cause == expected


@each_row(
    ("file", "code", "expected"),
    [
        (
            f"{SITE}/accelerate/utils/dataclasses.py",
            'size = int(os.environ.get("QUUX_SIZE", 0))',
            "config-key-invalid",
        ),
        ("/job/train.py", 'size = int(os.environ["QUUX_SIZE"])', "config-key-invalid"),
        ("/job/train.py", 'size = int(os.getenv("QUUX_SIZE"))', "config-key-invalid"),
        ("/job/train.py", "size = int(rows[0])", "user-code-error"),
    ],
)
def test_that_what_the_environment_holds_is_a_setting(
    file: str, code: str, expected: str, read: ReadLog
) -> None:
    calls = [("/job/train.py", "<module>", "main()"), (file, "prepare", code)]
    root = read(_traceback(calls, "ValueError: invalid literal for int() with base 10: '1e8'")).root
    assert root is not None
    assert root.cause == expected


@each_row(
    ("message", "expected"),
    [
        ("ValueError: config file is invalid. Unknown process type: diffusion_trai", "config-key-invalid"),
        ("ValueError: Unknown loss function name: focall", "config-key-invalid"),
        ("ValueError: 不支持的数据集: good_zin", "config-key-invalid"),
        ("ValueError: 未知优化器：adamz", "config-key-invalid"),
        ("Exception: Error, cannot find file: /data/view_01.png", "file-missing-or-denied"),
        ("RuntimeError: could not locate the folder of shards", "file-missing-or-denied"),
        # A program that worked out a value of its own refuses no choice.
        ("ValueError: 数据长度为 3", "user-code-error"),
        ("ValueError: cannot find a peak in the curve", "user-code-error"),
    ],
)
def test_that_the_jobs_own_words_say_what_they_refuse(message: str, expected: str, read: ReadLog) -> None:
    calls = [("/job/train.py", "<module>", "main()"), ("/job/parts.py", "make", "raise ValueError(text)")]
    root = read(_traceback(calls, message)).root
    assert root is not None
    assert root.cause == expected


@each_row(
    ("line", "expected"),
    [
        ("git.exc.InvalidGitRepositoryError: /data/views", "file-missing-or-denied"),
        ("fit.py: error: give either --grid or --random", "config-key-invalid"),
        ("Error locating target 'app.data.build', set env var HYDRA_FULL_ERROR=1", "config-key-invalid"),
    ],
)
def test_that_the_last_line_alone_tells_what_failed(line: str, expected: str, read: ReadLog) -> None:
    """Its calls were cut off, or its program prints none."""
    root = read(f"Error executing job with overrides: ['+grid=vine']\n{line}\n").root
    assert root is not None
    assert root.cause == expected


@each_row(
    ("line", "expected"),
    [
        ("NotImplementedError: Lark-2 not supported yet!", "config-key-invalid"),
        ("NotImplementedError: the model architecture LarkForCausalLM is not supported", "model-unsupported"),
        ("NotImplementedError: somebody has to write this", None),
    ],
)
def test_that_what_is_not_supported_is_a_choice_where_nobodys_calls_are_shown(
    line: str, expected: str | None, read: ReadLog
) -> None:
    root = read(f"{line}\n").root
    assert root is not None
    assert root.cause == expected


GIVES = f"{SITE}/trl/trainer.py"


@each_row(
    ("file", "message", "expected"),
    [
        (
            GIVES,
            "AttributeError: 'OrchardNet' object has no attribute '_old_generate'",
            "package-incompatible",
        ),
        (GIVES, "AttributeError: _old_generate", "package-incompatible"),
        ("/job/parts.py", "AttributeError: 'OrchardNet' object has no attribute '_old'", "user-code-error"),
        (GIVES, "AttributeError: 'OrchardNet' object has no attribute 'old_generate'", "user-code-error"),
    ],
)
def test_that_a_private_name_which_a_package_misses_is_no_jobs_to_give(
    file: str, message: str, expected: str, read: ReadLog
) -> None:
    calls = [
        ("/job/train.py", "<module>", "main()"),
        (file, "train", "del model._old_generate"),
        (f"{SITE}/torch/nn/modules/module.py", "__delattr__", "super().__delattr__(name)"),
    ]
    root = read(_traceback(calls, message)).root
    assert root is not None
    assert root.cause == expected


def test_that_a_hand_over_of_weights_which_lacks_a_part_is_the_hand_overs(read: ReadLog) -> None:
    wrap = f"{SITE}/openrlhf/trainer/ray/vllm_worker_wrap.py"
    message = "AttributeError: 'WorkerWrap' object has no attribute 'model_update_group'"
    calls = [(f"{SITE}/vllm/v1/engine/core.py", "run", "method()"), (wrap, "update_weight", "self.x")]
    root = read(_traceback(calls, message)).root
    assert root is not None
    assert root.cause == "engine-weight-sync"


@each_row(
    ("code", "message", "expected"),
    [
        ("math.exp(report_loss / words),", "OverflowError: math range error", "nan-or-inf"),
        ("return math.cosh(angle)", "OverflowError: math range error", "user-code-error"),
        ("np.histogram(x)", "ValueError: autodetected range of [nan, nan] is not finite", "nan-or-inf"),
        ("np.histogram(x)", "ValueError: the range of [3, 2] is reversed", "user-code-error"),
    ],
)
def test_that_a_number_which_ran_away_is_told_by_what_it_was_counted_for(
    code: str, message: str, expected: str, read: ReadLog
) -> None:
    calls = [("/job/train.py", "<module>", "main()"), ("/job/loop.py", "train_epoch", code)]
    root = read(_traceback(calls, message)).root
    assert root is not None
    assert root.cause == expected


@each_row(
    ("file", "expected"),
    [
        (f"{SITE}/vllm/multimodal/parse.py", "multimodal-mismatch"),
        (f"{SITE}/quux/shapes.py", "config-key-invalid"),
    ],
)
def test_that_a_value_without_a_branch_is_told_by_what_it_is_a_value_of(
    file: str, expected: str, read: ReadLog
) -> None:
    calls = [("/job/train.py", "<module>", "main()"), (file, "parse", "assert_never(item)")]
    text = _traceback(calls, "AssertionError: Expected code to be unreachable, but got: '/data/8.mp4'")
    root = read(text).root
    assert root is not None
    assert root.cause == expected
