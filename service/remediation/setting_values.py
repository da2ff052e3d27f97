"""What a value is to a setting: of which type, fitting or not, a value or words of guidance."""

from __future__ import annotations

import math
import re

from corpus.library import chinese_guidance
from corpus.message import Message
from corpus.schema import Scalar, SettingSpec

# A number with an exponent, and one that YAML 1.1 takes for a number.
_EXPONENT = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)[eE][-+]?\d+")
_YAML_FLOAT = re.compile(r"[-+]?(?:\d[\d_]*\.[\d_]*|\.\d[\d_]*)[eE][-+]\d+")
# A list of numbers, blanks and all.
_NUMBERS = re.compile(r"\[[\d.eE+-]+(?:, ?[\d.eE+-]+)*\]")


def is_guidance(value: object) -> bool:
    """Tell whether a change says in words how to choose the value.

    It is shown, and never written to a file.
    """
    # Chinese has no blanks, and a path may be Chinese: so what has none counts where it is known as guidance.
    # A mapping or a list, written as JSON, is a value, blanks and all.
    return isinstance(value, str) and (
        (" " in value.strip() and not value.startswith(('{"', '["')) and not _NUMBERS.fullmatch(value))
        or (not value.isascii() and value in chinese_guidance())
    )


def typed_value(text: str | None) -> Scalar | None:
    """Read a job's value as what it is: a truth value, a whole number, or the text."""
    if text is None or text == "":
        return None
    plain = text.strip().strip("'\"")
    if plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    return int(plain) if re.fullmatch(r"-?\d{1,18}", plain) else plain


def is_text_to_yaml(value: str) -> bool:
    """Tell whether YAML 1.1 reads a number as text: one with an exponent and no point, or without its sign.

    https://yaml.org/type/float.html; PyYAML, which most programs use, reads so.
    """
    plain = value.strip()
    return _EXPONENT.fullmatch(plain) is not None and _YAML_FLOAT.fullmatch(plain) is None


def misfit_reason(value: Scalar, spec: SettingSpec) -> str:
    """Say why a value is none for a setting, or give the empty string."""
    if is_guidance(value) or value in spec.choices or value == spec.default:
        return ""
    if spec.type == "bool":
        return (
            ""
            if str(value).lower() in ("true", "false", "0", "1")
            else Message("changes.no-bool", value=repr(value))
        )
    if spec.type in ("int", "float"):
        number = number_of(value, spec.type)
        if number is None:
            return Message(f"changes.no-{spec.type}", value=repr(value))
        if spec.min is not None and number < spec.min:
            return Message("changes.least-value", number=f"{number:g}", min=f"{spec.min:g}")
        if spec.max is not None and number > spec.max:
            return Message("changes.over-greatest-value", number=f"{number:g}", max=f"{spec.max:g}")
        return ""
    return (
        Message("changes.none", value=repr(value), choices=", ".join(map(str, spec.choices)))
        if spec.choices
        else ""
    )


def is_least(now: str | None, spec: SettingSpec | None) -> bool:
    """Tell whether a setting that counts something has its least value already."""
    number = None if now is None else number_of(now.strip("'\""), "float")
    least = 1.0 if spec is None or spec.min is None else max(spec.min, 1.0)
    return number is not None and number <= least


def number_of(value: Scalar, kind: str) -> float | None:
    """Read a value as a finite number of a kind (`int`, `float`); None where it is none."""
    try:
        number = float(value) if not isinstance(value, bool) else None
    except ValueError:
        return None
    return (
        None
        if number is None or not math.isfinite(number) or (kind == "int" and number != int(number))
        else number
    )
