"""Fuzz one reader until the time is over or something is found.

Run as `python -m eval.fuzz.process NAME FOLDER [OPTION...]`, with libFuzzer's OPTIONs. A process of its own,
as libFuzzer ends the process that it runs in.
"""

from __future__ import annotations

import sys

import atheris

# What is imported here is instrumented, so that libFuzzer sees which branches an input takes.
with atheris.instrument_imports(include=["ingest", "service.patching"]):
    from eval.fuzz.targets import SUBJECTS


def main(words: list[str]) -> None:
    """Fuzz the reader that the first word names; does not return."""
    name, *options = words
    atheris.Setup([sys.argv[0], *options], SUBJECTS[name].run)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
