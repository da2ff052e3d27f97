"""What a failure's own message says, in our sentences: its form, and the names and numbers that it states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from string import Formatter

from packaging.utils import canonicalize_name

from corpus.expressions import compiled
from corpus.library import Library
from corpus.schema import Cause, Language, MessageForm, Text
from ingest.logs.events import Event
from ingest.logs.facts import Value, size_in_words
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own, own_call
from ingest.logs.stacks.stack import EXCEPTION, Frame
from ingest.logs.stacks.statements import statement_part
from service.composition.phrases import phrase
from service.composition.shape_arithmetic import misfit, missing_axes
from service.composition.value_origins import made_empty
from service.remediation.named_options import closest
from service.remediation.rules.packages import distribution

# What is longer is no name, no number and no shape, and says nothing within a sentence.
LONGEST = 120
# What a message says in words, the group `said` of a form, may be longer.
LONGEST_SAID = 160
# Rows of a message that has several, with the failing line.
BELOW = 12
THERE = "there"
# A word of a command that is an option: a sign before a letter, as a negative number has none.
_OPTION = re.compile(r"--?[A-Za-z]")
_QUOTED = re.compile(r"['\"`]([\w.@/:+-](?:[\w.@/:+ -]{0,58}[\w.@/:+-])?)['\"`]")
# What a wrapper does with the arguments that it was given itself.
_HANDS_ON = re.compile(r"\(\s*\*\w+,\s*\*\*\w+\s*\)$")
_COMMAND = re.compile(r"/bin/[^/]+$")
# What the calls of a traceback fill, besides the message itself.
LISTED_BLANKS = frozenset({"given", "nearest"})
EMPTY_BLANKS = frozenset({"empties"})
FRAME_BLANKS = frozenset({THERE, "function", "code", "raiser", "module", "distribution"})


@dataclass(frozen=True)
class FormedMessage:
    """A failing line whose form is known, with what fills the form's blanks."""

    form: MessageForm
    values: Mapping[str, str]
    frame: Frame | None

    def headline(self, language: Language, *, beside_title: bool = False) -> str:
        """Say in one sentence what failed, with its place; beside a title only one in the job's own code."""
        exact = self.form.exact_headline
        is_filled = exact is not None and blanks_of([exact]) <= self.values.keys()
        told = self._filled(exact if exact is not None and is_filled else self.form.headline, language)
        if self.frame is None:
            return told
        if beside_title and (not is_own(self.frame) or _COMMAND.search(self.frame.file)):
            # A line of a package, or of the command that one installed, is nothing to open first.
            return told
        return phrase("headline-at", language, told=told, place=place_of(self.frame))

    def means(self, language: Language) -> str:
        """Say what the message means."""
        return self._filled(self.form.means, language)

    def look(self, language: Language) -> str:
        """Say what to look at; empty where the form does not tell more than the cause."""
        return self._filled(self.form.look, language) if self.form.look else ""

    def act(self, language: Language) -> str:
        """Say what to change in the failing code; empty where the log does not tell enough for it.

        What is wrong where it was raised is not mended in the job's own code that led there.
        """
        if self.form.place == "raise" and self.frame is not None and not is_own(self.frame):
            return ""
        acts = (text for text in self.form.acts if blanks_of([text]) <= self.values.keys())
        return next((self._filled(text, language) for text in acts), "")

    @property
    def replaces_case(self) -> bool:
        """Tell whether it says what to do more exactly than a case that applies."""
        return self.form.beside_case == "lead" and self.form.look is not None

    def _filled(self, text: Text, language: Language) -> str:
        there = "" if self.frame is None else phrase("there", language, place=place_of(self.frame))
        return text.to(language).format(**{**self.values, THERE: there})


def place_of(frame: Frame) -> str:
    """Give the name of a frame's file, without its folders, with the line."""
    return frame.found_at


def formed_message(report: CrashReport, cause: Cause, library: Library) -> FormedMessage | None:
    """Give the root's message, where its form is known and speaks of the named cause."""
    root = report.root
    if root is None:
        return None
    # The failing line, with the exception's type before its message.
    type_name = root.exception.partition("(")[0]
    is_typed = not type_name or EXCEPTION.match(root.body)
    # A KeyError shows its message as a text, in which quotes are escaped.
    body = root.body.replace("\\'", "'") if "KeyError" in root.exception else root.body
    texts = {"line": body if is_typed else f"{type_name}: {body}"}
    for form in library.message_forms:
        if not (cause.id in form.causes if form.causes else root.cause == cause.id):
            continue
        if form.reads not in texts:
            texts[form.reads] = "\n".join([texts["line"], *_rows(report, root, form)])
        text = texts[form.reads]
        if form.cue not in text or (found := compiled(form.expression).search(text)) is None:
            continue
        inner = raising_call(root.frames)
        at = inner if form.place == "raise" else own_call(root.frames) or inner
        frame = None if form.place == "nowhere" else at
        values = dict(_values(found.groupdict(), form, frame, report))
        if blanks_of([form.headline, form.means, *([form.look] if form.look else [])]) <= values.keys():
            return FormedMessage(form, values, frame)
    return None


def raising_call(frames: Sequence[Frame]) -> Frame | None:
    """Give the innermost call that does more than to hand on what it was given; None without a row."""
    inner = next((frame for frame in reversed(frames) if not _HANDS_ON.search(frame.code.strip())), None)
    return inner if inner is not None and inner.line else None


def _rows(report: CrashReport, root: Event, form: MessageForm) -> Iterator[str]:
    """Give what a form reads besides the failing line: a statement, the rows below, or the log's last."""
    if form.reads == "call" and (own := own_call(root.frames)) is not None:
        yield own.code
    if form.reads == "raiser" and root.frames and not is_own(root.frames[-1]):
        yield root.frames[-1].code
    if form.reads == "below":
        yield from (
            report.texts[line] for line in range(root.line + 1, root.line + BELOW) if line in report.texts
        )
    if form.reads == "end":
        yield from (report.texts[line] for line in sorted(report.texts)[-BELOW:] if line > root.line)


def _values(
    groups: Mapping[str, str | None], form: MessageForm, frame: Frame | None, report: CrashReport
) -> Iterator[tuple[str, str]]:
    """Give what fills the form's blanks: short texts without what would be markup in a sentence."""
    told: dict[str, str | None] = dict(groups)
    for name, fields in form.facts.items():
        told[name] = next((value for field in fields if (value := fact_value(report, field))), None)
    if frame is not None:
        told |= {"function": frame.function, "code": frame.code.removeprefix("assert ")}
        # A module that the message names is the one that it is about, whichever file asks for it.
        told["module"] = told.get("module") or _module_of(frame)
        frames = report.root.frames if report.root else ()
        told["raiser"] = None if frames[-1] is frame else frames[-1].function
        own = own_call(frames)
        # NumPy's dispatch shows as a call without a file.
        leads = own is not next((call for call in reversed(frames) if not call.file.startswith("<")), None)
        for name, part in form.statement.items():
            if own is not None:
                told[name] = statement_part(own.code, part, groups, leads=leads)
    if form.shape:
        told |= misfit(groups["shape"] or "", groups["size"] or "0")
    if form.axes:
        told |= missing_axes(groups["target"] or "", groups["sizes"] or "")
    told |= _computed(groups, form, report)
    for name, text in told.items():
        # A group that matched nothing, such as the part below a package, leaves nothing out.
        if text == "" and name in groups:
            yield name, ""
        if value := _shown(name, text or ""):
            yield name, value


def _shown(name: str, text: str) -> str:
    """Give a value as it stands in a sentence, of a long path its end; empty where it does not fit one."""
    value = text.replace("`", "'").strip()
    longest = LONGEST_SAID if name == "said" else LONGEST
    if name == "file" and len(value) > longest:
        value = "…/" + "/".join(value.split("/")[-3:])
    return value if len(value) <= longest and value.isprintable() else ""


def _module_of(frame: Frame) -> str | None:
    """Name a file as a module of the folder that it lies in, as `python -m` takes it; None without one."""
    path = PurePosixPath(frame.file.replace("\\", "/"))
    names = (path.parent.name, path.stem)
    return ".".join(names) if path.suffix == ".py" and all(map(str.isidentifier, names)) else None


def _computed(
    groups: Mapping[str, str | None], form: MessageForm, report: CrashReport
) -> Mapping[str, str | None]:
    """Give what follows from a message's own numbers and names, and what is made with no entry."""
    told: dict[str, str | None] = {"empties": made_empty(report) if form.empties else None}
    for name, (whole, part) in form.differences.items():
        left = int(groups[whole] or 0) - int(groups[part] or 0)
        told[name] = str(left) if left > 0 else None
    for name, group in form.options.items():
        words = (groups[group] or "").split()
        told[name] = ", ".join(word.partition("=")[0] for word in words if _OPTION.match(word))
    if package := groups.get("package"):
        brought_by = distribution(package)
        is_other = canonicalize_name(brought_by) != canonicalize_name(package)
        told["distribution"] = brought_by if is_other else None
    if form.listed:
        told |= _misspelled_name(groups["named"] or "", groups["choices"] or "")
    return told


def _misspelled_name(named: str, listed: str) -> dict[str, str]:
    """Give the name of a message that is like one of those that it lists, and that one."""
    choices = _QUOTED.findall(listed)
    for given in _QUOTED.findall(named):
        if given not in choices and (near := closest(given, choices)):
            return {"given": given, "nearest": near}
    return {}


def fact_value(report: CrashReport, name: str) -> str | None:
    """Give the latest value of a fact's field (`kind.field`), sizes with their unit, if the log tells one."""
    kind, _, field = name.partition(".")
    for fact in reversed(report.facts):
        if fact.kind == kind and field in fact.fields:
            return field_value(field, fact.fields[field])
    return None


def field_value(name: str, value: Value) -> str:
    """Give the value of a fact's field as a sentence has it: sizes with their unit."""
    if not isinstance(value, float):
        return str(value)
    if not name.endswith("_gib"):
        # A job's or a process's number has all its digits.
        return f"{value:.0f}" if value.is_integer() else f"{value:.4g}"
    return size_in_words(value)


def blanks_of(texts: Iterable[Text]) -> frozenset[str]:
    """Give the names that texts leave to be filled; the place of the call is no name."""
    names = (name for text in texts for _, name, _, _ in Formatter().parse(text.en) if name)
    return frozenset(names) - {THERE}
