"""A file that the job itself writes for each of what it finds is told with the loop that found nothing."""

from __future__ import annotations

from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.written_paths import written_words
from tests.service.factories import failed, report
from tests.tables import each_row

SAID = "FileNotFoundError: [Errno 2] No such file or directory: 'runs/all/scores.json'"


@each_row(
    ("text", "told"),
    [
        (
            "for each in root.glob('*/run.json'):\n    with open('a/scores.json', 'w') as f:\n        ...\n",
            "train.py:2 writes `scores.json`, but only for each of what `root.glob('*/run.json')` (row 1)",
        ),
        (
            "for name in os.listdir(root):\n    table.to_json(os.path.join(root, 'scores.json'))\n",
            "of what `os.listdir(root)` (row 1)",
        ),
        # Written on every way, for what is given, or only read.
        ("table.to_json(root + '/scores.json')\n", ""),
        ("for each in runs:\n    table.to_json(root + '/scores.json')\n", ""),
        ("for each in root.glob('*'):\n    open(f'{root}/scores.json')\n", ""),
        ("for each in root.glob('*'):\n    open(f'{root}/others.json', 'w')\n", ""),
    ],
)
def test_that_the_loop_which_found_nothing_is_told(text: str, told: str) -> None:
    frame = Frame("/job/train.py", 9, "<module>", "read(path)")
    log = report(failed(text=SAID, body=SAID, exception="FileNotFoundError", frames=(frame,)))
    found = written_words(log, [JobFile("train.py", text)])
    assert (told in found.en) if told and found is not None else found is None
