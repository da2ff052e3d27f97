"""`whycrash mcp`: the tools for coding assistants, over standard input and output."""

from __future__ import annotations

from service.settings import load
from ui.cli.codes import EXPLAINED


def run() -> int:
    """Serve one assistant until it hangs up."""
    # Imported here: the protocol's package is slow to load and an optional one.
    from ui.mcp import server

    server.serve(load())
    return EXPLAINED
