"""One job in namespaces of its own: loopback only, private /tmp, /home and /dev/shm, neutral paths."""

import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .cgroup import Cgroup, cgroup
from .experiment import Limits

HOST = "gpu-node-03"
HOME = "/home/user"
VENV = f"{HOME}/venv"
# What the job writes into this folder of its own is there after its end; all else of it is gone.
BESIDE = "beside"

# Runs as process 1 of the new namespaces. Everything the job may see is bound to its neutral place before
# /home, /root and /tmp are covered, because the originals often lie under one of them.
_ENTER = """
set -e
ip link set lo up
hostname "$LAB_HOST"
stage=$(mktemp -d /var/tmp/stage.XXXXXX)
mount -t tmpfs tmpfs "$stage"
mkdir "$stage/base" "$stage/venv" "$stage/job"
mount --bind "$LAB_BASE" "$stage/base"
mount --bind "$LAB_PREFIX" "$stage/venv"
mount --bind "$LAB_JOB" "$stage/job"
while IFS=: read -r folder place; do
  [ -z "$folder" ] || mount --bind "$folder" "$place"
done <<< "$LAB_COVERS"
mount -t tmpfs -o "mode=755,size=${LAB_DISK}m" tmpfs /home
mount -t tmpfs -o mode=755 tmpfs /root
mount -t tmpfs -o "mode=1777,size=${LAB_SCRATCH}m" tmpfs /tmp
mount -t tmpfs -o "mode=1777,size=${LAB_SHM}m" tmpfs /dev/shm
mkdir -p "$LAB_BASE" "$LAB_VENV" "$LAB_HOME/$LAB_PROJECT"
mount --bind "$stage/base" "$LAB_BASE"
mount --bind "$stage/venv" "$LAB_VENV"
cp -a "$LAB_VENV/bin" "$stage/bin"
# Console scripts name their interpreter by its place outside, which is covered here.
find "$stage/bin" -type f -size -64k -exec sed -i "1s|^#!.*/python[0-9.]*$|#!$LAB_VENV/bin/python|" {} +
mkdir -p /home/.bin && cp -a "$stage/bin/." /home/.bin
mount --bind /home/.bin "$LAB_VENV/bin" && rm -rf "$stage/bin"
cp -r "$stage/job/." "$LAB_HOME/$LAB_PROJECT"
if [ -d "$stage/job/$LAB_BESIDE" ]; then
  mount --bind "$stage/job/$LAB_BESIDE" "$LAB_HOME/$LAB_PROJECT/$LAB_BESIDE"
fi
chown -R 1000:1000 "$LAB_HOME/$LAB_PROJECT" && chown 1000:1000 "$LAB_HOME"
# Without its own name in here, gloo and the TCPStore wait on a resolver that nothing answers.
printf '127.0.0.1 localhost\n::1 localhost\n127.0.0.1 %s\n' "$LAB_HOST" > /home/.hosts
mount --bind /home/.hosts /etc/hosts
umount "$stage/base" "$stage/venv" "$stage/job"
umount "$stage" && rmdir "$stage"
cd "$LAB_HOME/$LAB_PROJECT"
"""


@dataclass(frozen=True)
class RunOutcome:
    """Keep what a run left: its output as bytes, its exit status, and whether it ran past its time."""

    output: bytes
    returncode: int
    timed_out: bool


def _environment(project: str, limits: Limits, group: Cgroup | None, job: Path) -> dict[str, str]:
    """Build the variables that `_ENTER` reads."""
    covers = group.covers if group else ()
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LAB_HOST": HOST,
        "LAB_BASE": sys.base_prefix,
        "LAB_PREFIX": sys.prefix,
        "LAB_JOB": str(job),
        "LAB_BESIDE": BESIDE,
        "LAB_COVERS": "\n".join(f"{folder}:{place}" for folder, place in covers),
        "LAB_DISK": str(limits.disk_mib),
        "LAB_SCRATCH": str(limits.scratch_mib),
        "LAB_SHM": str(limits.shm_mib),
        "LAB_VENV": VENV,
        "LAB_HOME": HOME,
        "LAB_PROJECT": project,
    }


def _job_command(launch: str, env: tuple[tuple[str, str], ...], limits: Limits) -> str:
    """Return the last line of the entry script: drop our variables and become the job."""
    own = {
        "HOME": HOME,
        "USER": "user",
        "PATH": f"{VENV}/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONUNBUFFERED": "1",
        "LANG": "C.UTF-8",
        **dict(env),
    }
    # bash as the parent and not exec: it prints "Killed" and "Segmentation fault" as a user's shell does.
    shell = ["bash", "-c", launch + "\nexit $?"]
    words = ["env", "-i", *(f"{name}={value}" for name, value in own.items()), *shell]
    if limits.user_processes is not None:
        words = [
            "prlimit",
            f"--nproc={limits.user_processes}",
            "setpriv",
            "--reuid=1000",
            "--regid=1000",
            "--clear-groups",
            *words,
        ]
    return "exec " + shlex.join(words)


def _argv(group: Cgroup | None, entry: str) -> list[str]:
    """Return the command that joins the cgroup, opens the namespaces and runs `entry` in them."""
    joins = [f"echo $$ > {shlex.quote(str(file))}" for file in (group.procs if group else ())]
    flags = ["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"]
    if os.getuid() != 0:
        flags.append("--map-root-user")
    # setpriv lets the job die with us even where we are killed and cannot clean up.
    unshare = shlex.join(["setpriv", "--pdeathsig", "KILL", "unshare", *flags, "bash", "-c", entry])
    return ["bash", "-c", "\n".join([*joins, f"exec {unshare}"])]


def run_job(
    job: Path, project: str, launch: str, env: tuple[tuple[str, str], ...], limits: Limits, timeout_s: int
) -> RunOutcome:
    """Run `launch` over a copy of the folder `job`, and end everything it started.

    Raises:
        CgroupUnavailableError: the limits need a cgroup and none can be made.

    """
    with cgroup(limits.memory_mib, limits.tasks) as group:
        argv = _argv(group, _ENTER + _job_command(launch, env, limits))
        # A file, not a pipe: leftover daemons that hold a pipe open would keep us waiting for its end.
        log = job.parent / "output"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=_environment(project, limits, group, job),
                start_new_session=True,
            )
            timed_out = _wait(process, timeout_s)
    return RunOutcome(log.read_bytes(), process.returncode, timed_out)


def _wait(process: "subprocess.Popen[bytes]", timeout_s: int) -> bool:
    """Wait for the end of the job; kill its group past the time limit and say so."""
    try:
        process.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return True
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return False
