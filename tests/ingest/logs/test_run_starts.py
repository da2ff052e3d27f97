"""A file that several runs were written into: the last one is the job; what ended others is told apart."""

from ingest.logs.report import CrashReport
from tests.factories import OOM, STRANGE, ReadLog, prefixed, traceback
from tests.tables import each_row

BANNER = (
    "Launching the trainer with 8 processes\nUsing the configuration of base.yaml\n"
    "Loading the tokenizer from /models/lark\nPreparing the data set of 459 rows\n"
)
STEPS = "".join(f"step {number}/100 loss 2.{number}\n" for number in range(1, 9))
FULL = "OSError: [Errno 28] No space left on device: '/scratch/run-7/state.pt'"
NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: '/data/rows.parquet'"
REFUSED = "train.py: error: unrecognized arguments: --lrr 3"
STARTED = traceback(OOM).replace("in main", "in <module>")
SYNTAX = "SyntaxError: invalid syntax"
LOAD = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 130, in <module>\n    main()\n'
    '  File "/job/train.py", line 40, in main\n    model = Model.from_pretrained(path)\n'
    '  File "/env/lib/python3.11/site-packages/lark/models.py", line 9, in from_pretrained\n    raise\n'
    "ImportError: cannot import name 'fast' from 'lark'\n"
)


def _told(report: CrashReport) -> tuple[str, list[str]]:
    earlier = [event.body for event in report.events if event.earlier_run]
    return (report.root.body if report.root else ""), earlier


SEVERAL = {
    "appended": (BANNER + STEPS + traceback(OOM) + BANNER + traceback(NO_FILE), NO_FILE, [OOM]),
    "three attempts": (
        "".join(
            f"Attempt {n} of 3 begins here\n{BANNER}{traceback(said)}"
            for n, said in enumerate([OOM, FULL, NO_FILE])
        ),
        NO_FILE,
        [OOM, FULL],
    ),
    "behind times": (
        prefixed("2025-03-02 10:00:00,123 - INFO - ", BANNER)
        + traceback(OOM)
        + prefixed("2025-03-02 14:31:09,001 - INFO - ", BANNER)
        + traceback(NO_FILE),
        NO_FILE,
        [OOM],
    ),
    "the tail of an earlier run": (
        f"{OOM}\n  3%|3  | 28/920 [06:22<3:23:15, 13.67s/it]\n{LOAD}",
        LOAD.splitlines()[-1],
        [OOM],
    ),
    "the same failure twice": (BANNER + traceback(OOM) + BANNER + traceback(OOM), OOM, []),
    "a command line that was refused before": (
        f"usage: train.py [-h] [--lr LR]\n{REFUSED}\n{STEPS}{STARTED}",
        OOM,
        [REFUSED],
    ),
    "a file that did not compile before": (
        f'  File "/job/train.py", line 9\n    print(f"{{rows}}"\n         ^\n{SYNTAX}\n{STEPS}{STARTED}',
        OOM,
        [SYNTAX],
    ),
    "an unknown exception in the last": (
        BANNER + traceback(OOM) + BANNER + traceback(STRANGE),
        STRANGE,
        [OOM],
    ),
}


@each_row("text, root, earlier", SEVERAL.values(), ids=list(SEVERAL))
def test_that_the_last_run_is_the_job(text: str, root: str, earlier: list[str], read: ReadLog) -> None:
    assert _told(read(text)) == (root, earlier)


ONE = {
    "a consequence without a new start": BANNER + STEPS + traceback(OOM) + traceback(STRANGE),
    "a last run that shows no failure": BANNER + traceback(OOM) + BANNER,
    "ranks that start one after the other": "".join(prefixed(f"[rank{rank}]: ", BANNER) for rank in range(4))
    + traceback(OOM)
    + traceback(STRANGE),
    "only one of the first lines again": BANNER
    + traceback(OOM)
    + BANNER.splitlines()[0]
    + "\n"
    + traceback(STRANGE),
    "only a consequence in the last run": BANNER + traceback(OOM) + BANNER + "Broken pipe\n",
}


@each_row("text", ONE.values(), ids=list(ONE))
def test_that_one_run_has_one_first_failure(text: str, read: ReadLog) -> None:
    assert _told(read(text)) == (OOM, [])


# A process that aborts prints no calls of its own; its launcher prints those by which it had started it.
ABORTED = (
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
    "  what():  [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:456] "
    "op.preamble.length <= op.nbytes. 64 vs 8\n"
)
REPORT = (
    "Traceback (most recent call last):\n"
    '  File "/env/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
    '  File "/env/lib/python3.11/site-packages/torch/distributed/elastic/errors/__init__.py", '
    "line 367, in wrapper\n    return f(*args, **kwargs)\n"
    '  File "/env/lib/python3.11/site-packages/torch/distributed/run.py", line 1028, in main\n    run(args)\n'
    '  File "/env/lib/python3.11/site-packages/torch/distributed/run.py", line 1019, in run\n'
    "    elastic_launch(\n"
    '  File "/env/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 194, in __call__\n'
    "    return launch_agent(\n"
    '  File "/env/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 9, in launch_agent\n'
    "    raise ChildFailedError(\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "train.py FAILED\nFailures:\n[1]:\n  rank      : 1 (local_rank: 1)\n"
    "  exitcode  : -15 (pid: 8070)  (SIGTERM)\n"
    "Root Cause (first observed failure):\n[0]:\n  rank      : 0 (local_rank: 0)\n"
    "  exitcode  : -6 (pid: 8069)  (SIGABRT)\n"
)


def test_that_a_launcher_that_reports_an_abort_begins_no_run(read: ReadLog) -> None:
    root = read(BANNER + STEPS + ABORTED + REPORT).root
    assert root is not None
    assert (root.cause, root.earlier_run) == ("collective-desync", False)


@each_row(
    ("text", "starts"),
    [
        (SEVERAL["appended"][0], (19,)),
        (SEVERAL["three attempts"][0], (12, 23)),
        (BANNER * 4 + traceback(OOM), ()),
        (BANNER + STEPS + BANNER + STEPS, ()),
    ],
)
def test_runs_after_a_failed_one_are_told(read: ReadLog, text: str, starts: tuple[int, ...]) -> None:
    """By the lines that they begin with; ranks that begin together, and what came to no failure, are none."""
    assert read(text).run_starts == starts
