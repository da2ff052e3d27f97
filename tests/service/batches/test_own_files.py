"""Jobs of one crash that have files of their own: each of different files gets the patch that fits them, by
one search and one model's call.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from corpus.message import words
from service.batches.answers import job_result
from service.batches.batches import open_store
from service.batches.commands import JobCommand
from service.batches.engine import BatchEngine
from service.batches.trend import BatchSummaries
from service.batches.worker import JobWorker, digest
from service.patching.patches import ConfigFile
from service.persistence.store import Store
from service.schemas.diagnosis import Diagnosis
from service.schemas.records import BatchOptions, JobRecord, JobSpec
from service.settings import Settings
from tests.service.batches.jobs import accepted, jobs, settings_at
from tests.service.llm.scripted import Turn, serving
from tests.service.pipeline.test_triage import OFFLOAD
from tests.tables import each_row
from tests.warm import script

LAUNCH = script("w-easyr1-offload-host-ram").read_text(encoding="utf-8")


@pytest.fixture
def settings(tmp_path: Path, warm: Path) -> Settings:
    return settings_at(tmp_path / "home", warm)


def folders(home: Path, launches: Sequence[str]) -> list[JobSpec]:
    """Write a folder for each job: its log, all the same, and its launch script, where it has one."""
    made = []
    for number, text in enumerate(launches, 1):
        folder = home / f"job-{number}"
        folder.mkdir(parents=True)
        (folder / "driver.log").write_text(OFFLOAD, encoding="utf-8")
        if text:
            (folder / "run.sh").write_text(text, encoding="utf-8")
        made.append(JobSpec(name=folder.name, place={"paths": (str(folder),)}, gpu_hours=1.0))  # type: ignore[arg-type]
    return made


def worked(settings: Settings, store: Store, specs: Sequence[JobSpec], **options: bool) -> list[JobRecord]:
    """Work through a batch; gives its jobs."""
    batch = accepted(settings, store, specs, options=BatchOptions(**options))  # type: ignore[arg-type]
    BatchEngine(settings, store, batch=batch).run()
    return jobs(store, batch)


def results(found: Sequence[JobRecord]) -> list[Diagnosis]:
    """Give the answers as they are handed out."""
    known = {job.id: job for job in found}
    return [job_result(job, known[job.same_as] if job.same_as else None) for job in found]


@pytest.mark.long
def test_that_each_different_launch_script_gets_the_patch_that_fits_it(
    settings: Settings, tmp_path: Path
) -> None:
    other = LAUNCH.replace("limit_images=16", "limit_images=17")
    with open_store(settings) as store:
        found = worked(settings, store, folders(tmp_path / "logs", [LAUNCH, other, "", LAUNCH, other, ""]))
        told = results(found)
        # One stands for the crash; the second has other files; the others lean on the one with theirs, or on
        # the crash's.
        assert [job.same_as and int(job.same_as.rpartition("-")[2]) for job in found] == [
            None,
            None,
            1,
            1,
            2,
            1,
        ]
        assert [bool(answer.patch) for answer in told] == [True, True, False, True, True, False]
        assert told[0].patch == told[3].patch
        assert told[1].patch == told[4].patch != told[0].patch
        assert "limit_images=17" in (told[1].patch or "")
        assert {answer.cause for answer in told} == {told[0].cause}
        # To whoever looks at the batch it is one crash.
        summary = BatchSummaries(settings, store).of(found[0].batch)
        assert (summary.crashes, summary.died.jobs) == (1, 6)
        ((group,),) = [cause.groups for cause in summary.causes]
        assert (group.jobs, group.gpu_hours, group.representative.id) == (6, 6.0, found[0].id)


@pytest.mark.long
def test_that_a_model_is_asked_once_for_a_crash_whatever_files_its_jobs_have(
    settings: Settings, tmp_path: Path
) -> None:
    with serving([Turn(status=401)]) as server, open_store(settings) as store:
        asking = settings_at(settings.home, settings.home, model="openai:x", model_base_url=server.url)
        first, second = results(
            worked(asking, store, folders(tmp_path / "logs", [LAUNCH, f"# other\n{LAUNCH}"]), model=True)
        )
        assert len(server.calls) == 1
        assert "(401)" in first.engine.note
        assert (second.engine.note, bool(second.patch)) == (words("answer.model-asked-elsewhere", "en"), True)


def test_that_jobs_of_one_crash_are_searched_for_once(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = JobWorker(settings)
    assert worker.load() == ""
    for number, spec in enumerate(folders(tmp_path / "logs", [LAUNCH, f"# other\n{LAUNCH}"])):
        worker.read(JobCommand(str(number), spec.name, spec.place.paths))
    answered = [worker.answer("0")]
    index = worker.warm.fresh().index
    monkeypatch.setattr(index, "words", None)
    monkeypatch.setattr(index, "dense", None)
    answered.append(worker.answer("1"))
    assert answered[0].cases == answered[1].cases


RUN = ConfigFile("run.sh", "python train.py\n")


@each_row(
    ("files", "others", "same"),
    [
        ([RUN], [RUN], True),
        ([RUN, ConfigFile("a.yaml", "a: 1")], [ConfigFile("a.yaml", "a: 1"), RUN], True),
        ([RUN], [ConfigFile("go.sh", RUN.text)], False),
        ([RUN], [ConfigFile("run.sh", "python train.py --x\n")], False),
        ([RUN], [ConfigFile("run.sh", RUN.text, exact=False)], False),
        ([RUN], [], False),
        (
            [ConfigFile("run.sh", "export PASSWORD=one-secret-9\n")],
            [ConfigFile("run.sh", "export PASSWORD=two-secret-9\n")],
            True,
        ),
    ],
    ids=["same", "order", "name", "text", "encoding", "none", "secret"],
)
def test_that_files_are_the_same_where_a_patch_of_them_is(
    files: Sequence[ConfigFile], others: Sequence[ConfigFile], same: bool
) -> None:
    assert (digest(files) == digest(others)) is same
