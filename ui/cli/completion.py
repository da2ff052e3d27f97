"""`whycrash completion`: print the script by which a shell completes commands and options."""

from __future__ import annotations

import sys

from corpus.message import Message
from service.schemas.errors import InvalidRequestError
from ui.cli.codes import COMPLETES, EXPLAINED

SHELLS = ("bash", "zsh", "fish")
NAME = "whycrash"


def run(shell: str) -> int:
    """Print a shell's script; raises InvalidRequestError for a shell that is not known."""
    # Only who asks for it waits for what it imports.
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # it is made elsewhere

    if shell not in SHELLS:
        raise InvalidRequestError(Message("errors.no-shell", shell=repr(shell), known=", ".join(SHELLS)))
    script = get_completion_script(prog_name=NAME, complete_var=COMPLETES, shell=shell)
    sys.stdout.write(f"{script}\n")
    return EXPLAINED
