"""Where each framework declares its settings, and how its users spell them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator

from corpus.extract import arguments, constants, environment, fields, headers, options, trees
from corpus.extract.checkouts import Checkout, matching
from corpus.extract.declarations import Declaration, Style, completed, unique
from corpus.extract.expressions import Source, parsed
from corpus.library import read_yaml, validated
from corpus.schema import Record

Form = Literal[
    "arguments",
    "constants",
    "environment",
    "fields",
    "param-macros",
    "options",
    "config-macros",
    "option-structs",
    "env-lists",
    "trees",
]


# Where each framework's sources declare its settings, and how its users spell them.
FILE = Path(__file__).parent / "origins.yaml"


class Origin(Record):
    """One place of a framework's source that declares settings, all in one form.

    `files` are the ends of paths, `beside` further files whose classes and constants the declarations use.
    `omit` leaves out keys that no failure turns on. `names` says which classes, commands or variables count,
    as the form needs it: a list, or a mapping where keys stand below another key.
    """

    form: Form
    files: tuple[str, ...]
    catalogue: str
    spelled: str
    style: Style = "as-is"
    names: Annotated[
        Mapping[str, str],
        BeforeValidator(lambda names: dict.fromkeys(names, "") if isinstance(names, list) else names),
    ] = {}
    beside: tuple[str, ...] = ()
    omit: tuple[str, ...] = ()


class DeclarationSources(Record):
    """What is known of one framework's declarations: places, and renames that no source states."""

    declares: tuple[Origin, ...] = ()
    renamed: Mapping[str, str] = {}


@cache
def declaring() -> Mapping[str, DeclarationSources]:
    """Read `origins.yaml`, by framework; raises InvalidCorpusError where a field is wrong."""
    return {
        name: validated(DeclarationSources, row, f"{FILE}: {name}") for name, row in read_yaml(FILE).items()
    }


_READERS: dict[Form, Callable[[Mapping[str, str], Source, Origin], Iterator[Declaration]]] = {
    "arguments": lambda _texts, source, origin: arguments.read(source, origin.style),
    "constants": lambda _texts, source, origin: constants.read(source, origin.names),
    "environment": lambda _texts, source, origin: environment.read(source, tuple(origin.names)),
    "fields": lambda _texts, source, origin: fields.read(source, origin.names, origin.style),
    "param-macros": lambda texts, _source, _origin: headers.nccl(texts),
    "options": lambda _texts, source, origin: options.read(source, tuple(origin.names), origin.style),
    "config-macros": lambda texts, _source, _origin: headers.ray(texts),
    "option-structs": lambda texts, _source, _origin: headers.slurm(texts),
    "env-lists": lambda texts, _source, _origin: headers.torch(texts),
    "trees": lambda texts, source, _origin: trees.read(texts, source),
}


def declared(checkout: Checkout, origins: Sequence[Origin]) -> dict[str, Declaration]:
    """Give the settings that some places of a checkout declare, by key."""
    found: dict[str, Declaration] = {}
    for origin in origins:
        for key, row in unique(_read(checkout, origin)).items():
            found[key] = completed(found[key], row) if key in found else row
    return found


def _read(checkout: Checkout, origin: Origin) -> Iterator[Declaration]:
    texts = matching(checkout, origin.files)
    python = {path: text for path, text in texts.items() if path.endswith(".py")}
    source = parsed({**matching(checkout, origin.beside), **python})
    for row in _READERS[origin.form](texts, source, origin):
        if not any(fnmatchcase(row.key, pattern) for pattern in origin.omit):
            yield row
