"""An engine as a program: `python -m tests.service.batches.program [BATCH]`.

Settings come from the environment.
"""

from __future__ import annotations

import sys

from service.batches.batches import open_store
from service.batches.engine import BatchEngine
from service.settings import load_settings

if __name__ == "__main__":
    settings = load_settings()
    with open_store(settings) as store:
        BatchEngine(settings, store, batch=sys.argv[1] or None).run()
