"""An option that another one needs beside it, by what the failing message says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corpus.keys import canonical, flag, last_level, unsigned
from corpus.library import Library
from corpus.message import in_both
from corpus.schema import Remedy
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.framework_relations import settable_frameworks
from service.remediation.named_options import NamedOption
from service.remediation.own_names import own_option
from service.remediation.setting_values import is_guidance

# A name that is seen to be one: with its sign, in quotes, or of several words.
_NAMED = (
    r"(?:--[A-Za-z][\w-]{{1,60}}|(?P<{0}_quote>[`'\"])[A-Za-z][\w.-]{{1,60}}(?P={0}_quote)"
    r"|[a-z][a-z0-9]{{0,30}}(?:_[a-z0-9]{{1,30}}){{1,5}})"
)
_OPTION = rf"(?P<option>{_NAMED.format('option')})"
_NEEDED = rf"(?P<needed>{_NAMED.format('needed')})"
# Words between the verb and what is needed: no other name, and no end of a sentence.
_BETWEEN = r"(?: (?!not\b|no\b)[a-z]{1,20}){0,4}:? "
_FORMS = tuple(
    re.compile(form)
    for form in (
        (
            rf"{_OPTION}(?: option| flag| argument)? (?:also )?(?:requires?|needs?|depends on)"
            rf"{_BETWEEN}{_NEEDED}"
        ),
        (
            rf"{_OPTION}(?: option| flag| argument)? (?:(?:must|should|can|may) only be|is only|only)"
            rf" (?:used|set|valid|supported|allowed|available|effective|works?|combined)"
            rf" (?:together )?(?:with|when|if|in combination with){_BETWEEN}{_NEEDED}"
        ),
        # `must be set when` says the opposite: it is the other one that needs this.
        (
            rf"{_OPTION}(?: option| flag| argument)? must be (?:used|set|combined) (?:together )?"
            rf"(?:with|in combination with){_BETWEEN}{_NEEDED}"
        ),
        (
            rf"{_NEEDED}(?: option| flag| argument)? (?:is (?:also )?(?:required|needed|mandatory)|"
            rf"(?:must|has to|needs to|should) be (?:also )?(?:set|given|specified|provided|passed|defined))"
            rf" (?:when|if|for|with|in order to|to use|by){_BETWEEN}{_OPTION}"
        ),
    )
)
# What is said of a name behind it: that it must be off, or that it is no option.
_UNLIKE = re.compile(
    r"(?i)[`'\"]?(?: (?:option|flag|argument))?(?: (?:to|be|is|are|being|set|equal|equals|as)\b){0,4}"
    r" ?(?:=|==|:)? ?[`'\"]?(?:(?:not|no|isn't|un(?!less|til|der)\w{1,20}|disabled|turned off|off|false|none|"
    r"null|empty|missing|omitted|absent|installed|(?:python )?(?:packages?|library|module))\b|0(?![.\d]))"
)
_OFF = frozenset({"false", "0", "no", "none", "null", "off", "", "[]", "{}"})


def needed_options(
    report: CrashReport, settings: Sequence[Setting], library: Library, remedies: Sequence[Remedy] = ()
) -> Iterator[NamedOption]:
    """Give the option that the message says another one of the job's needs, and that the job lacks.

    What a remedy has a value for is left to it.
    """
    root = report.root
    if root is None:
        return
    given = {canonical(last_level(item.key)): item for item in settings}
    valued = {canonical(last_level(row.key)) for row in remedies if not is_guidance(row.to)}
    for form in _FORMS:
        for match in form.finditer(root.body):
            if any(_UNLIKE.match(root.body, match.end(name)) for name in ("option", "needed")):
                continue
            option = given.get(_plain(match["option"]))
            there = given.get(_plain(match["needed"]))
            is_on = option is not None and not _is_off(option)
            if option is None or not is_on or (there is not None and not _is_off(there)):
                continue
            if _plain(match["needed"]) not in valued:
                yield _option(match["needed"], option, there, report, library)
            return


def _option(
    name: str, option: Setting, there: Setting | None, report: CrashReport, library: Library
) -> NamedOption:
    """Make an option of the name that is needed, spelled as the one that needs it."""
    key = there.key if there is not None else _beside(name, option)
    is_switch = own_option(key, report) == "switch" or any(
        (spec := library.setting(framework, key, report.version(framework))) is not None
        and spec.type == "bool"
        for framework in settable_frameworks(report)
    )
    other = flag(option.key) if option.spelled == "flag" else option.key
    why = in_both("changes.needed", key=key, other=other)
    present = there.value if there is not None else None
    value = "true" if is_switch else None
    return NamedOption(key, present, required=True, value=value, why=why, proves=True, argument=option.key)


def _beside(name: str, option: Setting) -> str:
    bare = unsigned(name.strip("`'\""))
    if option.spelled == "flag":
        return flag(bare.replace("_", "-") if "-" in unsigned(option.key) else bare, option.key)
    above = option.key.rpartition(".")[0]
    return f"{above}.{canonical(bare)}" if above and "." not in bare else canonical(bare)


def _plain(name: str) -> str:
    return canonical(last_level(name.strip("`'\"")))


def _is_off(setting: Setting) -> bool:
    return setting.value.strip("'\"").lower() in _OFF
