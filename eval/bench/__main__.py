"""Run the benchmarks: `python -m eval.bench [NAME...]`."""

from __future__ import annotations

import sys

from rich.console import Console

from eval.bench import batch, hostile, ingest, noisy_scan, redact, run, scan, serve, start, vectors, warm

BENCHES = {
    "batch": batch.run,
    "hostile": hostile.run,
    "ingest": ingest.run,
    "noisy": noisy_scan.run,
    "redact": redact.run,
    "run": run.run,
    "scan": scan.run,
    "serve": serve.run,
    "start": start.run,
    "vectors": vectors.run,
    "warm": warm.run,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all, and print their tables."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.stderr.write(f"There is no benchmark {unknown[0]!r}; there are {', '.join(BENCHES)}.\n")
        return 2
    console = Console(width=110)
    for name in names or BENCHES:
        console.print(BENCHES[name]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
