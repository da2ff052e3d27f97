"""`whycrash mcp`: the tools for coding assistants, over standard input and output, and their skill."""

from __future__ import annotations

from pathlib import Path

from ui.cli.codes import EXPLAINED
from ui.cli.console import load_settings, out


def run(skill: Path | None = None) -> int:
    """Serve one assistant until it hangs up, or write the skill below a folder."""
    if skill is not None:
        from ui.mcp import skill as skills

        out().print(str(skills.write(skill)), markup=False, highlight=False)
        return EXPLAINED
    # Imported here: the protocol's package is slow to load and an optional one.
    from ui.mcp import server

    server.serve(load_settings())
    return EXPLAINED
