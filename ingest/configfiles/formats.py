"""Which format a file of the job has, by its name, else by its content: for reading and for patching."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement

from ingest.configfiles import json_document, sections, yaml_document
from ingest.configfiles.errors import NotPatchableError

Format = Literal[
    "shell", "yaml", "conda", "json", "requirements", "dotenv", "dockerfile", "sections", "python", "other"
]

# How names of Python code end.
CODE = (".py", ".ipynb")
# By the file's name; the first that fits counts.
_BY_NAME: tuple[tuple[re.Pattern[str], Format], ...] = (
    (re.compile(r"(?:.*[-_.])?(?:requirements?|constraints?)(?:[-_.].*)?\.(?:txt|in)"), "requirements"),
    (re.compile(r"(?:dockerfile|containerfile)(?:\..*)?|.*\.(?:docker|container)file"), "dockerfile"),
    (re.compile(r"\.env(?:\..*)?|.*\.env|\.deepspeed_env"), "dotenv"),
    (re.compile(r".*\.json[c5]?"), "json"),
    (re.compile(r".*\.(?:sh|bash|zsh|sbatch|slurm|job|pbs)"), "shell"),
    # Of a notebook the code of its cells is read: `ingest.configfiles.notebook`.
    (re.compile(r".*\.(?:py|ipynb)"), "python"),
    (re.compile(r".*\.(?:toml|ini|cfg|conf|properties|lock)|pipfile"), "sections"),
    # A document shows examples of commands: none of them is known to have started the job.
    (re.compile(r".*\.(?:xml|lua|md|markdown|rst)"), "other"),
)
_YAML_NAME = re.compile(r".*\.ya?ml")
_YAML_ROW = re.compile(r"- |[\w.\"'-]+:(?: |$)|---")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|\S*)")
_OVERRIDE = re.compile(r"-\s+['\"]?[+~]{0,2}[\w./@-]+=")
# Rows that tell a format where the whole cannot be parsed.
_TELLING = 40


def format_of(name: str, text: str) -> Format:
    """Tell a file's format; a script where nothing else fits."""
    path = PurePath(name).name.lower()
    named = next((form for pattern, form in _BY_NAME if pattern.fullmatch(path)), None)
    if named is not None:
        return named
    if _YAML_NAME.fullmatch(path):
        return "conda" if re.search(r"^dependencies:", text, re.MULTILINE) else "yaml"
    rows = [row.strip() for row in text.removeprefix("\ufeff").split("\n")]
    said = [row for row in rows if row and not row.startswith("#")]
    if text.startswith("#!") or any(row.startswith("#SBATCH") for row in rows):
        return "python" if re.match(r"#![^\n]*python", text) else "shell"
    return next((form for is_form, form in _SIGNS if said and is_form(said, text)), "shell")


def _is_yaml(said: Sequence[str], text: str) -> bool:
    if all(_OVERRIDE.match(row) for row in said):
        return True
    if re.match(r"(?:---|[\"']?[\w.-]+[\"']?:(?:\s|$)|\{)", said[0]) is None:
        return False
    parses = _parses(lambda each: yaml_document.loaded(yaml_document.read(each)), text)
    return parses or all(_YAML_ROW.match(row) for row in said[:_TELLING])


def _is_requirements(said: Sequence[str], text: str) -> bool:
    del text
    rows = [re.split(r"\s+(?:#|--)", row)[0] for row in said if not row.startswith("-")]
    try:
        return bool(rows) and all(Requirement(row) for row in rows)
    except InvalidRequirement:
        return False


def _parses(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except NotPatchableError:
        return False
    return True


# What the content must be like; the first that fits counts.
_SIGNS: tuple[tuple[Callable[[Sequence[str], str], bool], Format], ...] = (
    (
        lambda said, text: (
            said[0].startswith("{")
            and (re.match(r"\{\s*\"", text.lstrip()) is not None or _parses(json_document.read, text))
        ),
        "json",
    ),
    (
        lambda said, _: (
            re.match(r"(?i)(?:FROM|ARG)\s+\S", said[0]) is not None
            and any(row.upper().startswith("FROM ") for row in said)
        ),
        "dockerfile",
    ),
    (_is_yaml, "yaml"),
    (lambda said, _: all(_ASSIGNMENT.fullmatch(row) for row in said), "dotenv"),
    (_is_requirements, "requirements"),
    (lambda said, _: said[0].startswith("[") and any(map(sections.is_section, said)), "sections"),
)
