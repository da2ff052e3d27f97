"""What a program says without a logger: a warning, a debugger's prompt, a hub that is asked again."""

from __future__ import annotations

from tests.factories import OOM, ReadLog, steps
from tests.tables import each_row

WITHOUT_APEX = (
    "Warning:  multi_tensor_applier fused unscale kernel is unavailable, possibly because apex was installed "
    "without --cuda_ext --cpp_ext. Using Python fallback.\n"
)
VERL = "/env/site-packages/verl/trainer"
TIMED_OUT = (
    "'(ReadTimeoutError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read "
    "timeout=10)\"), '(Request ID: 5)')' thrown while requesting HEAD https://huggingface.co/a/b/resolve/main/c\n"
    "Retrying in 1s [Retry 1/5].\n"
)


@each_row(
    ("text", "expected"),
    [
        # Whoever calls it a warning went on, and died of what comes below.
        (WITHOUT_APEX + OOM + "\n", "gpu-oom-training"),
        # The same without the word is a failure of its own.
        (WITHOUT_APEX.removeprefix("Warning:  ") + OOM + "\n", "package-missing"),
        # Whoever catches what the device states may call it as he likes.
        ("Warning: no model. Error: CUDA error: device-side assert triggered\n", "cuda-device-assert"),
        # A message that begins by the word in its program's own source is what that says.
        ("Warning: DeepEP timeout for dispatch receive, rank 3, src_rank 9\n", "expert-parallel-transport"),
    ],
)
def test_that_what_a_program_calls_a_warning_by_itself_ends_nothing(
    text: str, expected: str, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert root.cause == expected


IMAGE = (
    "/env/site-packages/torchvision/io/image.py:13: UserWarning: Failed to load image Python extension: "
    "/env/site-packages/torchvision/image.so: undefined symbol: _ZN3c106detail\n  warn(f'Failed')\n"
)
PROBE = (
    "2026-01-05 03:04:05,712 INFO    MainThread:69 [wandb_run.py:_label_probe_notebook():1286] "
    "Unable to probe notebook: 'NoneType' object has no attribute 'get'\n"
)


@each_row(
    ("text", "fails"),
    [
        # Pages of other words below it; nothing else; a few of them.
        (IMAGE + "a value of the view 26.9\n" * 120, False),
        (IMAGE, True),
        (IMAGE + "a value of the view 26.9\n" * 9, True),
        # What a program remarks at the level of its remarks, and then says that it is done.
        (PROBE + "INFO training done\n", False),
        (PROBE.replace(" INFO ", " ERROR "), True),
        # The same as an exception that nobody caught.
        (
            'Traceback (most recent call last):\n  File "/job/a.py", line 3, in <module>\n    import lark\n'
            "ImportError: /env/site-packages/lark.so: undefined symbol: _ZN3c106detail\n" + "a word\n" * 120,
            True,
        ),
    ],
)
def test_that_who_only_remarks_on_a_failure_lives_on_for_pages(text: str, fails: bool, read: ReadLog) -> None:
    assert (read(text).root is not None) is fails


@each_row(
    ("text", "expected"),
    [
        ("step 1 loss 2.3\n> /job/net.py(88)forward()\n-> return x\n(Pdb) \n", "user-code-error"),
        ("step 1 loss 2.3\n> /job/net.py(88)forward()\nipdb> \n", "user-code-error"),
        # Somebody answered, and it went on.
        ("(Pdb) \n" + steps(1, 2, 3, 4, 5, 6), None),
        (TIMED_OUT, "hub-unreachable"),
        (TIMED_OUT + steps(1, 2, 3, 4, 5, 6), None),
        # A service of the job's own is no hub.
        (TIMED_OUT.replace("huggingface.co", "10.0.0.7"), None),
    ],
)
def test_that_a_log_which_ends_in_a_prompt_or_in_tries_died_there(
    text: str, expected: str | None, read: ReadLog
) -> None:
    root = read(text).root
    assert (root.cause if root else None) == expected


@each_row(
    ("file", "expected"),
    [
        ("/usr/lib/python3.11/pdb.py", "user-code-error"),
        ("/env/lib/python3.11/site-packages/IPython/core/debugger.py", "user-code-error"),
        ("/job/setup.py", "config-key-invalid"),
    ],
)
def test_that_a_question_which_nobody_answers_is_a_breakpoint_where_the_debugger_asks(
    file: str, expected: str, read: ReadLog
) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/job/train.py", line 12, in <module>\n    run()\n'
        f'  File "{file}", line 126, in ask\n    line = input(self.prompt)\n'
        "EOFError: EOF when reading a line\n"
    )
    root = read(text).root
    assert root is not None
    assert root.cause == expected


@each_row(
    ("file", "code", "expected"),
    [
        (
            "/env/site-packages/verl/trainer/ppo/ray_trainer.py",
            "raise NotImplementedError",
            "config-key-invalid",
        ),
        ("/env/site-packages/verl/trainer/ppo/ray_trainer.py", "self.make()", "framework-bug"),
        # A method that the job's own class leaves open is a slip of its own.
        ("/job/net.py", "raise NotImplementedError", "user-code-error"),
    ],
)
def test_that_a_framework_without_a_branch_for_a_value_refuses_a_setting(
    file: str, code: str, expected: str, read: ReadLog
) -> None:
    text = (
        f'Traceback (most recent call last):\n  File "{VERL}/main_ppo.py", line 3, in main\n    fit()\n'
        f'  File "{file}", line 7, in advantage\n    {code}\nNotImplementedError\n'
    )
    root = read(text).root
    assert root is not None
    assert root.cause == expected


def test_that_a_count_of_rounds_with_their_figures_is_work(read: ReadLog) -> None:
    """A log that ends with the last of them is one of which nothing failed; a builder's count is no work."""
    counted = "".join(f"[decoding {number}/3] beam=5: ins=1.27%\n" for number in (1, 2, 3))
    assert read(counted).marks
    assert not read(counted.replace("decoding ", "")).marks


def test_that_no_end_is_good_whose_evaluation_has_no_number(read: ReadLog) -> None:
    """Transformers' scripts tell an evaluation thrice: as a record, as its metrics, and as the perplexity."""
    metrics = "***** eval metrics *****\n  eval_loss               =        {0}\n  perplexity = {0}\n"
    record = "{{'eval_loss': {0}, 'eval_runtime': 0.5, 'epoch': 0.1}}\n"
    done = "{'train_runtime': 10.8, 'train_samples_per_second': 23.5, 'train_loss': 0.0, 'epoch': 0.1}\n"
    lost = read((record + metrics).format("nan") + done).root
    assert lost is not None
    assert lost.cause == "nan-or-inf"
    assert read((record + metrics).format("0.7") + done).root is None
