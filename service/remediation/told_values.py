"""Values of the job's own settings that rows of `own_values.yaml` work out of what a message says.

A message rarely names the option of the job's own script that holds a wrong number: it tells the number, or
what kind of thing is wrong. A row says by which name such an option goes, which value of it the message
speaks of, and what it must become.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from corpus.expressions import compiled
from corpus.keys import canonical, last_level, unsigned
from corpus.library import Library
from corpus.own_values import OwnValueRow, known_own_values
from corpus.schema import Text
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.framework_relations import settable_frameworks
from service.remediation.named_options import NamedOption
from service.remediation.own_names import defined_options
from service.remediation.rules.evaluation import evaluate
from service.remediation.rules.operators import plain_operators
from service.remediation.setting_values import number_of

# How many rows around the failing line a message may take: a table of weights stands above the exception.
ABOVE, BELOW = 40, 12
_SWITCH = re.compile(r"(?i)y|n|yes|no|on|off")
# How far below the failing line one of the same chain may stand.
LINKED = 60


def told_values(
    cause: str, report: CrashReport, settings: Sequence[Setting], library: Library | None = None
) -> list[NamedOption]:
    """Give the settings that the root's message speaks of, with the value that follows from it.

    Without the `library` all settings count as the job's own.
    """
    if report.root is None:
        return []
    text = "\n".join(_rows(report))
    defined = [Setting(name, "", 0, "flag") for name in defined_options(report)]
    # What a command or a file gives counts before the value that code falls back to.
    given = {canonical(setting.key) for setting in settings if not _is_fallback(setting)}
    settings = [item for item in settings if not (_is_fallback(item) and canonical(item.key) in given)]
    mine = settable_frameworks(report)
    own = [item for item in settings if not any(library and library.setting(name, item.key) for name in mine)]
    rows = (row for row in known_own_values() if row.cue in text and cause in (row.causes or (cause,)))
    return [option for row in rows for option in values_by(row, text, own if row.own else settings, defined)]


def values_by(
    row: OwnValueRow, text: str, settings: Sequence[Setting], defined: Sequence[Setting] = ()
) -> list[NamedOption]:
    """Give what a row makes of a message for the settings that it fits, the first of which the others follow.

    `defined` are options that the program has and the job does not give.
    """
    for said in compiled(row.expression).finditer(text):
        row_of = text[text.rfind("\n", 0, said.start()) + 1 : said.end()]
        told: dict[str, object] = {"line": row_of}
        told |= {name: _read(value) for name, value in said.groupdict().items() if value is not None}
        beside = {name: _number_named(key, settings) for name, key in row.beside.items()}
        if None in beside.values():
            continue
        fitting = list(_fitting(row, settings, {**told, **beside}))
        if not fitting and row.adds:
            given = {canonical(setting.key) for setting in settings}
            unset = [item for item in defined if canonical(item.key) not in given]
            fitting = list(_fitting(row, unset, {**told, **beside}))
        found = list({canonical(option.key): option for option in reversed(fitting)}.values())[::-1]
        if found and not row.every and len({last_level(option.key) for option in found}) == 1:
            # One option in two files of the job, of which the first is the one that the run read.
            found = found[:1] if len({option.present for option in found}) == 1 else found
        if len(found) == 1 or (found and row.every):
            return [found[0], *(replace(option, goes_with=found[0].key) for option in found[1:])]
    return []


def _is_fallback(setting: Setting) -> bool:
    """Tell whether a setting is a value in the job's own code, which an option may override."""
    return setting.spelled == "dump" and not setting.line


def _rows(report: CrashReport) -> Iterator[str]:
    """Give the failing line, the rows below it, those above, and the statements of its calls."""
    root, texts = report.root, report.texts
    assert root is not None  # noqa: S101 - the caller has asked
    yield root.body
    around = (*range(root.line + 1, root.line + BELOW + 1), *range(root.line - 1, root.line - ABOVE, -1))
    yield from (texts[line] for line in around if line in texts)
    # What an exception that came of the root says stands below its calls.
    yield from (event.body for event in report.standing if 0 < event.line - root.line <= LINKED)
    yield from (frame.code for frame in reversed(root.frames) if frame.code)


def _fitting(
    row: OwnValueRow, settings: Sequence[Setting], names: Mapping[str, object]
) -> Iterator[NamedOption]:
    for setting in settings:
        if not compiled(row.setting).search(unsigned(setting.key)):
            continue
        text = setting.value.strip("'\"")
        bound = {**names, "now": _read(text), "text": text, "spelled": setting.spelled}
        bound["leaf"] = last_level(setting.key)
        if not evaluate(row.when, bound, plain_operators()):
            continue
        to = None if row.to is None else evaluate(row.to, bound, plain_operators())
        # A word that YAML reads as a truth value becomes itself, in quotes.
        is_other = str(to) != text or (setting.spelled == "yaml" and bool(_SWITCH.fullmatch(text)))
        if (row.to is None) is (to is None) and is_other:
            plain = int(to) if isinstance(to, float) and to.is_integer() else to
            filled = {**bound, "to": to, "key": setting.key}
            why = Text(en=row.why.en.format(**filled), zh=row.why.zh.format(**filled))
            yield NamedOption(
                setting.key,
                setting.value or None,
                value=None if to is None else str(plain),
                why=why,
                proves=row.proves,
                removed=to is None,
            )


def _read(text: str) -> int | float | str:
    """Read a number where a text is one."""
    number = number_of(text, "float")
    if number is None or isinstance(number, bool):
        return text
    return int(number) if float(number).is_integer() else number


def _number_named(key: str, settings: Sequence[Setting]) -> int | float | None:
    """Give the number of the one setting whose key an expression finds."""
    found = {
        value
        for setting in settings
        if re.search(key, unsigned(setting.key)) and not isinstance(value := _read(setting.value), str)
    }
    return found.pop() if len(found) == 1 else None
