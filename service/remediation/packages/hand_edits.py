"""An installed package that somebody has edited: its own file holds a row that no release can hold.

A file whose indent is broken or whose bracket is open could not be imported by anybody; what stops in a
debugger, or prints a name that is not there, was put in to look for something else.
"""

from __future__ import annotations

import re

from corpus.message import in_both
from corpus.schema import Change
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import STANDARD
from service.remediation.packages.changes import PackageChange
from service.remediation.packages.raising import package_of
from service.remediation.packages.seen import seen_versions

# What no version of Python takes; "invalid syntax" may be a row of a newer one.
_BROKEN = re.compile(
    r"expected ':'|was never closed|unterminated (?:string|triple|f-string)|unmatched '|EOL while scanning"
    r"|unexpected EOF|closing parenthesis .{1,60} does not match|unexpected indent|expected an indented block"
    r"|unindent does not match|inconsistent use of tabs|outside function|not properly in loop"
)
_INSTALLED = re.compile(r"(?:site|dist)-packages[/\\]")
_UNREAD = ("SyntaxError", "IndentationError", "TabError")
_UNNAMED = ("NameError", "UnboundLocalError")
_LOOKS = re.compile(r"\bi?pdb\b|\bbreakpoint\(|\bdebugpy\b|\bembed\(\)|^\s*(?:print|pprint|ic)\(")


def hand_edited(report: CrashReport) -> list[PackageChange]:
    """Offer the same release anew of the package whose file on the machine is none of a release's."""
    root = report.root
    inner = root.frames[-1] if root is not None and root.frames else None
    # A checkout is edited on purpose.
    if root is None or inner is None or STANDARD.search(inner.file) or not _INSTALLED.search(inner.file):
        return []
    package = package_of(inner)
    exception = root.exception.partition("(")[0]
    is_broken = exception in _UNREAD and _BROKEN.search(root.body) is not None
    is_looked = exception in _UNNAMED and _LOOKS.search(inner.code) is not None
    if not package or not (is_broken or is_looked):
        return []
    present = seen_versions(report).get(package)
    wanted = f"{package}=={present}" if present is not None else package
    row = inner.code.strip().replace("`", "'")[:80]
    why = in_both("packages.hand-edited", package=package, place=inner.found_at, row=row)
    command = "pip install --force-reinstall --no-deps"
    return [PackageChange(Change(framework="host", kind="command", key=command, to=wanted, why=why), None)]
