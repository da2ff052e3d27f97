"""Fuzz one reader until the time is over or something is found.

Run as `python -m eval.fuzz.process NAME FOLDER [OPTION...]`. A process of its own,
since libFuzzer ends the one that it runs in. OPTIONs are libFuzzer's.
"""

from __future__ import annotations

import sys

import atheris

# What is imported here is instrumented, so that libFuzzer sees which branches an input takes.
with atheris.instrument_imports(include=["ingest", "service.patching"]):
    from eval.fuzz.targets import SUBJECTS


def main(words: list[str]) -> None:
    """Fuzz; ends the process."""
    name, *options = words
    atheris.Setup([sys.argv[0], *options], SUBJECTS[name].take)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
