"""An engine as a program: `python -m tests.service.batch.program [BATCH]`; settings come from the environment."""

from __future__ import annotations

import sys

from service.batch.batches import open_store
from service.batch.engine import Engine
from service.settings import load

if __name__ == "__main__":
    settings = load()
    with open_store(settings) as store:
        Engine(settings, store, batch=sys.argv[1] or None).run()
