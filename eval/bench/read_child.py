"""Read one log and print what it took: `python -m eval.bench.read_child FILE|-`.

A process of its own, so that its peak memory is that of the reader.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from tempfile import gettempdir
from time import perf_counter

from corpus import log_patterns
from ingest.logs.inputs import jobs
from ingest.logs.reader import Reader

# Compiled patterns are shared by the runs of the benchmarks.
CACHE = Path(gettempdir()) / "whycrash-bench-cache"


def main(name: str) -> int:
    """Read a file, or standard input for `-`; prints bytes, seconds, peak MiB and the number of events."""
    reader = Reader(log_patterns.load(cache=CACHE), CACHE)
    started = perf_counter()
    source = jobs.open_stdin() if name == "-" else jobs.open_job(Path(name))
    report = reader.read(source)
    seconds = perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"{report.limits.bytes} {seconds:.4f} {peak:.0f} {len(report.events)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
