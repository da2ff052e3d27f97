"""A change of the job's own code as a model proposes it: a place, a statement before and after, or words.

It is a hypothesis, whatever is checked: the place is the job's, the statement stands there, and what is to
come is code that starts, fetches and deletes nothing. A log may have worded it.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterator
from typing import Final

from corpus.library import Library
from corpus.message import Message
from corpus.paths import base_name
from ingest.configfiles import notebook
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.remarks import without_remarks
from ingest.logs.report import CrashReport
from ingest.logs.transcripts import is_entered
from service.llm.claims import Proposal
from service.llm.comfort import comforts
from service.llm.contacts import lead
from service.llm.directives import OwnAdvice, advises_strangely, is_order, misdirects, says_foreign
from service.llm.log_values import climbs, is_of_log_alone, joined_words
from service.llm.plain_names import is_measure, is_plain_name
from service.llm.prompt_injection import addresses_a_model, neutralize
from service.llm.prose import CODE as CODE_SPAN
from service.llm.script_rows import changed_option
from service.patching.statements import parsed, replaced
from service.remediation.free_proposals import sets_what_loads_code
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange

CODE: Final = "code"
LONGEST_CODE, LONGEST_WORDS = 1200, 400
MOST_CLOSED = 3
# A name with more blanks between its words is a sentence.
LONGEST_NAME = 3
_PLACE = re.compile(
    r"(?P<file>[\w./\\+-]{0,200}?[\w+-]+\.(?:py|pyx|ipynb|sh|bash|slurm|sbatch|sub|txt|toml|ya?ml|cfg|ini))"
    r"(?::(?P<line>\d{1,6}))?"
)
# A row of a notebook's cell, which its count names; the last form is that of one which was never run.
_CELL = re.compile(
    r"(?<!\w)(?:(?:Cell |Input )?In ?\[(?P<count>\d{1,6})\]|[Cc]ell (?P<place>\d{1,6}))"
    r"(?::|,? (?:line|row) )(?P<row>\d{1,6})"
)
# Of these, names that are no domain's.
_PYTHON = re.compile(r"[\w./\\+-]{0,200}\.(?:py|pyx|ipynb)(?::\d{1,6})?")
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
# Names with underscores that give no power: where a file lies, and what classes define.
_PLAIN = re.compile(r"(?:.*\.)?__(?:file|init|len|getitem|post_init)__", re.DOTALL)
# An entry of a mapping, an argument or an assignment on one row: a name, and the words that it is given.
_ENTRY = re.compile(
    r"\s*(?:(?P<sign>['\"])(?P<entry>[A-Za-z_]\w*)(?P=sign)\s*:|(?P<name>[A-Za-z_]\w*)\s*=(?!=))"
    r"\s*(?P<value>[^\n]*?),?\s*"
)
_WORD_ALONE = re.compile(r"[a-z]{2,16}")
_WORDS_ALONE = re.compile(r"[A-Za-z0-9][\w ./,'-]*")
# A part of code that is taken away by its name, which is no file: "drop the push_to_hub argument".
_TAKEN = re.compile(
    r"\b(?:remove|delete|drop|leave out|take out)\s+(?:the\s+)?[`'\"]?(?P<name>[A-Za-z_][\w.]*)[`'\"]?"
    r"(?:\([^()]*\))?\s+(?:call|argument|keyword|line|block|branch|import|statement|decorator|method|"
    r"parameter)\b"
)
_CALLED_BY_PATH = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)+(?=\()")
_DECORATOR = re.compile(r"(?<![\w@])@(?P<name>[A-Za-z_][\w.]*\w)")
# The first part of a dotted name of code: what a domain of that spelling would not begin with.
_ROOTS = re.compile(
    r"self|cls|torch|torchvision|np|numpy|os|nn|F|model|tokenizer|dist|args|config|trainer|dataset|"
    r"jnp|jax|tf|keras|plt|pd|df|sitk|sklearn|scipy|adata"
)
# A word that is long enough to be a name of something.
_NAME = re.compile(r"[\w./-]{5,}")
_CALLED = re.compile(r"[\w.]+(?=\s?[(\[])")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def is_code(pick: Proposal) -> bool:
    """Tell whether a proposal is one of the job's own code."""
    return CODE in (pick.framework.strip().lower(), pick.kind.strip().lower())


def code_change(
    pick: Proposal, why: str, report: CrashReport, own: OwnAdvice, shown: Collection[str] = ()
) -> ProposedChange | str:
    """Check a proposal of code: gives the change, or why there is none; `why` is its sentence, checked.

    Words in place of an edit, and those in its strings and remarks, are held against `own` as a model's prose
    is: the log, whose rows a model saw as `shown`, may have worded them.
    """
    file, line, key = _place_of(pick, report)
    if pick.before.strip():
        refusal = _refused(pick, file, line, report, shown) or _misworded(pick, report, own, shown)
        if not refusal:
            after = _rows(pick.to, LONGEST_CODE)
            return _made(key, after, why, _rows(pick.before, LONGEST_CODE))
        if _tree(pick.to) is not None:
            return refusal
    words = neutralize(pick.to, LONGEST_WORDS).strip()
    if file and not (_PLACE.search(pick.key) or _CELL.search(pick.key)):
        # The place that the words begin with is told by the key.
        named = rf"(?:\S*{re.escape(file)}(?::{line})?|{re.escape(key)})"
        words = re.sub(rf"^(?:in )?{named}:?\s+", "", words)
    at_hand = code_at_hand(report)
    bare = _DECORATOR.sub(lambda found: " " if _decorates(found["name"], report) else found[0], words)
    if not words or addresses_a_model(words) or lead(bare, lambda name: _is_of_code(name, words, report)):
        return Message("model.leads-reader-elsewhere")
    if sets_what_loads_code(words) or any(map(_GRAVE.fullmatch, _CALLED.findall(words))):
        return Message("model.edit-does-more")
    if not is_order(words) and not any(name in at_hand for name in _NAME.findall(words)):
        return Message("model.no-edit")
    return advises_strangely(_told(bare, report), at_hand, own) or _made(key, words, why)


def _place_of(pick: Proposal, report: CrashReport) -> tuple[str, int, str]:
    """Give file and row of a proposal, and how a person finds them."""
    cell = _CELL.search(pick.key) or _CELL.search(pick.to)
    if cell and (found := _of_cell(cell, report)) is not None:
        return found
    place = _PLACE.search(pick.key) or _PLACE.search(pick.to)
    file = base_name(place["file"]).strip() if place else ""
    line = int(place["line"] or 0) if place else 0
    if file not in _own_files(report):
        # A module that no call went through: the words name it.
        return "", 0, CODE
    code = next((body for name, body in _books(report) if name == file), None)
    if line and code is not None:
        return file, line, notebook.place_of(code, line)
    return file, line, f"{file}:{line}" if line else file


def _of_cell(cell: re.Match[str], report: CrashReport) -> tuple[str, int, str] | None:
    """Give the row of a cell in the notebook's code; None where neither file nor call is such a cell."""
    file = f"In [{cell['count']}]" if cell["count"] else f"cell {cell['place']}"
    key = f"{file}:{cell['row']}"
    for name, code in _books(report):
        if line := notebook.line_at(code, key):
            return name, line, key
    return (file, int(cell["row"]), key) if file in _own_files(report) else None


def _books(report: CrashReport) -> Iterator[tuple[str, str]]:
    """Give the names of the job's notebooks, without folders, and the code of each."""
    for text in report.launches:
        body, _, name = text.rpartition("\n")
        if name.endswith(notebook.ENDING):
            yield name.rpartition("/")[2], body


def as_option(pick: Proposal, report: CrashReport, library: Library) -> Proposal:
    """Read words in the place of one option's value as a change of that option, and so a script's row.

    They are no code, but say which value it is to have. Where the job's files set the option in several
    places, the place counts, and what is proposed stays one of the code.
    """
    if is_code(pick) and pick.before.strip():
        row = changed_option(pick.key, pick.before, pick.to, report, library)
        if row is not None:
            framework = "env" if row.kind == "env" else "script"
            update = {"framework": framework, "kind": row.kind, "key": row.key, "to": row.to}
            return pick.model_copy(update=update)
    if not is_code(pick) or _tree(pick.to) is not None:
        return pick
    before, after = (_ENTRY.fullmatch(text.split("#")[0]) for text in (pick.before, pick.to))
    if before is None or after is None or not is_guidance(after["value"]):
        return pick
    names = {found["entry"] or found["name"] for found in (before, after)}
    name = min(names)
    rows = (row for text in report.launches for row in text.split("\n"))
    count = sum(re.match(rf"\s*['\"]?{re.escape(name)}['\"]?\s*[:=]", row) is not None for row in rows)
    if len(names) > 1 or count > 1 or not _WORDS_ALONE.fullmatch(after["value"]):
        return pick
    update = {"framework": "", "kind": "setting", "key": name, "to": after["value"].strip()}
    return pick.model_copy(update=update)


def _tree(code: str) -> ast.AST | None:
    """Read a statement, or a row of a call or a mapping that begins above it or ends below."""
    if (whole := parsed(code)) is not None:
        return whole
    plain = code.strip().rstrip(", ")
    # Up to so many brackets that were opened above are closed in the row.
    parts = [
        plain[: len(plain) - cut]
        for cut in range(MOST_CLOSED + 1)
        if not plain[len(plain) - cut :].strip(")]}")
    ]
    forms = [form for part in parts for form in (f"call({part})", f"{{{part}}}")]
    forms += [f"{plain})", f"{plain}))"]
    return next((found for form in forms if (found := parsed(form)) is not None), None)


def _told(words: str, report: CrashReport) -> str:
    """Give words on code without what names a part of it: calls by their path, and parts taken away."""
    bare = _CALLED_BY_PATH.sub(lambda found: found[0] if _GRAVE.fullmatch(found[0]) else " ", words)
    return _TAKEN.sub(lambda found: " " if _is_at_hand(found["name"], report) else found[0], bare)


def _decorates(name: str, report: CrashReport) -> bool:
    return any(re.search(rf"(?m)^\s*@{re.escape(name)}\b", text) for text in report.launches)


def _is_at_hand(name: str, report: CrashReport) -> bool:
    files = map(without_remarks, report.launches)
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for text in files)


def code_at_hand(report: CrashReport) -> str:
    """Give what words on a change may speak of: the job's files, and the calls and messages that failed."""
    failed = (
        part
        for event in report.standing
        for part in (
            event.text,
            *(f"{item.file} {item.function} {item.code}" for item in event.frames if " " not in item.file),
        )
    )
    return "\n".join((*map(without_remarks, report.launches), *failed))


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
    paths = {text.rpartition("\n")[2] for text in report.launches}
    paths |= {frame.file.replace("\\", "/") for event in report.standing for frame in event.frames}
    return {path.rpartition("/")[2] for path in paths} - {""}


def _refused(pick: Proposal, file: str, line: int, report: CrashReport, shown: Collection[str] = ()) -> str:
    """Say why an edit may not be shown, or give the empty string."""
    before, after = _rows(pick.before, LONGEST_CODE), _rows(pick.to, LONGEST_CODE)
    new, old = _tree(after), _tree(before)
    if not file or new is None or old is None or ast.dump(new) == ast.dump(old):
        return Message("model.no-edit")
    if not _stands(file, line, before, after, report) and not _is_entered(file, before, shown):
        return Message("model.no-such-statement")
    added = set(_words(new)) - set(_words(old))
    if any(_GRAVE.fullmatch(name) and not _PLAIN.fullmatch(name) for name in added):
        return Message("model.edit-does-more")
    texts = _texts(new)
    comments = re.findall(r"#.*", after)
    told = [text for text in (*texts, *comments) if text not in before]
    if any(addresses_a_model(text) or lead(text) for text in told):
        return Message("model.leads-reader-elsewhere")
    return ""


def _misworded(pick: Proposal, report: CrashReport, own: OwnAdvice, shown: Collection[str]) -> str:
    """Say which strings, remarks or names that an edit adds tell its reader something; else give nothing."""
    before, after = _rows(pick.before, LONGEST_CODE), _rows(pick.to, LONGEST_CODE)
    new, old = _tree(after), _tree(before)
    if new is None or old is None:
        return Message("model.no-edit")
    at_hand = code_at_hand(report)
    if any(not is_measure(number) and number not in at_hand for number in _numbers(new)):
        return Message("model.leads-reader-elsewhere")
    texts = _texts(new)
    remarks = [remark.lstrip("# ") for remark in re.findall(r"#.*", after)]
    for text in (*texts, *remarks):
        if text in before or text in at_hand:
            continue
        is_name = " " not in text.strip() and text not in remarks
        if strange_text(text, at_hand, report, own, shown, is_told=text in remarks) or (
            is_name and not is_plain_name(text, own.library, at_hand)
        ):
            return Message("model.leads-reader-elsewhere")
    added = {*_words(new)} - {*_words(old)}
    names = {part for name in added for part in name.split(".")}
    # A word alone behind a dot is what a library calls a thing.
    called = {part for name in added for part in name.split(".")[1:] if _WORD_ALONE.fullmatch(part)}
    for name in sorted(name for name in names if not _is_at_hand(name, report)):
        is_plain = name in called or hasattr(builtins, name) or is_plain_name(name, own.library, at_hand)
        said = name.replace("_", " ")
        is_sentence = said.strip().count(" ") >= LONGEST_NAME and not own.library.is_setting(name)
        if not (name.isascii() and is_plain) or (
            is_sentence and (misdirects(said, own) or says_foreign(said, at_hand, own))
        ):
            return Message("model.leads-reader-elsewhere")
    return ""


def strange_text(
    text: str,
    lines: str,
    report: CrashReport,
    own: OwnAdvice,
    shown: Collection[str],
    *,
    is_told: bool = False,
) -> str:
    """Say why a text that is to be written for the job is none of the job's; else give the empty string.

    It is held against what our knowledge says where it has words, joined or apart; `is_told` are words to
    whoever reads the code.
    """
    present = {setting.value for setting in report.settings if setting.value}
    if comforts(text):
        return Message("model.says-nothing-failed")
    if climbs(text) or is_of_log_alone(text, lines, present, shown):
        return Message("model.leads-reader-elsewhere")
    if is_told or is_guidance(text) or not (text.isascii() or "/" in text):
        return advises_strangely(text, lines, own)
    joined = joined_words(text)
    if not joined or text in own.library.choices:
        return ""
    return misdirects(joined, own) or says_foreign(joined, lines, own)


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
        if frame.code and base_name(frame.file) == file and line in (0, frame.line)
    ]
    head = before.strip().split("\n")[0].strip()
    return any(head in code or code in before for code in quoted)


def _is_entered(file: str, before: str, shown: Collection[str]) -> bool:
    """Tell whether a statement stands at the prompt of its cell, as IPython shows what was entered."""
    head = before.strip().split("\n")[0].strip()
    # The further rows of a cell do not repeat its number.
    told = [row.partition(": ") for row in shown if is_entered(row)]
    is_there = any(prompt == file for prompt, _, _ in told)
    return is_there and any(
        code.strip() == head and (prompt == file or not prompt.startswith("In")) for prompt, _, code in told
    )


def _texts(tree: ast.AST) -> list[str]:
    """Give the texts that code holds, those of bytes as well."""
    values = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    told = (value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values)
    return [value for value in told if isinstance(value, str)]


def _numbers(tree: ast.AST) -> Iterator[str]:
    """Yield the whole numbers of code, as they are written in tens."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield str(abs(node.value))


def _words(tree: ast.AST) -> Iterator[str]:
    """Yield the names that code uses or gives: of variables, attributes, keywords, functions and modules."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Attribute():
                yield ast.unparse(node)
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=found):
                yield from (each.name for each in found)
                yield from (each.asname for each in found if each.asname)
            case ast.ImportFrom(module=module, names=found):
                yield from (f"{module or ''}.{each.name}" for each in found)
                yield from (each.asname for each in found if each.asname)
            case _:
                pass


def _is_of_code(name: str, words: str, report: CrashReport) -> bool:
    """Tell whether a dotted name is one of code: it is called, begins as one, or is of the job's files."""
    if _PYTHON.fullmatch(name) or name in _own_files(report) or _ROOTS.fullmatch(name.split(".")[0]):
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
