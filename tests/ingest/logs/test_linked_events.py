"""An earlier line is the root where a name ties it to the end, and none where its process lived on."""

from tests.factories import ReadLog, prefixed, steps, traceback
from tests.tables import each_row

WARNED = (
    "WARNING 02-28 20:57:36 _core_ext.py:180] Failed to import from vllm._core_C with "
    "ImportError('libtorch_hip.so: cannot open shared object file: No such file or directory')\n"
)
MISSED = "RuntimeError: Tried to instantiate class '_core_C.ScalarType', but it does not exist!"
OTHER = "RuntimeError: the moon_phase is in the wrong house"
TASK = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False."
)
KILLED = (
    "(raylet) [2024-12-19 19:17:52,141 E 58 58] (raylet) node_manager.cc:3069: {count} Workers (tasks / "
    "actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 08be)\n"
)
FIRST, SECOND = "(inner_loop pid=11) ", "(inner_loop pid=12) "


@each_row(
    "text, is_tied",
    [
        (WARNED + traceback(MISSED), True),
        (WARNED + traceback(OTHER), False),
        (traceback(MISSED) + WARNED, False),
    ],
)
def test_that_a_warning_is_the_root_where_it_names_what_is_missed(
    text: str, is_tied: bool, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert (root.text in WARNED) == is_tied
    assert root.cause is not None or not is_tied


@each_row(
    "text, is_killed",
    [
        (2 * prefixed(FIRST, traceback(TASK)) + KILLED.format(count=9), True),
        (prefixed(FIRST, traceback(TASK)) + KILLED.format(count=9), False),
        (
            prefixed(FIRST, traceback(TASK)) + prefixed(SECOND, traceback(TASK)) + KILLED.format(count=9),
            False,
        ),
        (traceback(TASK) + KILLED.format(count=9), False),
        (KILLED.format(count=2) + 2 * prefixed(FIRST, traceback(TASK)), True),
    ],
)
def test_that_what_a_process_says_again_is_not_what_ended_it(
    text: str, is_killed: bool, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert (root.kind == "kill") == is_killed


@each_row(
    ("words", "is_known"),
    [
        ("T5Tokenizer requires the SentencePiece library but it was not found in your environment.", True),
        ("The moon is in the wrong house.", False),
    ],
)
def test_that_an_exception_without_words_says_what_stands_below_it(
    words: str, is_known: bool, read: ReadLog
) -> None:
    """Python prints a message that begins with a line feed there; it has the exception's calls."""
    root = read(f"{traceback('ImportError:')}{words}\n").root
    assert root is not None
    assert (words in root.text) is is_known
    assert [frame.function for frame in root.frames] == ["main", "step"]
    assert (root.cause == "package-missing") is is_known


UNKNOWN_MODEL = (
    "2025-03-02 10:00:01,000 [WARNING] attn_implementation={way} failed: The checkpoint you are trying to "
    "load has model type `lark3` but Transformers does not recognize this architecture.\n"
)
WARNED_TWICE = UNKNOWN_MODEL.format(way="sdpa") + UNKNOWN_MODEL.format(way="eager")
CALM = "".join(f"2025-03-02 10:00:0{at},000 [INFO] part {at} is read\n" for at in range(2, 8))
GIVES_UP = traceback("RuntimeError: Cannot load lark-3b", code='raise RuntimeError(f"Cannot load {name}")')


@each_row(
    "text, is_warned",
    [
        (WARNED_TWICE + GIVES_UP, True),
        (WARNED_TWICE + CALM + GIVES_UP, False),
        (WARNED_TWICE + traceback("RuntimeError: Cannot load lark-3b"), False),
        (WARNED_TWICE + traceback("KeyError: 'lark'", code='raise KeyError("lark")'), False),
    ],
)
def test_that_the_warning_right_above_is_why_a_script_gives_up(
    text: str, is_warned: bool, read: ReadLog
) -> None:
    """It caught and logged the failure, and raises in its own words; work between, or a slip, unties them."""
    root = read(text).root
    assert root is not None
    assert ("lark3" in root.text) == is_warned


IMPORT_WARNING = (
    "/env/lark/__init__.py:7: RuntimeWarning: Failed to read commit hash:\n"
    "cannot import name '_version' from partially initialized module 'lark' (most likely due to a circular "
    "import) (/env/lark/__init__.py)\n"
)
STATEMENT = "  from .version import __version__\n"
SHAPE = "RuntimeError: shape '[332, -1]' is invalid for input of size 89128961"


@each_row(
    "text, is_warning",
    [
        (IMPORT_WARNING + STATEMENT + "INFO starting\n" + traceback(SHAPE), True),
        (IMPORT_WARNING + "INFO starting\n" + traceback(SHAPE), False),
    ],
)
def test_that_a_warning_of_several_rows_is_no_first_failure(
    text: str, is_warning: bool, read: ReadLog
) -> None:
    """Python prints the statement that warned below the message; without it the rows are not one warning."""
    root = read(text).root
    assert root is not None
    assert (root.body == SHAPE) == is_warning


COMPILED = (
    "/job/boxes.py:76: CompileWarning:\nFell back for `corners`, due to: no overload fits.\n\n"
    "There are 2 candidates:\n   Rejected as the first one raised an error:\n"
    '     OddError: Failed in the fast pipeline\n\nFile "boxes.py", line 80:\n  @compile\n'
)
BEHIND = "2026-01-03 09:12:44,120 - INFO - looking for loops\n     OddError: Failed in the fast pipeline\n"


@each_row("text, is_failure", [(COMPILED, False), (COMPILED + BEHIND, True)])
def test_that_the_details_of_a_long_warning_are_no_failure(
    text: str, is_failure: bool, read: ReadLog
) -> None:
    """A record of a logger ends the warning's message."""
    assert (read(f"{steps(1)}{text}").root is not None) == is_failure


INNER = traceback("ImportError: lark_attn requires the compiled extensions (_lark_C)").replace(
    "/job/", "/env/lib/python3.12/site-packages/vllm/models/"
)
OUTER = traceback(
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
    "  Value error, Model architectures ['LarkForCausalLM'] failed to be inspected. Please check the logs "
    "for more details. [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]"
)
SUBPROCESS = "RuntimeError: Error raised in subprocess:"


@each_row(
    "text",
    [
        traceback(SUBPROCESS) + INNER,
        traceback(SUBPROCESS)
        + "<frozen runpy>:128: RuntimeWarning: 'lark.registry' found in sys.modules\n"
        + INNER,
        prefixed("ERROR 03-02 10:00:00 [registry.py:963] ", traceback(SUBPROCESS) + INNER) + OUTER,
        INNER + OUTER,
    ],
)
def test_that_the_inner_exception_is_the_reason_of_what_only_reports_it(text: str, read: ReadLog) -> None:
    """A message that ends in a colon before another traceback, and one that sends to the log, are reports."""
    root = read(text).root
    assert root is not None
    assert root.exception == "ImportError"


def test_that_a_lazy_import_gives_way_to_the_reason_in_the_row_below(read: ReadLog) -> None:
    """The import names its reason without the exception's type; a paste may have nothing above it."""
    root = read(
        "RuntimeError: Failed to import transformers.trainer because of the following error (look up to see "
        "its traceback):\n"
        "cannot import name 'is_lark' from 'accelerate.utils' (/env/accelerate/utils/__init__.py)"
    ).root
    assert root is not None
    assert root.line == 2


def test_that_an_interrupt_gives_way_to_what_was_raised_while_it_was_handled(read: ReadLog) -> None:
    """It has no words of its own; the exception that came of it may say who interrupted."""
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    root = read(traceback("KeyboardInterrupt") + link + traceback("LarkError: told to stop by node 3")).root
    assert root is not None
    assert root.exception == "LarkError"


NO_DEVICE = (
    "/env/lib/python3.12/site-packages/torch/cuda/__init__.py:182: UserWarning: CUDA initialization: CUDA "
    "unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable "
    "CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.\n"
    "  return torch._C._cuda_getDeviceCount() > 0\n"
)
TOO_FEW = traceback("ValueError: the stages must be fewer than the number of gpus")
OOM = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
WAITS = (
    "INFO 06-02 10:11:22 [ray_utils.py:233] Waiting for creating a placement group of specs for 10 seconds. "
    "specs=[{'GPU': 1.0}, {'GPU': 1.0}]. Check `ray status`\n"
)
GIVEN_UP = traceback("KeyboardInterrupt")
FORKED = (
    "terminate called after throwing an instance of 'c10::AcceleratorError'\n"
    "  what():  CUDA error: initialization error\n"
)
POOL_DIED = traceback("RuntimeError: One of the subprocesses has abruptly died during map operation.")
UNANSWERED = (
    "/env/lib/python3.11/site-packages/torch/cuda/__init__.py:1061: UserWarning: Can't initialize NVML\n"
)
SYSTEM_ERROR = traceback("RuntimeError: NCCL Error 2: unhandled system error (run with NCCL_DEBUG=INFO)")


@each_row(
    "text, line",
    [
        # What a program warned of as it began it meets again in other words.
        (NO_DEVICE + TOO_FEW, 1),
        # What has another reason, or stands above, is none of it.
        (NO_DEVICE + OOM, 2 + OOM.count("\n")),
        (TOO_FEW + NO_DEVICE, TOO_FEW.count("\n")),
        # Whoever waits for what is not there waits until somebody ends it; what began after all does not.
        (WAITS + GIVEN_UP, 1),
        (WAITS + steps(1, 2, 3) + GIVEN_UP, 4 + GIVEN_UP.count("\n")),
        # What ended a worker ended nothing more: its pool reports it when the others are done.
        (FORKED + steps(1, 2, 3) + POOL_DIED, 2),
        (OOM + steps(1, 2, 3) + POOL_DIED, OOM.count("\n") + 3 + POOL_DIED.count("\n")),
        # PyTorch goes on without NVML, and NCCL does not.
        (UNANSWERED + SYSTEM_ERROR, 1),
        (UNANSWERED + steps(1, 2) + SYSTEM_ERROR, 3 + SYSTEM_ERROR.count("\n")),
        (SYSTEM_ERROR + UNANSWERED, SYSTEM_ERROR.count("\n")),
    ],
)
def test_that_what_a_failure_comes_of_is_the_root_where_its_pattern_says_so(
    text: str, line: int, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert root.line == line


@each_row(
    ("exception", "message"),
    [
        ("FileNotFoundError", "[Errno 2] No such file or directory: '/data/lark/7.png'"),
        ("PermissionError", "[Errno 13] Permission denied: '/data/lark'"),
        ("MemoryError", "Unable to allocate 3.1 GiB for an array"),
        ("PIL.UnidentifiedImageError", "cannot identify image file '/data/lark/7.png'"),
        ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB."),
        ("json.decoder.JSONDecodeError", "Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_that_what_a_worker_raised_is_the_root_and_not_who_tells_of_it(
    exception: str, message: str, read: ReadLog
) -> None:
    """The rows are those of ExceptionWrapper.reraise (torch/_utils.py): the type stands in both."""
    told = f"{exception}: Caught {exception} in DataLoader worker process 3."
    inner = f"{exception}: {message}"
    root = read(f"{traceback(told)}Original {traceback(inner)}").root
    assert root is not None
    assert root.body == inner


@each_row(
    ("first", "line"),
    [("IndexError: list index out of range", "second"), ("ZeroDivisionError: division by zero", "first")],
)
def test_that_whoever_caught_a_look_up_says_what_was_not_there(first: str, line: str, read: ReadLog) -> None:
    """An index out of range tells less than what was raised for it; another slip is its own reason."""
    second = "ValueError: No runs present in the directory: 'logs/v1'"
    caught = "\nDuring handling of the above exception, another exception occurred:\n\n"
    root = read(traceback(first, "newest", "runs[-1]") + caught + traceback(second)).root
    assert root is not None
    assert root.body == {"first": first, "second": second}[line]


CUT_CHAIN = (
    "urllib3.exceptions.SSLError: [SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred (_ssl.c:1007)\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/env/lib/python3.10/site-packages/{package}", line 66, in send\n'
    "    return super().send(request)\n"
    "requests.exceptions.SSLError: [SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred (_ssl.c:1007)\n"
)


@each_row(
    "package, cause",
    [
        ("huggingface_hub/utils/_http.py", "hub-unreachable"),
        ("wandb/sdk/lib/retry.py", "external-service-failed"),
    ],
)
def test_that_a_chain_whose_begin_is_cut_off_tells_for_whom_it_was_called(
    package: str, cause: str, read: ReadLog
) -> None:
    """The first exception of the log has no calls of its own; it has those of the one that it led to."""
    root = read(CUT_CHAIN.format(package=package)).root
    assert root is not None
    assert (root.line, root.cause) == (1, cause)
