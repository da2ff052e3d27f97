"""Ends that only report another's: a worker that left, a server of the job's own, a cluster."""

from __future__ import annotations

from tests.factories import OOM, ReadLog
from tests.tables import each_row

SITE = "/opt/env/lib/python3.11/site-packages"
LOOP = f'  File "{SITE}/torch/utils/data/_utils/worker.py", line 340, in _worker_loop\n'
OWN = (
    "Traceback (most recent call last):\n" + LOOP + "    data = fetcher.fetch(index)\n"
    '  File "/job/data.py", line 40, in __getitem__\n    return self.rows[self.index[i]]\n'
    "IndexError: list index out of range\n"
)
LEFT = (
    "Traceback (most recent call last):\n"
    f'  File "{SITE}/torch/utils/data/dataloader.py", line 1133, in _try_get_data\n'
    "    data = self._data_queue.get(timeout=timeout)\n"
    "RuntimeError: DataLoader worker (pid 4711) exited unexpectedly with exit code {code}. Details are "
    "lost due to multiprocessing. Rerunning with num_workers=0 may give better error trace.\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
)
GONE = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 60, in <module>\n    for batch in loader:\n'
    "RuntimeError: DataLoader worker (pid(s) 4711) exited unexpectedly\n"
)


@each_row(
    ("text", "cause", "strength"),
    [
        # What its worker met stands above.
        (OWN + LEFT.format(code=1) + GONE, "user-code-error", "suggests"),
        # It left by itself, and why is lost; another time nothing is said of how it ended.
        (LEFT.format(code=1) + GONE, "dataloader-worker-killed", "hints"),
        (GONE, "dataloader-worker-killed", "suggests"),
    ],
)
def test_that_a_worker_which_left_by_itself_was_not_killed(
    read: ReadLog, text: str, cause: str, strength: str
) -> None:
    root = read(text).root
    assert root is not None
    assert (root.cause, root.strength) == (cause, strength)


ASKED = (
    'Traceback (most recent call last):\n  File "/job/ask.py", line 30, in <module>\n'
    "    answer.raise_for_status()\n"
    '  File "/opt/env/lib/python3.11/site-packages/requests/models.py", line 1021, in raise_for_status\n'
    "    raise HTTPError(http_error_msg, response=self)\n"
    "requests.exceptions.HTTPError: {0} for url: {1}\n"
)
FAILED = "500 Server Error: Internal Server Error"


@each_row(
    ("status", "url", "cause"),
    [
        (FAILED, "http://127.0.0.1:8000/v1/completions", "engine-crash"),
        (FAILED, "http://localhost:30000/generate", "engine-crash"),
        (FAILED, "http://[::1]:30000/generate", "engine-crash"),
        (FAILED, "https://api.lark.example/v1/completions", "external-service-failed"),
        (FAILED, "https://localhost.lark.example/v1", "external-service-failed"),
        ("404 Client Error: Not Found", "http://localhost:30000/v2", "external-service-failed"),
        (FAILED, "https://huggingface.co/api/models/a/b", "hub-unreachable"),
    ],
)
def test_that_a_server_of_the_same_machine_is_no_outside_service(
    read: ReadLog, status: str, url: str, cause: str
) -> None:
    root = read(ASKED.format(status, url)).root
    assert root is not None
    assert root.cause == cause


@each_row(
    ("row", "cause"),
    [
        ("java.io.IOException: Failed to bind to address 0.0.0.0/0.0.0.0:8433", "port-in-use"),
        ("Failed to bind to /0.0.0.0:9092", "port-in-use"),
        ("lark: failed to bind to port 9092.", "port-in-use"),
        # Another reason is told, or none of a port.
        ("Failed to bind to /0.0.0.0:80: Permission denied", "file-missing-or-denied"),
        ("Failed to bind the lark to step 12", None),
    ],
)
def test_that_a_refused_bind_without_a_reason_is_a_taken_port(
    read: ReadLog, row: str, cause: str | None
) -> None:
    root = read(f"INFO lark.Server - starting the gateway\n{row}\n").root
    assert (root.cause if root else None) in (cause, None if cause != "port-in-use" else cause)


@each_row(
    ("rows", "seconds"),
    [
        ("(autoscaler +11h25m10s) Resized to 64 CPUs, 8 GPUs.\n", 41110.0),
        ("(autoscaler +2d1h1m1s) Adding 1 node(s) of type ray.worker.default.\n", 176461.0),
        ("(autoscaler, ip=10.0.0.3) Resized to 64 CPUs.\n", 60.0),
        ("(raylet) Some workers of the worker process have not registered within the timeout.\n", 60.0),
    ],
)
def test_that_a_clusters_uptime_is_time(read: ReadLog, rows: str, seconds: float) -> None:
    text = (
        "2026-01-05 03:00:00,000\tINFO worker.py:1841 -- Connected to Ray cluster.\n"
        "2026-01-05 03:01:00,000\tINFO worker.py:1841 -- Connected to Ray cluster.\n"
        f"(autoscaler +11s) Adding 1 node(s) of type ray.worker.default.\n{rows}{OOM}\n"
    )
    assert read(text).timeline.seconds == seconds
