"""Whether what a message of Python's misses is of a class or a function of the job's own code.

Names alone do not tell: people call their classes `Trainer`, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.logs.stacks.own_calls import is_own, raised_for
from ingest.logs.stacks.stack import Frame

# CPython, Objects/object.c and typeobject.c.
_ATTRIBUTE = re.compile(r"AttributeError: (?:type object )?'[\w.]+' (?:object )?has no attribute '(\w+)'")
# CPython, Python/ceval.c; `<locals>` stands behind a function that made the called one as it ran.
_CALLEE = re.compile(r"TypeError: ([\w.<>]+)\.<locals>\.[\w.<>]+\(\) (?:got|missing|takes|argument)\b")


def misses_own(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether the job's own code has to give what the message says is missing.

    An attribute that a method of the job's own asks of `self` is one of its class. A function that another
    made as it ran is the other's, which is in the job's code where that is seen to run.
    """
    attribute, callee = _ATTRIBUTE.search(message), _CALLEE.search(message)
    if attribute is not None:
        calls = raised_for(frames)
        asked = rf"\b(?:self|cls)\.{attribute[1]}\b"
        return bool(calls) and is_own(calls[-1]) and re.search(asked, calls[-1].code) is not None
    if callee is not None:
        makers = {part.rpartition(".")[2] for part in callee[1].split(".<locals>.")}
        return any(frame.function in makers and is_own(frame) for frame in frames)
    return False
