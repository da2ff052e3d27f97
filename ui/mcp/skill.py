"""The skill folder for coding assistants: instructions in the form that they load from a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from corpus.message import Message
from service.schemas.errors import InvalidRequestError

# The folder of the skill, as it is copied.
FOLDER = Path(__file__).parent / "skills" / "whycrash"


def guide() -> str:
    """Give the instructions without the front matter, by which a client chooses a skill."""
    return (FOLDER / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)[2].lstrip()


def write(parent: Path) -> Path:
    """Copy the skill below a folder of skills, such as `.agents/skills`; gives where it is.

    Raises InvalidRequestError where another file is in its place.
    """
    target = parent / FOLDER.name
    try:
        shutil.copytree(FOLDER, target, dirs_exist_ok=True)
    except OSError as error:
        raise InvalidRequestError(
            Message("errors.cannot-write", file=target, reason=error.strerror or str(error))
        ) from error
    return target
