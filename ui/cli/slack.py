"""`whycrash slack`: the Slack bot over Socket Mode, which needs no public address."""

from __future__ import annotations

from ui.cli.codes import EXPLAINED
from ui.cli.console import err, load_settings, progress


def run() -> int:
    """Answer Slack until told to stop."""
    # Imported here: Slack's packages are optional.
    from ui.slack import socket_mode

    settings = load_settings()
    socket_mode.check(settings)
    with progress() as report:
        err().print("Answering Slack over Socket Mode; ctrl-C stops it.", markup=False)
        socket_mode.serve(settings, report)
    return EXPLAINED
