"""Edits of a launch script that is not run as it reads: a command that ends too early, a variable not set.

What stands before `&` runs in a shell of its own (bash, "Lists of Commands"): a variable that is set there is
set nowhere else.

Bash and dash then name row and option: `run.sh: line 10: --lr: command not found`. The row above lacks its
backslash, has a blank behind it, or is a comment or an empty row, which ends the command as well.

Slurm gives what a directive asks for as a variable (`--ntasks` as `SLURM_NTASKS`: `man sbatch`, output
environment variables). A script that a shell runs by itself has the directive alone.

Under `set -u` a row that extends a variable nobody has set ends the script (bash, "The Set Builtin").

A script of a scheduler does not know the environment of the shell that submitted it, or has another one:
where a file at hand defines an environment that has the missing package, the script is to activate it.

A build of extensions asks for the toolkit of PyTorch's CUDA (torch/utils/cpp_extension.py,
`_check_cuda_version`; DeepSpeed's op_builder/builder.py, `assert_no_cuda_mismatch`) and names both versions:
the script that loads the other one, as a module of the environment or by its folder, is to load this one.

A launcher may give each process an option that its program does not take (`passes` in
`corpus/frameworks.yaml`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from packaging.utils import canonicalize_name

from corpus.message import in_both
from corpus.paths import base_name
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.formats import CODE
from ingest.configfiles.shell.syntax import parse
from ingest.logs.report import CrashReport
from service.remediation.card_lists import disjoint_lists
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.environment_entries import defined_environments, enters_one
from service.remediation.own_edits import OwnEdit, job_files
from service.remediation.refusals import passed_option, unknown_options

_OPTION_RUN = re.compile(
    r"(?P<script>[\w./-]{1,200}): (?:line )?(?P<line>\d{1,6}): (?P<option>--?[A-Za-z][\w.-]*)(?:=\S*)?: "
    r"(?:command )?not found"
)
# What argparse says where a command was cut off: it lacks what follows, or has a blank as a word.
_LEFT_OVER = re.compile(
    r"\berror: (?:the following arguments are required: (?P<needed>[^\n]{1,300})|unrecognized arguments:\s*$)"
)
# A list of words that a launcher prints, of which the last one is a blank.
_BLANK_WORD = re.compile(r", (['\"])\s{1,4}\1\]")
_BLANK_BEHIND = re.compile(r"\\[ \t]+\r?$")
_OPTION_ROW = re.compile(r"\s*(?P<option>--?[A-Za-z][\w.-]*)")
_COMMENT = re.compile(r"\s*#")
_SCRIPT = re.compile(r"\.(?:sh|bash|slurm|sbatch)$")
_UNBOUND = re.compile(
    r"(?P<script>[\w./-]{1,200}): (?:line )?(?P<line>\d{1,6}): "
    r"(?P<name>(?:SLURM_(?P<option>[A-Z_]{2,40})|[A-Za-z_]\w{0,60})): (?:unbound variable|parameter not set)"
)
_ABSENT = re.compile(r"No module named '?\w+'?(?![\w.'])")
_STARTS = re.compile(
    r"(?:srun\s+(?:-\S+\s+(?:\d+\s+)?)*)?(?:python3?|torchrun|accelerate\s+launch|deepspeed)\s"
)
_DIRECTIVE = re.compile(
    r"^#SBATCH\s+--(?P<option>[a-z-]{2,40})[= ](?P<value>[\w./-]{1,80})\s*$", re.MULTILINE
)
_TOOLKITS = re.compile(
    r"(?i)(?:installed|detected) CUDA version \(?(?P<loaded>\d{1,2}\.\d{1,2})\)? "
    r"(?:does not match|mismatches) the version "
    r"(?:that was used to compile\s+PyTorch \(|torch was compiled with )(?P<wanted>\d{1,2}\.\d{1,2})"
)


def script_edit(
    report: CrashReport, files: Sequence[JobFile] | None = None, variables: Sequence[str] = ()
) -> OwnEdit | None:
    """Give the edit by which the script runs as it reads; None where no such row is at hand.

    `variables` are those of the environment on which the failure turns.
    """
    bodies = [event.body for event in report.standing if event.kind == "error"]
    given = job_files(report) if files is None else files
    for body in bodies:
        if (said := _OPTION_RUN.search(body)) and (file := _named(said["script"], given)):
            return _joined(file, int(said["line"]), said["option"])
        if (said := _UNBOUND.search(body)) and (file := _named(said["script"], given)):
            return _defaulted(file, said["name"], said["option"] or "") or _extended(
                file, int(said["line"]), said["name"]
            )
    made = [
        *(_without_blanks(file, body, report) for body in bodies for file in given),
        *(_passing_nothing(file, option.key, report) for option in unknown_options(report) for file in given),
        *(_in_foreground(file, name) for file in given for name in variables),
        _activated(given, report),
        *(disjoint_lists(file, body) for body in bodies for file in given),
        *(_with_toolkit(file, said) for body in bodies if (said := _TOOLKITS.search(body)) for file in given),
    ]
    return next((edit for edit in made if edit is not None), None)


def _without_blanks(file: JobFile, said: str, report: CrashReport) -> OwnEdit | None:
    """Take the blanks from behind a script's backslashes: they end its command before an option of it."""
    refused = _LEFT_OVER.search(said)
    if refused is None or not _SCRIPT.search(file.name):
        return None
    rows = file.text.split("\n")
    is_blank = not refused["needed"] or any(_BLANK_WORD.search(text) for text in report.texts.values())
    for at, (row, below) in enumerate(pairwise(rows)):
        if not _BLANK_BEHIND.search(row) or _COMMENT.match(row) or not (option := _OPTION_ROW.match(below)):
            continue
        later = {word.partition("=")[0] for each in rows[at + 1 :] for word in each.split()}
        if not is_blank and later.isdisjoint(re.findall(r"[\w-]+", refused["needed"])):
            continue
        put = [each if _COMMENT.match(each) else _BLANK_BEHIND.sub(r"\\", each) for each in rows]
        why = in_both("changes.blank-behind-backslash", option=option["option"])
        place = f"{_base(file)}:{at + 1}"
        return OwnEdit("replace", place, row.strip(" \t"), put[at].strip(), why, file, "\n".join(put))
    return None


def _passing_nothing(file: JobFile, key: str, report: CrashReport) -> OwnEdit | None:
    """Start the job without an option that its launcher gives each process and its program does not take."""
    passed = passed_option(key, report)
    rows = file.text.split("\n")
    places = [
        at
        for at, row in enumerate(rows)
        if passed and re.search(passed.launch, row) and not _COMMENT.match(row)
    ]
    if passed is None or len(places) != 1 or file.name.endswith(CODE):
        return None
    before = rows[places[0]]
    after = re.sub(passed.launch, lambda _: passed.instead, before)
    if after == before or passed.instead in before:
        return None
    why = in_both("changes.passed-by-launcher", key=key, variable=passed.variable)
    text = "\n".join([*rows[: places[0]], after, *rows[places[0] + 1 :]])
    place = f"{_base(file)}:{places[0] + 1}"
    return OwnEdit("replace", place, before.strip(), after.strip(), why, file, text)


def _named(script: str, files: Sequence[JobFile]) -> JobFile | None:
    """Give the one file of a script's name."""
    name = script.rpartition("/")[2]
    fitting = [file for file in files if _base(file) == name]
    return fitting[0] if len(fitting) == 1 else None


def _base(file: JobFile) -> str:
    return base_name(file.name)


def _defaulted(file: JobFile, name: str, option: str) -> OwnEdit | None:
    """Let a variable that Slurm did not set have the value of the directive that it comes from."""
    wanted = option.lower().replace("_", "-")
    values = {match["value"] for match in _DIRECTIVE.finditer(file.text) if match["option"] == wanted}
    read = re.compile(rf"\$(?:\{{{name}\}}|{name}\b)")
    rows = file.text.split("\n")
    places = [at for at, row in enumerate(rows) if read.search(row) and not _COMMENT.match(row)]
    if len(values) != 1 or not places:
        return None
    value = values.pop()
    put = {at: read.sub(f"${{{name}:-{value}}}", rows[at]) for at in places}
    text = "\n".join(put.get(at, row) for at, row in enumerate(rows))
    first = places[0]
    why = in_both("changes.directive-alone", name=name, directive=f"--{wanted}", value=value)
    place = f"{_base(file)}:{first + 1}"
    return OwnEdit("replace", place, rows[first].strip(), put[first].strip(), why, file, text)


def _extended(file: JobFile, line: int, name: str) -> OwnEdit | None:
    """Let a variable that a row extends by itself, `P=/job:$P`, be empty where nobody has set it."""
    rows = file.text.split("\n")
    before = rows[line - 1] if 0 < line <= len(rows) else ""
    read = re.compile(rf"\$(?:\{{{name}\}}|{name}\b)")
    if not re.match(rf"\s*(?:export\s+)?{name}=", before) or len(read.findall(before)) != 1:
        return None
    after = read.sub(f"${{{name}:-}}", before)
    text = "\n".join([*rows[: line - 1], after, *rows[line:]])
    why = in_both("changes.unset-extended", name=name)
    return OwnEdit("replace", f"{_base(file)}:{line}", before.strip(), after.strip(), why, file, text)


def _in_foreground(file: JobFile, name: str) -> OwnEdit | None:
    """Set a variable in the script itself, not in a process of its own that the `&` behind it begins."""
    apart = re.compile(rf"(?m)^(?P<set>[ \t]*export[ \t]+{re.escape(name)}=[^\s&;|]+)[ \t]*&[ \t]*$")
    found = apart.search(file.text) if _SCRIPT.search(file.name) else None
    if found is None:
        return None
    place = f"{_base(file)}:{file.text.count(chr(10), 0, found.start()) + 1}"
    why = in_both("changes.set-in-background", name=name)
    text = apart.sub(lambda match: match["set"], file.text)
    return OwnEdit("replace", place, found[0].strip(), found["set"].strip(), why, file, text)


def _activated(files: Sequence[JobFile], report: CrashReport) -> OwnEdit | None:
    """Activate the environment that a file at hand defines with the missing package; no script does."""
    root = report.root
    # A package that lacks a name or a module is there: another release of it is asked for.
    if root is None or not _ABSENT.search(root.body):
        return None
    missing = {
        canonicalize_name(str(fact.fields.get("name", "")))
        for fact in report.facts
        if fact.kind == "package" and fact.line == root.line
    }
    defining = {each.name: each.file for each in defined_environments(files) if each.packages & missing}
    scripts = [file for file in files if _SCRIPT.search(file.name)]
    starting = [(file, at) for file in scripts if (at := _first_start(file.text)) is not None]
    if len(defining) != 1 or len(starting) != 1 or any(enters_one(file.text) for file in scripts):
        return None
    (file, at), (name, listing) = starting[0], defining.popitem()
    if any(f"/envs/{name}/" in frame.file for frame in root.frames):
        return None
    rows = file.text.split("\n")
    put = f'source "$(conda info --base)/etc/profile.d/conda.sh" && conda activate {name}'
    text = "\n".join([*rows[:at], put, *rows[at:]])
    why = in_both("changes.environment-not-entered", file=listing, name=name)
    return OwnEdit("insert-before", f"{_base(file)}:{at + 1}", rows[at].strip(), put, why, file, text)


def _with_toolkit(file: JobFile, said: re.Match[str]) -> OwnEdit | None:
    """Load the toolkit of PyTorch's CUDA where a script loads another version of it."""
    loaded = re.compile(
        rf"(?i)(?P<name>\bcuda(?:toolkit)?[/-]){re.escape(said['loaded'])}(?:\.\d{{1,2}})?(?![\w.])"
    )
    rows = file.text.split("\n")
    places = [at for at, row in enumerate(rows) if loaded.search(row) and not _COMMENT.match(row)]
    if not places or not _SCRIPT.search(file.name):
        return None
    put = {at: loaded.sub(lambda match: match["name"] + said["wanted"], rows[at]) for at in places}
    text = "\n".join(put.get(at, row) for at, row in enumerate(rows))
    first = places[0]
    why = in_both("changes.toolkit-of-another-version", loaded=said["loaded"], wanted=said["wanted"])
    place = f"{_base(file)}:{first + 1}"
    return OwnEdit("replace", place, rows[first].strip(), put[first].strip(), why, file, text)


def _first_start(text: str) -> int | None:
    """Give the row, from 0, at which the statement begins that starts a program first; None where none does.

    What a command is given as a text, or a row of a command that goes on from the row above, is none.
    """
    try:
        script = parse(text)
    except NotPatchableError:
        return None
    starts = [
        command.statement
        for command in script.commands
        if _STARTS.match(" ".join([*(word.text for word in command.words), ""]))
    ]
    return script.line(min(starts)) - 1 if starts else None


def _joined(file: JobFile, line: int, option: str) -> OwnEdit | None:
    """Join the row of an option to the command above it."""
    rows = file.text.split("\n")
    if not 1 < line <= len(rows) or not rows[line - 1].lstrip().startswith(option):
        return None
    above = rows[line - 2]
    plain = above.rstrip()
    if not plain or _COMMENT.match(above):
        start = line - 2
        while start > 0 and (not rows[start - 1].strip() or _COMMENT.match(rows[start - 1])):
            start -= 1
        if not start or not rows[start - 1].endswith("\\"):
            return None
        taken, put, reason = rows[start : line - 1], list[str](), "changes.row-within-command"
    elif plain.endswith("\\"):
        start, taken, put, reason = line - 2, [above], [plain], "changes.blank-behind-backslash"
    else:
        start, taken, put, reason = line - 2, [above], [f"{plain} \\"], "changes.backslash-missing"
    text = "\n".join([*rows[:start], *put, *rows[line - 1 :]])
    before, after = (" ".join(row.strip() for row in each if row.strip()) for each in (taken, put))
    why = in_both(reason, option=option)
    place = f"{_base(file)}:{start + 1}"
    return OwnEdit("replace", place, before, after, why, file, text) if text != file.text else None
