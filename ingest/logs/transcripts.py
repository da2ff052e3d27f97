"""IPython's prompts: code that a person or a notebook entered, among what it printed.

`In [3]: train()`, and for its further rows `   ...: `: IPython/terminal/prompts.py. What such a row says of
errors is code, and nobody's report.
"""

from __future__ import annotations

import re

_ENTERED = re.compile(r"In \[[ \d]{1,7}\](?: before)?: | {2,12}\.{3,6}: ")


def prompted(code: str, count: str, *, is_first: bool) -> str:
    """Write a row of a cell as IPython's shell shows it; `count` is empty where the cell has none."""
    prompt = f"In [{count or ' '}]: "
    return f"{prompt if is_first else '...: '.rjust(len(prompt))}{code}"


def past(text: str, count: str) -> str:
    """Write what a cell printed when the notebook was in a state that is past."""
    return f"In [{count or ' '}] before: {text}"


def is_entered(body: str) -> bool:
    """Tell whether a row is code that was entered at a prompt, or of a state that is past."""
    return _ENTERED.match(body) is not None
