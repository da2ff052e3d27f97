"""Jobs out of what a client sends."""

from __future__ import annotations

import gzip
import json
import resource
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.batches.sources import upload
from service.batches.sources.found import FoundJobs
from service.batches.sources.spool import BatchSpool, open_spool, safe_path
from service.schemas.diagnosis import Outcome
from service.schemas.errors import DiskFullError, InvalidRequestError, RequestError, TooLargeError
from service.settings import Settings
from tests.ingest.redaction import planted
from tests.service.batches.sources.handing import DIED, SECRET, Sent, held, sent, tarred, zipped
from tests.tables import each_row

Read = Callable[..., FoundJobs]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the copies go."""
    return tmp_path / "spool"


@pytest.fixture
def read(folder: Path, make_settings: Callable[..., Settings]) -> Read:
    """Take uploads apart."""

    def of(*uploads: Sent, **settings: int) -> FoundJobs:
        made = make_settings(**settings)
        return upload.find_jobs(uploads, open_spool(folder, made), made)

    return of


FILES = {
    "j1/rank0.log": "a\n",
    "j1/rank1.log": "b\n",
    "j1/train.sh": "python t.py\n",
    "two.out": "c\n",
    "two.err": "d\n",
}
EXPECTED = {
    "j1": {"rank0.log": "a\n", "rank1.log": "b\n", "train.sh": "python t.py\n"},
    "two": {"two.out": "c\n", "two.err": "d\n"},
}


@pytest.mark.parametrize(
    "raw",
    [zipped(FILES), tarred(FILES), tarred(FILES, "w"), tarred(FILES, "w:xz"), tarred(FILES, "w:bz2")],
    ids=["zip", "tar.gz", "tar", "tar.xz", "tar.bz2"],
)
def test_that_an_archive_gives_its_jobs(read: Read, raw: bytes) -> None:
    """Each top-level folder or file of an archive is a job, with its configuration."""
    found = read(sent("logs.bin", raw))
    assert held(found) == EXPECTED
    assert found.count == 2
    assert all(spec.place.spooled for spec in found.specs)


def test_that_many_files_give_their_jobs(read: Read) -> None:
    """Files that are sent one by one are grouped like those of a folder."""
    assert held(read(*(sent(name, text) for name, text in FILES.items()))) == EXPECTED


def test_that_an_archive_among_files_is_one_job(read: Read) -> None:
    """Of several archives each is one job's, with all its parts."""
    found = read(
        sent("a.tgz", tarred({"x/rank0.log": "0\n", "x/other.log": "1\n"})),
        sent("b.zip", zipped({"c.log": "2\n"})),
        sent("d.log.gz", gzip.compress(b"3\n")),
    )
    assert {name: sorted(texts.values()) for name, texts in held(found).items()} == {
        "a": ["0\n", "1\n"],
        "b": ["2\n"],
        "d": ["3\n"],
    }


def test_that_lines_of_json_give_jobs(read: Read) -> None:
    """A line is a job, with what is known of it; a wrong line is told of and costs no other."""
    rows = [
        {
            "name": "one",
            "log": DIED,
            "config": "python train.py\n",
            "nodes": 4,
            "gpus": 32,
            "gpu_hours": 12.5,
            "ended": "2026-11-20T10:00:00+08:00",
        },
        {"name": "two", "log": "x\n", "sort": "unknown"},
        {"name": "three", "log": "no end"},
    ]
    found = read(sent("jobs.jsonl", "\n".join(map(json.dumps, rows)) + "\n\nno json\n"))
    one, three = found.specs
    assert (one.name, one.nodes, one.gpus, one.gpu_hours, one.ended is not None) == ("one", 4, 32, 12.5, True)
    assert held(found) == {
        "one": {"job.log": DIED, "config.sh": "python train.py\n"},
        "three": {"job.log": "no end"},
    }
    assert three.nodes is None
    assert found.left_out["not_valid"] == (
        "2: line 2 (sort: Extra inputs are not permitted), line 5 (Invalid JSON: expected ident at "
        "line 1 column 2)"
    )


def test_that_a_line_may_say_how_its_job_ended(read: Read) -> None:
    """Exit code, signal and state go with the job; a line with what is none of them is told of."""
    ends: tuple[dict[str, object], ...] = (
        {"exit_code": 1},
        {"signal": "kill"},
        {"state": "OOMKilled", "exit_code": 137},
        {},
        {"signal": "NOTHING"},
    )
    rows = [{"name": str(place), "log": "died\n", **end} for place, end in enumerate(ends)]
    found = read(sent("jobs.jsonl", "\n".join(map(json.dumps, rows))))
    assert [spec.outcome for spec in found.specs] == [
        Outcome(exit_code=1),
        Outcome(signal="SIGKILL"),
        Outcome(exit_code=137, state="OOMKilled"),
        None,
    ]
    assert "signal" in str(found.left_out["not_valid"])


def test_that_a_log_in_json_is_no_batch(read: Read) -> None:
    """A container's log has lines of JSON with a log in them, and is one job's."""
    assert (
        read(sent("pod.log", '{"log": "x", "stream": "stderr"}\n{"log": "y", "stream": "stderr"}\n')).count
        == 1
    )


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.zip", zipped({"j/train.log": f"{SECRET}\n{DIED}", "j/run.sh": f"{SECRET}\n"})),
        ("a.tgz", tarred({"j/train.log": f"{SECRET}\n{DIED}", "j/run.sh": f"{SECRET}\n"})),
        ("a.jsonl", json.dumps({"name": SECRET, "log": f"{SECRET}\n{DIED}", "config": SECRET}) + "\n"),
        (f"{SECRET}.log", f"{SECRET}\n"),
    ],
    ids=["zip", "tar", "lines", "file"],
)
def test_that_no_secret_reaches_the_disk(read: Read, folder: Path, name: str, raw: bytes | str) -> None:
    """Copies, their names and the jobs' names are redacted; the number of lines stays."""
    found = read(sent(name, raw))
    secret = SECRET.partition("=")[2]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert not any(secret in str(path) for path in files)
    shown = held(found)
    assert secret not in json.dumps(shown)
    assert "redacted" in json.dumps(shown)
    assert secret not in str([spec.model_dump() for spec in found.specs])
    assert not any(secret.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize("form", ["archive", "lines"])
def test_that_none_of_many_kinds_of_secrets_is_kept(read: Read, folder: Path, form: str) -> None:
    """Whatever kind a secret is of, and however it stands in a log, no part of it is on the disk or in a
    job's name.
    """
    every = planted.secrets()
    texts = {f"{number:03d}x.log": one.text for number, one in enumerate(every)}
    raw = (
        zipped(texts)
        if form == "archive"
        else "".join(json.dumps({"name": name, "log": text}) + "\n" for name, text in texts.items())
    )
    found = read(sent("a.zip" if form == "archive" else "a.jsonl", raw))
    kept = list(held(found).values())
    assert len(kept) == len(every)
    assert [
        (one.kind, one.form)
        for one, log in zip(every, kept, strict=True)
        if planted.remains(one, "".join(log.values()))
    ] == []


def test_that_copies_are_readable_by_their_owner_alone(read: Read, folder: Path) -> None:
    """Files have mode 0600, folders 0700."""
    read(sent("a.zip", zipped(FILES)))
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")} == {0o600, 0o700}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


LEFT_OUT = {
    "a name that leads upward": (zipped({"../../etc/x.log": "a\n", "ok.log": "b\n"}), "unsafe_name"),
    "an absolute name": (zipped({"/etc/x.log": "a\n", "ok.log": "b\n"}), "unsafe_name"),
    "a name with backslashes": (zipped({"..\\x.log": "a\n", "ok.log": "b\n"}), "unsafe_name"),
    "a link": (tarred({"ok.log": "b\n"}, links={"x.log": "/etc/passwd"}), "link"),
    "an archive in the archive": (zipped({"x.tar": "a\n", "ok.log": "b\n"}), "nested_archive"),
    "a checkpoint": (zipped({"m.safetensors": "a\n", "ok.log": "b\n"}), "checkpoint"),
    "a binary file": (zipped({"x.log": "\0\1\2\3" * 400, "ok.log": "b\n"}), "binary"),
    "an empty log": (zipped({"x.log": "", "ok.log": "b\n"}), "empty"),
}


@pytest.mark.parametrize(("raw", "reason"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_that_what_is_no_job_is_left_out_and_told(read: Read, folder: Path, raw: bytes, reason: str) -> None:
    """What is not read is counted by its reason, and nothing is written elsewhere."""
    found = read(sent("a.bin", raw))
    assert list(held(found)) == ["ok"]
    assert str(found.left_out[reason]).startswith("1: ")
    assert {path.name for path in folder.parent.iterdir()} <= {"spool", "home"}


REFUSED: dict[str, tuple[list[Sent], dict[str, int], type[RequestError]]] = {
    "nothing": ([], {}, InvalidRequestError),
    "an archive without logs": ([sent("a.zip", zipped({"x.png": "a"}))], {}, InvalidRequestError),
    "a checkpoint": ([sent("a.pt", zipped({"archive/data.pkl": "a"}))], {}, InvalidRequestError),
    "a damaged archive": ([sent("a.zip", b"PK\x03\x04" + b"\0" * 100)], {}, InvalidRequestError),
    "too many jobs": (
        [sent("a.zip", zipped({f"{number}x.log": "a\n" for number in range(4)}))],
        {"max_jobs": 3},
        TooLargeError,
    ),
    "too many lines": ([sent("a.jsonl", '{"name": "a", "log": "b"}\n' * 4)], {"max_jobs": 3}, TooLargeError),
    "too much text": (
        [sent("a.zip", zipped({"a.log": "a line of the log\n" * 100_000}))],
        {"max_unpacked_mb": 1},
        TooLargeError,
    ),
    "only wrong lines": ([sent("a.jsonl", '{"name": "a", "log": "b", "c": 1}\n')], {}, InvalidRequestError),
}


@pytest.mark.parametrize(("uploads", "settings", "error"), REFUSED.values(), ids=REFUSED)
def test_that_what_is_beyond_limits_is_refused_and_leaves_nothing(
    read: Read, folder: Path, uploads: list[Sent], settings: dict[str, int], error: type[RequestError]
) -> None:
    """A refusal leaves no copy behind."""
    with pytest.raises(error):
        read(*uploads, **settings)
    assert not folder.exists()


def test_that_a_bomb_is_refused(read: Read, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that each may be a log, but together unpack to a thousand times the archive, end it."""
    monkeypatch.setattr(upload, "UNSUSPICIOUS", 1 << 20)
    raw = tarred({f"{number}x.log": "0" * (1 << 20) for number in range(8)}, "w:xz")
    with pytest.raises(TooLargeError):
        read(sent("a.txz", raw))
    assert not folder.exists()


@pytest.fixture
def full() -> Iterator[None]:
    """Let no file grow beyond a kilobyte: the nearest to a full disk that a test has without a disk of its
    own.
    """
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_that_a_full_disk_is_told_and_leaves_nothing(read: Read, folder: Path, full: None) -> None:
    """A full disk ends the upload with its own error."""
    with pytest.raises(DiskFullError):
        read(sent("a.log", "".join(f"{number * number}\n" for number in range(10_000))))
    assert not folder.exists()


@each_row(
    ("name", "path"),
    [
        ("a/b.log", "a/b.log"),
        ("../../x", "x"),
        ("/etc/x", "etc/x"),
        ("C:\\logs\\x.log", "C_/logs/x.log"),
        ("...", "log"),
        ("a b\0c.log", "a_b_c.log"),
        ("日志.log", "日志.log"),
    ],
)
def test_that_names_stay_below_their_folder(name: str, path: str) -> None:
    """A name is only ever a label."""
    assert safe_path(name) == path


def test_that_equal_names_do_not_overwrite_each_other(folder: Path) -> None:
    """Two names that are one on our disk are two files."""
    job = BatchSpool(folder, 1000).begin()
    job.log("a?.log", [b"1"])
    job.log("a*.log", [b"2"])
    assert len(set(job.logs)) == 2


@pytest.mark.parametrize(
    "names",
    [
        ("a", "a/b", "a/b/c"),
        ("job.log/x.sh", "job.log"),
        ("x y.sh", "x_y.sh", "2-x_y.sh", "x*y.sh", "3-x_y.sh"),
    ],
)
def test_that_names_that_clash_as_files_and_folders_are_all_kept(
    read: Read, folder: Path, names: tuple[str, ...]
) -> None:
    read(
        sent(
            "jobs.jsonl",
            json.dumps({"name": "j", "log": DIED, "config": {name: f"# {name}\n" for name in names}}) + "\n",
        )
    )
    kept = {path.read_text() for path in folder.rglob("*") if path.is_file() and path.name != "job.log"}
    assert {f"# {name}\n" for name in names} <= kept


def test_that_a_line_of_very_many_configurations_makes_no_files(read: Read, folder: Path) -> None:
    with pytest.raises(InvalidRequestError, match="not valid 1"):
        read(
            sent(
                "jobs.jsonl",
                json.dumps(
                    {"name": "j", "log": DIED, "config": {f"{number}.sh": "x" for number in range(1000)}}
                )
                + "\n",
            )
        )
    assert not folder.exists()


def test_that_json_of_any_depth_is_no_fault_of_ours(read: Read) -> None:
    deep = '{"name": "j", "log": "x", "config": ' + "[" * 60_000
    assert not upload.is_lines(sent("jobs.jsonl", f"{deep}\n").file)
    with pytest.raises(InvalidRequestError, match="not valid 1"):
        read(sent("jobs.jsonl", deep + "[" * 60_000 + "\n"))


def test_that_a_secret_in_the_name_of_what_is_left_out_is_masked(read: Read) -> None:
    secret = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
    found = read(
        sent("jobs.zip", zipped({"j/rank0.log": DIED, f"j/{secret}.png": "x", f"../{secret}.log": DIED}))
    )
    assert sorted(found.left_out) == ["image", "unsafe_name"]
    assert secret not in str(found.left_out)
    with pytest.raises(InvalidRequestError) as refused:
        read(sent("jobs.zip", zipped({f"j/{secret}.png": "x"})))
    assert secret not in str(refused.value)


def test_that_files_of_one_name_are_all_kept(read: Read) -> None:
    """A browser names files without their folders; each is a job, and a name that is taken is not given."""
    found = read(
        sent("run.log", "a\n"), sent("run.log", "b\n"), sent("run (2).log", "c\n"), sent("run.log", "d\n")
    )
    assert sorted(text for files in held(found).values() for text in files.values()) == [
        "a\n",
        "b\n",
        "c\n",
        "d\n",
    ]
    packed = read(sent("x.zip", zipped({"a.log": "1\n"})), sent("x.zip", zipped({"a.log": "2\n"})))
    assert sorted(text for files in held(packed).values() for text in files.values()) == ["1\n", "2\n"]
