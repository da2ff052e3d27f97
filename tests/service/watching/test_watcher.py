"""Watching: each failed job is told of once, also after a restart, and also where the target was down for a while."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.diagnosis import Diagnosis
from service.errors import InvalidRequestError
from service.records import JobPlace, JobSpec
from service.triage import Triage
from service.watching import finding, targets
from service.watching.known import Known
from service.watching.targets import Target
from service.watching.watcher import TRIES, Watcher
from tests.service.factories import diagnosis
from tests.service.watching.receiver import receiving

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free.\n"
SECRET = "hf_" + "aB3" * 12


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with one log that is over, and failed."""
    folder = tmp_path / "logs"
    folder.mkdir()
    put(folder / "train.log", f"login {SECRET}\n{OOM}")
    return folder


def put(path: Path, text: str, ago: float = 300) -> None:
    """Write a log that grew last so many seconds ago."""
    path.write_text(text, encoding="utf-8")
    when = time.time() - ago
    os.utime(path, (when, when))


def watching(triage: Triage, folder: Path, tmp_path: Path, *to: Target) -> tuple[Watcher, list[str]]:
    """Watch a folder from an hour ago on; gives the watcher and the names of the jobs that it shows."""
    seen: list[str] = []
    known = Known(tmp_path / "home", str(folder))
    if not (tmp_path / "home").exists():
        known.since = datetime.now(UTC) - timedelta(hours=1)

    def show(_diagnosis: Diagnosis, spec: JobSpec) -> None:
        seen.append(spec.name)

    return Watcher(triage, finding.in_folder(folder, 60), known, to, show), seen


def test_that_a_failed_job_is_told_once_also_after_a_restart(triage: Triage, logs: Path, tmp_path: Path) -> None:
    watcher, seen = watching(triage, logs, tmp_path)
    assert (watcher.round(), watcher.round()) == (1, 0)
    again, later = watching(triage, logs, tmp_path)
    put(logs / "other.log", OOM)
    assert again.round() == 1
    assert (len(seen), len(later)) == (1, 1)
    assert "other" in later[0]


def test_that_a_log_that_still_grows_waits(triage: Triage, logs: Path, tmp_path: Path) -> None:
    put(logs / "running.log", OOM, ago=5)
    watcher, seen = watching(triage, logs, tmp_path)
    watcher.round()
    assert [name for name in seen if "running" in name] == []
    put(logs / "running.log", OOM, ago=61)
    watcher.round()
    assert [name for name in seen if "running" in name] != []


def test_that_a_healthy_run_and_what_cannot_be_read_are_passed_over(triage: Triage, logs: Path, tmp_path: Path) -> None:
    put(logs / "fine.log", "step 1\nstep 2\nTraining completed successfully\n")
    put(logs / "empty.log", "")
    watcher, seen = watching(triage, logs, tmp_path)
    watcher.round()
    assert len(seen) == 1
    assert watcher.round() == 0


def test_that_what_ended_before_is_left_alone_unless_asked_for(triage: Triage, logs: Path, tmp_path: Path) -> None:
    watcher, seen = watching(triage, logs, tmp_path)
    watcher.known.since = datetime.now(UTC)
    assert (watcher.round(), seen) == (0, [])


def test_that_a_target_that_was_down_is_told_later_and_no_secret_leaves(triage: Triage, logs: Path, tmp_path: Path) -> None:
    with receiving() as server:
        server.refuse = 1
        watcher, seen = watching(triage, logs, tmp_path, targets.webhook(server.url))
        assert (watcher.round(), seen) == (0, [])
        assert watcher.round() == 1
        assert server.json()["schema"] == "whycrash.diagnosis/1"
        assert SECRET.encode() not in server.bodies[0]


def test_that_a_target_that_stays_down_does_not_hold_a_job_for_ever(triage: Triage, logs: Path, tmp_path: Path) -> None:
    watcher, seen = watching(triage, logs, tmp_path, targets.webhook("http://127.0.0.1:9"))
    assert sum(watcher.round() for _ in range(TRIES)) == 1
    assert len(seen) == 1


def test_that_a_service_gets_the_redacted_log_and_the_key(triage: Triage, logs: Path, tmp_path: Path) -> None:
    with receiving() as server:
        watcher, _ = watching(triage, logs, tmp_path, targets.service(server.url, "whycrash_x_y"))
        assert watcher.round() == 1
        assert b"CUDA out of memory" in server.bodies[0]
        assert SECRET.encode() not in server.bodies[0]
        assert server.headers[0]["authorization"] == "Bearer whycrash_x_y"


def test_that_a_logs_text_is_no_markup_of_slack() -> None:
    text = targets.message(
        diagnosis(headline="<!channel> *bold* <http://evil|click>", cause="disk-full"), JobSpec(name="a<b>", place=JobPlace())
    )
    assert "<" not in text
    assert "*bold*" not in text


def test_that_a_folder_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(InvalidRequestError, match="no folder"):
        finding.in_folder(Path("/no/such/folder"), 60)


def test_that_a_damaged_note_of_what_is_known_is_begun_anew(tmp_path: Path) -> None:
    known = Known(tmp_path, "place")
    known.add("key")
    (path,) = (tmp_path / "watch").iterdir()
    assert "key" in Known(tmp_path, "place")
    assert "key" not in json.loads(path.read_text(encoding="utf-8"))["keys"]
    path.write_text("{", encoding="utf-8")
    assert "key" not in Known(tmp_path, "place")
