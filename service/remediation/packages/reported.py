"""Versions with which a failure goes away, as whoever pasted the log says beside it.

Only a known package at a plain version is read: a log is hostile text. Whoever writes beside it may be
mistaken, so that the change says which line claims it.
"""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from corpus.frameworks import known_frameworks
from corpus.library import Library
from corpus.message import in_both
from corpus.releases import version_of
from corpus.schema import Change
from ingest.logs.report import CrashReport
from service.remediation.packages.changes import PackageChange
from service.remediation.rules.packages import distribution

_VERSION = r"v?(?P<version>\d{1,4}(?:\.\d{1,4}){1,3}(?:\.?(?:post|rc|dev)\d{1,3})?)"
_AT = re.compile(
    rf"(?<![\w./-])(?P<package>[A-Za-z][A-Za-z0-9._-]{{1,60}}?)(?: ?={{1,2}} ?| version | to (?:version )?| )"
    rf"{_VERSION}(?![\w.])"
)
# What is said of the failure with it: it is gone, or the program runs.
_GONE = re.compile(
    r"(?i)\b(?:error|problem|issue|crash|failure|it)s? (?:\w+ ){0,2}?(?:goes away|went away|disappear\w*|"
    r"is gone|(?:is |was |got |gets )?(?:solved|fixed|resolved))\b"
    r"|\b(?:works?|worked|runs?) (?:fine|again|well|for me|without (?:\w+ )?(?:error|problem|issue)s?)\b"
    r"|\b(?:solve[sd]?|fix(?:e[sd])?|resolve[sd]?) (?:it|this|the (?:error|problem|issue))\b"
    r"|(?:\u5c31|\u53ef\u4ee5|\u80fd|\u5df2)"
    r"(?:\u6b63\u5e38|\u597d\u4e86|\u89e3\u51b3|\u6ca1\u95ee\u9898|\u53ef\u4ee5\u4e86|\u4e0d\u62a5\u9519)"
)
# A sentence that denies it, asks for it or tells of what was tried in vain.
_DENIED = re.compile(
    r"(?i)\b(?:not|n't|never|still|no longer works?|unfortunately|fails?|tried|would|should|maybe|hope|"
    r"if it)\b|\?|\u4ecd|\u8fd8\u662f|\u6ca1\u6709\u89e3\u51b3|\u4e0d\u884c|\u5417|\uff1f"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[\u3002\uff01]")
# A longer row is no sentence of a person.
_LONGEST = 400
_LINES = 400


def reported_versions(report: CrashReport, library: Library) -> list[PackageChange]:
    """Give the versions of known packages with which the failure is said to be gone, each package once."""
    found: dict[str, PackageChange] = {}
    installer = min(known_frameworks().with_field("installs"))
    known = {
        canonicalize_name(name.split("[")[0]): name.split("[")[0] for name in library.keys.get(installer, ())
    }
    short = [(line, text) for line, text in sorted(report.texts.items())[:_LINES] if len(text) <= _LONGEST]
    for line, sentence in ((line, part) for line, text in short for part in _SENTENCE.split(text)):
        if not _GONE.search(sentence) or _DENIED.search(sentence):
            continue
        for match in _AT.finditer(sentence):
            package = canonicalize_name(distribution(match["package"]))
            if package in known and version_of(match["version"]) is not None:
                why = in_both("packages.reported", line=line)
                change = Change(
                    framework=installer,
                    kind="package",
                    key=known[package],
                    to=f"=={match['version']}",
                    why=why,
                )
                found.setdefault(package, PackageChange(change, None))
    return list(found.values())
