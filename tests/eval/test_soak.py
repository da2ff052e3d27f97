"""The soak itself: that it finds what is lost, told twice, or grows, and that a short one holds."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eval.soak.checks import MemoryTrend, growth, memory_trend
from eval.soak.target import Sample
from tests.ports import free_port
from tests.service.persistence.cluster import Cluster, programs
from tests.warm import ROOT

SECONDS = 400


def _life(mb: float, files: float, life: int = 1, seconds: int = SECONDS) -> list[Sample]:
    """Give samples of a server that gains so many MiB and files in a hundred seconds."""
    return [Sample(at, life, 200 + mb * at / 100, 500, int(50 + files * at / 100)) for at in range(seconds)]


def test_that_what_grows_is_told_and_what_settles_is_not() -> None:
    """Each life of the server by itself; one that was too short says nothing."""
    assert growth(_life(0, 0)) == []
    assert growth([]) == []
    assert "MiB" in growth(_life(50, 0))[0]
    assert "open files" in growth(_life(0, 20))[0]
    assert growth(_life(50, 20, seconds=40)) == []
    assert "life 2" in growth([*_life(0, 0), *_life(50, 0, life=2)])[0]


def _trend(samples: list[Sample]) -> MemoryTrend:
    found = memory_trend(samples)
    assert found is not None
    return found


def test_that_the_slope_of_memory_is_of_the_longest_life_once_it_has_settled() -> None:
    """What it took at first, and what shorter lives took, is no slope; a life that is too short has none."""
    settles = [sample._replace(server_mb=300.0) for sample in _life(60, 0)[SECONDS // 2 :]]
    flat = _trend([*_life(60, 0)[: SECONDS // 2], *settles, *_life(90, 0, life=2, seconds=40)])
    assert (flat.slope, flat.first, flat.last) == pytest.approx((0, 300, 300), abs=0.01)
    grows = _trend(_life(10, 0))
    assert (grows.slope, grows.noise) == pytest.approx((6, 0), abs=0.01)
    assert (memory_trend([]), memory_trend(_life(10, 0, seconds=40))) == (None, None)


def test_that_noise_is_told_beside_the_slope_of_memory() -> None:
    """What comes and goes makes a slope of its own, no larger than twice what is told as its noise."""
    draws = random.Random(1)  # noqa: S311 - no secret
    waves = [draws.uniform(-20, 20) for _ in range(SECONDS // 10 + 1)]
    found = _trend([each._replace(server_mb=300 + waves[int(each.at) // 10]) for each in _life(0, 0)])
    assert found.noise > 0.5
    assert abs(found.slope) < 2 * found.noise


@pytest.mark.long
def test_that_a_short_soak_holds(warm: Path, tmp_path: Path) -> None:
    """A minute, in which a worker and twice the server are killed; its report shows what was found."""
    words = [sys.executable, "-m", "eval.soak", "--minutes", "1", "--warm", str(warm)]
    words += ["--out", str(tmp_path / "soak.html")]
    made = os.environ | {"WHYCRASH_EMBEDDING_MODEL": "hash"}
    ended = subprocess.run(words, cwd=ROOT, env=made, capture_output=True, check=False, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "jobs done" in ended.stdout
    page = (tmp_path / "soak.html").read_text(encoding="utf-8")
    assert "All held." in page
    assert page.count("<svg") == 3


_DATABASE = """
import subprocess, sys
program, data, user = sys.argv[1:]
command = [program, "-D", data, "-w", "-m", "immediate", "restart"]
quiet = subprocess.DEVNULL
subprocess.run(command, check=True, user=user, cwd="/", stdin=quiet, stdout=quiet, stderr=quiet)
"""
_CHROMA = """
import os, pathlib, signal, subprocess, sys
known = pathlib.Path("chroma.pid")
if known.exists():
    os.kill(int(known.read_text()), signal.SIGKILL)
quiet = subprocess.DEVNULL
started = subprocess.Popen(sys.argv[1:], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
known.write_text(str(started.pid))
"""


@pytest.mark.long
def test_that_a_soak_holds_while_its_database_and_its_chroma_end(warm: Path, tmp_path: Path) -> None:
    """Both are started anew, one after the other, with no time to say so."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    (tmp_path / "database.py").write_text(_DATABASE)
    (tmp_path / "vectors.py").write_text(_CHROMA)
    cluster, port = Cluster(found), free_port()
    served = [Path(sys.executable).with_name("chroma"), "run", "--path", tmp_path / "chroma", "--port", port]
    database = [sys.executable, tmp_path / "database.py", found / "pg_ctl", cluster.data, cluster.user]
    vectors = [sys.executable, tmp_path / "vectors.py", *served]
    words = [sys.executable, "-m", "eval.soak", "--minutes", "1.5", "--out", "soak.html", "--every", "8"]
    words += ["--warm", str(warm)]
    for command in (database, vectors):
        words += ["--disturb", shlex.join(map(str, command))]
    made = os.environ | {"WHYCRASH_EMBEDDING_MODEL": "hash", "PYTHONPATH": str(ROOT)}
    cluster.start()
    subprocess.run(list(map(str, vectors)), cwd=tmp_path, check=True)
    try:
        words += ["--database", cluster.database(), "--chroma", f"http://127.0.0.1:{port}"]
        ended = subprocess.run(words, cwd=tmp_path, env=made, capture_output=True, check=False, text=True)
    finally:
        os.kill(int((tmp_path / "chroma.pid").read_text(encoding="utf-8")), signal.SIGKILL)
        cluster.remove()
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "jobs done" in ended.stdout
    page = (tmp_path / "soak.html").read_text(encoding="utf-8")
    assert "database.py" in page
    assert "vectors.py" in page
