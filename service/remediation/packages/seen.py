"""The versions of packages that a job's log and files show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.frameworks import known_frameworks
from corpus.package_names import is_on_index
from corpus.releases import known_packages, version_of
from corpus.symbols import packages_told
from ingest.logs.configs.launch import Setting
from ingest.logs.facts import Fact
from ingest.logs.report import CrashReport
from service.remediation.rules.packages import distribution

# What a list of packages, an installer or a path says; never what a requirement asks for.
_PINNED = re.compile(
    r"(?<![\w.-])(?P<name>[A-Za-z][\w.-]{1,40}?)(?:\[[\w,-]{1,40}\])?==(?P<version>\d[\w.+]{0,30})"
)
_FOLDER = re.compile(
    r"(?P<name>[A-Za-z]\w{1,40})-(?P<version>\d[\w.+]{0,30}?)(?:\.dist-info|-py3\.\d+[\w.-]{0,20}\.egg)"
)
_HAVE = re.compile(r"you have (?P<name>[A-Za-z][\w.-]{1,40}) (?P<version>\d[\w.+]{0,30})(?= which)")
_REQUIRING = re.compile(
    r"(?P<name>[A-Za-z][\w.-]{1,40}) (?P<version>\d[\w.+]{0,30})(?= (?:requires|has requirement) )"
)
_INSTALLED = re.compile(r"Successfully installed (?P<names>[\w.+ -]{3,4000})")
# What people write of their own: `trl: 0.19.1` alone on a row, `peft version is 0.12`, also in Chinese.
_WORDED = re.compile(
    r"^\s*[-*]?\s*(?P<row>[A-Za-z][\w.-]{1,40}) ?[:\uff1a=] ?v?"
    r"(?P<value>\d+(?:\.\d+){1,3}[\w.+]{0,20})\s*$"
    r"|(?<![A-Za-z0-9_.-])(?P<name>[A-Za-z][A-Za-z0-9_.-]{1,40}?) ?"
    r"(?:(?:package |library )?(?i:version)(?: is|:| =)?"
    r"|\u7684?\u7248\u672c(?:\u53f7)?(?:\u4e3a|\u662f|\uff1a|:)?)"
    r" ?v?(?P<version>\d+(?:\.\d+){1,3}[\w.+]{0,20})(?![\w.])"
)
_SHOWN = (_PINNED, _FOLDER, _HAVE, _REQUIRING)
# A row of `pip list` or `conda list`, and what `pip show` says in two rows.
_LISTED = re.compile(r"^(?P<name>[A-Za-z][\w.-]{1,40}) {2,}(?P<version>\d[\w.+]{0,30})(?:\s|$)")
_NAMED = re.compile(r"^Name: (?P<name>[A-Za-z][\w.-]{1,40})$")
_VERSION = re.compile(r"^Version: (?P<version>\d[\w.+]{0,30})$")
# A compiled library by its path, and an operator by its name, which begins with its library's.
_LIBRARY = re.compile(r"(?:site|dist)-packages/(?P<module>[A-Za-z_]\w*)[\w./+-]*\.so\b")
_OPERATOR = re.compile(r"\boperator (?P<module>[A-Za-z]\w*)::\w")
# Files of Python itself, which no package brought, and a text that somebody ran as code.
_OF_PYTHON = re.compile(r"^<(?:frozen |string>)|/lib(?:64)?/python\d[\d.]*/(?!(?:site|dist)-packages/)")
# A call as IPython shows it, with or without its link on a page, and rows of code that may stand below it.
_CALL = re.compile(r"\s*(?:File )?\[?(?P<file>[^\s\"\]]{1,300}\.py)(?::\d|\]\(|, line \d| in \S)")
_CODE_ROWS = 14
# What loads the library of another package for it.
_LOADER = re.compile(r"/torch/_ops\.py$")
# A line that says what it needs names versions that the job has not.
_ASKING = re.compile(
    r"(?i)\brequires?\b|\bneeds?\b|\bplease\b|\binstall\b|\b(?:uv|poetry) (?:pip|add)\b|--upgrade|"
    r"\bat least\b|\btry\b"
)


def seen_versions(report: CrashReport, settings: Sequence[Setting] = ()) -> dict[str, Version]:
    """Give the versions by package; of what the log and the job's files say of one, the log's counts."""
    found: dict[str, Version] = {}
    pinned = (
        (setting.key, setting.value.removeprefix("=="))
        for setting in settings
        if setting.spelled == "package" and setting.value.startswith("==")
    )
    for name, text in chain(_printed(report), _told(report), pinned):
        version = version_of(text)
        if version is not None:
            found.setdefault(canonicalize_name(distribution(name)), version)
    return found


def _told(report: CrashReport) -> Iterator[tuple[str, str]]:
    """Give what messages say of a package's version, and what frameworks print of their own."""
    for fact in report.facts:
        if fact.kind == "package" and {"name", "version"} <= set(fact.fields):
            yield str(fact.fields["name"]), str(fact.fields["version"])
    for framework in report.frameworks:
        if framework.version:
            yield known_frameworks().row(framework.name).package or framework.name, framework.version


def _printed(report: CrashReport) -> Iterator[tuple[str, str]]:
    named = None
    for _, text in sorted(report.texts.items()):
        row = _LISTED.match(text)
        # A column of a table may have the name of anything: only packages whose releases are known count.
        if row is not None and canonicalize_name(distribution(row["name"])) in known_packages():
            yield row["name"], row["version"]
        if named is not None and (shown := _VERSION.match(text)):
            yield named["name"], shown["version"]
        named = _NAMED.match(text)
        asking = _ASKING.search(text) is not None
        for expression in _SHOWN:
            if expression is _PINNED and asking:
                continue
            yield from ((match["name"], match["version"]) for match in expression.finditer(text))
        for told in _WORDED.finditer(text) if not asking else ():
            name, version = told["row"] or told["name"], told["value"] or told["version"]
            if canonicalize_name(distribution(name)) in known_packages() | packages_told():
                yield name, version
        for installed in _INSTALLED.finditer(text):
            for word in installed["names"].split():
                name, _, version = word.rpartition("-")
                yield name, version


def involved_packages(report: CrashReport) -> list[Fact]:
    """Give the package whose code raised the root, and those whose library or file it names, as its facts.

    What lacks a name of its own was not made for another release of something else: it raised nothing. What
    Python's own library raises, and what loads a library for another package, it raises for its caller.
    """
    if (root := report.root) is None:
        return []
    lacking = {
        _owner(str(fact.fields.get("name", "")))
        for fact in report.facts
        if fact.kind == "package" and fact.line == root.line
    }
    calls = [
        frame.file
        for frame in reversed(root.frames)
        if not _OF_PYTHON.search(frame.file)
        and not (frame.function.startswith("load_library") and _LOADER.search(frame.file))
    ]
    if not root.frames:
        # A paste may leave out the row that a traceback begins with, and thereby its calls.
        above = (report.texts.get(root.line - rows, "") for rows in range(1, _CODE_ROWS))
        calls = [call["file"] for text in above if (call := _CALL.match(text)) is not None]
    in_package = known_frameworks().package_file
    called = in_package.search(calls[0]) if calls else None
    raised = _owner(called["module"]) if called is not None else ""
    found = [("raised", raised)] if raised and raised not in lacking else []
    # A library that lies beside the packages under a name of its own belongs to the one that loads it.
    found += [
        ("library", name if is_on_index(name) or not raised else raised) for name in libraries_of(root.text)
    ]
    found += [("holding", _owner(match["module"])) for match in in_package.finditer(root.text)][:1]
    return [Fact(kind, root.line, {"package": name}) for kind, name in found]


def libraries_of(text: str) -> Iterator[str]:
    """Name the packages whose compiled libraries a message speaks of."""
    yield from (_owner(match["module"]) for match in _LIBRARY.finditer(text))
    # Operators of PyTorch's own have namespaces of their own, such as `aten`.
    operators = (_owner(match["module"]) for match in _OPERATOR.finditer(text))
    yield from (name for name in operators if name in known_packages())


def _owner(module: str) -> str:
    """Name the package that brings a module."""
    return canonicalize_name(distribution(module.split(".")[0]))
