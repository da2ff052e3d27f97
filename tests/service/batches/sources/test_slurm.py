"""Failed jobs of a Slurm cluster.

A stand-in for `sacct` answers in its format; what it is asked stands in a file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.batches.sources import nodelist, slurm
from service.batches.sources.slurm import SlurmQuery
from service.schemas.diagnosis import Outcome
from service.schemas.errors import InvalidRequestError, TooLargeError
from service.settings import Settings
from tests.tables import each_row

SINCE = datetime(2026, 11, 20, tzinfo=UTC)
ROW = {
    "JobID": "812",
    "JobIDRaw": "812",
    "JobName": "sft|7b",
    "User": "ann",
    "State": "FAILED",
    "ExitCode": "1:0",
    "NNodes": "2",
    "NodeList": "gpu[01-02]",
    "AllocTRES": "billing=128,cpu=128,gres/gpu:h100=16,gres/gpu=16,mem=1800G,node=2",
    "ElapsedRaw": "5400",
    "Start": "2026-11-20T08:00:00+0800",
    "End": "2026-11-20T09:30:00+0800",
    "WorkDir": "",
    "StdOut": "",
    "StdErr": "",
}
SACCT = """\
#!{python}
import json, os, sys
from pathlib import Path
told = json.loads(Path({told!r}).read_text())
Path({asked!r}).write_text(json.dumps([sys.argv[1:], os.environ["SLURM_TIME_FORMAT"]]))
options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
names = options["--format"].split(",")
for name in names:
    if name in told["unknown"]:
        sys.exit(f'sacct: error: Invalid field requested: "{{name}}"')
if told["error"]:
    sys.exit(told["error"])
for row in told["rows"]:
    print(options["--delimiter"].join(row[name] for name in names))
"""


@pytest.fixture
def sacct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a sacct into the path that gives these jobs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    told = tmp_path / "told.json"
    (folder / "sacct").write_text(
        SACCT.format(python=sys.executable, told=str(told), asked=str(tmp_path / "asked.json"))
    )
    (folder / "sacct").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def tells(*rows: Mapping[str, str], unknown: tuple[str, ...] = (), error: str = "") -> None:
        told.write_text(
            json.dumps(
                {
                    "rows": [{**ROW, "WorkDir": str(tmp_path / "work"), **row} for row in rows],
                    "unknown": unknown,
                    "error": error,
                }
            )
        )

    return tells


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The jobs' folder."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def _write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("died\n")


def test_that_a_failed_job_comes_with_what_slurm_knows(
    sacct: Callable[..., None], work: Path, make_settings: Callable[..., Settings]
) -> None:
    """Nodes, GPU hours and times come from the accounting, the log from the job's output path."""
    _write(work, "slurm-812.out")
    sacct({})
    (spec,) = slurm.find_jobs(SlurmQuery(SINCE), make_settings()).specs
    assert (spec.name, spec.nodes, spec.gpus, spec.gpu_hours) == ("sft|7b (812)", 2, 16, 24.0)
    assert spec.node_names == ("gpu01", "gpu02")
    assert spec.ended == datetime(2026, 11, 20, 9, 30, tzinfo=timezone(timedelta(hours=8)))
    assert spec.place.paths == (str(work / "slurm-812.out"),)


def test_that_a_job_comes_with_how_it_ended(
    sacct: Callable[..., None], work: Path, make_settings: Callable[..., Settings]
) -> None:
    """State, exit code and signal are the accounting's.

    What sacct marks by a number that is no signal is left out.
    """
    ends = {
        ("FAILED", "1:0"): Outcome(exit_code=1, state="FAILED"),
        ("OUT_OF_MEMORY", "0:125"): Outcome(exit_code=0, state="OUT_OF_MEMORY"),
        ("FAILED", "0:9"): Outcome(exit_code=0, signal="SIGKILL", state="FAILED"),
        ("TIMEOUT", "0:0"): Outcome(exit_code=0, state="TIMEOUT"),
        ("CANCELLED by 1001", "0:15"): Outcome(exit_code=0, signal="SIGTERM", state="CANCELLED by 1001"),
        ("", ""): None,
    }
    _write(work, "slurm-812.out")
    sacct(*({"State": state, "ExitCode": code} for state, code in ends))
    assert [spec.outcome for spec in slurm.find_jobs(SlurmQuery(SINCE), make_settings()).specs] == list(
        ends.values()
    )


PATHS: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "the default": ({}, ["slurm-812.out"], ["slurm-812.out"]),
    "an array's default": (
        {"JobID": "800_3", "JobIDRaw": "812"},
        ["slurm-800_3.out", "slurm-812.out"],
        ["slurm-800_3.out"],
    ),
    "a name and an id": ({"StdOut": "logs/%x-%j.log"}, ["logs/sft|7b-812.log"], ["logs/sft|7b-812.log"]),
    "two streams": ({"StdOut": "%j.out", "StdErr": "%j.err"}, ["812.out", "812.err"], ["812.out", "812.err"]),
    "one file for both": ({"StdOut": "%j.out", "StdErr": "%j.out"}, ["812.out"], ["812.out"]),
    "a file for each task": (
        {"StdOut": "t-%j-%t.out"},
        ["t-812-0.out", "t-812-1.out", "t-813-0.out"],
        ["t-812-0.out", "t-812-1.out"],
    ),
    "a file for each node": (
        {"StdOut": "%N-%j.out"},
        ["gpu01-812.out", "gpu02-812.out"],
        ["gpu01-812.out", "gpu02-812.out"],
    ),
    "zeros before": ({"StdOut": "%6j.out"}, ["000812.out"], ["000812.out"]),
    "the array's numbers": (
        {"JobID": "800_13", "StdOut": "%A-%3a-%b.out"},
        ["800-013-3.out"],
        ["800-013-3.out"],
    ),
    "the user": ({"StdOut": "%u.out"}, ["ann.out"], ["ann.out"]),
    "a percent sign": ({"StdOut": "100%%j.out"}, ["100%j.out"], ["100%j.out"]),
    "no pattern at all": ({"StdOut": "\\a%j.out"}, ["a%j.out"], ["a%j.out"]),
    "brackets are no wildcard": ({"StdOut": "[a]-%t.out"}, ["[a]-0.out", "a-0.out"], ["[a]-0.out"]),
}


@pytest.mark.parametrize(("row", "there", "expected"), PATHS.values(), ids=PATHS)
def test_that_output_is_found_by_its_pattern(
    sacct: Callable[..., None],
    work: Path,
    make_settings: Callable[..., Settings],
    row: dict[str, str],
    there: list[str],
    expected: list[str],
) -> None:
    """Slurm's patterns are filled in as Slurm does."""
    _write(work, *there)
    sacct(row)
    (spec,) = slurm.find_jobs(SlurmQuery(SINCE), make_settings()).specs
    assert [Path(path).relative_to(work).as_posix() for path in spec.place.paths] == expected


def test_that_an_older_sacct_is_asked_for_less(
    sacct: Callable[..., None], work: Path, make_settings: Callable[..., Settings]
) -> None:
    """Where the accounting does not know output paths, the default one is looked for."""
    _write(work, "slurm-812.out")
    sacct({}, unknown=("StdOut", "StdErr"))
    assert slurm.find_jobs(SlurmQuery(SINCE), make_settings()).count == 1


def test_that_what_is_asked_is_what_failed_since(
    sacct: Callable[..., None], work: Path, tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    """sacct is asked for allocations alone, by state, time and users, without a shell."""
    _write(work, "slurm-812.out")
    sacct({})
    slurm.find_jobs(SlurmQuery(SINCE, users="ann,$(reboot)"), make_settings())
    words, times = json.loads((tmp_path / "asked.json").read_text())
    assert {"--allocations", "--parsable2", "--noheader", "--endtime=now", "--user=ann,$(reboot)"} <= set(
        words
    )
    assert f"--starttime={SINCE.astimezone():%Y-%m-%dT%H:%M:%S}" in words
    assert "--state=FAILED,OUT_OF_MEMORY,TIMEOUT,NODE_FAIL,BOOT_FAIL,DEADLINE" in words
    assert times.endswith("%z")


def test_that_output_beyond_the_roots_is_not_read(
    sacct: Callable[..., None], work: Path, tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    """A job chooses where its output is; a server reads it under its roots only, wherever links lead."""
    _write(work, "ok.out")
    _write(tmp_path, "secret")
    (work / "link.out").symlink_to(tmp_path / "secret")
    sacct(
        {"StdOut": "ok.out"},
        {"JobID": "2", "StdOut": "link.out"},
        {"JobID": "3", "StdOut": str(tmp_path / "secret")},
        {"JobID": "4", "StdOut": "none"},
    )
    found = slurm.find_jobs(SlurmQuery(SINCE), make_settings(), roots=(os.path.realpath(work),))
    assert [spec.name for spec in found.specs] == ["sft|7b (812)"]
    assert found.left_out == {"outside_batch_roots": "2: 2, 3", "no_output_found": "1: 4"}


def test_that_what_goes_wrong_is_told(
    sacct: Callable[..., None],
    work: Path,
    make_settings: Callable[..., Settings],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """sacct's own words, no jobs, too many, or no sacct at all."""
    sacct({}, error="sacct: error: slurmdbd: Connection refused")
    with pytest.raises(InvalidRequestError, match="Connection refused"):
        slurm.find_jobs(SlurmQuery(SINCE), make_settings())
    sacct()
    with pytest.raises(InvalidRequestError, match="no job"):
        slurm.find_jobs(SlurmQuery(SINCE), make_settings())
    _write(work, "slurm-812.out")
    sacct(*[{}] * 3)
    with pytest.raises(TooLargeError):
        slurm.find_jobs(SlurmQuery(SINCE), make_settings(max_jobs=2))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InvalidRequestError, match="no sacct"):
        slurm.find_jobs(SlurmQuery(SINCE), make_settings())


@pytest.mark.parametrize(
    ("resources", "gpus"),
    [
        ("cpu=4,gres/gpu=8,node=1", 8),
        ("gres/gpu:a100=4,gres/gpu:h100=2", 6),
        ("gres/gpu:a100=4,gres/gpu=4", 4),
        ("cpu=4", None),
        ("", None),
        ("gres/gpumem=9", None),
    ],
)
def test_that_gpus_are_counted_once(
    sacct: Callable[..., None],
    work: Path,
    make_settings: Callable[..., Settings],
    resources: str,
    gpus: int | None,
) -> None:
    """A cluster counts GPUs as a whole, by type, or both."""
    _write(work, "slurm-812.out")
    sacct({"AllocTRES": resources, "Start": "Unknown", "End": "Unknown"})
    (spec,) = slurm.find_jobs(SlurmQuery(SINCE), make_settings()).specs
    assert (spec.gpus, spec.started) == (gpus, None)
    assert (spec.gpu_hours is None) == (gpus is None)


NODES = {
    "node01": ("node01",),
    "a,b": ("a", "b"),
    "n[1-3]": ("n1", "n2", "n3"),
    "n[01-03,7],login": ("n01", "n02", "n03", "n7", "login"),
    "r[1-2]n[0-1]-ib": ("r1n0-ib", "r1n1-ib", "r2n0-ib", "r2n1-ib"),
    "n[008-011]": ("n008", "n009", "n010", "n011"),
    "": (),
    "None assigned": (),
    "n[3-1]": ("n[3-1]",),
    "n[1-999999999]": ("n[1-999999999]",),
    "n[a-b]": ("n[a-b]",),
    "n[0-999]m[0-999]": ("n[0-999]m[0-999]",),
}


@each_row(("text", "names"), NODES.items(), ids=list(NODES))
def test_that_lists_of_nodes_are_written_out(text: str, names: tuple[str, ...]) -> None:
    """A range gives its numbers in its first one's width; what is no list stays as it is."""
    assert nodelist.expand(text) == names


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.text(alphabet="abn019[],-", max_size=40))
def test_that_any_text_gives_bounded_names(text: str) -> None:
    """No text makes it fail or fill the memory."""
    assert len(nodelist.expand(text)) <= nodelist.MAX_NODES
