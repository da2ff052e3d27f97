"""A site's own knowledge is data alone: a framework that no code has heard of is diagnosed and patched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corpus import log_patterns
from corpus.library import KNOWLEDGE, read_causes
from ingest.logs.inputs.sources import from_text
from ingest.logs.reader import Reader
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.warm import explained

TOY = Path(__file__).parent.parent / "toy_knowledge"
SCRIPT = "#!/bin/bash\nset -e\ntoytrain run --epochs 3 --bucket-rows 100 data.jsonl\n"
TRACEBACK = """\
Traceback (most recent call last):
  File "/opt/venv/bin/toytrain", line 8, in <module>
    sys.exit(main())
  File "/opt/venv/lib/python3.11/site-packages/toytrain/loop.py", line 41, in run
    {call}
  File "/opt/venv/lib/python3.11/site-packages/toytrain/{module}.py", line 12, in {function}
    raise {error}
toytrain.{module}.{error}: {message}
"""
OVERFLOW = TRACEBACK.format(
    call="bucket.add(batch)",
    module="data",
    function="add",
    error="BucketError",
    message="bucket overflow: 311 rows do not fit into 100",
)
EMPTY = TRACEBACK.format(
    call="shelf.first()", module="shelf", function="first", error="ShelfError", message="there is no first"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose index is built once, of the corpus and the toy's folder."""
    return tmp_path_factory.mktemp("home")


@pytest.mark.long
def test_that_a_folder_of_data_makes_a_diagnosis_with_a_patch(home: Path, tmp_path: Path) -> None:
    """Cue, pattern, cause, case, a setting, its computed value and the launch program stand in the folder."""
    answer = _explained("$ toytrain run --epochs 3 --bucket-rows 100 data.jsonl\n" + OVERFLOW, home, tmp_path)
    assert (answer["verdict"], answer["cause"]) == ("diagnosed", "toy-bucket-overflow")
    assert answer["frameworks"][0]["name"] == "toytrain"
    assert answer["cases"][0]["id"] == "toytrain/bucket"
    (change,) = answer["changes"]
    assert (change["framework"], change["key"], change["from"], change["to"]) == (
        "toytrain",
        "--bucket-rows",
        "100",
        320,
    )
    assert change["status"] == "verified"
    assert change["proof"] == "311 rows must fit; 320 is the multiple of 64 above."
    assert "-toytrain run --epochs 3 --bucket-rows 100 data.jsonl" in answer["patch"]
    assert "+toytrain run --epochs 3 --bucket-rows 320 data.jsonl" in answer["patch"]


@pytest.mark.long
def test_that_an_exception_of_the_folder_tells_its_cause(home: Path, tmp_path: Path) -> None:
    """No pattern knows the message; the type, raised in the framework's code, does."""
    answer = _explained(EMPTY, home, tmp_path)
    assert answer["cause"] == "toy-shelf-empty"


def test_that_the_folders_pattern_finds_its_line_and_the_numbers_in_it() -> None:
    """The quick half of the rule: the folder's own table reads the folder's own log."""
    table = log_patterns.load(TOY)
    report = Reader(table).read(from_text(OVERFLOW))
    assert report.root is not None
    assert (report.root.pattern, report.root.line) == ("toytrain.bucket-overflow", OVERFLOW.count("\n"))
    assert table.by_id[report.root.pattern].cause in {cause.id for cause in read_causes(TOY / "causes.yaml")}


def test_that_without_the_folder_nobody_knows_the_cause(triage: Triage) -> None:
    answer = explained(triage, OVERFLOW, ConfigFile("run.sh", SCRIPT))
    assert answer.cause not in ("toy-bucket-overflow", "toy-shelf-empty")
    assert answer.changes == ()


@pytest.mark.long
def test_that_the_checks_of_the_corpus_take_in_the_folder(tmp_path: Path) -> None:
    """`whycrash corpus lint` finds a case whose setting is in no catalogue."""
    done = _whycrash(tmp_path, str(TOY), "corpus", "lint")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    own = tmp_path / "own"
    case = own / "cases" / "toytrain" / "bucket.md"
    case.parent.mkdir(parents=True)
    case.write_text((TOY / "cases" / "toytrain" / "bucket.md").read_text(encoding="utf-8"), encoding="utf-8")
    done = _whycrash(tmp_path, str(own), "corpus", "lint")
    assert done.returncode != 0
    assert "toytrain/bucket" in done.stdout + done.stderr


def _explained(log: str, home: Path, folder: Path) -> dict[str, Any]:
    (folder / "job.log").write_text(log, encoding="utf-8")
    (folder / "run.sh").write_text(SCRIPT, encoding="utf-8")
    done = _whycrash(
        home, str(TOY), "explain", str(folder / "job.log"), "--config", str(folder / "run.sh"), "--json"
    )
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _whycrash(home: Path, knowledge: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as its users do; what it reads is kept by the process, so each has its own."""
    return subprocess.run(
        [sys.executable, "-m", "ui.cli.main", *words],
        env={
            **os.environ,
            KNOWLEDGE: knowledge,
            "WHYCRASH_HOME": str(home),
            "WHYCRASH_EMBEDDING_MODEL": "hash",
            "WHYCRASH_LANG": "en",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
