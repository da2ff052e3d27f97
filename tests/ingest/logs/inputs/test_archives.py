"""Jobs of many files: folders, tars and zips; what is a log is read in order, what is not is told."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import (
    ArchiveInputError,
    BinaryInputError,
    BrokenArchiveError,
    EmptyInputError,
    InputError,
    MissingInputError,
)
from ingest.logs.inputs import files, streams
from ingest.logs.inputs.jobs import JobSource, open_job, open_stdin
from ingest.logs.inputs.members import JobLimits, kind_of, order
from tests.factories import OOM
from tests.ingest.logs.inputs.test_sources import noise
from tests.tables import each_row

Files = Mapping[str, bytes]
Make = Callable[[Path, Files], Path]

JOB = {
    "logs/worker-10.err": b"ten\n",
    "logs/worker-2.err": b"two\n",
    "logs/job-driver-1.log": b"driver\n",
    "logs/raylet.out": b"raylet\n",
    "logs/rank_3/stdout.log.gz": gzip.compress(b"three\n"),
    "logs/empty.err": b"",
    "run.sh": b"torchrun train.py\n",
    "conf/.hydra/overrides.yaml": b"- a=1\n",
    "train.py": b"import torch\n",
    "plot.png": b"\x89PNG\r\n",
    "model.safetensors": bytes(100),
    "core.77": b"\x7fELF" + bytes(200),
}
PARTS = [
    ("logs/job-driver-1.log", b"driver\n"),
    ("logs/rank_3/stdout.log.gz", b"three\n"),
    ("logs/worker-2.err", b"two\n"),
    ("logs/worker-10.err", b"ten\n"),
    ("logs/raylet.out", b"raylet\n"),
]


def make_folder(root: Path, members: Files) -> Path:
    """Write the files into a folder."""
    for name, content in members.items():
        path = root / "job" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root / "job"


def tarred(members: Files, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Make a tar."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return made.getvalue()


def zipped(members: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Make a zip."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def make_file(
    pack: Callable[[bytes], bytes], make: Callable[[Files], bytes], root: Path, members: Files
) -> Path:
    """Write an archive under a name that does not tell what it is."""
    (root / "job.data").write_bytes(pack(make(members)))
    return root / "job.data"


PACKS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".bz2": bz2.compress,
}
ARCHIVES: dict[str, Make] = {
    **{f"tar{name}": partial(make_file, pack, tarred) for name, pack in PACKS.items()},
    "tar-gnu": partial(make_file, bytes, partial(tarred, form=tarfile.GNU_FORMAT)),
    "tar-ustar": partial(make_file, bytes, partial(tarred, form=tarfile.USTAR_FORMAT)),
    "zip": partial(make_file, bytes, zipped),
    "zip-stored": partial(make_file, bytes, partial(zipped, method=zipfile.ZIP_STORED)),
    "zip-bzip2": partial(make_file, bytes, partial(zipped, method=zipfile.ZIP_BZIP2)),
}
FORMS: dict[str, Make] = {"folder": make_folder, **ARCHIVES}
forms = pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)


class WholeArchive(NamedTuple):
    """An archive that is to be cut: what its file is called and holds, and the files in it."""

    name: str
    packed: bytes
    members: Mapping[str, bytes]


def read(job: JobSource) -> list[tuple[str, bytes]]:
    """Read all parts."""
    return [(part.name, b"".join(part.chunks())) for part in job.parts()]


def threads() -> int:
    """Count the threads that decompress."""
    return sum(thread.name == "whycrash-decompress" for thread in threading.enumerate())


@forms
def test_a_job_is_read_alike_from_every_form(tmp_path: Path, make: Make) -> None:
    """The logs come in order, configs apart, and each file left out is told with its reason."""
    job = open_job(make(tmp_path, JOB))
    assert read(job) == PARTS
    assert job.configs == [
        ("run.sh", JOB["run.sh"]),
        ("conf/.hydra/overrides.yaml", JOB["conf/.hydra/overrides.yaml"]),
    ]
    assert job.omitted == {
        "code": "1: train.py",
        "image": "1: plot.png",
        "checkpoint": "1: model.safetensors",
        "binary": "1: core.77",
        "empty": "1: logs/empty.err",
    }


@each_row("pack", PACKS.values(), ids=PACKS)
def test_one_log_is_a_job_of_one_part(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Compressed or not."""
    path = tmp_path / "job.log"
    path.write_bytes(pack(noise(60_000)))
    job = open_job(path)
    assert read(job) == [(str(path), noise(60_000))]
    assert (job.omitted, job.configs) == ({}, [])


@each_row("make", [tarred, lambda members: members["logs/worker-2.err"]], ids=["tar", "log"])
@each_row("pack", PACKS.values(), ids=PACKS)
def test_standard_input_may_be_an_archive(
    monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes], make: Callable[[Files], bytes]
) -> None:
    """A tar is read in passing."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(make(JOB)))))
    assert read(open_stdin()) == (PARTS if make is tarred else [("stdin", b"two\n")])


def test_a_zip_on_standard_input_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its directory stands at its end."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(zipped(JOB))))
    with pytest.raises(ArchiveInputError, match=r"stdin is a zip archive .* from a file, not from a pipe"):
        open_stdin()


@each_row(
    "names",
    [
        ["rank2.log", "rank10.log"],
        ["main.log", "rank0.log"],
        ["launcher.out", "a/worker.log"],
        ["slurm-12.err", "slurm-12.out", "node1.log"],
        [
            "attempt_0/0/stderr.log",
            "attempt_0/3/stderr.log",
            "attempt_0/10/stderr.log",
            "attempt_1/0/stderr.log",
        ],
        ["worker-9.log.2.gz", "worker-9.log.1", "worker-9.log", "worker-10.log"],
        ["pod-0.previous.log", "pod-0.log", "pod-1.log"],
        ["job-driver-x.log", "worker-a.err", "raylet.err", "dashboard.log", "python-core-worker-1.log"],
        ["w" + "9" * 5000, "w" + "9" * 5001],
    ],
)
def test_files_come_in_the_order_one_reads_them(names: list[str]) -> None:
    """The driver first, numbers as numbers, the older part of a rotated log first, Ray's own last."""
    assert sorted(sorted(names, reverse=True), key=order) == names


@each_row(
    ("name", "kind"),
    [
        ("train.log", None),
        ("stdout", None),
        ("rank_0/12.o4", None),
        ("events.jsonl", None),
        ("nohup.out", None),
        ("attempt_0/3/error.json", None),
        ("notes.txt", None),
        ("worker.log.gz", None),
        ("run.sh", "config"),
        ("conf/train.yaml", "config"),
        ("ds_config.json", "config"),
        (".hydra/config.yaml", "config"),
        ("requirements.txt", "config"),
        ("requirements-dev.txt", "config"),
        ("train.sbatch", "config"),
        ("zero3.json", "config"),
        ("training_args.json", "config"),
        ("Dockerfile", "config"),
        ("tokenizer.json", "artefact"),
        (".git/config", "not_a_log"),
        ("events.out.tfevents.17.node", "artefact"),
        ("a/__pycache__/", "not_a_log"),
        ("model.pt", "checkpoint"),
        ("shot.JPG", "image"),
        ("src/a.cu", "code"),
        ("old.tar.gz", "nested_archive"),
        ("._train.log", "not_a_log"),
    ],
)
def test_a_name_tells_what_a_file_is(name: str, kind: str | None) -> None:
    """What no row fits is told by its content."""
    assert kind_of(name) == kind


@pytest.fixture(scope="module", params=ARCHIVES.values(), ids=ARCHIVES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> WholeArchive:
    """An archive of twelve files, packed once for all its cuts."""
    text = noise(120_000)
    members = {f"rank{number}.log": text[number * 250_000 :][:250_000] for number in range(12)}
    path = request.param(tmp_path_factory.mktemp("whole"), members)
    return WholeArchive(path.name, path.read_bytes(), members)


@each_row("tenth", range(1, 10))
def test_a_cut_archive_gives_the_files_that_it_holds(tmp_path: Path, whole: WholeArchive, tenth: int) -> None:
    """Each part is a beginning of what was packed, none is invented, and the cut is told."""
    path, packed, members = tmp_path / whole.name, whole.packed, whole.members
    path.write_bytes(packed[: len(packed) * tenth // 10])
    try:
        job = open_job(path)
        found = read(job)
    except InputError:
        # bzip2 gives nothing of its one block, and a tenth may hold nothing whole.
        assert tenth < 3 or packed[:3] == b"BZh"
        return
    assert all(members[name].startswith(text) for name, text in found)
    assert len(found) >= 12 * tenth // 10 - (4 if packed[:3] == b"BZh" else 1)
    assert "damaged_archive" in job.omitted


@each_row("make", [ARCHIVES["tar"], ARCHIVES["tar.zst"], ARCHIVES["zip"], ARCHIVES["zip-stored"]])
def test_a_damaged_member_does_not_stop_the_rest(tmp_path: Path, make: Make) -> None:
    """A header or a body that is broken costs its own file at most."""
    members = {f"rank{number}.log": noise(2000 + number) for number in range(5)}
    path = make(tmp_path, members)
    packed = path.read_bytes()
    if packed[:4] == b"\x28\xb5\x2f\xfd":
        packed = zstandard.ZstdDecompressor().decompress(packed)
    places = [place for place in range(len(packed)) if packed.startswith(b"rank2.log", place)]
    for place in places:
        packed = packed[:place] + b"\xff" * 40 + packed[place + 40 :]
    path.write_bytes(packed)
    names = [name for name, _ in read(open_job(path))]
    assert {"rank0.log", "rank1.log", "rank3.log", "rank4.log"} <= set(names)


def test_names_that_climb_are_only_labels(tmp_path: Path) -> None:
    """Nothing is unpacked to where a name leads, and a label does nothing to a terminal."""
    members = {"../../climb.log": b"up\n", "/etc/passwd.log": b"root\n", "a\x1b[31m\u202e.log": b"red\n"}
    path = tmp_path / "job"
    for content in (tarred(members), zipped(members)):
        path.write_bytes(content)
        found = read(open_job(path))
        assert {text for _, text in found} == {b"up\n", b"root\n", b"red\n"}
        assert all(name.isprintable() for name, _ in found)
    assert sorted(tmp_path.rglob("*")) == [path]


def test_links_loops_and_pipes_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    """A link into the folder is its target's second name; one out of it is told.

    A pipe is never waited for.
    """
    folder = make_folder(tmp_path, {"a/run.log": b"text\n"})
    (tmp_path / "outside.log").write_bytes(b"secret\n")
    (folder / "latest.log").symlink_to("a/run.log")
    (folder / "a" / "loop").symlink_to(folder / "a")
    (folder / "out.log").symlink_to(tmp_path / "outside.log")
    os.mkfifo(folder / "pipe.log")
    job = open_job(folder)
    assert read(job) == [("a/run.log", b"text\n")]
    assert job.omitted == {"link_out_of_the_folder": "1: out.log", "device": "1: pipe.log"}


def test_a_folder_that_is_given_by_a_link_is_read(tmp_path: Path) -> None:
    """Ray's `session_latest` is a link."""
    folder = make_folder(tmp_path, {"logs/worker-1.out": b"text\n"})
    (tmp_path / "session_latest").symlink_to(folder)
    assert read(open_job(tmp_path / "session_latest")) == [("logs/worker-1.out", b"text\n")]


def test_links_and_devices_of_a_tar_are_told(tmp_path: Path) -> None:
    """They have no content of their own."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, kind in (
            ("to.log", tarfile.SYMTYPE),
            ("hard.log", tarfile.LNKTYPE),
            ("pipe.log", tarfile.FIFOTYPE),
        ):
            header = tarfile.TarInfo(name)
            header.type, header.linkname = kind, "/etc/passwd"
            archive.addfile(header)
        header = tarfile.TarInfo("real.log")
        header.size = 5
        archive.addfile(header, io.BytesIO(b"text\n"))
    (tmp_path / "job.tar").write_bytes(made.getvalue())
    job = open_job(tmp_path / "job.tar")
    assert read(job) == [("real.log", b"text\n")]
    assert job.omitted == {"link": "2: to.log, hard.log", "device": "1: pipe.log"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    """A file and a folder without permission cost themselves only."""
    folder = make_folder(tmp_path, {"mine.log": b"text\n", "theirs.log": b"x\n", "closed/a.log": b"x\n"})
    (folder / "theirs.log").chmod(0)
    (folder / "closed").chmod(0)
    job = open_job(folder)
    assert read(job) == [("mine.log", b"text\n")]
    assert job.omitted["not_readable"] == "2: closed (Permission denied), theirs.log"
    (folder / "closed").chmod(0o700)


def test_a_file_that_goes_away_is_told(tmp_path: Path) -> None:
    """Logs are rotated while they are read."""
    folder = make_folder(tmp_path, {"a.log": b"text\n", "b.log": b"gone\n"})
    job = open_job(folder)
    (folder / "b.log").unlink()
    assert read(job) == [("a.log", b"text\n")]
    assert job.omitted == {"not_readable": "1: b.log"}


@pytest.mark.parametrize(
    ("members", "error", "message"),
    [
        ({}, EmptyInputError, "It holds nothing"),
        ({"a.err": b"", "b.err": b""}, EmptyInputError, r"It holds 2 empty \(a\.err, b\.err\)"),
        ({"plot.png": b"\x89PNG"}, EmptyInputError, r"It holds 1 image \(plot\.png\)"),
        ({"run.sh": b"true\n"}, EmptyInputError, "no log that can be read"),
    ],
)
@pytest.mark.parametrize(
    "make", [make_folder, ARCHIVES["tar"], ARCHIVES["zip"]], ids=["folder", "tar", "zip"]
)
def test_a_job_without_a_log_says_what_was_there(
    tmp_path: Path, make: Make, members: Files, error: type[InputError], message: str
) -> None:
    """The sentence names the files."""
    (tmp_path / "job").mkdir()
    path = make(tmp_path, members)
    if not members and path.is_file():
        pytest.skip("an archive of nothing has no first header")
    with pytest.raises(error, match=message):
        read(open_job(path))


@each_row(
    ("content", "error", "message"),
    [
        (
            zipped({"archive/data.pkl": b"\x80", "archive/version": b"3"}),
            BinaryInputError,
            "a PyTorch checkpoint",
        ),
        (zipped({"META-INF/MANIFEST.MF": b"x"}), BinaryInputError, "a Java archive"),
        (b"PK\x03\x04data", BrokenArchiveError, "no readable zip"),
        (b"\x89PNG\r\n", BinaryInputError, "an image"),
        (b"", EmptyInputError, "is empty"),
        (tarred({"a.log": b"x"})[:100], BinaryInputError, "control codes"),
    ],
)
def test_a_file_that_is_no_job_is_refused(
    tmp_path: Path, content: bytes, error: type[InputError], message: str
) -> None:
    """What looks like an archive of logs need not be one."""
    (tmp_path / "job").write_bytes(content)
    with pytest.raises(error, match=message):
        open_job(tmp_path / "job")


@each_row("name", ["missing", "n" * 300, "nul\0"])
def test_a_missing_job_is_refused(tmp_path: Path, name: str) -> None:
    """Whatever the name is."""
    with pytest.raises(MissingInputError):
        open_job(tmp_path / name)


@each_row(
    ("limits", "members", "parts", "omitted"),
    [
        (JobLimits(files=2), {f"{n}.log": b"x\n" for n in range(4)}, 2, "beyond_limit"),
        (JobLimits(bytes=5), {f"{n}.log": b"xxx\n" for n in range(4)}, 2, "beyond_limit"),
        (JobLimits(depth=2), {"a.log": b"x\n", "a/b/c/d.log": b"x\n"}, 1, "too_deep"),
        (JobLimits(files=1), {f"{n}.log": b"x\n" for n in range(20)}, 1, "beyond_limit"),
    ],
)
def test_a_limit_is_kept_and_told(
    tmp_path: Path, limits: JobLimits, members: Files, parts: int, omitted: str
) -> None:
    """Files, bytes and depth; the rest is named."""
    job = open_job(make_folder(tmp_path, members), limits)
    found = read(job)
    assert len(found) == parts
    assert sum(len(text) for _, text in found) <= limits.bytes
    assert omitted in job.omitted


@each_row("make", [ARCHIVES["zip"], ARCHIVES["tar.gz"]])
def test_empty_files_take_no_logs_place(tmp_path: Path, make: Make) -> None:
    """An archive that is filled with them is read to its log, whatever number of files is."""
    members = {f"{number:02}.log": b"" for number in range(20)} | {"train.log": b"the cause\n"}
    job = open_job(make(tmp_path, members), JobLimits(files=4))
    assert read(job) == [("train.log", b"the cause\n")]
    assert str(job.omitted["empty"]).startswith("20")


@each_row("make", [ARCHIVES["zip"], ARCHIVES["zip-bzip2"], ARCHIVES["tar.gz"], ARCHIVES["tar.zst"]])
def test_a_bomb_ends_and_what_stands_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    """A member that unpacks to far more than its size is stopped."""
    monkeypatch.setattr(streams, "UNSUSPICIOUS", 2 << 20)
    job = open_job(
        make(tmp_path, {"a.log": b"the cause\n", "b.log": b"a\n" * (4 << 20)}), JobLimits(ratio=10)
    )
    found = read(job)
    assert found[0] == ("a.log", b"the cause\n")
    assert sum(len(text) for _, text in found) < 4 << 20
    assert "more than 10 times" in str(job.omitted)


def test_a_zip_whose_files_share_their_bytes_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand entries over the same data unpack to no more than the archive's size allows."""
    monkeypatch.setattr("ingest.logs.inputs.jobs.UNSUSPICIOUS", 1 << 20)
    (tmp_path / "job.zip").write_bytes(zipped({f"{n}.log": b"a\n" * 500_000 for n in range(20)}))
    job = open_job(tmp_path / "job.zip", JobLimits(ratio=50))
    assert sum(len(text) for _, text in read(job)) <= 50 * (tmp_path / "job.zip").stat().st_size
    assert "beyond_limit" in job.omitted


def test_a_spool_that_is_full_ends_the_tar(tmp_path: Path) -> None:
    """A compressed tar is kept in a temporary file up to a size."""
    members = {f"rank{n}.log": noise(2000) for n in range(5)}
    job = open_job(ARCHIVES["tar.gz"](tmp_path, members), JobLimits(spool=3 * len(noise(2000))))
    assert [name for name, text in read(job) if text == noise(2000)] == [
        "rank0.log",
        "rank1.log",
        "rank2.log",
    ]
    assert "temporary file" in str(job.omitted)


def test_a_header_of_impossible_size_is_not_believed(tmp_path: Path) -> None:
    """A name of eight gigabytes is not read into memory, a negative size goes in no circle."""
    for size in (8 << 30, -512):
        header = tarfile.TarInfo("x")
        header.type, header.size = tarfile.GNUTYPE_LONGNAME, max(size, 0)
        block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
        if size < 0:
            block[124:136] = b"\xff" * 10 + (65536 + size).to_bytes(2, "big")
            block[148:156] = b" " * 8
            block[148:156] = f"{sum(block):06o}\0 ".encode()
        (tmp_path / "job.tar").write_bytes(
            tarred({"a.log": b"text\n"})[:1024] + bytes(block) + tarred({"b.log": b"more\n"})
        )
        assert [name for name, _ in read(open_job(tmp_path / "job.tar"))] == ["a.log", "b.log"]


def test_a_chain_of_headers_does_not_exhaust_the_stack(tmp_path: Path) -> None:
    """Long names for long names, without end."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 4
    link = header.tobuf(tarfile.GNU_FORMAT) + b"abc\0" + bytes(508)
    (tmp_path / "job.tar").write_bytes(tarred({"a.log": b"text\n"})[:1024] + link * 5000)
    job = open_job(tmp_path / "job.tar")
    assert read(job) == [("a.log", b"text\n")]
    assert "damaged_archive" in job.omitted


def test_encrypted_files_are_told(tmp_path: Path) -> None:
    """They cannot be read without asking."""
    packed = bytearray(zipped({"a.log": b"text\n", "b.log": b"text\n"}))
    packed[packed.rindex(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "job.zip").write_bytes(packed)
    job = open_job(tmp_path / "job.zip")
    assert [name for name, _ in read(job)] == ["a.log"]
    assert job.omitted == {"encrypted": "1: b.log"}


def test_a_zip_with_too_large_a_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Millions of names are no job's logs, and would fill the memory."""
    monkeypatch.setattr("ingest.logs.inputs.zips.LARGEST_DIRECTORY", 100)
    (tmp_path / "job.zip").write_bytes(zipped(JOB))
    with pytest.raises(ArchiveInputError, match="too many files"):
        open_job(tmp_path / "job.zip")


def test_configs_are_few_small_and_near(tmp_path: Path) -> None:
    """Twenty at most, a mebibyte each, those near the top first."""
    members = {f"deep/{n}.yaml": b"a: 1\n" for n in range(30)} | {
        "a.log": b"x\n",
        "run.sh": b"go\n",
        "big.yaml": b"a\n" * (1 << 20),
    }
    job = open_job(make_folder(tmp_path, members))
    assert job.configs[0] == ("run.sh", b"go\n")
    assert len(job.configs) == 19
    assert str(job.omitted["configs"]).startswith("13: ")
    job.close()


@pytest.mark.long
@each_row("make", [make_folder, *ARCHIVES.values()], ids=["folder", *ARCHIVES])
def test_no_thread_and_no_file_stays(tmp_path: Path, make: Make) -> None:
    """However a job is left."""
    path = make(
        tmp_path, {"a.log": noise(60_000), "b.log.gz": gzip.compress(noise(160_000), 1), "run.sh": b"go\n"}
    )
    for how in ("early", "error", "never"):
        leave_job(path, how)


def leave_job(path: Path, how: str) -> None:
    """Begin to read a job, and leave it early, by an error, or before anything was read."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    with open_job(path) as job:
        parts = job.parts()
        if how != "never":
            next(parts)
            chunks = next(parts).chunks()
            next(chunks)
            next(chunks)
            assert threads() >= 1
        if how == "error":
            with pytest.raises(KeyError):
                parts.throw(KeyError("the reader failed"))  # type: ignore[attr-defined]
    if how == "early":
        parts.close()  # type: ignore[attr-defined]
    assert threads() == 0
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_growing_file_of_a_folder_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that outgrows its reader is left where it was, and the next is read."""
    monkeypatch.setattr(files, "GROWTH", 4 << 20)
    folder = make_folder(tmp_path, {"a.log": b"first\n" * (1 << 20), "b.log": b"text\n"})
    job = open_job(folder)
    sizes = []
    with (folder / "a.log").open("ab") as growing:
        for part in job.parts():
            size = 0
            for chunk in part.chunks():
                size += len(chunk)
                growing.write(b"again\n" * (1 << 20))
                growing.flush()
            sizes.append(size)
    assert sizes == [10 << 20, 5]
    assert str(job.omitted["still_growing"]).startswith("1: a.log (it was written to faster")


MEMORY = """
import resource, sys
from pathlib import Path
from ingest.logs.inputs.jobs import open_job
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = sum(len(chunk) for part in open_job(Path(sys.argv[1])).parts() for chunk in part.chunks())
print(size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@each_row("name", ["sparse.log", "job.log.gz", "job.log.zst", "job.log.xz", "job.tar.gz", "job.zip"])
@pytest.mark.long
def test_memory_does_not_grow_with_the_log(tmp_path: Path, name: str) -> None:
    """A hundred megabytes and more, a hole before the text or packed small, pass through some tens."""
    path = tmp_path / name
    text = b"a line of a log\n" * (120 << 16)
    if name == "sparse.log":
        with path.open("wb") as sparse:
            sparse.seek(200 << 20)
            sparse.write(b"text\n")
    elif name.endswith(".zip"):
        path.write_bytes(zipped({"a.log": text}))
    else:
        inner = tarred({"a.log": text}) if "tar" in name else text
        path.write_bytes(
            {
                "gz": partial(gzip.compress, compresslevel=1),
                "zst": zstandard.compress,
                "xz": partial(lzma.compress, preset=0),
            }[name[-3:].strip(".")](inner)
        )
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True
    )
    size, grown = map(int, done.stdout.split())
    assert size == (5 if name == "sparse.log" else len(text))
    assert grown < 60 << 10  # kibibytes; a tar's temporary file keeps 32 MiB in memory


@given(st.data(), st.sampled_from(sorted(ARCHIVES)))
@settings(derandomize=True, deadline=None, max_examples=250)
def test_damage_raises_nothing_but_input_errors(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, form: str
) -> None:
    """Whatever stands in an archive, parts or an InputError come out."""
    root = tmp_path_factory.getbasetemp()
    path = ARCHIVES[form](
        root, {"a.log": b"some text\n" * 40, "run.sh": b"go\n", "long/" * 40 + "b.log": noise(30)}
    )
    packed = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(packed) - 1))
        wrong = data.draw(st.binary(min_size=1, max_size=20))
        packed[place : place + len(wrong)] = wrong
    path.write_bytes(packed[: data.draw(st.integers(1, len(packed)))])
    with suppress(InputError):
        read(open_job(path))


def test_a_job_of_many_files_names_its_failure(tmp_path: Path) -> None:
    """A part is a log like any other."""
    folder = make_folder(
        tmp_path, {"rank0.log": b"fine\n", "rank1.log.gz": gzip.compress(f"{OOM}\n".encode())}
    )
    assert read(open_job(folder))[1] == ("rank1.log.gz", f"{OOM}\n".encode())
