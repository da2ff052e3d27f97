"""Watching: each failed job is told of once, also after a restart, and also where the target was down for a
while.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from corpus.message import Message
from service.monitoring import ended_jobs, targets
from service.monitoring import known_jobs as known_ones
from service.monitoring import watcher as watching_rounds
from service.monitoring.known_jobs import KnownJobs
from service.monitoring.notifier import NotificationError
from service.monitoring.targets import Target
from service.monitoring.watcher import TRIES, Watcher
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import InvalidRequestError, LateError, TooLargeError
from service.schemas.records import JobPlace, JobSpec
from tests.service.factories import diagnosis
from tests.service.monitoring.receiver import receiving

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 79.10 GiB of which 1.00 GiB is free.\n"
)
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
    known = KnownJobs(tmp_path / "home", str(folder))
    if not (tmp_path / "home").exists():
        known.since = datetime.now(UTC) - timedelta(hours=1)

    def show(_diagnosis: Diagnosis, spec: JobSpec) -> None:
        seen.append(spec.name)

    return Watcher(triage, ended_jobs.find_in_folder(folder, 60), known, to, show), seen


def test_that_a_failed_job_is_told_once_also_after_a_restart(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    watcher, seen = watching(triage, logs, tmp_path)
    assert (watcher.run_once(), watcher.run_once()) == (1, 0)
    again, later = watching(triage, logs, tmp_path)
    put(logs / "other.log", OOM)
    assert again.run_once() == 1
    assert (len(seen), len(later)) == (1, 1)
    assert "other" in later[0]


def test_that_a_log_that_still_grows_waits(triage: Triage, logs: Path, tmp_path: Path) -> None:
    put(logs / "running.log", OOM, ago=5)
    watcher, seen = watching(triage, logs, tmp_path)
    watcher.run_once()
    assert [name for name in seen if "running" in name] == []
    put(logs / "running.log", OOM, ago=61)
    watcher.run_once()
    assert [name for name in seen if "running" in name] != []


def test_that_a_healthy_run_and_what_cannot_be_read_are_passed_over(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    put(logs / "fine.log", "step 1\nstep 2\nTraining completed successfully\n")
    put(logs / "empty.log", "")
    watcher, seen = watching(triage, logs, tmp_path)
    watcher.run_once()
    assert len(seen) == 1
    assert watcher.run_once() == 0


def test_that_what_ended_before_is_left_alone_unless_asked_for(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    watcher, seen = watching(triage, logs, tmp_path)
    watcher.known.since = datetime.now(UTC)
    assert (watcher.run_once(), seen) == (0, [])


def test_that_a_target_that_was_down_is_told_later_and_no_secret_leaves(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    with receiving() as server:
        server.refuse = 1
        watcher, seen = watching(triage, logs, tmp_path, targets.webhook_target(server.url))
        assert (watcher.run_once(), seen) == (0, [])
        assert watcher.run_once() == 1
        assert server.json()["schema"] == "whycrash.diagnosis/1"
        assert SECRET.encode() not in server.bodies[0]


def test_that_a_target_that_stays_down_does_not_hold_a_job_for_ever(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    watcher, seen = watching(triage, logs, tmp_path, targets.webhook_target("http://127.0.0.1:9"))
    assert sum(watcher.run_once() for _ in range(TRIES)) == 1
    assert len(seen) == 1


def test_that_a_service_gets_the_redacted_log_and_the_key(triage: Triage, logs: Path, tmp_path: Path) -> None:
    with receiving() as server:
        watcher, _ = watching(triage, logs, tmp_path, targets.service_target(server.url, "whycrash_x_y"))
        assert watcher.run_once() == 1
        assert b"CUDA out of memory" in server.bodies[0]
        assert SECRET.encode() not in server.bodies[0]
        assert server.headers[0]["authorization"] == "Bearer whycrash_x_y"


def place_of(folder: Path, *fetches: Callable[[], JobSpec | None]) -> ended_jobs.WatchedPlace:
    """Make a place with a job for each way in which its logs come."""
    jobs = [
        ended_jobs.EndedJob(f"key{number}", f"job{number}", fetch) for number, fetch in enumerate(fetches)
    ]
    return ended_jobs.WatchedPlace(str(folder), lambda _since: iter(jobs), all_failed=True)


def test_that_a_job_whose_logs_never_come_holds_no_other_and_is_let_go(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    """What is late is tried again in some rounds, what is too large is not."""
    tried = {"late": 0, "large": 0}

    def late() -> JobSpec:
        tried["late"] += 1
        raise LateError(Message("errors.source-late", seconds="1"))

    def large() -> JobSpec:
        tried["large"] += 1
        raise TooLargeError(Message("errors.logs-unpack-more-request"))

    good = JobSpec(name="good", place=JobPlace(paths=(str(logs / "train.log"),)))
    watcher, seen = watching(triage, logs, tmp_path)
    watcher.place = place_of(logs, late, large, lambda: good)
    for _ in range(TRIES + 2):
        watcher.run_once()
    assert tried == {"late": TRIES, "large": 1}
    assert seen == ["good"]


def test_that_a_round_ends_and_the_next_goes_on_where_it_was_left(
    triage: Triage, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round that is over begins no other job, and its time does not pass for looked at."""
    good = JobSpec(name="good", place=JobPlace(paths=(str(logs / "train.log"),)))
    watcher, seen = watching(triage, logs, tmp_path)
    watcher.place, since = place_of(logs, lambda: good, lambda: good), watcher.known.since
    clock = iter([0.0, 1.0, watching_rounds.ROUND_S + 1.0])
    with monkeypatch.context() as patched:
        patched.setattr(watching_rounds.time, "monotonic", lambda: next(clock, 1e9))
        assert watcher.run_once() == 1
    assert (watcher.reached, watcher.known.since) == (True, since)
    assert (watcher.run_once(), len(seen)) == (1, 2)
    assert watcher.known.since > since


def test_that_a_logs_text_is_no_markup_of_slack() -> None:
    text = targets.message(
        diagnosis(headline="<!channel> *bold* <http://evil|click>", cause="disk-full"),
        JobSpec(name="a<b>", place=JobPlace()),
    )
    assert "<" not in text
    assert "*bold*" not in text


def test_that_a_folder_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(InvalidRequestError, match="no folder"):
        ended_jobs.find_in_folder(Path("/no/such/folder"), 60)


def test_that_a_damaged_note_of_what_is_known_is_begun_anew(tmp_path: Path) -> None:
    known = KnownJobs(tmp_path, "place")
    known.add("key")
    (path,) = (tmp_path / "watch").iterdir()
    assert "key" in KnownJobs(tmp_path, "place")
    assert "key" not in json.loads(path.read_text(encoding="utf-8"))["keys"]
    path.write_text("{", encoding="utf-8")
    assert "key" not in KnownJobs(tmp_path, "place")


def test_that_a_target_that_is_down_keeps_no_other_from_being_told_and_has_none_told_twice(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    told: list[str] = []

    def down(_diagnosis: Diagnosis, _spec: JobSpec) -> None:
        raise OSError("down")

    def up(_diagnosis: Diagnosis, spec: JobSpec) -> None:
        told.append(spec.name)

    put(logs / "other.log", OOM)
    watcher, seen = watching(triage, logs, tmp_path, down, up)
    assert sum(watcher.run_once() for _ in range(TRIES)) == 2
    assert sorted(told) == sorted(seen) == ["other.log", "train.log"]


def test_that_a_log_or_a_target_that_shows_a_fault_of_ours_does_not_end_the_watch(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    def faulty(_diagnosis: Diagnosis, _spec: JobSpec) -> None:
        raise KeyError("a line of the log")

    class Faulty:
        def explain(self, *_given: object) -> Diagnosis:
            raise KeyError("a line of the log")

    watcher, seen = watching(triage, logs, tmp_path, faulty)
    assert sum(watcher.run_once() for _ in range(TRIES)) == 1
    assert len(seen) == 1
    put(logs / "other.log", OOM)
    watcher.triage = Faulty()  # type: ignore[assignment]  # as a triage with a fault would be
    assert (watcher.run_once(), len(seen)) == (1, 1)


def test_that_a_place_for_what_is_known_that_cannot_be_written_does_not_end_the_watch(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    put(logs / "other.log", OOM)
    watcher, seen = watching(triage, logs, tmp_path)
    watcher.known.since = datetime.now(UTC) - timedelta(hours=1)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "watch").write_text("in the way", encoding="utf-8")
    assert (watcher.run_once(), watcher.run_once(), len(seen)) == (2, 0, 2)


def test_that_who_was_told_is_not_told_again_where_nobody_reads_us(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    told: list[str] = []

    def gone(_diagnosis: Diagnosis, _spec: JobSpec) -> None:
        raise BrokenPipeError

    watcher, _ = watching(triage, logs, tmp_path, lambda _diagnosis, spec: told.append(spec.name))
    watcher.show = gone
    watcher.run_once()
    watcher.run_once()
    assert told == ["train.log"]


def test_that_a_folder_of_more_jobs_than_are_remembered_is_told_of_once(
    triage: Triage, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_ones, "MOST", 2)
    for number in range(4):
        put(logs / f"{number}.log", OOM)
    watcher, seen = watching(triage, logs, tmp_path)
    assert [watcher.run_once() for _ in range(3)] == [5, 0, 0]
    for path in sorted(logs.iterdir())[:4]:
        path.unlink()
    watcher.run_once()
    (file,) = (tmp_path / "home" / "watch").iterdir()
    assert len(json.loads(file.read_text(encoding="utf-8"))["keys"]) == 1
    assert len(seen) == 5


def test_that_a_name_that_is_no_utf8_is_a_name(triage: Triage, logs: Path, tmp_path: Path) -> None:
    put(logs / os.fsdecode("训练".encode("gbk") + b".log"), OOM)
    watcher, seen = watching(triage, logs, tmp_path)
    assert (watcher.run_once(), watcher.run_once()) == (2, 0)
    assert all(name.isprintable() and name.encode() for name in seen)


def test_that_a_service_gets_the_logs_of_a_job_without_its_other_files_and_however_many(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    job = logs / "job"
    job.mkdir()
    for number in range(60):
        put(job / f"{number}.log", OOM)
    (job / "core").write_bytes(b"\x7fELF\0\0\0" * 100)
    os.utime(job / "core", (time.time() - 300,) * 2)
    watcher, seen = watching(triage, job.parent, tmp_path)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with receiving() as server:
        watcher.targets = [targets.service_target(server.url, "")]
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, most[1]))  # noqa: PTH208 - a count
        try:
            assert watcher.run_once() == 2
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, most)
    assert len(seen) == 2
    assert any(body.count(b"filename=") == 61 and b"ELF" not in body for body in server.bodies)


def test_that_a_key_that_is_no_header_is_told_and_does_not_end_the_watch(
    triage: Triage, logs: Path, tmp_path: Path
) -> None:
    watcher, _ = watching(triage, logs, tmp_path, targets.service_target("http://127.0.0.1:9", "密钥"))
    assert watcher.run_once() == 0
    with pytest.raises(NotificationError, match="Nothing could be sent"):
        targets.service_target("http://127.0.0.1:9", "密钥")(diagnosis(), JobSpec(name="a", place=JobPlace()))
