"""What a rule may look at, and what it answers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from corpus.keys import canonical
from corpus.schema import Change, Scalar, SettingSpec, Text
from ingest.logs.configs.launch import Setting
from ingest.logs.facts import Fact
from service.schemas.value_bounds import ValueBounds

_SIZE = re.compile(r"^(\d{1,15}(?:\.\d{1,6})?)\s*([kmgtp]?)i?b?$")
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
# What a size without a unit counts in, as a power of 1024: Slurm takes MiB, the rest bytes.
_BARE = {"MiB": 2, "GiB": 3}
GIB = 1024**3


@dataclass(frozen=True)
class DependentSetting:
    """Another setting that must follow, so that the first change keeps its meaning.

    It is one of the same framework where `framework` names none.
    """

    key: str
    value: Scalar
    because: Text
    framework: str = ""


@dataclass(frozen=True)
class ComputedValue:
    """A value with the numbers that it comes from, and what has to follow it.

    `proves` tells that by these numbers the value suffices, rather than only goes the right way, and `bounds`
    what they ask of any value; `present` is the job's value where the log states it.
    """

    value: Scalar
    because: Text
    also: tuple[DependentSetting, ...] = ()
    proves: bool = False
    bounds: ValueBounds | None = None
    present: Scalar | None = None


@dataclass(frozen=True)
class CannotHelp:
    """Why no value of this setting can help, so that the change is not proposed at all."""

    because: Text


Answer = ComputedValue | CannotHelp | None


@dataclass(frozen=True)
class RuleContext:
    """One change of one job: its setting, the job's present value, the cause, what the log states.

    `facts` begin with those of the line that the failure began at; then the latest come first.
    """

    change: Change
    spec: SettingSpec
    now: str | None
    cause: str
    facts: Sequence[Fact]
    settings: Sequence[Setting]
    # The memory of the largest card that the log names, in GiB.
    card_gib: float | None = None
    # What the log says, as far as the report keeps it.
    texts: Sequence[str] = ()
    # The job's own files.
    files: Sequence[str] = ()
    # Whether the log tells of a whole checkpoint.
    is_saved: bool = False
    # Of how many steps it tells that a checkpoint is whole.
    saved_n: int = 0

    @property
    def default(self) -> float | None:
        """The setting's default as a number."""
        known = self.spec.default
        return None if known is None or isinstance(known, (bool, list)) else parsed(str(known))

    @property
    def number(self) -> float | None:
        """The job's present value as a number."""
        return parsed(self.now)

    @property
    def whole(self) -> int | None:
        """The job's present value where it is a whole number above zero."""
        number = self.number
        return int(number) if number is not None and number >= 1 and number == int(number) else None

    def stated(self, kind: str, *names: str) -> float | None:
        """Give the first number that a fact of this kind has under one of the names."""
        return next(iter(self.every(kind, *names)), None)

    def every(self, kind: str, *names: str) -> list[float]:
        """Give all numbers of this kind of fact under these names, the failing line's first."""
        values = (fact.fields.get(name) for fact in self.facts if fact.kind == kind for name in names)
        return [float(value) for value in values if isinstance(value, (int, float)) and math.isfinite(value)]

    def words(self, kind: str, name: str) -> str:
        """Give the first text that a fact of this kind has under that name, or the empty string."""
        found = (str(fact.fields[name]) for fact in self.facts if fact.kind == kind and name in fact.fields)
        return next(found, "")

    def together(self, kind: str, *names: str) -> tuple[float, ...] | None:
        """Give the numbers of one and the same fact; None where no fact has them all."""
        for fact in self.facts:
            values = [fact.fields.get(name) for name in names] if fact.kind == kind else []
            numbers = [float(value) for value in values if isinstance(value, (int, float))]
            if values and len(numbers) == len(values):
                return tuple(numbers)
        return None

    def setting(self, *names: str) -> float | None:
        """Give the job's number under one of these names; a name also stands for keys that end in it."""
        return next((number for name in names if (number := parsed(self.text_of(name))) is not None), None)

    def text_of(self, name: str) -> str | None:
        """Give the job's value under a name, as written."""
        wanted = canonical(name)
        for setting in self.settings:
            key = canonical(setting.key)
            if key == wanted or key.endswith("." + wanted):
                return setting.value
        return None


def parsed(text: str | None) -> float | None:
    """Read a plain number such as `8`, `'0.6'` or `1e-6`; None for words, empty and endless values."""
    try:
        number = float((text or "").strip().strip("'\"").replace("_", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) < 1e18 else None


def gib_of(text: Scalar | None, unit: str | None = None) -> float | None:
    """Read a size such as `64g`, `512Gi` or `65536` in GiB; `unit` is what a bare number counts in."""
    match = _SIZE.match(str(text).strip().strip("'\"").lower()) if text is not None else None
    if match is None:
        return None
    power = _POWER.get(match[2], _BARE.get(unit or "", 0))
    return float(match[1]) * 1024.0 ** (power - 3)


def down_to(number: float, step: float) -> float:
    """Round down to a multiple of `step`, safe against binary fractions."""
    return round(math.floor(number / step + 1e-9) * step, 6)


def up_to(number: float, step: float) -> float:
    """Round up to a multiple of `step`, safe against binary fractions."""
    return round(math.ceil(number / step - 1e-9) * step, 6)
