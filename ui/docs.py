"""The parts of the documentation that the program writes: help texts, settings, errors, what is known.

`python -m ui.docs` writes them between their marks; a test compares.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

from typer.testing import CliRunner

from corpus import library, log_patterns
from ingest import embedder
from service.schemas.errors import RequestError, kind_of
from service.schemas.published import diagnosis_schema
from service.settings import PREFIX, Settings
from ui import coverage
from ui.cli import run, watch
from ui.cli.main import app
from ui.typescript import types

ROOT = Path(__file__).parent.parent
COMMANDS = (
    "",
    "explain",
    "run",
    "watch",
    "batch",
    "serve",
    "keys",
    "ingest",
    "snapshot",
    "allow",
    "init",
    "collect",
    "hook",
    "completion",
)

# Variables that no file sets: secrets of one command, and what a file beside a log must not name.
ENVIRONMENT_ONLY = {
    library.KNOWLEDGE: "Folder of your own knowledge, with the files of `corpus/`, read beside what ships.",
    embedder.THREADS: "Threads that compute vectors in one process; empty is one for each core, at most "
    f"{embedder.MOST_THREADS}.",
    run.KEY_VARIABLE: "Key for the service that `run --post` and `watch --post` hand jobs in at.",
    watch.SLACK_VARIABLE: "Slack's incoming webhook that `watch --slack` writes to.",
}


def help_text() -> str:
    """Give the `--help` of each command as one code block each."""
    runner = CliRunner()
    blocks = []
    for command in COMMANDS:
        words = [*command.split(), "--help"]
        shown = runner.invoke(
            app, words, env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}, prog_name="whycrash"
        ).stdout
        rows = "\n".join(row.rstrip() for row in shown.strip().splitlines())
        blocks.append(f"```text\n$ {' '.join(['whycrash', *words])}\n{rows}\n```")
    return "\n\n".join(blocks)


def settings_table() -> str:
    """Give the settings and the variables that no file sets as one Markdown table."""
    rows = ["| variable | in your `whycrash.toml` | in a folder's | what it sets |", "|---|---|---|---|"]
    rows += [
        f"| `{PREFIX}{item.name.upper()}` | `{item.name}` | "
        f"{'yes' if item.metadata.get('in_folder') else 'no'} | {item.metadata['says']} |"
        for item in fields(Settings)
    ]
    rows += [f"| `{name}` | no | no | {says} |" for name, says in ENVIRONMENT_ONLY.items()]
    return "\n".join(rows)


def errors_table() -> str:
    """Give the errors of the API as a Markdown table, by status."""
    kinds = sorted(
        (kind for kind in RequestError.__subclasses__() if kind.__module__ == RequestError.__module__),
        key=lambda kind: kind_of(kind).status,
    )
    rows = ["| status | class in `service.schemas.errors` | meaning |", "|---|---|---|"]
    rows += [
        f"| {kind_of(kind).status} | `{kind.__name__}` | {' '.join((kind.__doc__ or '').split())} |"
        for kind in kinds
    ]
    return "\n".join(rows)


def coverage_table() -> str:
    """Give what the knowledge covers as a Markdown table."""
    return coverage.markdown(coverage.stats(library.load(), log_patterns.load()))


PARTS = {"help": help_text, "settings": settings_table, "errors": errors_table, "coverage": coverage_table}


def schema_file() -> str:
    """Give the JSON schema of a diagnosis, as the API serves it."""
    return json.dumps(diagnosis_schema(), indent=1, ensure_ascii=False) + "\n"


def typescript_file() -> str:
    """Give the TypeScript types of a diagnosis."""
    head = "// Made of diagnosis.schema.json by `python -m ui.docs`.\n\n"
    return head + types(diagnosis_schema(), "Diagnosis")


# Files that are the program's as a whole.
FILES = {"docs/diagnosis.schema.json": schema_file, "docs/diagnosis.ts": typescript_file}


def pages() -> list[Path]:
    """List the documentation: the pages at the root, and those below `docs`."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def written(text: str) -> str:
    """Give a page's text with its generated parts as they should be."""
    for name, make in PARTS.items():
        mark = re.compile(
            rf"(<!-- {name}: written by `python -m ui.docs` -->\n).*?(<!-- end of {name} -->)", re.DOTALL
        )
        if found := mark.search(text):
            text = f"{text[: found.end(1)]}{make()}\n{text[found.start(2) :]}"
    return text


if __name__ == "__main__":
    for page in pages():
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name, make in FILES.items():
        (ROOT / name).write_text(make(), encoding="utf-8")
