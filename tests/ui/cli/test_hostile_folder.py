"""Commands run in a folder that somebody else wrote: its files send nothing, name nothing and run nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eval.attack.hostile_folder import LOG, RAN, fill_folder, listening
from service.schemas.diagnosis import Diagnosis
from tests.service.batches.jobs import home_at
from tests.service.llm.scripted import Turn, serving
from tests.ui.cli.test_explain_model import configured
from tests.ui.shell import EXPLAINED, KILLED, MISUSE, Ended, surroundings, whycrash
from tests.waiting import PATIENCE

# As the installed command runs: without the current folder among the places that Python imports from.
COMMAND = (sys.executable, "-P", "-m", "ui.cli.main")
OWN = "key-of-the-user-only"


def hostile(folder: Path, address: str) -> Path:
    """Fill a folder for a job whose process was killed; gives the log."""
    return fill_folder(folder, address, f"step:1 - actor/pg_loss:0.1\n{KILLED}\n")


def ran(home: Path, folder: Path, *words: str | Path, **environment: str) -> Ended:
    """Run a command in a folder."""
    made = surroundings(home, SOMEBODYS_KEY=OWN, **environment)
    ended = subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=folder,
        input=b"",
        capture_output=True,
        check=False,
        timeout=PATIENCE,
        env=made,
    )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("explain", LOG, "--json"), marks=pytest.mark.long),
        ("explain", LOG, "--telemetry", "live", "--json"),
        pytest.param(("batch", LOG, "--workers", "1", "--out", "r.jsonl"), marks=pytest.mark.long),
    ],
)
def test_a_hostile_folder_is_read_and_nothing_of_it_obeyed(
    words: tuple[str, ...], warm: Path, tmp_path: Path
) -> None:
    """The log is explained.

    No connection is made, no key shown, no module run, and each setting is named as ignored.
    """
    with listening() as trap:
        log = hostile(tmp_path / "job", trap.address)
        # A batch is kept in its home, and the warm one is everybody's.
        ended = ran(home_at(tmp_path / "home", warm), log.parent, *words)
    assert ended.code == EXPLAINED, ended
    assert trap.calls == []
    assert OWN not in ended.out + ended.err
    assert not (log.parent / RAN).exists()
    assert not (log.parent / "home").exists()
    assert (
        "whycrash.toml in this folder sets `model`, which only your environment or"
        in " ".join(ended.err.split())
        or "more of its settings are ignored" in ended.err
    )


@pytest.mark.long
def test_an_index_is_built_without_the_folders_env_file(tmp_path: Path) -> None:
    """The vector store reads a `.env` of its own.

    That of the folder neither breaks the import nor names a collector.
    """
    with listening() as trap:
        log = hostile(tmp_path / "job", trap.address)
        ended = ran(tmp_path / "fresh", log.parent, "explain", LOG, "--json")
    assert ended.code == EXPLAINED, ended
    assert Diagnosis.model_validate_json(ended.out).verdict == "diagnosed"
    assert trap.calls == []


@pytest.mark.long
def test_the_users_own_model_is_asked_in_a_hostile_folder_and_nobody_else(warm: Path, tmp_path: Path) -> None:
    """With a model of the user's, the prompt goes there alone."""
    with listening() as trap, serving([Turn("{}"), Turn("{}")]) as server:
        log = hostile(tmp_path / "job", trap.address)
        ended = ran(warm, log.parent, "explain", LOG, "--json", **configured(server))
    assert (ended.code, len(server.calls) > 0, trap.calls) == (EXPLAINED, True, [])
    assert OWN not in str(server.headers)


@pytest.mark.long
def test_a_folders_file_counts_once_its_reader_has_allowed_it(warm: Path, tmp_path: Path) -> None:
    """Not by itself, not after a no, then yes; and no longer after one byte more."""
    home = home_at(tmp_path / "home", warm)
    with serving([Turn("{}")] * 4) as server:
        (job := tmp_path / "job").mkdir()
        (job / "train.log").write_text(f"step:1 - actor/pg_loss:0.1\n{KILLED}\n", encoding="utf-8")
        file = job / "whycrash.toml"
        rows = (
            f'model = "openai:x"\nmodel_base_url = "{server.url}"\ndatabase = "postgresql://a:hunter22@b/c"\n'
        )
        file.write_text(rows, encoding="utf-8")

        def asked() -> tuple[bool, str]:
            before = len(server.calls)
            ended = whycrash(home, "explain", "train.log", "--json", folder=job)
            assert ended.code == EXPLAINED, ended
            return len(server.calls) > before, ended.err

        was_asked, told = asked()
        assert not was_asked
        assert "`whycrash allow whycrash.toml` lets it set all of this" in told
        refused = whycrash(home, "allow", "whycrash.toml", folder=job, given=b"\n")
        assert f"model_base_url = {server.url}" in refused.out
        assert "hunter22" not in refused.out
        assert not asked()[0]
        whycrash(home, "allow", "whycrash.toml", folder=job, given=b"y\n")
        assert asked() == (True, "")
        assert whycrash(home, "allow").out == f"{file}\n"
        file.write_text(f"{rows}#", encoding="utf-8")
        was_asked, told = asked()
        assert not was_asked
        assert "was allowed, and has changed since then" in told
        assert "changed since" in whycrash(home, "allow").out
        assert whycrash(home, "allow", "--forget", file).code == EXPLAINED
        assert whycrash(home, "allow", "--forget", file).code == MISUSE
        assert whycrash(home, "allow").out == "No file of settings is allowed.\n"
