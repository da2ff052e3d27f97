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
