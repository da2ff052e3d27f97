"""Folders of sessions, of several versions of Ray, tell what died first, and not what failed beside the job.

`ray_sessions` holds what real Ray wrote: an actor that got SIGKILL (kill), one whose constructor missed
a file (init), and two nodes of which one raylet was killed (node), without lines that tell nothing.
"""

from __future__ import annotations

from pathlib import Path

from ingest.logs.inputs.jobs import open_job
from ingest.logs.inputs.members import is_helper
from ingest.logs.reader import Reader
from tests.tables import each_row

SESSIONS = Path(__file__).parent / "ray_sessions"


@each_row(
    ("folder", "cause", "words"),
    [
        ("2.9.3-init", "file-missing-or-denied", "/data/train.parquet"),
        ("2.40.0-init", "file-missing-or-denied", "/data/train.parquet"),
        ("2.60.0-init", "file-missing-or-denied", "/data/train.parquet"),
        ("2.40.0-node", "node-lost", "marked dead because the detector has missed too many heartbeats"),
        ("2.60.0-node", "node-lost", "marked dead because the detector has missed too many heartbeats"),
        ("2.9.3-kill", None, "unexpected system error"),
        ("2.60.0-kill", None, "unexpected system error"),
    ],
)
def test_a_sessions_folder_tells_what_died_first(
    reader: Reader, folder: str, cause: str | None, words: str
) -> None:
    """Who killed an actor is not known to Ray; that nothing else is named as the cause is the rule."""
    root = reader.read(open_job(SESSIONS / folder)).root
    assert root is not None
    assert (root.cause, words in root.text) == (cause, True)


def test_a_failure_of_a_helper_counts_where_nothing_else_failed(reader: Reader, tmp_path: Path) -> None:
    """The autoscaler that lacks a package ended no job, unless the job says of no other failure."""
    monitor = (SESSIONS / "2.9.3-kill" / "logs" / "monitor.log").read_text(encoding="utf-8")
    (tmp_path / "monitor.log").write_text(monitor, encoding="utf-8")
    (tmp_path / "raylet.out").write_text("[2026-11-29 08:00:00,000 I 7 7] (raylet) main.cc:9: ready\n")
    alone = reader.read(open_job(tmp_path)).root
    assert alone is not None
    assert alone.cause == "package-missing"
    (tmp_path / "worker-1.err").write_text("Traceback (most recent call last):\nKeyError: 'prompt'\n")
    root = reader.read(open_job(tmp_path)).root
    assert root is not None
    assert "prompt" in root.text


@each_row(
    ("name", "helps"),
    [
        ("logs/monitor.log", True),
        ("session/logs/dashboard_agent.log", True),
        ("logs/log_monitor.err", True),
        ("logs/raylet.out", False),
        ("logs/runtime_env_agent.log", False),
        ("logs/train_monitor.log", False),
    ],
)
def test_a_helper_is_known_by_its_files_name(name: str, helps: bool) -> None:
    """Who sets up a job's environment is none, since without it no job runs."""
    assert is_helper(name) == helps
