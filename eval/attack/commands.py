"""Attacks on somebody who runs a command in a folder, or on a file, that somebody else made."""

from __future__ import annotations

import os
from pathlib import Path

from eval.attack.hostile_files import FILES, written
from eval.attack.hostile_folder import RAN, fill_folder, listening
from eval.attack.target import LOG, Attack, Target

# Seconds of a core until a device or a pipe is refused.
_MOST_CPU = 60.0
# Misuse, as the command line tells it.
_MISUSE = 2


def _settings_beside_a_log(target: Target) -> str:
    """Run commands in a folder whose settings name a model, addresses, a variable with a key, and paths."""
    folder = target.folder / "hostile"
    with listening() as trap:
        log = fill_folder(folder, trap.address, LOG)
        ended = target.command("explain", log.name, "--json", cwd=folder)
        target.command("explain", log.name, "--show-prompt", cwd=folder)
        target.command("snapshot", cwd=folder)
    fell = [f"{len(trap.calls)} calls to the attacker's address"] if trap.calls else []
    fell += [name for name in ("home", RAN) if (folder / name).exists()]
    fell += ["the log was not explained"] if ended.returncode or "gpu-oom" not in ended.stdout else []
    return ", ".join(fell)


def _no_plain_files(target: Target) -> str:
    """Have `explain` read devices, a pipe that nobody writes to, nothing, and a file that never ends."""
    pipe = target.folder / "pipe"
    os.mkfifo(pipe)
    loop = target.folder / "loop"
    loop.symlink_to(loop)
    fell = []
    for name in (
        "/dev/zero",
        "/dev/urandom",
        "/dev/null",
        "/dev/tty",
        str(pipe),
        str(loop),
        "",
        "/proc/self/mem",
    ):
        before = os.times()
        ended = target.command("explain", name)
        if ended.returncode != _MISUSE or "Traceback (most recent" in ended.stderr:
            fell.append(f"{name!r}: exit {ended.returncode}")
        after = os.times()
        took = after.children_user + after.children_system - before.children_user - before.children_system
        if took > _MOST_CPU:
            fell.append(f"{name!r} took {took:.0f} seconds of a core")
    return ", ".join(fell)


def _hostile_files(target: Target) -> str:
    """Have `explain` read archives, pickles, floods, nests, bombs and odd names."""
    folder = target.folder / "files"
    folder.mkdir()
    ends = {"failure": 0, "unknown": 3, "refused": _MISUSE}
    fell = []
    for hostile in FILES:
        written(folder, hostile)
        ended = target.command("explain", "--", hostile.name, cwd=folder)
        if ended.returncode != ends[hostile.ends] or "Traceback (most recent" in ended.stderr:
            fell.append(f"{hostile.name!r}: exit {ended.returncode}")
    names = {hostile.name for hostile in FILES}
    fell += [f"{path.name!r} was made" for path in folder.iterdir() if path.name not in names]
    return ", ".join(fell)


def _homes_that_take_nothing(target: Target) -> str:
    """Use a home that is a file, and one that cannot be made."""
    (target.folder / "file").write_text("no folder", encoding="utf-8")
    (target.folder / "job.log").write_text(LOG, encoding="utf-8")
    fell = []
    for home in (str(target.folder / "file"), "/proc/nowhere"):
        for words in (("explain", "job.log"), ("keys", "list"), ("ingest",)):
            ended = target.command(*words, HOME=home)
            if "Traceback (most recent" in ended.stderr or ended.returncode != _MISUSE:
                fell.append(f"{words[0]} with {Path(home).name}: exit {ended.returncode}")
    return ", ".join(fell)


ATTACKS = (
    Attack("Settings and modules beside a log", _settings_beside_a_log),
    Attack("What is no plain file", _no_plain_files),
    Attack("Files made to break their reader", _hostile_files),
    Attack("Homes that take nothing", _homes_that_take_nothing),
)
