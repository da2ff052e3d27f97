"""How a setting's key is spelled: one canonical form to compare by, and the way back into each style.

A flag is written with dashes or underscores (`--micro-batch-size`), an override of Hydra with a sign that
adds or takes out (`+actor.lr`, `~actor.lr`), a key of a file as a path of levels joined by dots
(`actor.optim.lr`).
"""

from __future__ import annotations

import re
from functools import lru_cache

# What stands before a key on a command line and is no part of its name.
_SIGNS = "-+~"


def unsigned(key: str) -> str:
    """Give a key as it is written, without the signs of the command line."""
    return key.lstrip(_SIGNS)


def signs(key: str) -> str:
    """Give the signs of the command line before a key: `--`, `+`, `~`."""
    return key[: len(key) - len(unsigned(key))]


# Every setting of a job is compared with every name that some knowledge asks for.
@lru_cache(maxsize=8192)
def canonical(key: str) -> str:
    """Give the form by which two spellings of a key are compared: no signs, underscores for dashes."""
    return unsigned(key).replace("-", "_")


def levels(key: str) -> list[str]:
    """Give the levels of a key as they are written: `actor.optim.lr` has three."""
    return unsigned(key).split(".")


def levels_above(key: str) -> list[str]:
    """Give the keys of the levels above one, the nearest first: `a.b` and `a` of `a.b.c`."""
    parts = levels(key)
    return [".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def last_level(key: str) -> str:
    """Give the canonical last level of a key, by which people name a long one."""
    return canonical(key).rpartition(".")[2]


def is_distinctive(key: str) -> bool:
    """Tell whether a key of one level means the same wherever it stands: one of several words.

    `gradient_checkpointing` below `training_args` does, `optim` or `seed` need not.
    """
    return len(levels(key)) == 1 and "_" in canonical(key).strip("_")


def flag(key: str, like: str = "") -> str:
    """Give a key as a command-line flag; with underscores where a present one (`like`) has them.

    A key that is written with its own signs keeps them.
    """
    name = unsigned(key)
    if "_" in like and "-" not in unsigned(like):
        name = name.replace("-", "_")
    return (signs(key) or "--") + name


def negated(name: str) -> str:
    """Give the flag that turns a switch off: `--no-name`; of such a flag the one that turns it on."""
    bare = unsigned(name)
    if bare[:3] in ("no-", "no_"):
        return signs(name) + bare[3:]
    return f"{signs(name)}no{'_' if '_' in bare else '-'}{bare}"


def pattern(key: str) -> str:
    """Give an expression for a key in any of its spellings, signs left out."""
    return re.sub(r"[_-]", "[_-]", re.escape(unsigned(key)).replace(r"\-", "-"))
