"""Read one log and say how many bytes a second that were: `python -m eval.bench.read_child FILE|-`.

A process of its own, so that its peak memory is the reader's.
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

# Compiled patterns are kept beside other runs of the benchmark, as a user's are in WHYCRASH_HOME.
CACHE = Path(gettempdir()) / "whycrash-bench-cache"


def main(name: str) -> int:
    """Read, and print bytes, seconds, MiB at the peak and the number of the root's line."""
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
