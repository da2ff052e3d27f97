"""`whycrash run`: the job does not notice, and neither does whoever reads its output.

When it fails, it is explained.
"""

from __future__ import annotations

import hashlib
import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from tests.ui.fork_server import server
from tests.waiting import PATIENCE, until

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 79.10 GiB of which 1.00 GiB is free."
)
FAILS = f"import sys; print('step 1', flush=True); print({OOM!r}, file=sys.stderr); sys.exit(7)"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def environment(warm: Path) -> dict[str, str]:
    """An environment with a home that is ready."""
    return {**os.environ, "WHYCRASH_HOME": str(warm), "WHYCRASH_EMBEDDING_MODEL": "hash", "NO_COLOR": "1"}


Run = Callable[..., subprocess.CompletedProcess[bytes]]


def words(command: Sequence[str], *options: str) -> list[str]:
    """Give the command line of a job under `whycrash run`."""
    return [sys.executable, "-m", "ui.cli.main", "run", "--telemetry-every", "0", *options, "--", *command]


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    """Run a job and wait for it."""

    def made(command: Sequence[str], *options: str, **how: object) -> subprocess.CompletedProcess[bytes]:
        if how.keys() <= {"input"}:
            given = how.get("input", b"")
            return server().run(words(command, *options)[3:], environment, ROOT, given)  # type: ignore[arg-type]
        return subprocess.run(
            words(command, *options),
            env=environment,
            cwd=ROOT,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            **how,
        )  # type: ignore[call-overload, no-any-return]

    return made


def python(code: str) -> list[str]:
    """Give a job that runs Python code."""
    return [sys.executable, "-c", code]


@pytest.mark.long
def test_that_output_passes_byte_for_byte_and_the_streams_stay_apart(run: Run) -> None:
    raw = bytes(range(256)) * 10 + b"\x1b[31mred\x1b[0m\r50%\r100% no line end"
    code = (
        f"import sys; sys.stdout.buffer.write({raw!r}); sys.stdout.flush(); "
        f"sys.stderr.buffer.write({raw[::-1]!r})"
    )
    done = run(python(code))
    assert (done.returncode, done.stdout, done.stderr) == (0, raw, raw[::-1])


@pytest.mark.long
def test_that_a_hundred_megabytes_pass_whole(environment: dict[str, str], tmp_path: Path) -> None:
    code = "import sys\nfor n in range(1_000_000): sys.stdout.write(f'{n:099d}\\n')"
    sums = []
    for command in (python(code), words(python(code))):
        with (tmp_path / "out").open("wb") as out:
            subprocess.run(command, env=environment, cwd=ROOT, stdout=out, check=True, timeout=PATIENCE)
        with (tmp_path / "out").open("rb") as out:
            sums.append(hashlib.file_digest(out, "sha256").hexdigest())
    assert sums[0] == sums[1]


def test_that_order_is_kept_where_both_streams_go_to_one_place(
    environment: dict[str, str], tmp_path: Path
) -> None:
    code = "import os\nfor n in range(2000): os.write(1 + n % 2, b'%d\\n' % n)"
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(
            words(python(code)),
            env=environment,
            cwd=ROOT,
            stdout=out,
            stderr=out,
            check=True,
            timeout=PATIENCE,
        )
    assert (tmp_path / "out").read_bytes() == b"".join(b"%d\n" % n for n in range(2000))


def test_that_a_failed_job_is_explained_on_standard_error_after_its_own_output(
    run: Run, tmp_path: Path
) -> None:
    done = run(python(FAILS), "--out", str(tmp_path / "d.json"))
    assert done.returncode == 7
    assert done.stdout == b"step 1\n"
    told = done.stderr.decode()
    assert told.startswith(OOM)
    assert "exit code 7" in told
    diagnosis = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))
    assert diagnosis["evidence"][0]["line"] == 2
    assert diagnosis["headline"] in told.replace("\n", " ")


def test_that_options_of_the_job_are_its_own(run: Run) -> None:
    done = run([*python("import sys; print(sys.argv[1:])"), "--config", "x", "--lang", "zh", "-v"])
    assert done.stdout.strip() == b"['--config', 'x', '--lang', 'zh', '-v']"


def test_that_standard_input_reaches_the_job(run: Run) -> None:
    assert run(["cat"], input=b"words\0" * 1000).stdout == b"words\0" * 1000


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_that_a_job_killed_by_a_signal_is_seen_as_killed_by_it(run: Run, number: signal.Signals) -> None:
    done = run(python(f"import os; os.kill(os.getpid(), {int(number)})"))
    assert done.returncode == -number
    assert f"killed by {number.name}" in done.stderr.decode()


@pytest.mark.long
def test_that_signals_sent_to_us_reach_the_job(environment: dict[str, str]) -> None:
    code = (
        "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(42))\nprint('up', flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen(
        words(python(code)), env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 42


@pytest.mark.parametrize(("command", "code"), [("no-such-command-here", 127), ("/etc/passwd", 126)])
def test_that_a_job_that_cannot_start_ends_as_a_shell_says(run: Run, command: str, code: int) -> None:
    done = run([command])
    assert done.returncode == code
    assert command in done.stderr.decode()


def test_that_a_daemon_that_keeps_the_pipe_does_not_hold_us_and_may_print_on(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = "(while [ ! -e go ]; do sleep 0.1; done; echo late) & echo early"
    script, out = script.replace("go", str(tmp_path / "go")), tmp_path / "out"
    with out.open("wb") as stream:
        done = subprocess.run(
            words(["sh", "-c", script]),
            env=environment,
            cwd=ROOT,
            stdout=stream,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0
    assert out.read_bytes() == b"early\n"
    (tmp_path / "go").touch()
    until(lambda: out.read_bytes() != b"early\n", "the daemon prints on")
    assert out.read_bytes() == b"early\nlate\n"


@pytest.mark.long
def test_that_a_reader_that_leaves_ends_the_job_as_it_would(environment: dict[str, str]) -> None:
    script = f"{' '.join(words(['yes']))} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.stdout == b"y\n"
    assert done.returncode == 128 + signal.SIGPIPE


@pytest.mark.long
def test_that_a_full_disk_ends_the_copy_and_not_the_job(environment: dict[str, str]) -> None:
    """The limit on a file's size stands in for the disk; the job itself writes into a pipe."""
    code = (
        f"import sys\nfor n in range(300_000): sys.stdout.write(f'{{n:099d}}\\n')\nsys.stdout.flush(); "
        f"print({OOM!r}, file=sys.stderr); sys.exit(7)"
    )

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))

    done = subprocess.run(
        words(python(code)),
        env=environment,
        cwd=ROOT,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=limited,
    )
    assert done.returncode == 7
    assert len(done.stdout) == 300_000 * 100
    assert "copy of the job's output stopped" in " ".join(done.stderr.decode().split())


@pytest.mark.long
def test_that_a_healthy_run_leaves_templates_that_are_taken_away_from_a_failed_one(
    run: Run, tmp_path: Path
) -> None:
    good = tmp_path / "kept" / "good.templates"
    noise = (
        "print('[rank0]:[W TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=74): failed to "
        "recv, got 0 bytes')"
    )
    assert run(python(f"print('start')\n{noise}"), "--good", str(good)).returncode == 0
    assert good.stat().st_size > 0
    before = good.read_bytes()
    assert run(python(f"{noise}\n{FAILS}"), "--good", str(good)).returncode == 7
    assert good.read_bytes() == before


def test_that_a_service_that_is_down_changes_nothing_for_the_job(run: Run) -> None:
    done = run(python(FAILS), "--post", "http://127.0.0.1:9")
    assert done.returncode == 7
    assert "Nothing could be sent to 127.0.0.1" in " ".join(done.stderr.decode().split())


@pytest.mark.long
def test_that_how_a_silent_job_ended_is_in_its_answer(run: Run, tmp_path: Path) -> None:
    """A failed end is never `no-failure`, whether the job printed nothing or nothing of a failure.

    A good one is told nothing.
    """
    steps = "for i in 1 2 3; do echo step $i: loss 0.$i; done; "
    jobs = (
        ("kill -9 $$", -signal.SIGKILL, "SIGKILL", None),
        (f"{steps}kill -9 $$", -signal.SIGKILL, "SIGKILL", None),
        ("exit 3", 3, None, 3),
        (f"{steps}exit 3", 3, None, 3),
    )
    out = tmp_path / "answer.json"
    for job, code, killed_by, exit_code in jobs:
        done = run(["sh", "-c", job], "--out", str(out))
        answer = json.loads(out.read_text())
        assert (
            done.returncode,
            answer["verdict"],
            answer["outcome"]["signal"],
            answer["outcome"]["exit_code"],
        ) == (code, "unknown", killed_by, exit_code)
        assert "No failure" not in done.stderr.decode()
        assert str(killed_by or exit_code) in answer["headline"]
    assert run(["sh", "-c", f"{steps}exit 0"]).stderr == b""


@pytest.mark.long
def test_that_a_job_runs_also_where_no_copy_of_its_output_can_be_made(run: Run) -> None:
    def without_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = run(["sh", "-c", "echo up; exit 3"], preexec_fn=without_disk)
    assert (done.returncode, done.stdout) == (3, b"up\n")


@pytest.mark.long
@pytest.mark.parametrize("job", ["exit 7", "echo up; echo no >&2; exit 7"], ids=["silent", "loud"])
def test_that_the_exit_code_is_the_jobs_also_where_we_cannot_say_anything(
    environment: dict[str, str], job: str
) -> None:
    def exit_code(errors: IO[bytes] | int) -> int:
        return subprocess.run(
            words(["sh", "-c", job]),
            env=environment,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            timeout=PATIENCE,
            check=False,
        ).returncode

    with Path("/dev/full").open("wb") as full:
        assert exit_code(full) == 7
    read, write = os.pipe()
    os.close(read)
    told = exit_code(write)
    os.close(write)
    # A job that writes to nobody dies of it, as it would without us.
    assert told in ((7, -signal.SIGPIPE) if ">&2" in job else (7,))


@pytest.mark.long
def test_that_ctrl_c_in_the_explanation_leaves_the_jobs_exit_code(environment: dict[str, str]) -> None:
    job = subprocess.Popen(
        words(python(FAILS)), env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert job.stderr is not None
    while b"the job failed" not in job.stderr.readline():
        pass
    job.send_signal(signal.SIGINT)
    job.stderr.read()
    job.stderr.close()
    assert job.wait(timeout=PATIENCE) == 7


def test_that_what_the_job_leaves_behind_holds_no_copy_of_its_output(
    environment: dict[str, str], tmp_path: Path
) -> None:
    command = words(
        ["sh", "-c", "echo up; sleep 300 & echo $! > PID; exit 0".replace("PID", str(tmp_path / "pid"))]
    )
    job = subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert job.stdout is not None
    assert job.wait(timeout=PATIENCE) == 0

    def held() -> list[str]:
        return [target for pid in left(command) for target in files(pid)]

    until(
        lambda: held() and not [target for target in held() if "deleted" in target],
        "what is left holds no copy",
    )
    os.kill(int((tmp_path / "pid").read_text(encoding="ascii")), signal.SIGKILL)
    job.stdout.close()


def left(command: Sequence[str]) -> list[int]:
    """Give the processes that still run a command."""
    wanted = b"\0".join(word.encode() for word in command)
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if wanted in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def files(pid: int) -> list[str]:
    """Give the files that a process has open."""
    return [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]


def at_terminal(
    command: Sequence[str], environment: dict[str, str], keys: bytes = b"", when: bytes = b""
) -> tuple[bytes, int]:
    """Run a command at a pseudo-terminal; type keys once it has printed `when`.

    Gives what it printed and its status.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(command[0], list(command), environment)  # noqa: S606 - our own command
    termios.tcsetwinsize(terminal, (30, 91))
    seen = b""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if keys and when in seen:
            os.write(terminal, keys)
            keys = b""
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    else:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return seen, os.waitstatus_to_exitcode(status)


def test_that_a_job_at_a_terminal_is_at_a_terminal(environment: dict[str, str]) -> None:
    code = "import os, sys; print([os.isatty(n) for n in range(3)], os.get_terminal_size().columns)"
    seen, status = at_terminal(words(python(code)), environment)
    assert seen.strip() == b"[True, True, True] 91"
    assert status == 0


@pytest.mark.long
def test_that_keys_reach_the_job_and_ctrl_c_ends_it(environment: dict[str, str]) -> None:
    seen, status = at_terminal(
        words(["sh", "-c", "echo up; cat; echo $COLUMNS over"]), environment, b"hello\r\x04", b"up"
    )
    assert b"hello\r\nhello" in seen
    assert b"over" in seen
    assert status == 0
    code = "import time; print('up', flush=True); time.sleep(60)"
    seen, status = at_terminal(words(python(code)), environment, b"\x03", b"up")
    assert b"KeyboardInterrupt" in seen
    assert status in (1, 130, -signal.SIGINT)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--config", "none.yaml"), "There is no file none.yaml."),
        (("--config", "tests"), "is a folder"),
        (("--lang", "fr"), "it takes en or zh"),
        (("--out", "none/here.json"), "cannot be written"),
        (("--post", "service.example"), "begins with http://"),
    ],
)
def test_that_an_option_that_cannot_be_is_refused_before_the_job(
    run: Run, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    """Found when the job has failed, it would cost the explanation of hours of work."""
    begun = tmp_path / "begun"
    done = run(["touch", str(begun)], *options)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert len(done.stderr.decode().strip().splitlines()) == 1
    assert not begun.exists()
