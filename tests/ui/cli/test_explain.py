"""`whycrash explain`, from the shell: exit codes, streams, hostile and awkward input."""

from __future__ import annotations

import gzip
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from tests.service.pipeline.test_triage import LEAKS, OFFLOAD, leaked, secret_script
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, HEALTHY, KILLED, MISUSE, UNKNOWN, bash, said, whycrash
from tests.warm import BARE, EVERY, INCIDENTS, WRITE_UPS, answered, explained, script
from tests.warm import HEALTHY as HEALTHY_LOG
from ui.cli.answer import render

CODES = {"diagnosed": EXPLAINED, "ambiguous": EXPLAINED, "unknown": UNKNOWN, "no-failure": HEALTHY}


def log_of(name: str) -> Path:
    """Name an incident's log."""
    return INCIDENTS / name / "log.txt"


def written(folder: Path, content: bytes, name: str = "job.log") -> Path:
    """Write a file."""
    path = folder / name
    path.write_bytes(content)
    return path


def printed(answer: Diagnosis, width: int = 100, *, terminal: bool = False) -> str:
    """Print an answer as a person sees it."""
    console = Console(
        file=io.StringIO(),
        width=width,
        highlight=False,
        force_terminal=terminal,
        color_system="truecolor" if terminal else None,
    )
    render(answer, console, full=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@each_row(("name", "code"), [(WRITE_UPS[0], EXPLAINED), (BARE, UNKNOWN), (HEALTHY_LOG, HEALTHY)])
def test_the_exit_code_says_how_it_went(name: str, code: int, warm: Path) -> None:
    """0 explained, 3 unknown, 4 no failure: a script can go by it."""
    ended = whycrash(warm, "explain", log_of(name))
    assert ended.code == code
    assert ended.out.strip()


def test_the_json_is_the_contract(warm: Path) -> None:
    """Standard output holds one JSON object that validates, and nothing else."""
    name = "w-easyr1-offload-host-ram"
    ended = whycrash(warm, "explain", log_of(name), "--config", script(name), "--json", "--lang", "zh")
    answer = Diagnosis.model_validate_json(ended.out)
    assert json.loads(ended.out) == json.loads(answer.to_json())
    assert (ended.code, answer.cause, answer.source) == (EXPLAINED, "cpu-offload-pressure", str(log_of(name)))
    assert answer.patch
    assert ended.err == ""


@each_row(
    ("content", "told"),
    [
        (None, "no file"),
        (b"", "empty"),
        (b"\x7fELF" + bytes(2000), "program"),
        (bytes(4096), "not text"),
        (b"\x1f\x8b\x08\x00" + b"garbage" * 50, "gzip"),
        (b"\x1f\x8b", "gzip"),
        (b"PK\x03\x04" + bytes(100), "zip"),
        (b"\x89PNG\r\n", "image"),
    ],
)
def test_what_is_no_log_is_refused_with_a_sentence(
    content: bytes | None, told: str, warm: Path, tmp_path: Path
) -> None:
    """A missing, empty, binary or broken file ends with exit code 2 and says what it is."""
    path = tmp_path / "job.log"
    if content is not None:
        path.write_bytes(content)
    sentence = said(whycrash(warm, "explain", path))
    assert told in sentence
    assert str(path) in sentence


@each_row(
    ("words", "told"),
    [
        (["explain", "LOG", "--lang", "fr"], "--lang"),
        (["explain", "LOG", "--config", "/no/such/run.sh"], "/no/such/run.sh"),
        (["explain", "LOG", "--config", "."], "."),
        (["explain", "-"], "empty"),
    ],
)
def test_wrong_arguments_are_named(words: list[str], told: str, warm: Path) -> None:
    """What cannot be used is named, and the exit code is 2."""
    real = [str(log_of(BARE)) if word == "LOG" else word for word in words]
    assert told in said(whycrash(warm, *real))


@each_row(
    "content",
    [
        b"x" * 2_500_000 + b" " + KILLED.encode() + b" " + b"y" * 2_500_000,
        b"caf\xe9 \xc3\x28 \xff\xfe\n" + KILLED.encode() + b" \xf0\x9f\n",
        KILLED.encode("utf-16"),
        gzip.compress((KILLED + "\n").encode()),
        gzip.compress((KILLED + "\n" + "filler\n" * 5000).encode())[:-12],
        b"\xef\xbb\xbf" + KILLED.encode(),
        b"ok\r\n" + KILLED.encode() + b"\r\n",
        b"a\x00b\n" * 3 + KILLED.encode(),
    ],
    ids=[
        "5 MB on one line",
        "invalid UTF-8",
        "UTF-16",
        "gzip",
        "cut gzip",
        "byte order mark",
        "CRLF",
        "stray NULs",
    ],
    quick=4,
)
def test_awkward_logs_are_explained(content: bytes, warm: Path, tmp_path: Path) -> None:
    """What jobs really leave behind is read."""
    ended = whycrash(warm, "explain", written(tmp_path, content), "--json")
    assert (ended.code, json.loads(ended.out)["cause"]) == (EXPLAINED, "ray-memory-monitor-kill")


def test_how_the_job_ended_is_an_option(warm: Path, tmp_path: Path) -> None:
    """Exit code, signal and state turn the answer, and stand on the page; what is none of them is misuse."""
    log = written(tmp_path, b"".join(b"step %d: loss 0.%d\n" % (number, number) for number in range(1, 9)))
    ends = (
        (["--exit-code", "137"], UNKNOWN, "Killed by SIGKILL"),
        (["--signal", "TERM"], UNKNOWN, "Ended by SIGTERM"),
        (["--state", "OUT_OF_MEMORY"], EXPLAINED, "host-oom-kill"),
        (["--exit-code", "0"], HEALTHY, "exit code 0"),
        (["--signal", "NOTHING"], MISUSE, "--signal"),
        (["--state", "a;b"], MISUSE, "--state"),
        (["--exit-code", "99999999999"], MISUSE, "--exit-code"),
    )
    for words, code, told in ends:
        ended = whycrash(warm, "explain", log, "--lang", "en", *words)
        assert (ended.code, told in ended.out + ended.err) == (code, True), ended


def test_standard_input_is_read(warm: Path) -> None:
    """`-` is the log as it comes through a pipe."""
    ended = whycrash(warm, "explain", "-", "--json", given=KILLED.encode())
    assert (ended.code, json.loads(ended.out)["source"]) == (EXPLAINED, "stdin")


@each_row(
    ("line", "codes"),
    [
        ("whycrash explain <(cat job.log) --json > out", {EXPLAINED}),
        ("cat job.log.gz | whycrash explain - --json > out", {EXPLAINED, MISUSE}),
        ("whycrash explain - <&-", {MISUSE}),
        ("whycrash explain job.log --json | head -c 10 > /dev/null", {EXPLAINED, 141}),
        ("PYTHONIOENCODING=ascii whycrash explain job.log --lang zh > out", {EXPLAINED}),
    ],
    ids=["process substitution", "compressed on stdin", "closed stdin", "reader gone", "ASCII output"],
)
@pytest.mark.long
def test_the_shells_ways_work(line: str, codes: set[int], warm: Path, tmp_path: Path) -> None:
    """Pipes of every kind end without a traceback, and a crash is never called healthy."""
    written(tmp_path, (KILLED + "\n").encode())
    written(tmp_path, gzip.compress((KILLED + "\n").encode()), "job.log.gz")
    assert bash(warm, line, tmp_path).code in codes


@pytest.mark.long
def test_a_missing_index_is_built_with_progress(warm: Path, tmp_path: Path) -> None:
    """The first use builds the index, says so on standard error, and keeps standard output clean."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "cache").symlink_to(warm / "cache")
    first = whycrash(home, "explain", log_of(BARE), "--json")
    assert first.code == UNKNOWN
    assert "index" in first.err
    assert json.loads(first.out)["verdict"] == "unknown"
    assert whycrash(home, "explain", log_of(BARE), "--json").err == ""


@each_row(
    ("manifest", "told"),
    [
        ('{"format": 99}', "format 99"),
        ("{cut", "cannot be read"),
        ('{"format": 1}', "cannot be read"),
        ("[]", "cannot be read"),
    ],
)
def test_an_index_that_cannot_be_read_is_told(manifest: str, told: str, warm: Path, tmp_path: Path) -> None:
    """A newer or damaged index ends with a sentence that says what to do, and exit code 2."""
    folder = tmp_path / "index" / "000001"
    folder.mkdir(parents=True)
    (tmp_path / "cache").symlink_to(warm / "cache")
    (folder.parent / "CURRENT").write_text("000001", encoding="utf-8")
    (folder / "manifest.json").write_text(manifest, encoding="utf-8")
    assert told in said(whycrash(tmp_path, "explain", log_of(BARE)))


@each_row(("file", "told"), [("home = 3", "home"), ("colour = 1", "colour"), ("lang =", "TOML")])
def test_wrong_settings_are_told(file: str, told: str, warm: Path, tmp_path: Path) -> None:
    """A user's own whycrash.toml with a mistake ends with a sentence and exit code 2."""
    own = tmp_path / ".config" / "whycrash"
    own.mkdir(parents=True)
    written(own, file.encode(), "whycrash.toml")
    assert told in said(whycrash(warm, "explain", log_of(BARE), HOME=str(tmp_path)))


@pytest.mark.parametrize(
    "words",
    [
        ("search", "x"),
        # Without a home it compiles the patterns before it looks for the index.
        pytest.param(("explain", log_of(BARE)), marks=pytest.mark.long),
    ],
    ids=["search", "explain"],
)
def test_a_home_that_is_a_file_is_told(words: tuple[str | Path, ...], tmp_path: Path) -> None:
    """A WHYCRASH_HOME that cannot hold an index is named."""
    assert "home" in said(whycrash(tmp_path, *words, WHYCRASH_HOME=str(written(tmp_path, b"x", "home"))))


@each_row("more", ["", "1"])
def test_secrets_reach_neither_stream(more: str, warm: Path, tmp_path: Path) -> None:
    """What the log and the launch script hold of secrets is masked where a person reads it."""
    log = written(tmp_path, (LEAKS + "\n" + OFFLOAD + LEAKS + "\n" + KILLED + LEAKS + "\n").encode())
    config = written(tmp_path, secret_script().text.encode(), "run.sh")
    ended = whycrash(warm, "explain", log, "--config", config, FORCE_COLOR=more)
    assert ended.code == EXPLAINED
    assert leaked(ended.out + ended.err) == []


HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m[bold red]x[/bold red] <script>alert(1)</script> "
    "[click](https://evil.example) `code` \x08\x7f"
)


def test_a_hostile_log_prints_no_control_characters(warm: Path, tmp_path: Path) -> None:
    """No escape of the log reaches the terminal, and its markup is shown as it was written."""
    log = written(tmp_path, f"{HOSTILE}\n{KILLED} {HOSTILE}\n{HOSTILE}\n".encode())
    ended = whycrash(warm, "explain", log)
    assert ended.code == EXPLAINED
    assert [char for char in ended.out + ended.err if not char.isprintable() and char != "\n"] == []
    assert "[bold red]x[/bold red]" in ended.out


def test_on_a_terminal_links_of_the_log_are_not_made_clickable(triage: Triage) -> None:
    """Where styles are printed, a link in the log stays text and the log's own escapes stay out."""
    text = printed(explained(triage, f"{KILLED} {HOSTILE}\n", language="en"), terminal=True)
    assert "\x1b]8" not in text
    assert "\x1b[2J" not in text
    assert "\x1b]0" not in text


CITED = re.compile(r" {2,4}(?:https://\S+|[\w-]+/[\w-]+)")


@each_row("width", [40, 100, 200])
@each_row("name", EVERY)
def test_the_page_shows_what_the_answer_holds(name: str, width: int, triage: Triage) -> None:
    """Whatever the width, the conclusion comes first, and each evidence line's number and change is there."""
    answer = answered(triage, name)
    text = printed(answer, width)
    flat = "".join(text.split())
    assert flat.startswith("".join(answer.headline.split()))
    assert [item.line for item in answer.evidence if f"L{item.line}" not in text] == []
    assert [item.key for item in answer.changes if item.key not in flat] == []
    # A patch is never cut or wrapped, for it is to be applied, nor is a command to be pasted, nor an address.
    whole = {*(answer.patch or "").splitlines(), *(answer.command or "").splitlines()}
    assert whole <= set(text.splitlines())
    rows = (row for row in text.splitlines() if row not in whole and not CITED.fullmatch(row))
    assert [row for row in rows if len(row) > width] == []


@each_row("name", EVERY)
def test_a_chinese_page_has_chinese_labels(name: str, triage: Triage) -> None:
    """No English label stands on a Chinese page."""
    rows = [row.strip() for row in printed(answered(triage, name, "zh")).splitlines()]
    assert not {"Evidence", "Changes", "Patch", "To confirm", "Or else", "Known cases"} & set(rows)
    assert not any("(was " in row for row in rows)


def test_an_unverified_change_says_so(triage: Triage) -> None:
    """What is not in the catalogue for this version is marked on the page."""
    answer = answered(triage, "w-easyr1-offload-host-ram")
    doubtful = answer.changes[0].model_copy(update={"status": "unverified"})
    shown = printed(answer.model_copy(update={"changes": (doubtful,), "patch": None}))
    assert "not in the catalogue" in shown
    assert "not in the catalogue" not in printed(answer)


def test_the_patch_on_the_page_can_be_copied(triage: Triage) -> None:
    """On a page that is wide enough the patch's rows are whole, without a frame around them."""
    answer = explained(
        triage, OFFLOAD, ConfigFile("run.sh", script("w-easyr1-offload-host-ram").read_text(encoding="utf-8"))
    )
    rows = [row.rstrip() for row in printed(answer, 200).splitlines()]
    assert [row for row in (answer.patch or "").splitlines() if row.rstrip() not in rows] == []


def test_that_a_command_of_the_log_alone_is_given_to_be_pasted(triage: Triage) -> None:
    """No file of the job's has it, so that no patch would apply; the prompt before it is no part of it."""
    command = "vllm serve org/lark-7b --max-model-len 131072 --port 8000"
    said = (
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GB KV cache"
        " is needed, which is larger than the available KV cache memory (9.21 GB)."
    )
    answer = explained(triage, f"$ {command}\n{said}\n")
    assert "+++ b/command-at-line-1.sh" in (answer.patch or "")
    shown = printed(answer, 200)
    assert "command-at-line" not in shown
    assert [row.strip() for row in shown.splitlines() if row.startswith("vllm serve")] == [
        command.replace("131072", "73728")
    ]
