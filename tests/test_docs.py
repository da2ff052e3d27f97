"""The documentation says what the program does: blocks are run, generated parts compared, links and paths
followed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corpus.condition_nodes import QUANTIFIERS
from corpus.conditions import LOG, Vocabulary
from service.remediation.rules.operators import NAMES, OPERATORS
from service.telemetry.conditions import SNAPSHOT
from tests.syntax import modules
from tests.tables import each_row
from tests.warm import triage, warm
from ui import docs
from ui.cli.main import app

__all__ = ["triage", "warm"]

ROOT = Path(__file__).parent.parent
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in docs.pages()}
MOST_LINES = 150

_LIKELY = re.compile(r"about \d+ %")
_BLOCK = re.compile(r"<!-- test: (?P<name>\w+) -->\n```(?:console|python)\n(?P<body>.*?)```", re.DOTALL)
_LINK = re.compile(r"(?:\]\(|(?:src|href)=\")(?P<to>[^)\s\"]+)")
_PATH = re.compile(r"`((?:corpus|ingest|service|eval|ui|tests|docs|whycrash)/[\w./-]*)")
# A part in capitals stands for many names.
_TO_FILL_IN = re.compile(r"/[A-Z]{3,}(?:/|\.|$)")
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def _blocks(*names: str) -> Iterator[str]:
    for text in PAGES.values():
        yield from (block["body"] for block in _BLOCK.finditer(text) if block["name"] in names)


def _commands() -> list[str]:
    rows = [row for body in _blocks("explain", "several", "ingest") for row in body.splitlines()]
    return [row.removeprefix("$ whycrash ") for row in rows if row.startswith("$ whycrash ")]


@pytest.fixture(autouse=True)
def _new_user(warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where the documentation does, with a home that is ready and may be written to."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("WHYCRASH_HOME", str(shutil.copytree(warm, tmp_path / "home")))
    monkeypatch.setenv("WHYCRASH_EMBEDDING_MODEL", "hash")


@pytest.mark.long
@each_row("command", _commands(), quick=4)
def test_documented_commands_run(command: str) -> None:
    """Every command of a tested block does what it says, without an error."""
    result = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()


@each_row("body", [*_blocks("python")])
def test_documented_python_runs(body: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every tested block of Python runs by itself and prints something."""
    exec(compile(body, "documentation", "exec"), {})  # noqa: S102 - the documentation's own code
    assert capsys.readouterr().out.strip()


@each_row("body", [*_blocks("answer")])
def test_a_sample_answer_is_what_the_program_prints(body: str) -> None:
    """Its lines stand in the output in this order; `...` is for lines that are left out."""
    # How likely a cause is depends on the vectors in use.
    command, *expected = [_LIKELY.sub("about N %", row.rstrip()) for row in body.splitlines()]
    result = CliRunner().invoke(
        app,
        shlex.split(command.removeprefix("$ whycrash ")),
        env={"COLUMNS": "100", "TERM": "dumb"},
        catch_exceptions=False,
    )
    printed = [_LIKELY.sub("about N %", row.rstrip()) for row in result.stdout.splitlines()]
    at = 0
    for number, row in enumerate(expected):
        if row == "...":
            continue
        assert row in printed[at:], row
        found = printed.index(row, at)
        # Without an ellipsis before it, a line follows the one before.
        assert found == at or expected[number - 1] == "...", row
        at = found + 1
    assert at > 0


@pytest.mark.long
@each_row("body", [*_blocks("backup")])
def test_a_documented_backup_brings_everything_back(body: str, tmp_path: Path) -> None:
    """The commands end without an error in a shell with a home of its own; the last shows what was kept."""
    rows = [row.removeprefix("$ ") for row in body.splitlines()]
    surroundings = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "WHYCRASH_HOME": str(tmp_path / "backed-up"),
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(rows)], env=surroundings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "backup-shown-here" in done.stdout.splitlines()[-1]
    assert (tmp_path / "backed-up.lost").is_dir()


def test_what_is_said_of_parts_that_are_down_is_tested() -> None:
    """Each row of the table names tests, and each of them exists."""
    table = PAGES["docs/operations.md"].split("## When a part is down")[1].split("##")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ") and not row.startswith("| part")]
    found = [re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row) for row in rows]
    assert len(rows) > 5
    assert all(found)
    missing = [
        name for named in found for path, name in named if f"def {name}(" not in (ROOT / path).read_text()
    ]
    assert missing == []


def test_there_is_something_to_run() -> None:
    """The blocks are found, so the tests above cannot pass by finding none."""
    assert len(_commands()) >= 10
    assert len([*_blocks("python")]) >= 2
    assert [*_blocks("answer")]
    known = {"answer", "backup", "client", "curl", "explain", "ingest", "python", "several"}
    assert {block["name"] for text in PAGES.values() for block in _BLOCK.finditer(text)} == known


def test_generated_parts_are_up_to_date() -> None:
    """Help texts and tables are what the program writes, and each stands on some page."""
    assert [name for name, text in PAGES.items() if docs.written(text) != text] == []
    everything = "".join(PAGES.values())
    assert [name for name in docs.PARTS if f"<!-- end of {name} -->" not in everything] == []
    assert [name for name, make in docs.FILES.items() if (ROOT / name).read_text() != make()] == []


def test_every_variable_that_is_read_is_documented() -> None:
    """A constant of the code that names a `WHYCRASH_*` variable has a row in the table of settings."""
    constants = {
        text
        for module in modules("corpus", "ingest", "service", "ui", "whycrash")
        for _, text in module.texts
    }
    named = {value for value in constants if re.fullmatch(r"WHYCRASH_[A-Z_]*[A-Z]", value)}
    assert len(named) >= 4
    assert sorted(name for name in named if f"| `{name}` |" not in docs.settings_table()) == []


def test_the_table_of_conditions_is_the_language() -> None:
    """Each example is accepted where such conditions stand, and each word of the language has its row."""
    table = (ROOT / "docs/knowledge.md").read_text().split("<!-- conditions:")[1].split("<!-- end of")[0]
    cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in table.splitlines() if row.startswith("| ")][1:]
    examples = [text.replace("\\|", "|") for row in cells for text in re.findall(r"`([^`]+)`", row[1])]
    values = Vocabulary(functions=OPERATORS, is_known={*NAMES, "share"}.__contains__)
    refused = [
        text for text in examples if not any(_accepts(words, text) for words in (LOG, SNAPSHOT, values))
    ]
    assert len(examples) > 20
    assert refused == []
    subjects = [f"{subject}:" for subject in (*LOG.subjects, *SNAPSHOT.subjects)]
    words = {"and", "or", "not", "in", "~", "if", "else", "unknown", *QUANTIFIERS, *SNAPSHOT.functions}
    shown = set(re.findall(r"[a-z]+:|[a-z]+|~", table))
    assert {*subjects, *words} <= shown


def _accepts(vocabulary: Vocabulary, text: str) -> bool:
    try:
        vocabulary.check(text)
    except ValueError:
        return False
    return True


def test_the_readme_is_short() -> None:
    """It is the first page; the others hold the rest."""
    assert PAGES["README.md"].count("\n") <= MOST_LINES


def test_links_and_paths_of_the_documentation_lead_somewhere() -> None:
    """A relative link names a file, and a heading where it has an anchor; a path in code marks exists; each
    page is linked.
    """
    broken: list[str] = []
    linked = {"README.md"}
    for name, text in PAGES.items():
        prose = _FENCED.sub("", text)
        for link in _LINK.finditer(prose):
            to, _, anchor = link["to"].partition("#")
            if to.startswith(("http://", "https://")):
                continue
            target = (ROOT / name).parent / to if to else ROOT / name
            page = target.resolve().relative_to(ROOT).as_posix()
            linked |= {page}
            if not target.exists() or (anchor and anchor not in _anchors(PAGES.get(page, ""))):
                broken.append(f"{name}: {link['to']}")
        broken += [
            f"{name}: {path}"
            for path in _PATH.findall(prose)
            if not (ROOT / path).exists() and not _TO_FILL_IN.search(path)
        ]
    assert broken == []
    assert set(PAGES) - linked == set()


def test_no_heading_stands_twice_on_a_page() -> None:
    """An anchor leads to the first of two headings with the same words, so the second cannot be linked."""
    twice = [
        f"{name}: {anchor}"
        for name, text in PAGES.items()
        for anchor, times in Counter(_anchors(text)).items()
        if times > 1
    ]
    assert twice == []


def _anchors(text: str) -> list[str]:
    """Give the anchors of a page's headings, as GitHub makes them of words that stand once."""
    titles = re.findall(r"^#+ (.+)$", _FENCED.sub("", text), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
