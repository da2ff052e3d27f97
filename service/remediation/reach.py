"""Whether a setting can reach what failed: whether the job makes its call, and what that call is given."""

from __future__ import annotations

import ast
import re

from corpus.keys import unsigned
from ingest.configfiles.formats import CODE
from ingest.configfiles.remarks import without_remarks
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own, own_call
from service.remediation.code_edits.source_text import parsed

# Functions of a package itself, which a change adds: no call of the job's has them yet.
_MODULE = re.compile(r"(?:torch|jax)\.")
# How a file names a class that is made of it: Lightning's and Hydra's keys.
_NAMED = (
    r"(?m)^[ \t-]{{0,40}}(?:class_path|_target_):[ \t]{{1,4}}"
    r"['\"]?(?:\w{{1,60}}\.){{0,8}}{0}['\"]?[ \t]{{0,4}}$"
)
# A statement that a traceback quotes may be the head of a block, or break off within brackets.
_BLOCK = re.compile(r":\s*$")


def lacks_call(key: str, report: CrashReport) -> bool:
    """Tell whether the job is seen to make no call that takes an argument such as `Model.fit.batch_size`.

    Only where its own code is at hand, all of it that the failing stack goes through.
    """
    call = unsigned(key).rpartition(".")[0]
    if not call or _MODULE.match(call):
        return False
    codes = [text.rpartition("\n") for text in report.launches if text.endswith(CODE)]
    names = {name.rpartition("/")[2] for *_, name in codes}
    calls = [frame for event in report.standing for frame in event.frames]
    own = {frame.file.rpartition("/")[2] for frame in calls if frame.line and is_own(frame)}
    if not own or not own <= names:
        return False
    word = call.rpartition(".")[2]
    called = re.compile(rf"(?i)(?<![A-Za-z0-9]){re.escape(word)}")
    made = (f"{frame} {frame.code}" for frame in calls)
    if any(called.search(without_remarks(text)) for text in (*(body for body, *_ in codes), *made)):
        return False
    named = re.compile(_NAMED.format(re.escape(word)))
    return not any(named.search(text) for text in report.launches if not text.endswith(CODE))


def takes_constants(report: CrashReport) -> bool:
    """Tell whether the job's own failing call gets nothing but constants, so that no setting reaches it."""
    own = own_call(report.root.frames) if report.root is not None else None
    tree = parsed(_BLOCK.sub("", own.code)) if own is not None else None
    if tree is None:
        return False
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = [value for call in calls for value in (*call.args, *(item.value for item in call.keywords))]
    return bool(given) and all(isinstance(value, ast.Constant) for value in given)
