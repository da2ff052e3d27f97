"""What a server refuses is the request's failure, and what a tracker got over is no job's."""

from tests.factories import OOM, ReadLog, prefixed, traceback
from tests.tables import each_row

TOO_LONG = "ValueError: This model's maximum context length is 2048 tokens. However, you requested 5418"
REFUSED = 'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request\n'
LOST = 'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error\n'
PROBE = 'INFO:     10.0.0.7:51234 - "GET /metrics HTTP/1.1" 404 Not Found\n'
CLOSED = "INFO:     Shutting down\nINFO:     Application shutdown complete.\n"
ENGINE = "(EngineCore_DP0 pid=9) "
API = "wandb: ERROR Error while calling W&B API: context deadline exceeded (<Response [500]>)\n"
ASKED = (
    "The repository for org/x contains custom code which must be executed to correctly load the model. "
    "You can inspect it.\n"
    "You can avoid this prompt in future by passing the argument `trust_remote_code=True`.\n"
)
SYNCED = "wandb: Synced 6 W&B file(s), 0 media file(s), 2 artifact file(s) and 0 other file(s)\n"


@each_row(
    "text",
    [
        traceback(TOO_LONG) + REFUSED + CLOSED,
        3 * (traceback(TOO_LONG) + REFUSED),
        prefixed("(APIServer pid=7) ", traceback(TOO_LONG) + REFUSED),
        API + "wandb: Run summary:\n" + SYNCED,
        ASKED + "Do you wish to run the custom code? [y/N] y\n",
    ],
)
def test_that_a_failure_which_its_program_got_over_is_none_of_the_job(text: str, read: ReadLog) -> None:
    report = read(text)
    assert report.root is None
    assert {event.role for event in report.events} <= {"recovered", "teardown"}


@each_row(
    "text",
    [
        traceback(OOM) + LOST + CLOSED,
        # What a request cannot bring about is not got over by an answer to one.
        traceback(OOM) + REFUSED + CLOSED,
        traceback(OOM) + PROBE,
        prefixed(ENGINE, traceback(OOM)) + prefixed("(APIServer pid=7) ", REFUSED),
        REFUSED + traceback(OOM),
        traceback(OOM) + "INFO one\nINFO two\nINFO three\nINFO four\n" + REFUSED,
        traceback(TOO_LONG) + REFUSED + traceback(OOM),
        SYNCED + API,
        ASKED + traceback("ValueError: " + ASKED.replace("You can avoid", "Please avoid")),
        traceback(OOM) + SYNCED,
        "wandb.errors.CommError: It appears that you do not have permission to access it.\n" + SYNCED,
    ],
)
def test_that_what_nobody_is_seen_to_get_over_stands(text: str, read: ReadLog) -> None:
    root = read(text).root
    assert root is not None
    assert root.cause is not None


def test_that_a_server_that_started_lived_through_what_it_logged_before(read: ReadLog) -> None:
    """What is killed later did not die of it; who never started may have."""
    failed = (
        "ERROR 10-01 10:00:01 [config.py:130] Cannot reach https://hub.example.org/m: offline mode is on.\n"
    )
    failed += "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    started = "INFO:     Application startup complete.\n"
    killed = "serve.sh: line 9:  8156 Killed                  vllm serve m\n"
    for row, expected in ((started, 4), ("", 2)):
        root = read(failed + row + killed).root
        assert root is not None
        assert root.line == expected


HYDRA = "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
BARS = "".join(f"Capturing batches: {25 * n}%|##  | {n}/4 [00:01<00:00,  2.5it/s]\n" for n in range(5))


@each_row(
    "text, is_root",
    [
        # The program has died; the workers that it left print what they still had.
        (traceback(OOM) + HYDRA + prefixed("(WorkerDict pid=88) ", BARS), True),
        # Without that word, or with steps of a training, work goes on.
        (traceback(OOM) + prefixed("(WorkerDict pid=88) ", BARS), False),
        (traceback(OOM) + HYDRA + "step 10 loss 2.1\nstep 20 loss 1.9\nstep 30 loss 1.8\n", False),
    ],
)
def test_that_bars_behind_a_program_that_died_are_no_work(text: str, is_root: bool, read: ReadLog) -> None:
    assert (read(text).root is not None) == is_root


REFUSED_TOOL = "conda: error: argument COMMAND: invalid choice: 'stop' (choose from 'run')\n"
REFUSED_JOB = "train.py: error: unrecognized arguments: --lr_decay\n"


@each_row(
    "text, row",
    [
        # The script went on with what its environment had, and failed by something else.
        (REFUSED_TOOL + traceback(OOM), (REFUSED_TOOL + traceback(OOM)).count("\n")),
        (REFUSED_TOOL, 1),
        (REFUSED_JOB + traceback(OOM), 1),
    ],
)
def test_that_what_a_tool_of_the_environment_refuses_is_passed_over(
    text: str, row: int, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert root.line == row, root.body
