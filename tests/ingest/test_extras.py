"""What a light installation lacks is named with the command that adds it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ingest import extras
from tests.tables import each_row

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@each_row(
    ("module", "command"),
    [
        ("fastapi.routing", "pip install 'whycrash[serve]'"),
        ("gradio", "pip install 'whycrash[chat]'"),
        ("slack_bolt", "pip install 'whycrash[slack]'"),
        ("ray", "pip install 'whycrash[ray]'"),
        ("langchain.chat_models", "pip install 'whycrash[model]'"),
        ("psycopg", "pip install 'whycrash[postgres]'"),
        ("chromadb.config", "pip install 'whycrash[serve]'"),
        ("sentence_transformers", "pip install 'whycrash[embedding]'"),
        ("an_unknown.thing", "pip install an-unknown"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, command: str
) -> None:
    """In both languages; a package of no extra is named by itself."""
    given = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = [f'{row}; extra == "{name}"' for name, rows in given.items() for row in rows]
    monkeypatch.setattr(extras, "requires", lambda _name: rows)
    extras.extras_of_packages.cache_clear()
    said = extras.advice(module)
    assert f"`{command}`" in said
    assert f"`{command}`" in said.in_language("zh")


@each_row(("module", "told"), [("gradio", True), ("ui.chat.page", False), ("whycrash", False), ("", False)])
def test_only_what_can_be_installed_is_told(module: str, told: bool) -> None:
    """A module of our own that is missing is a fault of the program, which no command mends."""
    assert (extras.missing(ModuleNotFoundError("missing", name=module)) is not None) == told
