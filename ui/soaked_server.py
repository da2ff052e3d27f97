"""The whole server under a soak: `python -m ui.soaked_server`, with settings from the environment.

It is what `whycrash serve` is, but for Slack, which is the stand-in that SOAK_SLACK names (`eval.soak`).
"""

from __future__ import annotations

import os

from service.pipeline.triage import no_progress
from service.settings import load_settings
from ui.server import serve


def _started(_address: str) -> None:
    """Hear where the server is; whoever started it chose that."""


if __name__ == "__main__":
    serve(load_settings(), no_progress, _started, os.environ.get("SOAK_SLACK", ""))
