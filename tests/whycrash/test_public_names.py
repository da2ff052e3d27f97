"""`import whycrash`, as a program of a user's own does it: real triage, with the embedder that needs no
model.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import whycrash
from ingest.errors import MissingInputError
from service.api.client import Client
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis, Outcome
from service.schemas.errors import SettingsError
from tests.service.llm.answering import asked, faithful
from tests.service.llm.scripted import Turn, serving
from tests.tables import each_row
from tests.waiting import PATIENCE
from tests.warm import INCIDENTS, ROOT, script, triage, warm
from whycrash.local import explain

__all__ = ["triage", "warm"]

FOLDER = INCIDENTS / "w-easyr1-offload-host-ram"
LOG = FOLDER / "log.txt"
CAUSE = "cpu-offload-pressure"
# What a start of Python must not wait for.
HEAVY = {"corpus", "ingest", "service", "eval", "ui", "pydantic", "httpx", "yaml", "hyperscan", "numpy"}


@pytest.fixture(autouse=True)
def _settings(warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHYCRASH_HOME", str(warm))
    monkeypatch.setenv("WHYCRASH_EMBEDDING_MODEL", "hash")


def test_that_the_package_run_as_a_program_is_the_command() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "whycrash", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "COMMAND" in told.stdout


def test_importing_the_package_loads_nothing() -> None:
    """The first name that is used pays for what it needs, not the import."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, whycrash; dir(whycrash); print(*{name.partition('.')[0] for name in sys.modules})",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "whycrash" in told.stdout.split()
    assert HEAVY & set(told.stdout.split()) == set()


@each_row(
    "name, meant", [("explain", explain), ("Client", Client), ("Diagnosis", Diagnosis), ("Outcome", Outcome)]
)
def test_a_public_name_is_the_one_of_its_module(name: str, meant: object) -> None:
    """There is one of each, whichever way it is imported."""
    assert getattr(whycrash, name) is meant
    assert name in whycrash.__all__
    assert name in dir(whycrash)


def test_another_name_is_not_there() -> None:
    """A misspelt name fails as of any module."""
    with pytest.raises(AttributeError, match="explian"):
        getattr(whycrash, "explian")  # noqa: B009 - a name that mypy must not see


@each_row(
    "log",
    [LOG, [LOG], FOLDER, LOG.read_text(encoding="utf-8")],
    ids=["a file", "several", "a folder", "a text"],
)
def test_a_log_is_explained(log: Any) -> None:
    """A path is read, a text is taken as it is."""
    answer = whycrash.explain(log, language="en")
    assert isinstance(answer, Diagnosis)
    assert (answer.verdict, answer.cause) == ("diagnosed", CAUSE)


def test_a_patch_is_of_the_named_configuration() -> None:
    """One path or several are taken."""
    one = whycrash.explain(LOG, config=FOLDER / "run.sh")
    several = whycrash.explain(LOG, config=[FOLDER / "run.sh"])
    assert one.patch
    assert "--- a/run.sh" in one.patch
    assert several.patch == one.patch


def test_the_answer_is_in_the_language_asked_for() -> None:
    """Also where the log is in another one."""
    assert any("一" <= char <= "鿿" for char in whycrash.explain(LOG, language="zh").headline)


def test_how_the_job_ended_counts() -> None:
    """A silent log of a job that was killed is no good end."""
    steps = "\n".join(f"step {number}: loss 0.{number}" for number in range(1, 9))
    assert whycrash.explain(steps).verdict == "no-failure"
    killed = whycrash.explain(steps, outcome=whycrash.Outcome(state="OOMKilled"))
    assert killed.verdict != "no-failure"
    assert killed.outcome
    assert killed.outcome.state == "OOMKilled"


def test_a_configured_model_is_asked_unless_told_not_to(
    triage: Triage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words stand in the answer, under its name."""
    answer = faithful(asked(triage))
    with serving([Turn(json.dumps(answer))]) as server:
        for name, value in {
            "MODEL": "openai:scripted",
            "MODEL_BASE_URL": server.url,
            "MODEL_DEADLINE": str(PATIENCE),
            "MODEL_KEY_ENV": "SCRIPTED_KEY",
        }.items():
            monkeypatch.setenv(f"WHYCRASH_{name}", value)
        monkeypatch.setenv("SCRIPTED_KEY", "any")
        assert (
            whycrash.explain(LOG, config=script(FOLDER.name), language="en", model=False).engine.name
            == "composer"
        )
        assert server.calls == []
        spoken = whycrash.explain(LOG, config=script(FOLDER.name), language="en")
    assert spoken.engine.name == "openai:scripted"
    assert spoken.engine.model_explanation == answer["explanation"]


@each_row(
    "given, error, says",
    [
        ({"log": "train.log"}, MissingInputError, "Path('train.log')"),
        ({"log": Path("train.log")}, MissingInputError, "train.log"),
        ({"log": LOG, "config": Path("none.sh")}, MissingInputError, "none.sh"),
        ({"log": LOG, "language": "fr"}, ValueError, "fr"),
    ],
)
def test_what_cannot_be_explained_is_told(given: dict[str, Any], error: type[Exception], says: str) -> None:
    """Above all a path in quotes, which would else be answered as a log of one word."""
    with pytest.raises(error) as told:
        whycrash.explain(**given)
    assert says in str(told.value)


def test_a_wrong_setting_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings are those of the command, and are read at each call."""
    monkeypatch.setenv("WHYCRASH_LANG", "fr")
    with pytest.raises(SettingsError):
        whycrash.explain(LOG)


def test_threads_may_ask_at_once() -> None:
    """Each gets the answer to its own log."""
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda log: whycrash.explain(log).cause, [LOG, "step 1: loss 0.1\nstep 2: loss 0.2"] * 4)
        )
    assert found == [CAUSE, None] * 4
