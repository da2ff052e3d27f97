"""Stacks in a log: tracebacks of Python and of other languages, and whose code raised."""
