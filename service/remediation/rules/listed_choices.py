"""Which values the job's own files list for a setting, in a remark beside it or as its choices."""

from __future__ import annotations

import re

from corpus.expressions import compiled
from corpus.keys import last_level, unsigned
from service.remediation.rules.context import RuleContext

# `# scratch | resume`, `# one of: scratch, resume or gpt2`
_REMARK = re.compile(
    r"#(?:[^#\n|,:]{0,40}:)?\s{0,4}(?P<listed>[\w'\"-]+(?:\s{0,4}(?:\||/|,|\bor\b)\s{0,4}[\w'\"-]+){1,12})"
)
# `choices=["scratch", "resume"]`, `Literal["scratch", "resume"]`, `click.Choice(["scratch", "resume"])`
_CHOICES = re.compile(
    r"(?:\bchoices\s{0,4}=\s{0,4}[\[({]|\bLiteral\[|\bChoice\(\s{0,4}[\[(])(?P<listed>[^\])}]{1,300})[\])}]"
)
_VALUE = re.compile(r"[\w-]+")
# A row that ends an option's call, or begins the next one.
_NEXT = r"[ \t]+(?:[\w.]{0,60}add_|['\"]-|[)@])"
# Words that only join what is listed.
_JOINING = frozenset({"or", "one", "of"})


def choice_beside(context: RuleContext, wanted: str) -> str | None:
    """Give the first listed value, other than the job's, that an expression matches; None where none does."""
    name = re.escape(last_level(unsigned(context.change.key))).replace("_", "[_-]")
    places = (
        rf"(?<![\w.-])(?:--)?{name}(?![\w-])[^\n]{{0,400}}",
        # A parser's option whose call goes on below, up to the call's end or the next one.
        rf"['\"]--?{name}['\"],[^\n]{{0,200}}(?:\n(?!{_NEXT})[ \t][^\n]{{1,200}}){{1,12}}",
        # A row of a remark above the setting.
        rf"(?m)^[ \t]*#[^\n]{{1,300}}(?=\n[ \t]*{name}[ \t]*[:=])",
    )
    rows = [match[0] for place in places for text in context.files for match in re.finditer(place, text)]
    listings = (
        match["listed"] for text in rows for form in (_REMARK, _CHOICES) for match in form.finditer(text)
    )
    now = (context.now or "").strip("'\"")
    for listed in listings:
        values: list[str] = [value for value in _VALUE.findall(listed) if value not in _JOINING]
        fitting = [value for value in values if compiled(wanted).fullmatch(value) and value != now]
        if fitting and (not now or now in values):
            return fitting[0]
    return None
