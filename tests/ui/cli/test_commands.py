"""The other commands from the shell: ingest, search, corpus, doctor, help."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from service.settings import Settings
from tests.service.pipeline.test_triage import LEAKS, leaked
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, KILLED, MISUSE, UNKNOWN, said, whycrash
from tests.warm import BARE, INCIDENTS
from ui.cli.doctor import findings

NOTE = """# The quokka outage

Our quokka trainer died each night because the backup filled /scratch.

## What helped
Moving the backup to another disk.
"""


def copied(warm: Path, folder: Path) -> Path:
    """Copy the ready home, for commands that add to its index."""
    home = folder / "home"
    shutil.copytree(warm, home)
    return home


def notes(folder: Path, **files: str) -> Path:
    """Write a folder of notes; double underscores in names stand for dots."""
    made = folder / "notes"
    made.mkdir()
    for name, text in files.items():
        (made / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def noted(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three notes beside it that were taken in: a plain one, one with secrets, a hostile one."""
    folder = tmp_path_factory.mktemp("noted")
    home = copied(warm, folder)
    made = notes(
        folder,
        quokka__md=NOTE,
        numbat__md=f"# The numbat {LEAKS}\n\nIt was {LEAKS} that broke.\n",
        bilby__md="# The bilby \x1b[2J\x1b]0;owned\x07 outage\n\nIt broke \x1b[31mbadly.\n",
    )
    assert whycrash(home, "ingest", made).code == EXPLAINED
    return home


def test_a_note_is_found_with_its_origin(noted: Path) -> None:
    """What people wrote themselves is found by its words, and shown with the file it came from."""
    ended = whycrash(noted, "search", "quokka backup scratch")
    first, origin = ended.out.splitlines()[:2]
    assert ended.code == EXPLAINED
    assert "The quokka outage" in first
    assert str(noted.parent / "notes" / "quokka.md") in origin


@pytest.mark.long
def test_a_teams_note_is_found_for_it_alone(warm: Path, tmp_path: Path) -> None:
    """On the machine itself, where all is at hand, it must be asked for."""
    home, folder = copied(warm, tmp_path), notes(tmp_path, kiwi__md=NOTE.replace("quokka", "kiwi"))
    assert whycrash(home, "ingest", folder, "--team", "rl").code == EXPLAINED
    shown = {team: whycrash(home, "search", "kiwi", *team).out for team in ((), ("--team", "rl"))}
    assert ["The kiwi outage" in text for text in shown.values()] == [False, True]
    assert "1 files" in whycrash(home, "forget", "team:rl").out
    assert "kiwi" not in whycrash(home, "search", "kiwi", "--team", "rl").out


@pytest.mark.long
def test_ingesting_again_reads_only_what_changed(warm: Path, tmp_path: Path) -> None:
    """Unchanged files are skipped, and files that are gone leave the index."""
    home, folder = copied(warm, tmp_path), notes(tmp_path, a__md=NOTE, b__md=NOTE.replace("quokka", "wombat"))
    assert "2 files taken in, 0 unchanged, 0 gone" in whycrash(home, "ingest", folder).out
    again = whycrash(home, "ingest", folder)
    assert "0 files taken in, 2 unchanged, 0 gone" in again.out
    assert again.err == ""
    (folder / "b.md").unlink()
    assert "0 files taken in, 1 unchanged, 1 gone" in whycrash(home, "ingest", folder).out
    assert "wombat" not in whycrash(home, "search", "wombat").out


@pytest.mark.long
def test_one_bad_file_does_not_stop_the_others(warm: Path, tmp_path: Path) -> None:
    """Each file that cannot be used is left out with its reason; the rest is taken in."""
    home, folder = copied(warm, tmp_path), tmp_path / "logs"
    folder.mkdir()
    for name in ("good", "broken-label", "list-label", "latin-label"):
        (folder / f"{name}.log").write_text(KILLED + f" in {name}\n", encoding="utf-8")
    (folder / "empty.log").touch()
    (folder / "binary.log").write_bytes(bytes(100))
    (folder / "healthy.log").write_text("all is well\n", encoding="utf-8")
    (folder / "broken-label.yaml").write_text("cause: [", encoding="utf-8")
    (folder / "list-label.yaml").write_text("- x\n", encoding="utf-8")
    (folder / "latin-label.yaml").write_bytes(b"fix: caf\xe9\n")
    ended = whycrash(home, "ingest", "--logs", folder)
    assert ended.code == EXPLAINED
    assert "1 files taken in" in ended.out
    told = [row for row in ended.err.splitlines() if row.startswith("left out:")]
    assert len(told) == 6


def test_secrets_of_notes_are_not_shown(noted: Path) -> None:
    """A note's secrets are masked before it is kept, in its title as in its text."""
    kept = b"".join(path.read_bytes() for path in (noted / "index").rglob("*") if path.is_file())
    assert b"numbat" in kept
    shown = whycrash(noted, "search", "numbat").out
    assert "numbat" in shown
    assert leaked(kept.decode("utf-8", "replace") + shown) == []


def test_a_hostile_note_prints_no_control_characters(noted: Path) -> None:
    """A note may come from any web page: its escapes do not reach the terminal."""
    ended = whycrash(noted, "search", "bilby")
    assert "bilby" in ended.out
    assert [char for char in ended.out if not char.isprintable() and char != "\n"] == []


@each_row(
    ("words", "told"),
    [
        (["ingest", "/no/such/folder"], "/no/such/folder"),
        (["ingest", "--logs", "/no/such/folder"], "/no/such/folder"),
        (["corpus", "show", "verl/no-such-case"], "verl/no-such-case"),
        (["corpus", "show", "train-batch"], "verl/train-batch-not-divisible"),
        (["corpus", "show", "ray/node-lost", "--lang", "fr"], "--lang"),
        (["search", "x", "--lang", "fr"], "--lang"),
        (["search", "x", "--team", "A B"], "A B"),
        (["ingest", "--team", "team:rl"], "team:rl"),
    ],
)
def test_what_does_not_exist_is_named(words: list[str], told: str, warm: Path) -> None:
    """A missing path, an unknown case or language is a sentence with exit code 2; a near id is offered."""
    assert told in said(whycrash(warm, *words))


@each_row("words", [["search", "x", "-n", "0"], ["explain"], ["expalin", "x"], ["explain", "x", "--no-such"]])
def test_wrong_usage_ends_with_misuse(words: list[str], warm: Path) -> None:
    """What the parser of arguments refuses has the same exit code."""
    ended = whycrash(warm, *words)
    assert (ended.code, ended.out) == (MISUSE, "")


def test_a_search_without_results_says_so(warm: Path) -> None:
    """Nothing found is told, with exit code 3."""
    ended = whycrash(warm, "search", "")
    assert ended.code == UNKNOWN
    assert ended.out.strip()


def test_search_answers_in_the_language_of_its_words(warm: Path) -> None:
    """Chinese words give Chinese titles."""
    ended = whycrash(warm, "search", "verl 的各级 batch 不能整除", "-n", "3")
    assert ended.code == EXPLAINED
    assert "verl 的各级 batch 不能整除" in ended.out
    assert len(ended.out.splitlines()) == 3


def test_a_case_is_shown_in_the_language_asked_for(warm: Path) -> None:
    """`corpus show` prints the case with its changes and sources."""
    shown = whycrash(warm, "corpus", "show", "ray/memory-monitor-kill", "--lang", "zh")
    assert shown.code == EXPLAINED
    assert "ray/memory-monitor-kill" in shown.out
    assert "https://" in shown.out
    assert any("一" <= char <= "鿿" for char in shown.out)


def test_the_version_is_printed(warm: Path) -> None:
    """`--version` names the program and its version."""
    assert whycrash(warm, "--version").out.startswith("whycrash 0")


@pytest.mark.long
def test_the_doctor_looks_and_changes_nothing(tmp_path: Path) -> None:
    """A home that does not exist yet is told as such, and still does not exist afterwards."""
    home = tmp_path / "none"
    looked = {item.what: item for item in findings(Settings(home=home, embedding_model="hash"))}
    assert "none yet" in looked["index"].state
    assert "not used" in looked["network"].state
    assert [item.what for item in looked.values() if item.mend and item.what != "disk"] == []
    assert not home.exists()


def test_the_doctor_tells_an_index_that_it_cannot_use(tmp_path: Path) -> None:
    """A newer index is a finding with its mend, not an error of the doctor's."""
    folder = tmp_path / "index" / "000001"
    folder.mkdir(parents=True)
    (folder.parent / "CURRENT").write_text("000001", encoding="utf-8")
    (folder / "manifest.json").write_text('{"format": 99}', encoding="utf-8")
    looked = {item.what: item for item in findings(Settings(home=tmp_path, embedding_model="hash"))}
    assert "WHYCRASH_HOME" in looked["index"].mend


@pytest.mark.long
def test_past_crashes_are_taken_in_with_their_labels(warm: Path, tmp_path: Path) -> None:
    """A labelled folder of a real incident is searched by what failed, with the log it came from."""
    home = copied(warm, tmp_path)
    assert whycrash(home, "ingest", "--logs", INCIDENTS / BARE).code == EXPLAINED
    ended = whycrash(home, "search", "ActorDiedError actor died unexpectedly PolicyModelActor")
    assert str(INCIDENTS / BARE / "log.txt") in ended.out


@each_row(
    ("words", "environment"),
    [
        (("explain", "none.log", "--lang", "zh"), {}),
        (("explain", "--lang=zh", "none.log"), {}),
        (("explain", "none.log"), {"LANG": "zh_CN.UTF-8"}),
        (("explain", "none.log"), {"WHYCRASH_LANG": "zh"}),
        (
            (
                "run",
                "--lang",
                "zh",
                "--config",
                "none.log",
                "--",
                "sh",
                "-c",
                "echo x; exit 3",
                "--lang",
                "en",
            ),
            {},
        ),
    ],
)
def test_that_a_refusal_is_told_in_the_readers_language(
    warm: Path, words: tuple[str, ...], environment: dict[str, str]
) -> None:
    """By --lang, the setting or the locale; the arguments of a job that is run are its own."""
    assert "没有文件 none.log。" in whycrash(warm, *words, **environment).err  # type: ignore[arg-type]  # its others have names of their own


@each_row("option", ["--webhook", "--post"])
def test_that_a_watch_refuses_a_target_that_is_no_address(warm: Path, tmp_path: Path, option: str) -> None:
    """At once, and not when the first job fails."""
    assert "begins with http://" in said(
        whycrash(warm, "watch", tmp_path, "--once", option, "service.example")
    )


def test_that_a_look_at_what_cannot_be_reached_is_no_success(warm: Path) -> None:
    """A script that looks once is to know that nothing was looked at."""
    ended = whycrash(warm, "watch", "ray", "--once", "--dashboard", "http://127.0.0.1:9")
    assert ended.code == MISUSE
    assert "could not be looked at" in ended.err


def test_that_the_list_of_commands_holds_whole_sentences(warm: Path) -> None:
    """And the help of each says what it takes in the words of its reader, not of Python."""
    assert "..." not in whycrash(warm, "--help").out.split("Commands:")[1]
    told = "".join(whycrash(warm, name, "--help").out for name in ("explain", "run", "batch")).split(
        "Options:", 1
    )[1]
    assert "Path" not in told.replace("list[Path]", "", 1).replace("PATH", "")
