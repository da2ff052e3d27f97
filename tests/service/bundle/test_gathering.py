"""What is gathered about a job only reads, is bounded, holds no secret, and says what was not there."""

from __future__ import annotations

import json
import os
import pickle
import tarfile
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from corpus import bundle_items
from corpus.bundle_items import BundleTable
from corpus.library import load
from service.bundle import gathering
from service.bundle.archive import MANIFEST, write_bundle
from service.bundle.gathering import BundleEntry, Subject, gather
from service.bundle.job_processes import JobProcess, job_processes
from tests.ingest.artefacts.dumps import dump_value, entry
from tests.tables import each_row

SECRET = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3h"


def _table(*items: dict[str, object]) -> BundleTable:
    return BundleTable.model_validate({**bundle_items.load().model_dump(by_alias=True), "items": items})


def _subject(home: Path, wanted: Sequence[str] | None = None, pids: Sequence[int] = ()) -> Subject:
    processes = tuple(JobProcess(pid, str(rank), {}) for rank, pid in enumerate(pids))
    since = datetime.now() - timedelta(hours=1)
    chosen = frozenset(wanted) if wanted is not None else None
    return Subject("slurm", {"name": "4711"}, processes, since, chosen, home)


def _gathered(table: BundleTable, subject: Subject, work: Path, *logs: Path) -> dict[str, BundleEntry]:
    return {entry.name: entry for entry in gather(table, subject, logs, work)}


def _text(found: BundleEntry) -> str:
    assert found.content is not None
    return found.content.read_text()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_items_ask_for_causes_that_there_are() -> None:
    """A cause that is misspelt would never be gathered for."""
    library = load()
    known = {name for cause in library.causes.values() for name in (cause.id, cause.category)}
    asked = {name for item in bundle_items.load().items for name in item.causes}
    assert asked <= known


@each_row(
    ("job", "kind"),
    [
        ("4711", "slurm"),
        ("4711_3", "slurm"),
        ("pid:12", "process"),
        ("raysubmit_aB3", "ray"),
        ("0123456789ab", "docker"),
        ("train-0", "kubernetes"),
        ("ml/train-0", "kubernetes"),
        ("--kubeconfig=x", None),
        ("a b", None),
        ("$(id)", None),
        ("../x", None),
    ],
)
def test_an_id_tells_the_kind_of_job_and_is_never_an_option(job: str, kind: str | None) -> None:
    """What begins with a dash or holds a blank would be read by the program that it is handed to."""
    found = bundle_items.load().kind_of(job)
    assert (found[0] if found else None) == kind


def test_a_command_is_kept_without_its_secrets(work: Path) -> None:
    """What a program prints, and what it says of its trouble."""
    table = _table({"name": "a", "run": ["printf", f"MaxRSS 3 GB\\ntoken={SECRET}\\n"], "to": "a.txt"})
    found = _gathered(table, _subject(work), work)["a.txt"]
    assert SECRET not in _text(found)
    assert "MaxRSS 3 GB" in _text(found)
    assert found.masked == 1


@each_row(
    ("run", "told"),
    [
        (["no-such-program-here"], "not installed"),
        (["sleep", "60"], "stopped after"),
        (["true"], "printed nothing"),
        (["ls", "/no/such/place"], "No such file"),
    ],
    ids=str,
)
def test_what_could_not_be_had_says_why(run: list[str], told: str, tmp_path: Path) -> None:
    """A program that is missing, hangs, is silent or fails."""
    began = time.monotonic()
    table = _table({"name": "a", "run": run, "to": "a.txt", "seconds": 0.5})
    found = _gathered(table, _subject(tmp_path), tmp_path)["a.txt"]
    assert told in found.note
    assert found.content is None
    assert time.monotonic() - began < 30


def test_only_what_the_answer_leaves_open_is_gathered(work: Path) -> None:
    """An item serves its causes and categories; one without any serves all, and so does no answer."""
    rows = [
        {"name": "a", "run": ["echo", "a"], "to": "a", "for": ["collective"]},
        {"name": "b", "run": ["echo", "b"], "to": "b", "for": ["nccl-network"]},
        {"name": "c", "run": ["echo", "c"], "to": "c"},
    ]
    table = _table(*rows)
    assert set(_gathered(table, _subject(work, ["collective"]), work)) == {"a", "c"}
    assert set(_gathered(table, _subject(work, ["storage", "disk-full"]), work)) == {"c"}
    assert set(_gathered(table, _subject(work), work)) == {"a", "b", "c"}


def test_each_process_and_the_job_itself_are_asked(work: Path) -> None:
    """Blanks are filled with what is known; another scheduler's commands are not run."""
    table = _table(
        {"name": "p", "each": "process", "run": ["echo", "{pid}"], "to": "s/rank{rank}.txt"},
        {"name": "j", "each": "job", "kind": "slurm", "run": ["echo", "job {name}"], "to": "j.txt"},
        {"name": "k", "each": "job", "kind": "kubernetes", "run": ["echo", "{name}"], "to": "k.txt"},
    )
    found = _gathered(table, _subject(work, pids=[31, 32]), work)
    assert {name: _text(entry) for name, entry in found.items()} == {
        "s/rank0.txt": "31\n",
        "s/rank1.txt": "32\n",
        "j.txt": "job 4711\n",
    }


def test_logs_are_copied_without_secrets_and_dumps_as_they_are(tmp_path: Path, work: Path) -> None:
    """Text is searched for secrets; other files that are no text stay out, and links lead nowhere else."""
    job = tmp_path / "job"
    (job / "ranks").mkdir(parents=True)
    (job / "ranks" / "rank0.log").write_text(f"step 1\nHF_TOKEN={SECRET}\n")
    dump = pickle.dumps(dump_value([entry(7)]), 2)
    (job / "nccl_trace_rank_0").write_bytes(dump)
    (job / "model.bin").write_bytes(b"\0\1\2")
    (tmp_path / "private").write_text("mine")
    (job / "link").symlink_to(tmp_path / "private")
    found = _gathered(_table({"name": "a", "run": ["echo"], "to": "a"}), _subject(work), work, job)
    assert SECRET not in _text(found["logs/ranks/rank0.log"])
    kept = found["logs/nccl_trace_rank_0"]
    assert kept.content is not None
    assert kept.content.read_bytes() == dump
    assert kept.masked is None
    assert found["logs/model.bin"].content is None
    assert found["logs/link"].content is None


def test_a_large_log_keeps_both_ends(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure stands at the end, versions and configuration at the beginning."""
    monkeypatch.setattr(gathering, "MOST_BYTES", 4000)
    log = tmp_path / "a.log"
    log.write_text("first\n" + "x" * 99 + "\n" + "step\n" * 9000 + "last\n")
    text = _text(
        _gathered(_table({"name": "a", "run": ["echo"], "to": "a"}), _subject(work), work, log)["logs/a.log"]
    )
    assert text.startswith("first\n")
    assert text.endswith("last\n")
    assert "bytes left out" in text
    assert len(text) < 4200


def test_files_from_before_the_job_are_no_part_of_it(tmp_path: Path, work: Path) -> None:
    """A dump of last week's job lies where this one's would."""
    for name, age in (("trace_rank_0", 10), ("trace_rank_1", 7 * 86400)):
        (tmp_path / name).write_text("{}")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    table = _table({"name": "a", "files": ["{home}/trace_rank_*"], "to": "dumps"})
    assert set(_gathered(table, _subject(tmp_path), work)) == {"dumps/trace_rank_0"}


def test_a_full_bundle_says_what_it_lacks(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "MOST_OF_BUNDLE", 6)
    table = _table(*({"name": name, "run": ["echo", name * 3], "to": name} for name in "abc"))
    found = _gathered(table, _subject(work), work)
    assert [bool(found[name].content) for name in "abc"] == [True, False, False]
    assert "full" in found["c"].note


def test_the_archive_tells_what_is_in_it_and_what_is_not(tmp_path: Path, work: Path) -> None:
    """Its owner alone may read it, and nothing in it names a user of this machine."""
    table = _table(
        {"name": "a", "run": ["echo", "a"], "to": "node/a.txt"},
        {"name": "b", "run": ["no-such-program-here"], "to": "node/b.txt"},
    )
    out = tmp_path / "bundle.tar.gz"
    write_bundle(out, gather(table, _subject(work), (), work), {"job": "4711"})
    assert out.stat().st_mode & 0o777 == 0o600
    with tarfile.open(out) as tar:
        assert {member.name for member in tar} == {"node/a.txt", MANIFEST}
        assert {member.uname for member in tar} == {""}
        stream = tar.extractfile(MANIFEST)
        assert stream is not None
        told = json.load(stream)
    assert told["job"] == "4711"
    assert [(row.get("name"), row.get("note")) for row in told["entries"]] == [
        ("node/a.txt", None),
        (None, "no-such-program-here is not installed"),
    ]
    assert not list(work.iterdir())


def _process(proc: Path, pid: int, parent: int, command: str, **environment: str) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "environ").write_bytes(
        b"\0".join(f"{key}={value}".encode() for key, value in environment.items())
    )
    (folder / "cmdline").write_bytes(command.replace(" ", "\0").encode())
    (folder / "stat").write_text(f"{pid} (py) thon) S {parent} 1 1")


@each_row(
    ("kind", "name", "found"),
    [
        ("", "", [(13, "0"), (12, "3"), (15, "")]),
        ("slurm", "77", [(12, "3")]),
        ("process", "11", [(13, "0"), (12, "3"), (11, "")]),
        ("process", "14", [(14, ""), (15, "")]),
    ],
)
def test_a_jobs_processes_are_told_by_its_id_or_by_their_signs(
    kind: str, name: str, found: list[tuple[int, str]], tmp_path: Path
) -> None:
    """A launcher's children by their parents; a rank stands in the environment; engines name themselves."""
    _process(tmp_path, 11, 1, "torchrun train.py")
    _process(tmp_path, 12, 11, "python train.py", RANK="3", WORLD_SIZE="4", SLURM_JOB_ID="77")
    _process(tmp_path, 13, 11, "python train.py", RANK="0", WORLD_SIZE="4", SLURM_JOB_ID="78")
    _process(tmp_path, 14, 1, "bash")
    _process(tmp_path, 15, 14, "VLLM::EngineCore")
    _process(tmp_path, 16, 1, "ray::IDLE")
    (tmp_path / "self").mkdir()
    signs = bundle_items.load().processes
    chosen = job_processes(kind, name, signs, frozenset(), tmp_path)
    assert [(process.pid, process.rank) for process in chosen] == found
