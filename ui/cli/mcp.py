"""`whycrash mcp`: the tools for coding assistants, over standard input and output."""

from __future__ import annotations

from ui.cli.codes import EXPLAINED
from ui.cli.console import load_settings


def run() -> int:
    """Serve one assistant until it hangs up."""
    # Imported here: the protocol's package is slow to load and an optional one.
    from ui.mcp import server

    server.serve(load_settings())
    return EXPLAINED
