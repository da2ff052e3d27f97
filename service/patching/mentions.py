"""A setting's name outside of the commands that are read: to add it to one would say it twice."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from corpus.keys import pattern
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import Script
from ingest.configfiles.shell.words import Word
from service.patching.target import PatchTarget


def refuse_if_mentioned(script: Script, target: PatchTarget, known: Iterable[Word]) -> None:
    """Raise NotPatchableError where a name stands as a setting in text that is not understood."""
    spans = [(word.start, word.end) for word in known] + script.comments
    for found in chain.from_iterable(_mention(name).finditer(script.text) for name in target.names):
        if not any(start <= found.start() < end for start, end in spans):
            line = script.line(found.start())
            if any(start <= found.start() < end for start, end in script.documents):
                raise NotPatchableError(Message("patch.line-stands-here-document", line=line))
            raise NotPatchableError(Message("patch.line-stands-place-cannot", line=line))


def _mention(name: str) -> re.Pattern[str]:
    bare = pattern(name)
    if name.startswith("-"):
        return re.compile(rf"(?<![\w-])--?{bare}(?![\w-])")
    return re.compile(
        rf"(?<![\w-])--{bare}(?![\w-])|(?<![\w.$-]){bare}=|[\"']{bare}[\"']\s*:|^\s*{bare}:\s", re.MULTILINE
    )
