"""What launchers, loggers and collectors print before a message: one row a form, in the order they are tried.

A form is tried only on text that begins with one of its first characters (behind a bracket: with one of its
second ones), so that a line of plain words costs next to nothing.
Sources of the formats stand beside the rows that are not plain conventions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, printable
from typing import NamedTuple

from ingest.logs.scanner import held_literals, literal_places

_LEVELS = "DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL"
_DAY = r"\d{4}[-/]\d\d[-/]\d\d"
_CLOCK = r"\d\d:\d\d:\d\d"
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_ZONE = r"(?:Z| ?[+-]\d\d:?\d\d| UTC| GMT)?"
_FULL = rf"{_DAY}[ T]{_CLOCK}(?:[.,]\d+)?{_ZONE}"
_WHERE = r"(?P<where>[\w./-]+:\d+)"
_LOST_COLOR = r"(?:\[[\d;]{1,8}m)"


class PrefixForm(NamedTuple):
    """A prefix: what its first character may be, and the one inside a bracket.

    An inner one only stands after another; a label never behind what names the process already (there it is
    the number of a call in a backtrace, say).
    """

    firsts: str
    expression: re.Pattern[str]
    inside: str = ""
    is_inner: bool = False
    is_label: bool = False
    # Where the rank alone may tell who printed a line: one of these stands in it, with the rank's number.
    marks: tuple[str, ...] = ()


def _form(
    firsts: str,
    expression: str,
    *,
    inside: str = printable,
    is_inner: bool = False,
    is_label: bool = False,
    marks: tuple[str, ...] = (),
) -> PrefixForm:
    return PrefixForm(firsts, re.compile(expression), inside, is_inner, is_label, marks)


_ROWS: tuple[PrefixForm, ...] = (
    # ray/_private/worker.py print_worker_logs; vllm/v1/utils.py decorate_logs. An actor's name is its repr.
    _form(
        "([",
        rf"{_LOST_COLOR}?\((?:(?P<actor>[^\n]{{1,120}}?)(?: rank=(?P<rank>\d+))? )?pid=(?P<pid>\d+)"
        rf"(?:, ip=(?P<node>[^\s)]{{1,64}}))?\){_LOST_COLOR}?(?: |$)",
        inside=digits,
    ),
    _form(
        "([",
        rf"{_LOST_COLOR}?\((?P<actor>raylet|gcs_server|autoscaler|scheduler|dashboard|dashboard_agent|"
        rf"log_monitor|"
        r"monitor|plasma_store|driver)"
        rf"(?:, ip=(?P<node>[\w.:-]+)| (?P<time>\+[\ddhms]{{2,16}})| [^)]{{0,20}})?\){_LOST_COLOR}?(?: |$)",
        inside=digits,
    ),
    _form("[", r"\[pod/(?P<node>[\w.-]+)/[\w.-]+\](?: |$)", inside="p"),
    # torch/distributed/elastic: "[${role_name}${local_rank}]:", or a template of the job's own.
    _form("[", r"\[(?:rank|default)(?P<rank>\d{1,5})\]:? ?", inside="rd", marks=("[rank{}]", "[default{}]")),
    _form(
        "[",
        r"\[(?:(?P<actor>[A-Za-z]\w{0,30}?)(?P<rank>\d{1,5})\|\d{1,5}"
        r"|(?P<role>trainer|worker|actor|learner|proc|gpu|local_rank)(?P<number>\d{1,5}))\]: ?",
        inside=ascii_letters,
    ),
    # Open MPI --tag-output, and SageMaker's reading of it.
    _form(
        "[",
        r"\[\d+,(?:mpirank:)?(?P<rank>\d{1,5})(?:,(?P<node>[\w.-]+))?\]<std(?:out|err)>: ?",
        inside=digits,
        marks=(",{}]<std", ":{}]<std"),
    ),
    _form(
        "[IWEF",
        rf"\[?(?P<level>[IWEF])(?P<time>(?:\d{{8}}|\d{{3,4}})? {_CLOCK}(?:\.\d+)?)\s+"
        rf"(?:\d+\s+)?(?:[\w.]+\s+)?{_WHERE}\](?: |$)",
        inside="IWEF",
    ),
    _form("[", rf"\[(?P<level>[IWEF]) {_WHERE}\](?: |$)", inside="IWEF"),
    _form(
        "[",
        rf"\[(?P<time>\d{{4}}-\d\d-\d\d [\d:,.]+)(?: (?P<level>[IWEFC]))? (?P<pid>\d+)(?: \d+)?\]"
        rf"(?: \((?P<actor>[\w-]+)\))? {_WHERE}:?(?: |$)",
        inside=digits,
    ),
    # sglang/srt/utils: the ranks of the parallel groups stand behind the time.
    _form(
        "[",
        rf"\[(?P<time>{_DAY} {_CLOCK}(?:[.,]\d+)?) (?P<told>[A-Z]{{2}}\d+(?: [A-Z]{{2}}\d+)*)\](?: |$)",
        inside=digits,
    ),
    _form(
        "[",
        rf"\[(?P<level>{_LEVELS})\|(?:{_WHERE}\] (?P<time>{_FULL})"
        rf"|(?P<date>{_FULL})\] (?P<place>[\w./-]+:\d+)) >>(?: |$)",
        inside="DIWECF",
    ),
    _form("[", rf"\[NeMo (?P<level>[DIWEC]) (?P<time>{_FULL}) [^\]\s]+:\d+\] ?", inside="N"),
    _form("[", rf"\[(?P<level>{_LEVELS}):(?P<where>[\w.]+)\](?: |$)", inside="DIWECF"),
    _form(
        "[",
        r"\[(?P<time>\s*\d+\.\d{6}|\s*\+\d+\.\d{6}|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}"
        r"|[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d|\d{10}(?:\.\d+)?)\](?:\[ *[TC]\d+\])?(?: |$)",
        inside=f" {digits}{ascii_uppercase}",
    ),
    _form(
        "[", rf"\[(?P<time>{_CLOCK}(?:[.,]\d+)?|{_DAY} \d\d:\d\d|\d\d-\d\d {_CLOCK})\](?: |$)", inside=digits
    ),
    # Open MPI's show_help and signal handler.
    _form(
        "[",
        r"\[(?P<node>[A-Za-z][\w.-]*):(?P<pid>\d{2,8})\] (?=\*\*\* |Signal|Failing at|\[ ?\d+\] |Process )",
        inside=ascii_letters,
    ),
    _form(digits, r"(?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) [FP](?: |$)"),
    _form(f"[({digits} ", rf" ?[\[(]?(?P<time>{_FULL})[\])]?(?:,| -|:)?(?: |\t|$)", inside=digits),
    _form(f" {digits}", r"\s{0,4}(?P<rank>\d{1,5}):(?: |$)", is_label=True, marks=("{}:",)),
    _form(
        f"[{digits}",
        rf"\[?(?P<time>\d\d/\d\d/(?:\d{{4}}|\d\d) {_CLOCK}(?:[.,]\d+)?"
        rf"|\d\d?/(?:{_MONTHS})/\d{{4}}:{_CLOCK}(?: [+-]\d{{4}})?)\]?(?: -|:)?(?: |\t|$)",
        inside=digits,
    ),
    _form(digits, rf"(?P<time>{_CLOCK}[.,]\d{{3,9}}|{_CLOCK}(?=(?: -| \|)? \[?(?:{_LEVELS})\b))(?: -| \|)? "),
    # vllm/logging_utils: the file stands in brackets since 0.8, before that only a closing one.
    _form("DIWEC", rf"(?P<level>{_LEVELS}) (?P<time>\d\d-\d\d {_CLOCK})(?:\.\d+)? \[?{_WHERE}\] ?"),
    _form(
        "JFMASOND",
        r"(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?) (?P<node>[\w.-]+) "
        r"(?=[\w.-]+(?:\[\d+\])?:)(?:[\w.-]+(?:\[(?P<pid>\d+)\])?:(?: |$))",
    ),
    _form("<", r"<\d{1,3}>(?:1 )?(?=[\[A-Z\d])"),
    _form("k", r"kern  ?:(?P<level>\w+) *: (?=\[)"),
    _form("DIWECF", rf"(?P<level>{_LEVELS}):(?P<time>{_FULL}):"),
    _form("DIWECF", r"(?P<level>INFO:    |DEBUG:   |WARNING: |ERROR:   ) (?=\S)"),
    _form("DIWECF", rf"(?P<level>{_LEVELS}):(?P<where>[A-Za-z_][\w.-]*):"),
    _form("DNAE", rf"(?P<level>DEFAULT|NOTICE|ALERT|EMERGENCY) (?={_DAY})"),
    # wandb/sdk/wandb_setup.py, _enable_logging: the level is padded, as many programs pad it.
    _form("DIWECF", rf"(?P<level>{_LEVELS}) {{1,5}}[\w-]{{1,40}}:\d+ \[[\w.]+:[\w<>]+\(\):\d+\] ?"),
    _form("[DIWECF", rf"\[?(?P<level>{_LEVELS})\]?(?: -|:)? {{1,5}}(?=\S)", inside="DIWECF"),
    _form("(", rf"\((?P<level>{_LEVELS})\)(?: ?\[{_WHERE}\])?:? {{1,4}}(?=\S)"),
    _form(ascii_letters, r"(?P<node>[A-Za-z][\w.-]{0,80}):(?P<pid>\d+):\d+ \[\d+\] (?=NCCL )"),
    _form(
        "wnhgidacr",
        r"(?P<node>(?:worker|node|host|gpu|ip|dgx|hgx|compute|a100|a800|h100|h200|h800|"
        r"cn|gn|nid|rack)[\w-]*\d(?:\.[\w.-]+)?): ",
    ),
    _form("w", r"(?P<actor>wandb): "),
    # docker compose: the service and its number, padded to a column.
    _form(ascii_lowercase, r"(?P<node>[a-z][\w.-]{0,60}[-_]\d{1,4}) {1,40}\|(?: |$)"),
    # stern: pod and container; only where the pod's name has what a controller adds.
    _form(
        ascii_lowercase,
        r"(?P<node>[a-z][a-z0-9-]{0,60}-(?:[a-z0-9]{6,10}-[a-z0-9]{5}"
        r"|(?:worker|master|launcher|head|leader|ps|chief)-\d{1,4})) [a-z][a-z0-9-]{0,60} ",
    ),
    _form("#", r"#033\[[\d;]{0,8}m"),
    # What people put before a line that they quote: Markdown's marks of quotation, code, stress and lists.
    _form(">", r"(?:> ?){1,4}(?=\S)"),
    # A name in code that begins a sentence is the message's own.
    _form("`", r"`{1,3}(?=\S)(?![\w.<>()]{1,80}` )"),
    _form("*", r"\*{1,3}(?=[\w`\[(])|\* (?=[A-Z`\[*])"),
    _form("-", r"- (?=[A-Z`\[*])"),
    _form("•·●", r"[•·●] ?(?=\S)"),
    _form(digits, r"\d{1,2}[.)] (?=[A-Z`\[*])"),
    # What only means something behind another prefix.
    _form("|", r"\| (?P<level>[A-Z]+) *\| (?P<where>[^\s|]+:[^\s|]*:\d+) - ", is_inner=True),
    _form("|", r"\| (?P<level>[A-Z]+) *\| ", is_inner=True),
    _form(
        "[",
        r"\[(?P<where>[\w./-]+\.(?:py|cc|cpp|cu|h|rs|go):\d+(?::[\w<>]+)?"
        r"|[a-z_][\w]*(?:\.\w+)*:\d+)\](?: |$)",
        is_inner=True,
        inside=ascii_letters,
    ),
    # Google's Logs Explorer: the fields of an entry that its user has put before each message.
    _form(
        "[",
        r"\[(?:resource|labels|jsonPayload)\.[\w./\"-]{1,120}: (?P<node>[\w.-]{1,120})\](?: |$)",
        is_inner=True,
        inside="rlj",
    ),
    _form("[", r"\[(?:PID:\d+|RANK:(?P<told>\d+))\] ?", is_inner=True, inside="PR"),
    _form(f"{ascii_letters}_", r"(?P<where>[\w./-]+\.py:\d+) -- ", is_inner=True),
    _form("IWEF", r"(?P<level>[IWEF]) (?:\d+ )?(?P<where>[\w./-]+:\d+)\] ", is_inner=True),
    # Rust's tracing, as TGI, TEI, Dynamo and tokenizers' servers print: the level is padded to five letters.
    _form(
        " TDIWE",
        r" ?(?P<level>TRACE|DEBUG|INFO|WARN|ERROR) (?P<where>[a-z_]\w*(?:::\w+)*)(?:\{[^}]{0,200}\})?: ",
        is_inner=True,
    ),
    _form(
        f"{ascii_letters}_", rf"(?P<where>[A-Za-z_][\w.]{{0,80}}) - (?P<level>{_LEVELS}) - ", is_inner=True
    ),
    _form(
        ascii_letters,
        r"(?P<node>[A-Za-z][\w.-]{0,80}) (?:kernel|(?:systemd|slurmd|slurmstepd|containerd|dockerd|"
        r"kubelet|nvidia-[\w-]+|python[\d.]*|[\w.-]+(?=\[))(?:\[(?P<pid>\d+)\])?): ",
        is_inner=True,
    ),
)

# What a message itself tells of who it is about; it stays in the message.
_TOLD: tuple[PrefixForm, ...] = (
    _form("[", r"\[(?:PG [^\]]{1,80}? )?[Rr](?:ank|ANK)[ :]?(?P<told>\d{1,5})\]", inside="PRr"),
    _form(
        "s",
        r"(?:srun|slurmstepd): error: (?:\*\*\* .{1,60}? ON )?"
        r"(?P<node>[A-Za-z][\w.-]*\d|[A-Za-z][\w.-]*\[[\d,-]+\])(?=[: ](?: task|CANCELLED|tasks? \d))",
    ),
)


def _by_first(rows: tuple[PrefixForm, ...]) -> dict[str, tuple[PrefixForm, ...]]:
    table: defaultdict[str, list[PrefixForm]] = defaultdict(list)
    for row in rows:
        for first in row.firsts:
            # A bracket says little: it counts with the character behind it.
            for start in (f"[{second}" for second in row.inside) if first == "[" else (first,):
                table[start].append(row)
    return {start: tuple(forms) for start, forms in table.items()}


# A group's name can stand once in an expression; these are the second ones.
_ALIASES = {"date": "time", "place": "where", "role": "actor", "number": "rank"}
_NAMED = frozenset({"rank", "pid", "actor"})
# How records name their fields, one within another too, stands for any rank: its number may be written
# otherwise there.
_RANK_MARKS = (*(mark for row in _ROWS for mark in row.marks), 'rank"', "rank\\", "rank=")
# A label's mark stands before a blank or ends its row; else it is a part of a clock.
_LABEL, _LABELS = "{}:", ("{}: ", "{}:\n")
_ODD_LABEL = (b":\r", b":\t")
# What of each mark stands behind the number, or all of it.
_MARK_ENDS = tuple(mark.rsplit("{}", 1)[-1].encode() for mark in _RANK_MARKS)
# How JSON writes a rank's number behind its name.
_IN_JSON = re.compile(rb'rank"([^0-9\n]{0,4})(?:[0-9]{1,5}([^0-9]))?')
_FORMS = _by_first(_ROWS)
_HINTS = _by_first(_TOLD)


# What each prefix tells, and where that stands, counted from the end of the text.
Spans = dict[str, tuple[int, int]]


def strip_prefix(body: str, fields: dict[str, str], spans: Spans, *, is_inner: bool) -> str | None:
    """Take one prefix off and note what it says in `fields`, with `spans`; None where there is none."""
    for row in _FORMS.get(_key(body), ()):
        if (row.is_inner and not is_inner) or (row.is_label and not _NAMED.isdisjoint(fields)):
            continue
        match = row.expression.match(body)
        if match and match.end():
            _note(match, fields, spans)
            return body[match.end() :]
    return None


def infer_rank(body: str, fields: dict[str, str], spans: Spans) -> None:
    """Note which rank or node the message itself is about."""
    for row in _HINTS.get(_key(body), ()):
        if match := row.expression.match(body):
            _note(match, fields, spans)


@lru_cache(4096)
def rank_marks(rank: str, marks: tuple[str, ...] = _RANK_MARKS) -> tuple[bytes, ...]:
    """Give texts of which a line holds one where all that it tells of its process is this rank."""
    return tuple(mark.replace("{}", rank).encode() for mark in marks)


def marks_within(data: bytes) -> tuple[str, ...]:
    """Give the marks of ranks (with `{}` for the number) that a text has: looking for others costs time."""
    held = held_literals(data, (*_MARK_ENDS, *_ODD_LABEL))
    found = [mark for mark, end in zip(_RANK_MARKS, _MARK_ENDS, strict=True) if end in held]
    if _LABEL in found and not (data.endswith(b":") or held.intersection(_ODD_LABEL)):
        found[found.index(_LABEL) : found.index(_LABEL) + 1] = _LABELS
    if 'rank"' in found:
        # A text is found in many bytes far sooner than the expression that begins with it.
        places = literal_places(data, b'rank"')
        written = sorted({match.groups(b"") for at in places if (match := _IN_JSON.match(data, at))})
        if all(behind and (before + behind).isascii() for before, behind in written):
            found[found.index('rank"') : found.index('rank"') + 1] = [
                f'rank"{before.decode()}{{}}{behind.decode()}' for before, behind in written
            ]
    return tuple(found)


def _key(body: str) -> str:
    return body[:2] if body[:1] == "[" else body[:1]


def _note(match: re.Match[str], fields: dict[str, str], spans: Spans) -> None:
    size = len(match.string)
    for name, value in match.groupdict().items():
        key = _ALIASES.get(name, name)
        if value and not fields.get(key):
            fields[key] = value.strip(" :")
            begin = match.start(name) + len(value) - len(value.lstrip(" :"))
            spans[key] = size - begin, size - begin - len(fields[key])
