"""The server of `eval.bench.serve`: `python -m eval.bench.server`, with settings from the environment."""

from __future__ import annotations

from service.api import serving
from service.api.app import create_app
from service.settings import load_settings

if __name__ == "__main__":
    settings = load_settings()
    serving.server(create_app(settings), settings).run()
