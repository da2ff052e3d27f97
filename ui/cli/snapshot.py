"""`whycrash snapshot`: what this machine says of itself, once or over and over."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ingest.logs.lines import printable
from service.telemetry import collectors, snapshot, watch
from service.telemetry.snapshot import Snapshot
from ui.cli.console import load_settings

# Xid events are listened to for so long between two samples; a longer wait would only delay the next.
MIN_WATCH_S = 1.0


def run(every_s: float, out: Path | None, since: Path | None) -> int:
    """Write one snapshot, or one each `every_s` seconds until stopped."""
    before = snapshot.load_snapshot(since) if since else None
    sources = collectors.sources_of(load_settings())
    if not every_s:
        _put(collectors.take_snapshot(sources, before), out)
        return 0
    for made in _paced(watch.watch_machine(sources, max(MIN_WATCH_S, every_s), before), every_s):
        _put(made, out)
    return 0


def _paced(samples: Iterator[Snapshot], every_s: float) -> Iterator[Snapshot]:
    """Let samples come no faster than asked; one that listened for Xid events has waited already."""
    for made in samples:
        began = time.monotonic()
        yield made
        if not made.host.gpu_count.value:
            time.sleep(max(0.0, every_s - (time.monotonic() - began)))


def _put(made: Snapshot, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(made.to_json() + "\n")
        sys.stdout.flush()
        return
    watch.write_snapshot(made, out)
    # Plainly: whoever samples beside a job should not load what only draws on terminals.
    sys.stderr.write(f"{printable(str(out))}: {made.taken_at:%H:%M:%S}, {', '.join(made.sources)}\n")
