"""How large a model is, told from the name that a job gives it: the rows of `model_sizes.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Annotated

from pydantic import Field

from corpus import library
from corpus.expressions import compiled
from corpus.keys import last_level, levels
from corpus.schema import Expression, Record

FILE = "model_sizes.yaml"
GIB = 1024**3


class ModelFamily(Record):
    """Models whose name tells no number of parameters, with that number in billions."""

    expression: Expression
    parameters_b: float
    source: Annotated[str, Field(pattern=r"^https://[^\s]+$")]


class Precision(Record):
    """Bytes of a parameter where the model's name, or a setting by key and value, tells them."""

    name: Expression = ""
    setting: Expression = ""
    value: Expression = ""
    bytes: float

    def fits(self, name: str, settings: Mapping[str, str]) -> bool:
        """Tell whether the row is for a model of this name under these settings."""
        if self.name:
            return bool(compiled(self.name).search(name))
        return any(
            compiled(self.setting).search(last_level(key)) and compiled(self.value).search(value)
            for key, value in settings.items()
        )


class ModelSizes(Record):
    """What tells a model's size; `model_sizes.yaml` says what each field is."""

    keys: Expression
    above: Expression
    billions: Expression
    expert_share: float
    families: tuple[ModelFamily, ...]
    precisions: tuple[Precision, ...]
    usual_bytes: float
    divides: Expression
    shares: Expression


@dataclass(frozen=True)
class NamedModel:
    """A model with its parameters in billions and the bytes that one takes as it is loaded."""

    name: str
    parameters_b: float
    bytes_each: float

    @property
    def weights_gib(self) -> float:
        """What all of its weights take."""
        return self.parameters_b * 1e9 * self.bytes_each / GIB


@cache
def known_sizes() -> ModelSizes:
    """Give the table of this process, read once; raises InvalidCorpusError naming the field."""
    path = library.ROOT / FILE
    return library.validated(ModelSizes, library.read_yaml(path), str(path))


def named_model(settings: Mapping[str, str]) -> NamedModel | None:
    """Give the largest model that settings name with its size; None where none tells it."""
    table = known_sizes()
    names = []
    for key, value in settings.items():
        *above, leaf = levels(key)
        if compiled(table.keys).search(leaf) and (
            leaf.lower() != "path" or compiled(table.above).search(".".join(above))
        ):
            names.append(value)
    found = [(parameters, name) for name in names if (parameters := _parameters_b(name, table)) is not None]
    if not found:
        return None
    parameters, name = max(found)
    each = next((row.bytes for row in table.precisions if row.fits(name, settings)), table.usual_bytes)
    return NamedModel(name, parameters, each)


def cards_of_weights(settings: Mapping[str, str]) -> int:
    """Give over how many cards the job divides a model's weights; 1 where it does not say."""
    told = {last_level(key): value for key, value in settings.items() if _is(known_sizes().divides, key)}
    return prod(int(value) for value in told.values() if value.isdecimal() and 1 <= int(value) <= 4096)


def share_of_card(settings: Mapping[str, str]) -> float | None:
    """Give the share of a card that an engine may take, from 0 to 1; None where the job does not say."""
    for key, value in settings.items():
        if _is(known_sizes().shares, key) and re.fullmatch(r"0?\.\d+|1(?:\.0*)?", value):
            return float(value)
    return None


def _parameters_b(name: str, table: ModelSizes) -> float | None:
    """Read the number of parameters, in billions, in a model's name or path; its last part tells the most."""
    for part in reversed(name.strip("'\" /").split("/")):
        match = compiled(table.billions).search(part.replace("_", "-"))
        if match is not None:
            count = float(match["count"]) / (1000 if match["unit"] in "mM" else 1)
            return count * int(match["experts"]) * table.expert_share if match["experts"] else count
        for family in table.families:
            if compiled(family.expression).search(part):
                return family.parameters_b
    return None


def _is(expression: str, key: str) -> bool:
    return bool(compiled(expression).search(last_level(key)))
