"""Which calls of a stack are in the job's own code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.frameworks import cued_frameworks, known_frameworks
from ingest.logs.stacks.stack import Frame

# Python's own library, also of Windows and of conda there, compiled modules, which have no folder, what Jinja
# compiled of a template, the commands that pip writes for a package's entry points, and what PyTorch's
# compiler wrote.
STANDARD = re.compile(
    r"/lib(?:64)?/python3\.\d+/(?!site-packages|dist-packages)|^<frozen|^<string>|^<template>|\.p(?:yx|xi)$"
    r"|/bin/[\w-]+$|/torchinductor_[^/]{1,80}/"
    r"|(?i:^[a-z]:/(?:.{0,200}/)?(?:python3?\d*|(?:ana|mini)conda\d?|envs/[^/]+)/lib/(?!site-packages))"
)
# What can do nothing but raise: a comparison of values, a class that is made with a text.
_ASSERTS = re.compile(r"assert\b(?:[^()\n]|\b(?:len|isinstance|int|str|type)\([^()\n]*\))*$")
_RAISE = re.compile(
    r"raise (?:\w{1,60}\.){0,4}(?P<type>[A-Z]\w{0,80}(?:Error|Exception|Exit))"
    r"\((?:[frbFRB]{0,2}[\"'](?P<message>[^\"'\n]*)|$|\))"
)
_RAISES = re.compile(r"raise\b|(?:sys\.)?exit\(")
# The statement by which a module that was started enters its program.
_ENTERS = re.compile(
    r"(?:(?:sys\.)?exit\(|raise SystemExit\()?(?:asyncio\.run\()?(?:\w{1,40}\.){0,3}"
    r"(?:_?main\w{0,20}|cli|app|Fire)\("
)
# By which Python runs what `-m` names.
_RUN_AS_MAIN = "_run_module_as_main"
# What Python calls for an attribute that is not there: it raises on behalf of whoever asks for it.
_ACCESSORS = frozenset({"__getattr__", "__getattribute__", "__delattr__"})
# Packages, and the modules that a hub's scripts are kept as.
_INSTALLED = re.compile(r"(?i:(?:site|dist)-packages/)|/huggingface/modules/")


def raised_by(code: str) -> tuple[str, str]:
    """Give type and message of the exception that a statement raises by itself; empty where it may only call.

    An assertion that calls something may be left by what that raises. A message's literal is given as far as
    the row has it.
    """
    if _ASSERTS.match(code):
        return "AssertionError", ""
    match = _RAISE.match(code)
    return (match["type"], match["message"] or "") if match else ("", "")


def own_call(frames: Sequence[Frame]) -> Frame | None:
    """Give the innermost call in the job's own code."""
    return next((frame for frame in reversed(frames) if frame.line and is_own(frame)), None)


def raised_for(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Give the calls down to the one that asked for an attribute, where that is why the innermost raised."""
    last = next(
        (place for place in reversed(range(len(frames))) if frames[place].function not in _ACCESSORS), None
    )
    return frames if last is None else frames[: last + 1]


def raises_itself(frames: Sequence[Frame]) -> bool:
    """Tell whether the job's own code raises an exception that it made itself, as it gives up."""
    return bool(frames) and is_own(frames[-1]) and _RAISES.match(frames[-1].code) is not None


def ends_program(frames: Sequence[Frame]) -> bool:
    """Tell whether nobody caught an exception below the statement by which a module enters its program.

    A loop of a module's own may catch and print what one round of it raised, and go on with the next. Above
    a module that is run by `python -m` nobody catches.
    """
    if not frames:
        return False
    is_entry = frames[0].function == "<module>" and _ENTERS.match(frames[0].code) is not None
    return is_entry or frames[0].function == _RUN_AS_MAIN


def is_own(frame: Frame) -> bool:
    """Tell whether a call is in the job's own code: neither Python's, nor installed, nor a framework's."""
    file = frame.file
    is_written = known_frameworks().package_file.search(file)
    return not (STANDARD.search(file) or _INSTALLED.search(file) or is_written or cued_frameworks(file))
