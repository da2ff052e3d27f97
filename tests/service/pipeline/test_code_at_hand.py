"""Jobs whose code lies on the machine: really run, their tracebacks read beside the files that raised."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ingest.logs.inputs import sources
from ingest.source_code.source_roots import given_roots
from service.composition.diagnosis_view import diagnosis_view, statement_words
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from tests.tables import each_row
from tests.waiting import PATIENCE

HEAD = "class Config:\n    def __init__(self, **given):\n        self.__dict__.update(given)\n\n"


@dataclass(frozen=True)
class Job:
    """A package with a check, the script that trips it, and the settings that it is started with."""

    check: str
    given: str
    launch: str
    package: str = "vllm"

    def run(self, folder: Path) -> str:
        """Run it; gives its traceback."""
        package = folder / "site-packages" / self.package
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "checks.py").write_text(HEAD + self.check)
        (folder / "job").mkdir()
        called = f"from {self.package}.checks import Config, check\ncheck(Config({self.given}))\n"
        (folder / "job" / "serve.py").write_text(called)
        ended = subprocess.run(
            [sys.executable, "serve.py"],
            cwd=folder / "job",
            env={"PYTHONPATH": str(folder / "site-packages")},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert ended.returncode == 1, ended.stderr
        return ended.stderr


def answered(triage: Triage, job: Job, log: str, folder: Path | None) -> Diagnosis:
    """Explain a job's log, with the folder of its packages at hand or without."""
    files = [ConfigFile("run.sh", f"{job.launch}\n")]
    read = triage.read(sources.from_text(log), "en", files)
    return triage.diagnose(replace(read, roots=given_roots([folder]) if folder else None)).first


DIVIDED = Job(
    "def check(config):\n"
    "    if config.heads % config.tensor_parallel_size != 0:\n"
    "        raise ValueError(f'Invalid configuration: {config.heads} heads in'\n"
    "                         f' {config.tensor_parallel_size} shards')\n",
    "heads=32, tensor_parallel_size=3",
    "vllm serve some/model --tensor-parallel-size 3",
)
BOUNDED = Job(
    "def check(config):\n"
    "    limit = config.positions\n"
    "    if config.max_model_len > limit:\n"
    "        raise ValueError(f'Invalid configuration: {config.max_model_len} and {limit}')\n",
    "positions=4096, max_model_len=9000",
    "vllm serve some/model --max-model-len 9000",
)
ASSERTED = Job(
    "def check(config):\n"
    "    assert config.max_num_seqs <= config.slots, \\\n"
    "        f'Invalid configuration: {config.max_num_seqs} in {config.slots}'\n",
    "slots=16, max_num_seqs=20",
    "vllm serve some/model --max-num-seqs 20",
)
OWN = Job(
    "def check(config):\n"
    "    rest = config.rows % config.parts\n"
    "    if rest:\n"
    "        raise ValueError('Invalid configuration: %d rows in %d parts' % (config.rows, config.parts))\n",
    "rows=100, parts=8",
    "python serve.py --rows 100 --parts 8",
    package="mylib",
)


@each_row(
    ("job", "key", "value"),
    [
        (DIVIDED, "--tensor-parallel-size", 2),
        (BOUNDED, "--max-model-len", 4096),
        (ASSERTED, "--max-num-seqs", 16),
        (OWN, "--rows", 96),
    ],
    ids=["divided", "bounded", "asserted", "own"],
)
def test_the_check_that_raised_proves_the_first_change(
    job: Job, key: str, value: object, triage: Triage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The numbers of the message, put into the check, say which value of the job's setting passes it."""
    folder = tmp_path_factory.mktemp("job")
    log = job.run(folder)
    found = answered(triage, job, log, folder / "site-packages")
    first = found.changes[0]
    assert (first.key, first.to, first.purpose) == (key, value, "cure")
    assert first.proof
    assert str(value) in first.proof
    without = answered(triage, job, log, None)
    assert not any(change.to == value and change.proof for change in without.changes)
    assert without.statements == ()


def test_a_statement_is_shown_with_what_led_to_it(triage: Triage, tmp_path: Path) -> None:
    """The answer tells place, statement and conditions in the reader's language, and the settings read."""
    log = DIVIDED.run(tmp_path)
    found = answered(triage, DIVIDED, log, tmp_path / "site-packages")
    (failing,) = found.statements
    assert failing.statement.startswith("raise ValueError(")
    assert failing.conditions == ("config.heads % config.tensor_parallel_size != 0",)
    assert failing.settings == ("tensor_parallel_size",)
    rows = statement_words(diagnosis_view(found).statements[0], "en")
    assert rows[0].startswith(f"vllm/checks.py:{failing.source_line}: raise")
    assert rows[1] == "only if: config.heads % config.tensor_parallel_size != 0"
    assert statement_words(failing, "zh")[1].startswith("仅当")


def test_a_file_of_another_version_changes_nothing(triage: Triage, tmp_path: Path) -> None:
    """Where the package was changed since the run, it is said so, and the answer is as without it."""
    log = BOUNDED.run(tmp_path)
    file = tmp_path / "site-packages" / "vllm" / "checks.py"
    file.write_text(f"# a row more\n{file.read_text()}")
    found = answered(triage, BOUNDED, log, tmp_path / "site-packages")
    without = answered(triage, BOUNDED, log, None)
    assert [read.standing for read in found.statements] == ["other-version"]
    assert "another version" in statement_words(found.statements[0], "en")[0]
    assert (found.cause, found.changes) == (without.cause, without.changes)


def test_a_number_that_is_another_proves_nothing(triage: Triage, tmp_path: Path) -> None:
    """Where the job sets another value than the check saw, the setting is not what the check read."""
    log = BOUNDED.run(tmp_path)
    other = replace(BOUNDED, launch="vllm serve some/model --max-model-len 4000")
    found = answered(triage, other, log, tmp_path / "site-packages")
    assert not any(change.proof for change in found.changes)


def test_the_jobs_own_code_at_hand_leads_to_its_option(triage: Triage, tmp_path: Path) -> None:
    """The job's own files are followed as those of --config are, from the failing statement to the option."""
    script = (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--weights', default='w.pt')\nargs = parser.parse_args()\n\n\n"
        "def load(place):\n    return open(place)\n\n\nload(args.weights)\n"
    )
    (tmp_path / "train.py").write_text(script)
    ended = subprocess.run(
        [sys.executable, str(tmp_path / "train.py"), "--weights", "missing/w.pt"],
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    job = Job("", "", "python train.py --weights missing/w.pt")
    found = answered(triage, job, ended.stderr, tmp_path)
    assert found.statements[0].statement == "return open(place)"
    assert found.changes[0].key == "--weights"
