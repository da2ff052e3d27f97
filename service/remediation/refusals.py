"""Keys that the job's program says it does not know, as the messages of the field's parsers name them."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise

from corpus.frameworks import PassedOption, known_frameworks
from corpus.keys import flag
from corpus.message import in_both
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.named_options import NamedOption, is_stray_command
from service.remediation.own_names import own_option

# Words of a command line that a parser has left over, as it lists them: Lib/argparse.py, parse_args;
# transformers/hf_argparser.py, parse_args_into_dataclasses and parse_dict; jsonargparse/_core.py.
_LEFT_OVER = re.compile(r"(?i)\bunrecognized (?:arguments|options): (?P<words>-.+)")
_LEFT_WORDS = re.compile(r"(?i)\bunrecognized (?:arguments|options): (?P<words>.+)")
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})
# An option behind a sign that no parser takes: three dashes.
_MISSIGNED = re.compile(r"(?P<sign>-{3,})(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?")
_LISTED = re.compile(
    r"(?i)\b(?:not used by the \w+Parser|(?:unknown|unused|unexpected|unrecogni[sz]ed|extra|invalid) "
    r"(?:\w+ )?(?:keys?|fields?|options?|arguments?|parameters?|settings?|overrides?))\b[^\[\n]{0,40}"
    r"(?P<items>\[['\"][^\]]{1,400}\])"
)
# One name each: click/exceptions.py, NoSuchOption; getopt_long of glibc and of Python; pflag of Go, which
# kubectl and docker read theirs with; clap of Rust; absl/flags/_exceptions.py; fire/core.py; jsonargparse's
# and dacite's keys of a configuration; datasets/builder.py, DatasetBuilder._create_builder_config.
_ONE = tuple(
    re.compile(expression)
    for expression in (
        r"\bNo such option:? [\"'`]?(?P<key>--?[\w-]+)",
        r"\bunrecognized option [\"'`]?(?P<key>--[\w-]+)(?:=(?P<value>[^'\"\s]*))?",
        r"\boption (?P<key>--[\w-]+) not recognized",
        r"\bunknown (?:shorthand )?flag: (?P<key>--[\w-]+)",
        r"\bflag provided but not defined: (?P<key>-[\w-]+)",
        r"\b(?:unexpected|Found) argument '(?P<key>--[\w-]+)[^']*' (?:found|which wasn't expected)",
        r"\bUnknown command line flag '(?P<key>[\w-]+)'",
        r"\bCould not consume arg: (?P<key>--[\w-]+)(?:=(?P<value>\S*))?",
        r"\bKey [\"'](?P<key>[\w.-]+)[\"'] is not expected",
        r"\bcan not match \"(?P<key>[\w.-]+)\" to any data class field",
        r"\bBuilderConfig .{1,600} doesn't have a '(?P<key>\w+)' key\b",
    )
)
_PROGRAM = re.compile(
    r"(?:^|[\s\])])(?P<program>[\w./-]+(?: [a-z][\w-]*)?): "
    r"(?:error: |(?:unrecognized|invalid|unknown) option)"
)
_USAGE = re.compile(
    r"(?:\W{0,3}Usage: |(?=See '))(?:See ')?(?P<program>[\w./-]+(?: [a-z][\w-]*)*) (?:\[OPTIONS\]|--help')"
)
_OPTION = re.compile(r"(?P<key>--?[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


def unknown_options(report: CrashReport) -> list[NamedOption]:
    """Give what the failing lines call unknown, each once, with the value that they show behind it."""
    found: dict[str, NamedOption] = {}
    for event in report.standing:
        if event.kind == "error" and not is_stray_command(event.body):
            for option in read_unknown(event.body):
                found.setdefault(option.key, option)
    return list(found.values())


def passed_option(key: str, report: CrashReport) -> PassedOption | None:
    """Give what a launcher of the job's is known to do about an option that it gives its processes."""
    texts = (*report.launches, report.command[1])
    return next(
        (
            passed
            for row in known_frameworks().rows.values()
            for passed in row.passes
            if re.fullmatch(passed.expression, key) and any(re.search(passed.launch, text) for text in texts)
        ),
        None,
    )


def valued_switches(report: CrashReport, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the switches of the job's own program that its command gives a value which the parser leaves."""
    left = {
        word
        for event in report.standing
        if event.kind == "error" and (match := _LEFT_WORDS.search(event.body))
        for word in _split(match["words"])
        if word.lower() in _TRUE | _FALSE
    }
    found: dict[str, NamedOption] = {}
    for setting in settings:
        key, value = flag(setting.key), setting.value
        if setting.spelled == "flag" and value in left and own_option(key, report) == "switch":
            is_on = value.lower() in _TRUE
            why = in_both(f"changes.switch-{'on' if is_on else 'off'}", key=key, value=value)
            found.setdefault(key, NamedOption(key, value, value=str(is_on), why=why, proves=True))
    return list(found.values())


def missigned_options(report: CrashReport) -> list[NamedOption]:
    """Give the options that a command gives behind a sign which no parser takes, rightly written."""
    found: dict[str, NamedOption] = {}
    for event in report.standing:
        match = _LEFT_WORDS.search(event.body) if event.kind == "error" else None
        words = _split(match["words"]) if match else []
        for word, following in pairwise([*words, "-"]):
            option = _MISSIGNED.fullmatch(word)
            if option is None:
                continue
            is_value = not following.startswith("-")
            value = option["value"] or (following if is_value else "")
            key = f"--{option['name']}"
            why = in_both("changes.sign", sign=option["sign"], key=key)
            found.setdefault(key, NamedOption(key, None, value=value or "true", why=why, proves=True))
    return list(found.values())


def refusing_program(report: CrashReport) -> str:
    """Give the name by which the program that refuses its command line calls itself; empty where none does.

    argparse and getopt put it before the error, click's and Go's usage stands above it.
    """
    texts = [event.text for event in report.standing if event.kind == "error"]
    texts += [text for _, text in sorted(report.texts.items()) if _USAGE.match(text)] if texts else []
    found = (_PROGRAM.search(text) or _USAGE.match(text) for text in texts)
    return next((match["program"] for match in found if match), "")


def read_unknown(message: str) -> Iterator[NamedOption]:
    """Read the keys that a parser's message calls unknown."""
    if match := _LEFT_OVER.search(message):
        yield from _of_words(_split(match["words"]))
    for match in _LISTED.finditer(message):
        items = _listed(match["items"])
        if items[:1] and items[0].startswith("-"):
            yield from _of_words(items)
        else:
            yield from (NamedOption(item, unknown=True) for item in items if _NAME.fullmatch(item))
    for expression in _ONE:
        for match in expression.finditer(message):
            yield NamedOption(match["key"], match.groupdict().get("value"), unknown=True)


def _of_words(words: Sequence[str]) -> Iterator[NamedOption]:
    """Give the options among words; what stands alone between two of them is the first one's value."""
    options = [_OPTION.fullmatch(word) for word in words]
    places = [*(at for at, option in enumerate(options) if option), len(words)]
    for at, following in pairwise(places):
        option, behind = options[at], words[at + 1 : following]
        if option is not None:
            value = behind[0] if option["value"] is None and len(behind) == 1 else option["value"]
            yield NamedOption(option["key"], value, unknown=True)


def _split(text: str) -> list[str]:
    """Cut a line into words; the frame that a terminal's box draws around it is none."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote within a word
        words = text.split()
    return [word for word in words if re.search(r"\w", word)]


def _listed(text: str) -> list[str]:
    """Read a list as Python prints it."""
    try:
        return [str(item) for item in ast.literal_eval(text)]
    except (ValueError, SyntaxError):
        return re.findall(r"['\"]([^'\"]+)['\"]", text)
