"""Options that a program's own parser refuses, with the values that it allows: no catalogue need know them.

The formats are those of argparse (Lib/argparse.py) and click (src/click/exceptions.py, types.py), which typer
and most command lines of the field print.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from typing import Literal

from corpus.keys import canonical, last_level
from corpus.schema import Text
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.setting_values import typed_value

_OPTION = r"(?P<key>--[A-Za-z][\w.-]{1,60})"
_ARGUMENT = rf"\bargument (?:-\w/)?{_OPTION}(?:/-[\w-]+)*"
_REFUSALS = tuple(
    re.compile(expression)
    for expression in (
        rf"{_ARGUMENT}: invalid choice: '?(?P<now>[^'(]*?)'? \(choose from (?P<choices>[^)]+)\)",
        # vllm/engine/arg_utils.py, parse_type
        rf"{_ARGUMENT}: Value (?P<now>.{{1,300}}?) cannot be converted to <function (?P<sort>loads)\b",
        rf"{_ARGUMENT}: (?:invalid (?P<sort>\w+) value: '(?P<now>[^']*)'|\w)",
        rf"\bInvalid value for '(?:-\w' / ')?{_OPTION}'[^:]*: '(?P<now>[^']*)' is not one of (?P<choices>.+)",
        rf"\bInvalid value for '(?:-\w' / ')?{_OPTION}'",
        rf"\bMissing option '(?:-\w' / ')?{_OPTION}'",
    )
)
_VALUELESS = re.compile(rf"{_ARGUMENT}: expected (?:one|at least one|\d+) arguments?\b")
_REQUIRED = re.compile(r"\bthe following arguments are required: (?P<keys>[^\n]{1,300})")
_KEY = re.compile(r"--[A-Za-z][\w.-]{1,60}")
_CHOICE = re.compile(r"[^\s,'\"]+")
# A word that is no option comes first: a command that a shell joined to this one, with options of its own.
# Or a parser of Transformers knows no `output_dir`: it reads no TrainingArguments, as another command does.
_STRAY_COMMAND = re.compile(
    r"unrecognized arguments: (?!-)|not used by the HfArgumentParser: \[[^\]]{0,400}'(?:--)?output_dir'"
)
# The values that a message lists in quotes: enumerations of Transformers (transformers/utils/generic.py),
# pydantic's literals, and most checks that are written by hand.
_WORD = r"['\"][\w.@/:+-]{1,40}['\"]"
_LISTED = re.compile(
    r"(?i)\b(?:one of|choose|select|available|supported|valid|allowed|possible|expected|options|choices|"
    rf"should be|must be|in)\b[^'\"\n]{{0,60}}(?P<choices>{_WORD}(?:(?:, ?| or |, or ){_WORD})+)"
)
# The same without quotes, behind words that announce a list and nothing else.
_BARE = r"[A-Za-z][\w.-]{0,40}"
_ANNOUNCED = re.compile(
    r"(?i)\b(?:one of|choo?se from|select from|(?:supported|available|valid|allowed|possible|expected)"
    r"(?: \w+s)?(?: are)?)\s?(?::|=|(?<=of)|(?<=from)|"
    rf"(?<=are)) ?[\[({{]? ?(?P<choices>{_BARE}(?:(?:, ?| \| ?|/|,? or |,? and ){_BARE})+)"
)
# The name of an argument, what it may be, and at times what it is: checks that somebody wrote by hand.
_ONE_OF = re.compile(
    r"(?P<quote>[`'\"]?)(?P<key>(?:--)?[A-Za-z][\w.-]{1,60})(?P=quote) (?:argument |option |parameter )?"
    r"(?:must|should|has to|needs to|can only|may only) be (?:either |exactly )?(?:one of|in)"
    rf"(?: the following)?:? ?[\[({{]?(?P<choices>{_WORD}(?:(?:, ?| or |, or ){_WORD})+)[\])}}]?"
    r"(?:[,;.]? (?:but )?(?:got|found|received|not|is|was|given):? ['\"`]?(?P<now>[\w.@/+-]{1,40}))?"
)
# A group's choices, a row each: hydra/_internal/config_loader_impl.py, _missing_config_error.
_GROUP = re.compile(
    r"Could not find '(?P<key>[\w/.-]+)/(?P<now>[\w.-]+)'\s+Available options in '(?P=key)':\s*\n"
    r"(?P<choices>(?:\s*[\w./-]+(?:\n|$))+)"
)
# What Hydra, OmegaConf and Lightning say of a key and the value that it has: hydra/core/override_parser,
# hydra/_internal/config_loader_impl.py and defaults_list.py, omegaconf/nodes.py and basecontainer.py,
# lightning/pytorch/callbacks/model_checkpoint.py and early_stopping.py.
_KEY_PATH = r"[+~]{0,2}[A-Za-z_][\w.@/-]{1,160}"
_CONFIGURED = tuple(
    re.compile(expression)
    for expression in (
        rf"\bError merging override '?(?P<key>{_KEY_PATH})=(?P<now>[^'\n]*)",
        rf"\bAmbiguous value for argument '(?P<key>{_KEY_PATH})=(?P<swept>[^'\n]+)'",
        rf"\bError parsing override '(?P<key>{_KEY_PATH})=(?P<unquoted>[^\n]+)'",
        rf"(?i:\bmissing mandatory value): (?P<needed>{_KEY_PATH})",
        rf"\bInterpolation key '(?P<needed>{_KEY_PATH})' not found",
        r"\bCannot find primary config '(?P<primary>[^'\n]{1,160})'",
        r"\bYou must specify '(?P<needed>[\w/@-]+)', e\.g, ",
        (
            r"`(?P<class>[A-Z]\w+)\((?P<argument>\w+)='(?P<now>[\w/.-]+)'\)` could not find .{0,60}: "
            r"\[(?P<choices>[^\]\n]+)\]"
        ),
        (
            r"(?i:\bearly stopping) conditioned on metric `(?P<now>[^`\n]+)` which is not available"
            r"(?:.{0,120}: (?P<choices>`[^\n]+`))?"
        ),
    )
)
_STOPPING = "EarlyStopping.monitor"
# What a pipeline is made of, and what of that it was handed: diffusers/pipelines/pipeline_utils.py.
_PARTS = re.compile(
    r"\bexpected (?P<wanted>[\[{]['\"\w, ]{1,600}[\]}]), but only "
    r"(?P<given>[\[{]['\"\w, ]{0,600}[\]}]|set\(\)) were passed"
)
# The rows by which OmegaConf tells the key of a value that it refuses stand below the reason.
_REFUSED_VALUE = re.compile(
    r"\b(?:Value '(?P<now>[^'\n]*)' (?:of type '\w+' could not be converted to (?P<sort>\w+)|is not a valid "
    r"(?P<other>\w+))[^\n]*|Invalid value '(?P<given>[^'\n]*)', expected one of \[(?P<choices>[^\]\n]+)\])"
    r"\s*\n\s*(?:full_key|reference_type|key): ?(?P<key>[A-Za-z_][\w.]*)"
)
# A key that the job's code reads and no file sets; the row below tells all of its levels.
_UNSET_KEY = re.compile(
    r"\bConfig(?:Attribute|Key)Error: Missing key [\w.-]+\s*\n\s*full_key: (?P<key>[A-Za-z_][\w.]*\.\w+)\s*$",
    re.MULTILINE,
)
# A field, what its value should be, and the value that it has: pydantic-core/src/errors/types.rs.
_FIELD = re.compile(
    r"^(?P<key>[A-Za-z_][\w.]{0,160})\n\s+Input should be "
    r"(?:a valid (?P<sort>integer|number|boolean)\b[^\n]*?"
    r"|(?P<choices>'[^\n\[]{1,400}?)"
    r"|(?P<bound>(?:greater|less) than (?:or equal to )?-?\d{1,12}(?:\.\d{1,6})?)) "
    r"\[type=\w+, input_value=(?P<now>[^\n,]{1,80}),",
    re.MULTILINE,
)
_BOUND = re.compile(r"(?P<side>greater|less) than (?P<equal>or equal to )?(?P<number>-?[\d.]+)")
Sort = Literal["", "int", "float", "bool"]
_READS: Mapping[str, Sort] = {
    "integer": "int",
    "float": "float",
    "number": "float",
    "bool": "bool",
    "boolean": "bool",
}
_SEPARATOR = re.compile(r", ?| \| ?|/|,? or |,? and ")
_QUOTED = re.compile(r"['\"]([\w.@/:+-]{1,40})['\"]")
_QUOTED_METRIC = re.compile(r"['`]([^'`\n]{1,80})['`]")
# How alike a value and the choice that it is a slip of are, and how far ahead of the next one.
NEAR, AHEAD = 0.75, 0.1
# The sorts of value that a parser's own function is named after: `int`, `positive_int`, `str2bool`.
SORTS: tuple[Literal["int", "float", "bool"], ...] = ("int", "float", "bool")
# Longer lists are no choice that a person makes from a line.
MOST_CHOICES = 12
# And of more parts that are missing, it is another thing that is wrong.
MOST_LACKING = 3


@dataclass(frozen=True)
class NamedOption:
    """An option or key that a program refuses: the job's value, and what is taken instead.

    `value` is what follows from the message's own numbers; `sort` is what kind of value the program reads,
    `unknown` tells that there is no such key, `required` that it is missing, `excludes` names the key that it
    cannot stand beside, `way` what the message says to do with it (`other`: to name what is there). `why`
    says in words of its own how the value follows, and `proves` that it suffices; `removed` that the key is
    to go; `goes_with` names the key of an option that this one must follow, `argument` that of a call's
    argument which it fills.
    """

    key: str
    present: str | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    unknown: bool = False
    excludes: str = ""
    value: str | None = None
    sort: Sort = ""
    way: Literal["", "up", "down", "on", "off", "set", "other"] = ""
    why: Text | None = None
    proves: bool = False
    removed: bool = False
    goes_with: str = ""
    argument: str = ""

    @property
    def nearest(self) -> str | None:
        """Give the one value that the job's is a slip or another form of; None where that is not plain."""
        if self.value is not None or not self.choices:
            return self.value or _as_number(self.present or "", self.sort)
        spelled = {canonical(choice).lower(): choice for choice in self.choices}
        wanted = canonical(self.present or "").lower()
        found = (
            _near(wanted, spelled)
            or [choice for choice in spelled if len(wanted) > 1 and choice.startswith(wanted)]
            or [choice for choice in spelled if _shortens(choice, wanted) or _shortens(wanted, choice)]
        )
        return spelled[found[0]] if len(found) == 1 else None


def closest(given: str, choices: Sequence[str]) -> str | None:
    """Give the one choice that a name is a slip of, or that it is a part of; None where that is not plain."""
    spelled = {canonical(choice).lower(): choice for choice in choices}
    wanted = canonical(given).lower()
    longer = [
        choice for choice in spelled if re.search(rf"(?:^|[\W_]){re.escape(wanted)}(?:[\W_]|$)", choice)
    ]
    found = _near(wanted, spelled) or longer
    return spelled[found[0]] if len(found) == 1 else None


def _near(wanted: str, choices: Iterable[str]) -> list[str]:
    """Give the choices that are spelled nearly so; the first alone where it is well ahead of the next."""
    near = get_close_matches(wanted, choices, n=2, cutoff=NEAR)
    is_plain = len(near) > 1 and _likeness(wanted, near[0]) - _likeness(wanted, near[1]) >= AHEAD
    return near[:1] if is_plain else near


def is_stray_command(message: str) -> bool:
    """Tell whether a parser refuses another command's words, so that no option of this one is at fault."""
    return bool(_STRAY_COMMAND.search(message))


def _as_json(text: str) -> str | None:
    """Write a mapping as JSON that is given as pairs (`image=4,video=1`), or as a shell or Python has it."""
    pairs = [pair.partition("=" if "=" in text else ":") for pair in text.strip("{} ").split(",")]
    if not all(
        re.fullmatch(r"\s*['\"]?[A-Za-z_]\w*['\"]?\s*", name) and value.strip() for name, _, value in pairs
    ):
        return None
    given = {name.strip(" '\""): value.strip(" '\"") for name, _, value in pairs}
    is_plain = all(re.fullmatch(r"[\w./@:-]+", value) for value in given.values())
    return json.dumps({name: typed_value(value) for name, value in given.items()}) if is_plain else None


def _as_number(text: str, sort: str) -> str | None:
    """Give a number as a parser of its sort reads it: `8.0` and `1e3` whole, `2,048` without its comma."""
    plain = re.sub(r"(?<=\d)[,_](?=\d{3}\b)", "", text.strip("'\", ;"))
    try:
        number = float(plain) if sort in ("int", "float") else math.nan
    except ValueError:
        return None
    if not math.isfinite(number) or (sort == "int" and number != int(number)):
        return None
    return str(int(number)) if sort == "int" else plain


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _shortens(short: str, long: str) -> bool:
    """Tell whether a word leaves letters out of another one and begins as it does: `bf16` and `bfloat16`."""
    letters = iter(long)
    return len(short) > 1 and short[:1] == long[:1] and all(letter in letters for letter in short)


def named_options(report: CrashReport, settings: Sequence[Setting] = ()) -> list[NamedOption]:
    """Give the options that the failing lines refuse, by name or by the value that `settings` have."""
    found: dict[str, NamedOption] = {}
    for event in report.standing:
        if event.kind == "error":
            named = (*read_options(event.body), *_by_name(event.body, settings))
            for option in (*named, *_by_value(event.body, settings)):
                found.setdefault(canonical(option.key), option)
    told = "\n".join(text for _, text in sorted(report.texts.items()))
    for match in _REFUSED_VALUE.finditer(told):
        sort: Sort = _READS.get((match["sort"] or match["other"] or "").lower(), "")
        listed = tuple(_CHOICE.findall(match["choices"] or ""))
        present = match["now"] if match["given"] is None else match["given"]
        found.setdefault(canonical(match["key"]), NamedOption(match["key"], present, listed, sort=sort))
    for match in _UNSET_KEY.finditer(told):
        found.setdefault(canonical(match["key"]), NamedOption(match["key"], required=True))
    for match in _FIELD.finditer(told):
        option = _of_field(match)
        found.setdefault(canonical(option.key), option)
    for match in _GROUP.finditer(told):
        choices = tuple(match["choices"].split())
        if len(choices) <= MOST_CHOICES:
            found.setdefault(canonical(match["key"]), NamedOption(match["key"], match["now"], choices))
    return list(found.values())


def _of_field(match: re.Match[str]) -> NamedOption:
    """Make what a validator says of a field."""
    now = match["now"].strip("'\"")
    if bound := _BOUND.match(match["bound"] or ""):
        number = float(bound["number"])
        # The next whole number is none that a field of fractions is sure to be for.
        step = 0 if bound["equal"] else 1 if bound["side"] == "greater" else -1
        is_whole = number.is_integer() and (not step or re.fullmatch(r"-?\d+", now) is not None)
        return NamedOption(match["key"], now, value=str(int(number) + step) if is_whole else None)
    choices = tuple(_QUOTED.findall(match["choices"] or ""))
    return NamedOption(match["key"], now, choices, sort=_READS.get(match["sort"] or "", ""))


def _by_name(message: str, settings: Sequence[Setting]) -> Iterator[NamedOption]:
    """Read the argument whose choices a message lists: a setting of the job, or what is seen to be a name."""
    given = {last_level(setting.key): setting for setting in settings}
    for match in _ONE_OF.finditer(message):
        own = given.get(canonical(match["key"]))
        is_name = bool(match["quote"]) or match["key"].startswith("--") or "_" in match["key"]
        choices = tuple(_QUOTED.findall(match["choices"]))
        if (own is not None or is_name) and len(choices) <= MOST_CHOICES:
            now = match["now"] or (own.value if own is not None else None)
            yield NamedOption(own.key if own is not None else match["key"], now, choices)


def _by_value(message: str, settings: Sequence[Setting]) -> Iterator[NamedOption]:
    """Read what a message that lists values says of another one, which one setting of the job has."""
    for match in (*_LISTED.finditer(message), *_ANNOUNCED.finditer(message)):
        listed = _QUOTED.findall(match["choices"]) or _SEPARATOR.split(match["choices"])
        choices = tuple(choice.rstrip(".") for choice in listed)
        rest = message[: match.start("choices")] + message[match.end("choices") :]
        told = {
            canonical(setting.key): NamedOption(setting.key, setting.value, choices)
            for setting in settings
            if re.fullmatch(r"[A-Za-z][\w.-]*", setting.value)
            and setting.value not in choices
            and re.search(rf"(?<![\w.-]){re.escape(setting.value)}(?![\w-])", rest)
        }
        # Of a longer list only a plain slip tells what was meant.
        is_plain = any(option.nearest for option in told.values())
        if len(told) == 1 and (is_plain or len(choices) <= MOST_CHOICES):
            yield from told.values()
            return


def read_options(message: str) -> Iterator[NamedOption]:
    """Read what a parser's message says of an option."""
    for expression in _CONFIGURED:
        if match := expression.search(message):
            yield _configured(match.groupdict())
            return
    if match := _REQUIRED.search(message):
        yield from (NamedOption(key, required=True) for key in _KEY.findall(match["keys"]))
    if match := _PARTS.search(message):
        handed = set(_QUOTED.findall(match["given"]))
        lacking = (name for name in _QUOTED.findall(match["wanted"]) if name not in handed)
        yield from (NamedOption(name, required=True) for name in sorted(lacking)[:MOST_LACKING])
    if match := _VALUELESS.search(message):
        yield NamedOption(match["key"], "", required=True)
        return
    for expression in _REFUSALS:
        if match := expression.search(message):
            given = match.groupdict()
            named = (choice.rstrip(".") for choice in _CHOICE.findall(given.get("choices") or ""))
            choices = tuple(filter(None, named))
            yield NamedOption(
                match["key"],
                given.get("now"),
                choices if len(choices) <= MOST_CHOICES else (),
                value=_as_json(given["now"] or "") if given.get("sort") == "loads" else None,
                sort=next((sort for sort in SORTS if sort in (given.get("sort") or "")), ""),
            )
            return


def _configured(said: Mapping[str, str | None]) -> NamedOption:
    """Make what a reader of configurations says of a key."""
    if needed := said.get("needed"):
        return NamedOption(needed, required=True)
    if primary := said.get("primary"):
        return NamedOption("--config-name", primary, way="other")
    named = _QUOTED_METRIC.findall(said.get("choices") or "")
    choices = tuple(named) if len(named) <= MOST_CHOICES else ()
    if "argument" in said:
        return NamedOption(f"{said['class']}.{said['argument']}", said["now"], choices)
    key, swept, unquoted = (said.get(name) or "" for name in ("key", "swept", "unquoted"))
    if swept:
        return NamedOption(key, swept, value=f"[{swept}]")
    if unquoted:
        return NamedOption(key, unquoted, value=f'"{unquoted}"' if '"' not in unquoted else None)
    return NamedOption(key or _STOPPING, said.get("now"), choices)
