"""Where each package's repository says what a release requires: rows of `release_origins.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpus.library import read_yaml, validated
from corpus.schema import Expression, Record

TABLE = Path(__file__).parent.parent / "release_origins.yaml"


class ReleaseOrigin(Record):
    """The files of a repository that a release's metadata is built from.

    `files` are read in order, those that a release has not are passed over; `newest` is read at the newest
    revision, as a table of all releases. A tag is a release where `tag` matches it whole; its group `version`
    is the version. `extras` are those of the package's extras that its documentation tells to install.
    Releases before `since` are left out.
    """

    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    since: str
    files: tuple[str, ...] = ("pyproject.toml", "setup.cfg", "setup.py")
    newest: str = ""
    tag: Expression = r"v?(?P<version>\d+(?:\.\d+)+(?:\.?post\d+)?)"
    extras: tuple[str, ...] = ()


@cache
def release_origins() -> Mapping[str, ReleaseOrigin]:
    """Give the origins by package."""
    return {
        name: validated(ReleaseOrigin, row, f"{TABLE.name}: {name}") for name, row in read_yaml(TABLE).items()
    }
