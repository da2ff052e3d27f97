"""`whycrash init`, `hook` and `completion`: what installs the command for a user, a cluster and a shell."""

from __future__ import annotations

import re
import shlex
import stat
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from service.settings import Settings, read
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, KILLED, said, surroundings, whycrash
from tests.waiting import PATIENCE
from tests.warm import ROOT
from ui.cli.completion import SHELLS
from ui.cli.hook import hooks
from ui.cli.init import commented_settings

# Servers and processes of their own: `make test-all` runs them.
pytestmark = pytest.mark.long

FAILS = f"print('step 1', flush=True); print({KILLED!r}, flush=True); raise SystemExit(7)"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs with `whycrash` in it, as an installation leaves it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    # As the installed script begins; its name is what a shell completes.
    begins = "import sys; from ui.cli.main import main; sys.argv[0] = 'whycrash'; main()"
    placed(folder / "whycrash", f'exec {shlex.quote(sys.executable)} -c "{begins}" "$@"')
    return folder


def placed(path: Path, line: str) -> None:
    """Write a program of one line."""
    path.write_text(f"#!/bin/bash\n{line}\n")
    path.chmod(0o755)


def ran(script: Path, programs: Path, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script with the folder of programs before all others."""
    environment = surroundings(home, **more)
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    return subprocess.run(
        ["bash", str(script)], env=environment, capture_output=True, check=False, text=True, timeout=PATIENCE
    )


def part(place: str, number: int, programs: Path, home: Path) -> str:
    """Give the lines of one part of a hook as they are printed."""
    path = f"{programs}:{surroundings(home)['PATH']}"
    ended = whycrash(home, "hook", place, PATH=path)
    assert ended.code == EXPLAINED
    blocks = ended.out.split("\n\n")
    return blocks[number].split("\n", 1)[1]


def test_that_a_batch_script_with_the_printed_line_is_explained(
    warm: Path, tmp_path: Path, programs: Path
) -> None:
    """The script runs once, its output and exit status are its own, and the answer follows."""
    script = tmp_path / "job.sbatch"
    line = part("slurm", 1, programs, warm)
    script.write_text(
        f"#!/bin/bash\n#SBATCH -N 1\n{line}\n{shlex.quote(sys.executable)} -c {shlex.quote(FAILS)}\n"
    )
    ended = ran(script, programs, warm)
    assert (ended.returncode, ended.stdout.count("step 1")) == (7, 1)
    assert "ray-memory-monitor-kill" in ended.stdout + ended.stderr


@each_row(("status", "answered"), [("7:0", "exit code 7"), ("0:9", "SIGKILL"), ("0:0", "")])
def test_that_the_printed_epilog_explains_a_job_that_failed(
    status: str, answered: str, warm: Path, tmp_path: Path, programs: Path
) -> None:
    """By the output that Slurm names; a job that ended well leaves nothing."""
    log = tmp_path / "slurm-7.out"
    log.write_text(f"step 1\n{KILLED}\n")
    # As `scontrol show job -o` of Slurm writes a job: one row of NAME=VALUE.
    placed(
        programs / "scontrol",
        f'echo "JobId=$4 JobName=train StdErr={log} StdIn=/dev/null StdOut={log} Power="',
    )
    epilog = tmp_path / "epilog"
    epilog.write_text(part("slurm", 2, programs, warm))
    ended = ran(epilog, programs, warm, SLURM_JOB_ID="7", SLURM_JOB_EXIT_CODE2=status)
    assert (ended.returncode, ended.stderr) == (0, "")
    told = Path(f"{log}.whycrash.txt")
    assert told.exists() == bool(answered)
    assert not answered or (answered in told.read_text() and "ray-memory-monitor-kill" in told.read_text())


def test_that_every_hook_is_told_in_both_languages_without_an_open_blank(warm: Path) -> None:
    for place, hook in hooks().items():
        english, chinese = (whycrash(warm, "hook", place, "--lang", lang).out for lang in ("en", "zh"))
        assert hook.says.to("en") in english
        assert hook.says.to("zh") in chinese
        assert "{whycrash}" not in english + chinese
        assert "whycrash" in english


def test_that_an_unknown_place_and_shell_are_refused_by_name(warm: Path) -> None:
    assert "slurm, torchrun, ray, kubernetes" in said(whycrash(warm, "hook", "cron"))
    assert "bash, zsh, fish" in said(whycrash(warm, "completion", "cmd"))


def test_that_the_settings_are_written_once_for_their_user_alone(warm: Path, tmp_path: Path) -> None:
    """A file that is there is nobody's to write over; `--print` shows what a fresh one would say."""
    there = {"XDG_CONFIG_HOME": str(tmp_path)}
    file = tmp_path / "whycrash" / "whycrash.toml"
    assert str(file) in whycrash(warm, "init", **there).out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("lang = 'zh'\n")
    assert str(file) in said(whycrash(warm, "init", **there))
    assert file.read_text() == "lang = 'zh'\n"
    assert "#lang = " in whycrash(warm, "init", "--print", **there).out


def test_that_all_settings_stand_there_as_comments_that_can_be_taken_away(tmp_path: Path) -> None:
    """As written it sets nothing; with every line uncommented it sets the defaults."""
    text = commented_settings()
    assert tomllib.loads(text) == {}
    bare = re.sub(r"^#(?=\w+ = )", "", text, flags=re.MULTILINE)
    assert tomllib.loads(bare).keys() == {item.name for item in fields(Settings)}
    file = tmp_path / "whycrash.toml"
    file.write_text(bare)
    file.chmod(0o600)
    assert read({}, own=file, folder=tmp_path / "none").settings == Settings()


def test_that_bash_completes_commands_options_and_places(warm: Path, tmp_path: Path, programs: Path) -> None:
    """By the printed script, in a real shell."""
    for shell in SHELLS:
        assert "_WHYCRASH_COMPLETE" in whycrash(warm, "completion", shell).out
    asked = {"expl": "explain", "explain --ful": "--full", "hook tor": "torchrun", "completion fi": "fish"}
    rows = [
        f"COMP_WORDS=(whycrash {words}); COMP_CWORD={len(words.split())}; _whycrash_completion whycrash; "
        'echo "${COMPREPLY[@]}"'
        for words in asked
    ]
    script = tmp_path / "ask"
    script.write_text("\n".join([whycrash(warm, "completion", "bash").out, f"cd {ROOT}", *rows]))
    assert ran(script, programs, warm).stdout.split() == list(asked.values())
