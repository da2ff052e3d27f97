"""What chance has drawn, with no word beside it: capitals, small letters and digits, and no name's value.

Logs hold such runs as secrets above all. What else is drawn is hexadecimal, or stands in a path, or has a
name that says what it is: an id, a digest, a build. In 49 MB of public logs there was one other run, which
was base64 of text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from itertools import permutations

from ingest.redaction import entropy
from ingest.redaction.kinds import FoundValue, SecretKind, run_around

_SIGNS = rb"[A-Za-z0-9+/_-]"
# No part of a path, an address, a file's name or a longer run; a sentence may end behind it.
_RUN = re.compile(
    rb"(?<![A-Za-z0-9/._+\\%&;@-])" + _SIGNS + rb"{20,88}={0,2}(?![A-Za-z0-9/+=_@%-]|[.:][A-Za-z0-9/])"
)
_SHORTEST = 20
# The name that the value has, in the same row: behind it a sign or a word.
_NAME = re.compile(rb"([A-Za-z][\w.-]{0,60})['\"]?\]?(?:[ ]?[=:]|[ ](?:is|was|=>|->))?[ ]?b?['\"(]?\Z")
# Names of what is drawn and opens nothing.
_EXPLAINS = re.compile(
    rb"(?i)(?:hash|digest|sha\d|(?<![a-z])h\d|md5|crc|etag|checksum|integrity|fingerprint|nonce|"
    rb"salt|boundary|public|peer|"
    rb"signature|sig|accept|cursor|snapshot|revision|artifact|writer|trace|span|request|ray|"
    rb"(?<![a-z])(?:id|ids|iv|run|job|pod|node|host|name|image|tag|ref|url|uri|path|file|dir|version|seed|"
    rb"cert|certificate|data|bytes|blob|tensor|payload|info|map|state))(?![a-z])"
)
# Names that a compiler has made, keys that all may read, pictures and archives in base64.
_OTHERS = re.compile(
    rb"_{0,2}Z[A-Z]{0,3}\d|_{1,2}Z|AAAA|MII[A-Z]|eyJ|iVBOR|/9j/|R0lGOD|UklGR|H4sI|UEsDB|gA[SR]"
)
# A card's or a partition's id, `GPU-` before a UUID.
_NAMED_UUID = re.compile(rb"(?i)[a-z]{2,8}[_-][0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_PUBLIC_KEY = re.compile(rb"(?i)(?:public|peer|host)[ _-]?key[^\w\n]{1,8}\Z")
# A host of which only a digest is known.
_HASHED_HOST = re.compile(rb"\|1\|[^\s|]*\|?\Z")


def find_drawn(text: bytes) -> Iterator[FoundValue]:
    """Yield the runs that chance has drawn and that no name explains."""
    for run in _RUN.finditer(text):
        if is_drawn_run(run[0]) and not _is_explained(text, run.start(), run.end()):
            yield FoundValue(run.start(), run.start(), run.end())


def is_drawn_run(value: bytes) -> bool:
    """Tell whether a run has a part of letters of both cases and digits that chance has drawn."""
    if (
        _OTHERS.match(value)
        or _NAMED_UUID.match(value)
        or entropy.is_identified(value)
        or entropy.is_hexadecimal(value)
    ):
        return False
    parts = re.split(rb"[_/-]", value)
    core = max(parts, key=len)
    # All of base64 is one part; names of models are words between the signs of its other alphabet.
    if (
        b"=" in value
        or b"+" in value
        or (len(value) >= 32 and not any(len(part) >= 4 and entropy.is_word(part) for part in parts))
    ):
        core = value
    return (
        len(core) >= _SHORTEST
        and entropy.is_dense(core)
        and not core.isupper()
        and any(97 <= char < 123 for char in core)
        and len(re.findall(rb"\d+", core)) >= 2
        and entropy.is_chance(core, _SHORTEST)
        and not entropy.is_encoded_text(value)
    )


def _is_explained(text: bytes, first: int, last: int) -> bool:
    """Tell whether a name gives the value to something else, or a whole row of base64 is data."""
    begin, end = text.rfind(b"\n", 0, first) + 1, text.find(b"\n", last)
    end = len(text) if end < 0 else end
    if last - first >= 60 and not text[begin:first].strip() and not text[last:end].strip():
        return True
    before = max(begin, first - 80)
    if _HASHED_HOST.search(text, before, first) or _PUBLIC_KEY.search(text, before, first):
        return True
    named = _NAME.search(text, before, first)
    return named is not None and _EXPLAINS.search(named[1]) is not None


_ON = re.compile(_SIGNS + rb"{0,129}={0,2}")
_ALL_SIGNS = string.ascii_letters.encode() + b"0123456789+/_-"

_THREE = "|".join("".join(three) for three in permutations(("[a-z]", "[A-Z]", "[0-9]")))

DRAWN = (
    SecretKind(
        "secret",
        rf"(?:{_THREE})[A-Za-z0-9+/_-]{{5}}",
        "",
        wraps=False,
        yields=True,
        finder=find_drawn,
        probe=run_around(_ALL_SIGNS, _ON, 128, lambda run: len(run) >= _SHORTEST and is_drawn_run(run)),
    ),
)
