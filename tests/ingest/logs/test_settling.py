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
SYNCED = "wandb: Synced 6 W&B file(s), 0 media file(s), 2 artifact file(s) and 0 other file(s)\n"


@each_row(
    "text",
    [
        traceback(TOO_LONG) + REFUSED + CLOSED,
        3 * (traceback(TOO_LONG) + REFUSED),
        prefixed("(APIServer pid=7) ", traceback(TOO_LONG) + REFUSED),
        API + "wandb: Run summary:\n" + SYNCED,
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
        traceback(OOM) + SYNCED,
        "wandb.errors.CommError: It appears that you do not have permission to access it.\n" + SYNCED,
    ],
)
def test_that_what_nobody_is_seen_to_get_over_stands(text: str, read: ReadLog) -> None:
    root = read(text).root
    assert root is not None
    assert root.cause is not None
