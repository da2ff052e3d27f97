"""What a tracker kept of a run tells its options, and which launch script may have started it."""

from __future__ import annotations

import json

from ingest.configfiles import reader
from ingest.configfiles.run_record import read_record
from tests.tables import each_row

KEPT = {
    "os": "Linux-5.15",
    "startedAt": "2025-01-01T10:00:00",
    "args": ["--out", "./runs,", "--lr", "1e-4", "--steps", "200", "--bf16"],
    "program": "/home/ada/src/fit.py",
}


def test_that_the_options_of_the_record_are_settings_of_the_run() -> None:
    """What the tracker notes of the machine is none, and nothing of the record is to be edited."""
    found = reader.read(json.dumps(KEPT, indent=1), "wandb-metadata.json")
    assert [(item.key, item.value, item.spelled) for item in found] == [
        ("out", "./runs,", "flag"),
        ("lr", "1e-4", "flag"),
        ("steps", "200", "flag"),
        ("bf16", "true", "flag"),
    ]
    assert all(item.place is None for item in found)
    # A run that was given no words.
    bare = {"startedAt": "2025-01-01", "program": "fit.py", "gpu": "NVIDIA RTX A6000", "cpu_count": 28}
    assert reader.read(json.dumps(bare, indent=1), "wandb-metadata.json") == []


@each_row(
    ("text", "is_record"),
    [(json.dumps(KEPT), True), ('{"args": ["--lr", "1"], "program": "a.py"}', False), ("{", False)],
)
def test_that_a_record_is_known_by_what_the_tracker_writes(text: str, is_record: bool) -> None:
    assert (read_record(text) is not None) is is_record


@each_row(
    ("script", "may"),
    [
        ("python src/fit.py --out ./runs, --lr 1e-4 --steps 200\n", True),
        # Somebody changed one option since, and the shell works out another.
        ("torchrun --nproc_per_node 2 fit.py --lr 1e-4 \\\n  --steps 300 --out $OUT --bf16\n", True),
        ('python fit.py "$@"\n', True),
        ("python fit.py --lr 3e-5 --steps 9000 --bf16\n", False),
        ("# python fit.py --lr 1e-4\npython fit.py --lr 5 --rank 8\n", False),
        ("python fit.py --rank 8\npython fit.py --lr 1e-4 --steps 200\n", True),
        ("python other_fit.py --lr 3e-5\n", None),
    ],
)
def test_that_a_script_with_mostly_other_options_did_not_start_the_run(script: str, may: bool | None) -> None:
    """A script that starts another program is left open."""
    record = read_record(json.dumps(KEPT))
    assert record is not None
    assert record.may_come_of(script) is may
