"""Settings of the job that hold what a failing message tells of: a path, a hub's name, a port or an address.

The message of a file that is not there, or of a port that is taken, rarely names the option to change; it
tells the option's value, or a path that begins or ends with it. Only what can hardly be met by chance counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from urllib.parse import urlsplit

from corpus.keys import canonical, last_level
from corpus.schema import Held
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport

# Of so many settings with one value each may be meant.
MOST = 2
# A path in quotes may hold blanks; one that stands alone has a separator, or a file's ending.
_QUOTED = re.compile(r"(?P<quote>['\"`])(?P<text>[^'\"`\n]{2,400})(?P=quote)")
_ENDING = re.compile(r"\w\.[A-Za-z]\w{0,9}$")
_BARE = re.compile(
    r"(?<![\w/.@:-])(?:~|\.{1,2}|[A-Za-z]:)?(?:/[\w.@+=-]+)+"
    r"|(?<![\w/.@:-])[\w.@+=-]+(?:/[\w.@+=-]+)+|(?<![\w/.@:-])[\w@+=-]+\.[A-Za-z]\w{0,9}(?![\w(/])"
)
# A row of a stack, whose path is that of code.
_CODE = re.compile(r"site-packages/|dist-packages/|/lib/python3")
_URL = re.compile(r"https?://[^\s'\"<>)\]}]+")
_HOST = r"(?P<host>\d{1,3}(?:\.\d{1,3}){3}|\[[\da-fA-F:]+\]|localhost|[A-Za-z][\w-]*(?:\.[\w-]+)*)"
_ADDRESS = re.compile(
    rf"(?<![\w./-])(?:host=)?['\"(\[]*{_HOST}['\"]?(?::|, ?(?:port=)?)(?P<port>\d{{2,5}})(?![\w.])"
)
_PORT = re.compile(
    r"(?i)(?:\bports?\b[ =:]*(?:range:? )?|(?:\]|\d|\*|localhost):|\('[\w.:]*', )(?P<port>\d{2,5})(?![\w.])"
    r"|\bin range: (?P<first>\d{2,5})-\d"
)
_NAME = re.compile(r"(?<![\w/.@:-])[\w.-]{2,96}/[\w.-]{2,96}(?![\w/])")
# A path that a script writes behind a variable of its own.
_BELOW_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})/(?P<tail>[^$`]+)\Z")
# Variables that every shell has, and names of which values are no place of this job.
_SHELL = re.compile(r"^(?:HOME|PWD|OLDPWD|USER|SHELL|PATH|LOGNAME|_)$")
# Names of settings that hold a place, by which a short or relative value counts too.
_PLACE = re.compile(r"(?i)(?:dir|folder|path|root|file|home|base|cache|name|id|data|ckpt|checkpoint)s?$")
_WRITTEN = re.compile(
    r"(?i)(?:^|[._-])(?:out(?:put)?|save|log(?:ging|s)?|result)s?(?:[._-]|$)|logdir|savedir"
)
_PORTED = re.compile(r"(?i)port")
_HOSTED = re.compile(r"(?i)addr|host|ip$|url|endpoint|server|uri|base")
# Names of settings that hold the name of a column, a split or another part of the data.
_WORDED = re.compile(
    r"(?i)(?:^|[._-])(?:\w+[_-])?(?:keys?|columns?|cols?|fields?|features?|splits?|subsets?|labels?|prompts?"
    r"|config(?:[_-]name)?|messages|responses?|text|inputs?|outputs?|answers?|images?|videos?|targets?)$"
)
_NOTHING = frozenset({"", "none", "null", "true", "false", ".", "..", "/"})
# Where a message begins to list what there is: none of that is what it misses.
_LISTED = re.compile(
    r"(?i)\b(?:available|existing|supported|valid|possible|known|allowed) [\w ]{1,40}(?::|are\b)"
    r"|\bfor example\b|\b(?:must|should) be one of\b|\bchoose (?:from|one of)\b"
)
# How many parts of a path may come behind the folder that a setting names, and the shortest name of one.
BEHIND, LEAST = 3, 3
# How many lines below an exception's first one the hub's library tells what it asked for, and in which words:
# huggingface_hub/utils/_http.py.
BELOW = 3
_ASKED = re.compile(r"\bfor url: ")
# The likeness of a path that is a setting's whole value.
WHOLE = 2.0


def held_by(kind: Held, report: CrashReport, settings: Sequence[Setting]) -> list[Setting]:
    """Give the settings whose value the root's line tells, the most telling first."""
    if report.root is None:
        return []
    given = [item for item in (*settings, *_keyed(settings)) if _plain(item.value).lower() not in _NOTHING]
    root, told = report.root, report.root.body
    if kind == "name":
        rows = (report.texts.get(line, "") for line in range(root.line + 1, root.line + BELOW + 1))
        told = "\n".join((told, *filter(_ASKED.search, rows)))
    best: dict[str, tuple[float, Setting]] = {}
    for score, item in _READERS[kind](told, given):
        key = canonical(item.key)
        if key not in best or score > best[key][0]:
            best[key] = score, item
    top = max((score for score, _ in best.values()), default=0.0)
    found = [item for score, item in best.values() if score == top]
    # A script's variable is what one of its options holds.
    options = [item for item in found if item.spelled != "env"] or found
    # Of more nobody can say which is meant.
    return sorted(options, key=lambda item: item.line != 0) if len(options) <= MOST else []


def _keyed(settings: Iterable[Setting]) -> Iterator[Setting]:
    """Give the settings of which a path is a key, as of a mixture of data: `mixer: {/data/one: 0.5}`."""
    for item in settings:
        owner, sign, path = item.key.partition("./")
        if sign and owner and item.spelled == "yaml":
            yield replace(item, key=owner, value=f"/{path}")


def paths_in(text: str) -> list[str]:
    """Give the paths that a message tells, each once, without those of code."""
    quoted = [match["text"] for match in _QUOTED.finditer(text)]
    named = [path for path in quoted if "/" in path or _ENDING.search(path)]
    # A dot behind a path ends the sentence.
    bare = (
        path if path.endswith("..") else path.rstrip(".") for path in _BARE.findall(_QUOTED.sub(" ", text))
    )
    found = (*named, *bare)
    return list(dict.fromkeys(path for path in found if not _CODE.search(path)))


def _plain(value: str) -> str:
    return value.strip().strip("'\"[]").removeprefix("./").rstrip("/")


def _of_paths(
    told: str, settings: Iterable[Setting], is_output: bool = False
) -> Iterator[tuple[float, Setting]]:
    held = [(item, _plain(item.value)) for item in settings if not _SHELL.match(item.key)]
    for path in map(_plain, paths_in(told)):
        likely: list[tuple[float, Setting]] = []
        others: list[tuple[float, Setting]] = []
        for item, value in held:
            is_likely = bool(_WRITTEN.search(item.key)) == is_output
            if likeness := _likeness(path, value, item.key, deep=is_output):
                (likely if is_likely else others).append((likeness, item))
        yield from ((likeness + 0.25, item) for likeness, item in likely)
        # Where a run writes is not where it reads, but for what it wrote itself, and for what lies in a
        # folder for results that stands in the one it reads from.
        most = max((likeness for likeness, _ in likely), default=WHOLE)
        for likeness, item in others:
            if is_output or likeness == WHOLE:
                yield likeness, item
            elif likeness > max(most, 1.0):
                yield likeness + 0.5, item


def _likeness(path: str, value: str, key: str, *, deep: bool) -> float:
    """Tell how much of a path is a setting's value: all of it, its begin or its end; 0 where by chance.

    What is written below a folder may stand as `deep` in it as the program likes.
    """
    is_place = bool(_PLACE.search(last_level(key)))
    if path == value:
        return WHOLE if "/" in path or "." in path else 0.0
    if "/" not in path or len(value) < LEAST or value.isdigit():
        return 0.0
    if below := _BELOW_VARIABLE.match(value):
        # What the shell put before it is not told here; what it wrote behind that is.
        tail = below["tail"]
        is_part = path.endswith(f"/{tail}") or f"/{tail}/" in path
        # The variable that others are built on is the one to mend.
        return 0.75 - len(tail) / len(path) / 4 if is_part and (is_place or "/" in tail) else 0.0
    if path.startswith(f"{value}/"):
        behind = path[len(value) :].count("/")
        is_telling = "/" in value.strip("/") or (is_place and behind < BEHIND)
        is_near = behind <= BEHIND or (deep and is_place)
        return 1 + len(value) / len(path) / 2 if is_telling and is_near else 0.0
    is_end = path.endswith(f"/{value}") and (is_place or "/" in value)
    return 0.5 + len(value) / len(path) / 2 if is_end else 0.0


def _of_names(told: str, settings: Iterable[Setting]) -> Iterator[tuple[float, Setting]]:
    """Match a repository's name: alone, or within the hub's address (`/api/models/org/name`)."""
    names = set(_NAME.findall(_URL.sub(" ", told)))
    for url in _URL.findall(told):
        parts = urlsplit(url.rstrip(".,;:")).path.split("/")
        names |= {"/".join(pair) for pair in pairwise(parts) if all(pair)}
    yield from ((1.0, item) for item in settings if _plain(item.value) in names)


def _of_words(told: str, settings: Iterable[Setting]) -> Iterator[tuple[float, Setting]]:
    """Match a column or another part of the data by the name that the message quotes."""
    names = {match["text"] for match in _QUOTED.finditer(_LISTED.split(told, maxsplit=1)[0])}
    for item in settings:
        if _WORDED.search(item.key) and _plain(item.value) in names:
            yield 1.0, item


def _of_ports(told: str, settings: Iterable[Setting]) -> Iterator[tuple[float, Setting]]:
    ports = {match["port"] or match["first"] for match in _PORT.finditer(told)}
    for item in settings:
        if _PORTED.search(last_level(item.key)) and _plain(item.value) in ports:
            yield 1.0, item


def _of_addresses(told: str, settings: Iterable[Setting]) -> Iterator[tuple[float, Setting]]:
    """Match an address, whole or its host alone; a host of this machine is told by too many settings."""
    urls = [urlsplit(url) for url in _URL.findall(told)]
    pairs = [(url.hostname or "", str(url.port or "")) for url in urls]
    pairs += [(match["host"].strip("[]"), match["port"]) for match in _ADDRESS.finditer(told)]
    for item in settings:
        value = _plain(item.value)
        for host, port in pairs:
            is_named = bool(host) and re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", value)
            if is_named and port and f":{port}" in value:
                yield 2.0, item
            elif is_named and _HOSTED.search(last_level(item.key)) and host not in ("localhost", "127.0.0.1"):
                yield 1.0, item


_READERS: dict[Held, Callable[[str, Iterable[Setting]], Iterator[tuple[float, Setting]]]] = {
    "path": _of_paths,
    "output": partial(_of_paths, is_output=True),
    "name": _of_names,
    "word": _of_words,
    "port": _of_ports,
    "address": _of_addresses,
}
