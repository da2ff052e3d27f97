"""Names that the job's own program has: its usage prints them, its code defines them, its files set them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Literal

from corpus.keys import canonical, pattern, signs
from ingest.configfiles.formats import CODE
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.code_edits.source_text import parsed

_OPTION = re.compile(r"(?<![\w.-])--[A-Za-z][\w.-]{1,60}")
# argparse prints its usage before the error that it exits with: Lib/argparse.py, ArgumentParser.error.
_USAGE, _ERROR = re.compile(r"^\W{0,3}usage: ", re.IGNORECASE), re.compile(r"\berror: ")
# Options that code defines for argparse, click or typer.
_DEFINED = re.compile(
    r"\b(?:add_argument|[Oo]ption)\((?:[^()\"']{0,80}|[\"']-\w[\"'],?\s*)*"
    r"[\"'](?P<name>--[A-Za-z][\w.-]{1,60})[\"']"
)
# A parser that ends the program at an option which it was not told of.
_CLOSED = re.compile(r"\bArgumentParser\((?!.{0,300}\bparents\s*=)")
# DeepSpeed's function adds options that begin with its own name, and no others.
_NAMESAKES = re.compile(r"\b(?P<prefix>\w{1,40})\.add_config_arguments\(")
# What makes options from elsewhere, or lets pass what it does not know.
_OPEN = re.compile(
    r"parse_known|parse_args_into_dataclasses|\b(?:Hf|Trl|Lightning)\w*Parser\(|add_argparse_args"
    r"|LightningCLI|(?<!add_config_arguments)\(\s*(?:parser|arg_parser|argparser|ap|p)\s*[,)]|\bREMAINDER\b"
)
# What the program itself takes the wrong name for: click, Python 3.12 and later, omegaconf, clap, tyro.
_MEANT = re.compile(
    r"(?i)(?:\bdid you mean:?|\bperhaps you meant:?|\(possible options:|\bsimilar \w+ exists:)\s+"
    r"(?:one of:?\s*)?['\"`]?(?P<name>--[\w.-]+|[A-Za-z_][\w.]*)"
)
# How many lines below the refusal a parser puts its hint.
_BELOW = 3
# Settings of a file or of code, not of the command line that has the wrong name.
_GIVEN = frozenset({"flag", "hydra", "env"})
# Under this key a configuration of Hydra's names its groups, each with the choice that it begins with.
_DEFAULTS = "defaults."
# Words for a count, each of which programs put before a name or leave out.
_COUNTING = frozenset({"n", "num", "nb", "number", "of", "count"})
# Of so many letters at most a name's first word says nothing of another one.
LEAST_FIRST = 3


def own_names(report: CrashReport, settings: Sequence[Setting]) -> list[str]:
    """Give the names that the job's program takes for sure, each once, what its message suggests first."""
    found = dict.fromkeys(
        (
            *(match["name"] for event in report.standing for match in _MEANT.finditer(event.body)),
            *_printed(report),
            *defined_options(report),
            *(setting.key for setting in settings if setting.spelled not in _GIVEN),
            *_grouped(settings),
        )
    )
    return list({canonical(name): name for name in reversed(found)}.values())[::-1]


def _grouped(settings: Sequence[Setting]) -> Iterator[str]:
    """Give the keys of files of a Hydra group as a command line names them: `optim.lr` of `optim/adamw.yaml`.

    A defaults list names the group, whose folder holds a file for each choice.
    """
    groups = {
        key.removeprefix(_DEFAULTS) for key in (item.key for item in settings) if key.startswith(_DEFAULTS)
    }
    for setting in settings:
        group = PurePosixPath(setting.file).parent.name
        if setting.spelled == "yaml" and group in groups:
            yield f"{group}.{setting.key}"


def defined_options(report: CrashReport) -> list[str]:
    """Give the options that the job's own code defines for its parser."""
    return [match["name"] for text in report.launches for match in _DEFINED.finditer(text)]


def defined_fields(report: CrashReport) -> list[str]:
    """Give the fields of the classes of the job's own code, such as those of a dataclass."""
    found: list[str] = []
    for text in report.launches:
        body, _, name = text.rpartition("\n")
        tree = parsed(body) if name.endswith(CODE) else None
        classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)) if tree else ()
        found += [
            item.target.id
            for node in classes
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        ]
    return list(dict.fromkeys(found))


def own_option(key: str, report: CrashReport) -> Literal["", "option", "switch"]:
    """Tell whether the job's own code defines an option, and whether it is a switch without a value."""
    if canonical(key) not in map(canonical, defined_options(report)):
        return ""
    switch = re.compile(
        rf"['\"]--{pattern(key)}['\"][^()]{{0,200}}(?:action\s*=\s*['\"]store_true|is_flag\s*=\s*True)"
    )
    return "switch" if any(map(switch.search, report.launches)) else "option"


def closed_scripts(names: Iterable[str], report: CrashReport) -> Iterator[str]:
    """Name the job's scripts at hand whose own parser, all of it in them, refuses options of these names."""
    wanted = set(map(canonical, names))
    for text in report.launches:
        body, _, name = text.rpartition("\n")
        if name.endswith(CODE) and _CLOSED.search(body) and not _OPEN.search(body):
            given = {canonical(match["name"]) for match in _DEFINED.finditer(body)}
            prefixes = tuple(match["prefix"] for match in _NAMESAKES.finditer(body))
            if given and wanted.isdisjoint(given) and not any(name.startswith(prefixes) for name in wanted):
                yield PurePosixPath(name).name


def meant_name(old: str, report: CrashReport) -> str:
    """Give the name that a message proposes in place of a wrong one, or the empty string."""
    texts = report.texts
    for event in report.standing:
        if re.search(rf"(?<![\w.-])-{{0,2}}{pattern(old)}(?![\w-])", event.body):
            told = [event.body, *(texts.get(event.line + step, "") for step in range(1, _BELOW + 1))]
            found = next((match["name"] for text in told if (match := _MEANT.search(text))), "")
            if found:
                return written_like(found, old)
    return ""


def _printed(report: CrashReport) -> Iterator[str]:
    """Give the options of the usage that stands before an error."""
    within = False
    for _, text in sorted(report.texts.items()):
        within = bool(_USAGE.search(text)) or (within and not _ERROR.search(text))
        if within:
            yield from _OPTION.findall(text)


# What Hydra says of the sign before a key: hydra/_internal/config_loader_impl.py.
_SIGNED = re.compile(
    r"(?:To append to your config use|Either remove \+ prefix:) '?(?P<name>\+?[A-Za-z_][\w.@/-]*)="
    r"|Could not append to config\. An item is already at '(?P<plain>[A-Za-z_][\w.@/-]*)'"
)


def signed_names(report: CrashReport) -> list[str]:
    """Give the keys that a message wants written with another sign, as it writes them."""
    texts = (text for _, text in sorted(report.texts.items()))
    return list(
        dict.fromkeys(match["name"] or match["plain"] for text in texts for match in _SIGNED.finditer(text))
    )


def stands_for(old: str, new: str) -> bool:
    """Tell whether one of two names is the first letters of the other one's words: `lr`, `learning_rate`."""
    (parent, leaf), (other, last) = (canonical(name).rpartition(".")[::2] for name in (old, new))
    short, long = sorted((leaf, last), key=len)
    words = long.split("_")
    return parent == other and len(words) > 1 and short == "".join(word[:1] for word in words)


def written_like(name: str, old: str) -> str:
    """Give a name with the signs of the command line that the wrong one has."""
    return name if signs(name) or not signs(old) else signs(old) + name


def is_kin(one: str, other: str) -> bool:
    """Tell whether a name is another one with words behind it, or but for how a count is called."""
    short, long = sorted((one.split("_"), other.split("_")), key=len)
    plain = [[word for word in words if word not in _COUNTING] for words in (short, long)]
    is_begin = len(short[0]) > LEAST_FIRST and long[: len(short)] == short
    return is_begin or (plain[0] == plain[1] and bool(plain[0]))
