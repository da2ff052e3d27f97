"""A change of the job's own code as a model proposes it: a place, a statement before and after, or words.

It is a hypothesis, whatever is checked: the place is the job's, the statement stands there, and what is to
come is code that starts, fetches and deletes nothing. A log may have worded it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.logs.report import CrashReport
from service.llm.claims import Proposal
from service.llm.contacts import lead
from service.llm.directives import OwnAdvice, advises_strangely, is_order
from service.llm.prompt_injection import addresses_a_model, neutralize
from service.llm.prose import CODE as CODE_SPAN
from service.patching.statements import parsed, replaced
from service.remediation.free_proposals import sets_what_loads_code
from service.schemas.diagnosis import ProposedChange

CODE: Final = "code"
LONGEST_CODE, LONGEST_WORDS = 1200, 400
_PLACE = re.compile(r"(?P<file>[\w./\\+-]{0,200}?[\w+-]+\.(?:py|pyx|ipynb))(?::(?P<line>\d{1,6}))?")
# What code of a job's may do is not for a model to add: other programs, code out of text, the network, the
# deletion of files, code that is fetched.
_GRAVE = re.compile(
    r"eval|exec|compile|globals|locals|setattr|__\w+__|trust_remote_code|allow_code_execution|"
    r"(?:subprocess|shutil|requests|httpx|urllib3?|socket|ftplib|paramiko|ctypes|pickle|dill|marshal|pty|"
    r"importlib)(?:\..*)?|os\.(?:remove|rename|replace|abort|_exit)|"
    r"(?:.*\.)?(?:system|popen|exec[vl]\w*|spawn\w*|fork|unlink|rmdir|removedirs|rmtree|chmod|chown|"
    r"kill|killpg|urlopen|urlretrieve|import_module|__\w+__)",
    re.DOTALL,
)
# The first part of a dotted name of code: what a domain of that spelling would not begin with.
_ROOTS = re.compile(r"self|cls|torch|np|numpy|os|nn|F|model|tokenizer|dist|args|config|trainer|dataset")
# A word that is long enough to be a name of something.
_NAME = re.compile(r"[\w./-]{5,}")
_CALLED = re.compile(r"[\w.]+(?=\s?[(\[])")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def is_code(pick: Proposal) -> bool:
    """Tell whether a proposal is one of the job's own code."""
    return CODE in (pick.framework.strip().lower(), pick.kind.strip().lower())


def code_change(pick: Proposal, why: str, report: CrashReport, own: OwnAdvice) -> ProposedChange | str:
    """Check a proposal of code: gives the change, or why there is none; `why` is its sentence, checked.

    Words in place of an edit are held against `own` as a model's prose is: the log may have worded them.
    """
    place = _PLACE.search(pick.key) or _PLACE.search(pick.to)
    file = place["file"].replace("\\", "/").rpartition("/")[2].strip() if place else ""
    line = int(place["line"] or 0) if place else 0
    if file not in _own_files(report):
        # A module that no call went through: the words name it.
        file, line = "", 0
    key = f"{file}:{line}" if line else file or CODE
    if pick.before.strip():
        if not (refusal := _refused(pick, file, line, report)):
            after = _rows(pick.to, LONGEST_CODE)
            return _made(key, after, why, _rows(pick.before, LONGEST_CODE))
        if parsed(pick.to) is not None:
            return refusal
    words = neutralize(pick.to, LONGEST_WORDS).strip()
    if file and not _PLACE.search(pick.key):
        # The place that the words begin with is told by the key.
        words = re.sub(rf"^(?:in )?\S*{re.escape(file)}(?::{line})?:?\s+", "", words)
    if not words or addresses_a_model(words) or lead(words, lambda name: _is_of_code(name, words, report)):
        return Message("model.leads-reader-elsewhere")
    at_hand = code_at_hand(report)
    if sets_what_loads_code(words):
        return Message("model.edit-does-more")
    if not is_order(words) and not any(name in at_hand for name in _NAME.findall(words)):
        return Message("model.no-edit")
    return advises_strangely(words, at_hand, own) or _made(key, words, why)


def code_at_hand(report: CrashReport) -> str:
    """Give what words on a change may speak of: the job's files, and the calls and messages that failed."""
    failed = (
        part
        for event in report.standing
        for part in (event.text, *(f"{frame.file} {frame.function} {frame.code}" for frame in event.frames))
    )
    return "\n".join((*report.launches, *failed))


def _made(key: str, to: str, why: str, before: str | None = None) -> ProposedChange:
    return ProposedChange(
        framework=CODE, kind=CODE, key=key, from_=before, to=to, why=why, status="unverified", by="model"
    )


def _rows(code: str, limit: int) -> str:
    """Give code without control characters, its rows as they are."""
    rows = (re.sub(r"[^\S\n]", " ", row) for row in code[:limit].strip("\n").split("\n"))
    return "\n".join("".join(sign for sign in row if sign.isprintable()).rstrip() for row in rows)


def _own_files(report: CrashReport) -> set[str]:
    """Name the files of the job's that are at hand or that a failure's calls went through."""
    given = {text.rpartition("\n")[2].rpartition("/")[2] for text in report.launches}
    frames = (frame.file for event in report.standing for frame in event.frames)
    return {name for name in given | {file.replace("\\", "/").rpartition("/")[2] for file in frames} if name}


def _refused(pick: Proposal, file: str, line: int, report: CrashReport) -> str:
    """Say why an edit may not be shown, or give the empty string."""
    before, after = _rows(pick.before, LONGEST_CODE), _rows(pick.to, LONGEST_CODE)
    new, old = parsed(after), parsed(before)
    if not file or new is None or old is None or ast.dump(new) == ast.dump(old):
        return Message("model.no-edit")
    if not _stands(file, line, before, after, report):
        return Message("model.no-such-statement")
    if any(map(_GRAVE.fullmatch, set(_words(new)) - set(_words(old)))):
        return Message("model.edit-does-more")
    texts = [
        node.value for node in ast.walk(new) if isinstance(node, ast.Constant) if isinstance(node.value, str)
    ]
    comments = re.findall(r"#.*", after)
    told = [text for text in (*texts, *comments) if text not in before]
    if any(addresses_a_model(text) or lead(text) for text in told):
        return Message("model.leads-reader-elsewhere")
    return ""


def _stands(file: str, line: int, before: str, after: str, report: CrashReport) -> bool:
    """Tell whether a statement stands in the job's file, or is one that a traceback quotes there."""
    for text in report.launches:
        body, _, name = text.rpartition("\n")
        if name.rpartition("/")[2] == file:
            try:
                return replaced(body, line, before, after) != body
            except NotPatchableError:
                continue
    quoted = [
        frame.code.strip()
        for event in report.standing
        for frame in event.frames
        if frame.code and frame.file.replace("\\", "/").rpartition("/")[2] == file and line in (0, frame.line)
    ]
    head = before.strip().split("\n")[0].strip()
    return any(head in code or code in before for code in quoted)


def _words(tree: ast.AST) -> Iterator[str]:
    """Yield the names that code uses: of variables, attributes, keywords and modules."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Attribute():
                yield ast.unparse(node)
            case ast.Import(names=found):
                yield from (each.name for each in found)
            case ast.ImportFrom(module=module, names=found):
                yield from (f"{module or ''}.{each.name}" for each in found)
            case _:
                pass


def _is_of_code(name: str, words: str, report: CrashReport) -> bool:
    """Tell whether a dotted name is one of code: it is called, begins as one, or is of the job's files."""
    if _PLACE.fullmatch(name) or _ROOTS.fullmatch(name.split(".")[0]):
        return True
    if any(name in match[0] for match in _CALLED.finditer(words)):
        return True
    spans = (match[1] for match in CODE_SPAN.finditer(words))
    if any(name in span and span != name and "(" in span and parsed(span) is not None for span in spans):
        return True
    root = name.split(".")[0]
    return bool(_DOTTED.fullmatch(name)) and any(
        re.search(rf"(?<![\w.]){re.escape(root)}\.", text) for text in report.launches
    )
