"""Which packages the atlas is made of (`corpus/atlas.yaml`)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from corpus.library import ROOT, read_yaml, validated
from corpus.schema import Record

TABLE = "atlas.yaml"


class ModelNames(Record):
    """Where a package names the models that it knows: in which files, and what of their text are names."""

    files: str
    names: str


class AtlasPackage(Record):
    """A package whose releases are read.

    `name` is the registry's. `source` is the address of a line of its source, with `{version}`, `{path}` and
    `{line}`; `inside` is the folder of the repository in which its modules lie; `framework` is the framework
    of `frameworks.yaml` that it is. `archive` tells what is read: a wheel, which may be asked for by one of
    its `platforms`, the source archive of the registry, or one that is given by hand. Of its files those
    below `modules` are read, and none of those that are `copies` of files elsewhere. `models` are the
    places where it names the models that it knows.
    """

    name: str
    source: str = ""
    inside: str = ""
    framework: str = ""
    archive: Literal["wheel", "sdist", "source"] = "wheel"
    platforms: tuple[str, ...] = ()
    python: str = ""
    modules: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    models: tuple[ModelNames, ...] = ()


class AtlasTable(Record):
    """The whole table."""

    packages: tuple[AtlasPackage, ...] = ()


def atlas_packages(path: Path = ROOT / TABLE) -> dict[str, AtlasPackage]:
    """Give the packages by name; raises InvalidCorpusError naming the field that is wrong."""
    table = validated(AtlasTable, read_yaml(path), str(path))
    return {row.name: row for row in table.packages}
