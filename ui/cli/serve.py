"""`whycrash serve`: API, chat page and Slack in one process."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace

from service.signals.json_log import JsonFormatter
from service.signals.starting import signals
from ui import server
from ui.cli import signals as unix_signals
from ui.cli.codes import EXPLAINED
from ui.cli.console import err, load_settings, progress

# Packages whose every step is none of an administrator's matter.
_NOISY = ("httpx", "gradio", "uvicorn.error", "asyncio", "alembic", "bm25s")


def run(host: str, port: int | None) -> int:
    """Serve until told to stop."""
    settings = load_settings()
    settings = replace(settings, host=host or settings.host, port=settings.port if port is None else port)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    for handler in logging.getLogger().handlers:
        # Here, not by a level: some libraries set their own when they are imported, which is later.
        handler.addFilter(
            lambda record: record.levelno >= logging.WARNING or not record.name.startswith(_NOISY)
        )
    if settings.log_json:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())
    # The web server ends itself on a SIGTERM, and then sends it once more to whoever was there before: to us.
    unix_signals.orderly()
    with signals("server", logs=True), progress() as report:
        server.serve(
            settings,
            report,
            lambda url: err().print(
                f"whycrash is at {url} (API under {url}/v1, ctrl-C stops it)", markup=False, soft_wrap=True
            ),
        )
    return EXPLAINED
