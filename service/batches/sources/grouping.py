"""Which files are one job's, told by their names alone.

The rule, for a folder as for an archive:

0. Each session that KubeRay's history server keeps of a Ray cluster is one job (`ray_layout`).
1. A folder that holds nothing but one folder is that folder.
2. It is one job where it looks like one: Hydra's `.hydra` inside, one log for each rank (`rank0.log`,
`worker-1.out`),
   a Ray session's files, none but logs of general names (`driver.log`, `stderr.txt`), or a folder for each
   rank, node
   or attempt.
3. Else each folder in it is one job, with all below it; a folder named by a day or a time, without logs of
its own,
   is gone into.
4. Else each log in it is one job. What differs only in its stream (`x.out` and `x.err`), age (`x.log.1`,
   `x-previous.log`) or rank (`x_rank0.log`) is one job's. A configuration goes to the job of its name, else
   to all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from service.batches.sources.ray_layout import by_session, is_note, session_of, shown_session

# More is no configuration of one job.
MAX_SHARED = 20

_PACKED = re.compile(r"\.(?:gz|zst|xz|bz2|tgz|zip|tar(?:\.(?:gz|zst|xz|bz2))?)$", re.IGNORECASE)
_AGE = re.compile(r"(?<=\.log|\.out|\.err|\.txt)[.-]\d{1,3}$|[._-]previous(?=[._-]|$)", re.IGNORECASE)
_ENDING = re.compile(
    r"\.(?:log|txt|out|err|stdout|stderr|jsonl|json|sh|bash|sbatch|slurm|ya?ml|toml|ini|cfg|conf|env)$",
    re.IGNORECASE,
)
_STREAM = re.compile(r"(?:^|[._-])(?:stdout|stderr|out|err)$", re.IGNORECASE)
# The batch systems of the PBS family name a job's two streams NAME.o123 and NAME.e123.
_PBS = re.compile(r"\.[oe](?=\d+(?:[.-]\d+)?$)")
_RANK = re.compile(
    r"(?:^|[._-])(?:local[_-]?)?(?P<word>rank|worker|node|host|proc|process|replica|shard|actor|pod|gpu)"
    r"[._-]?(?P<index>\d{1,6})(?=$|[._-])",
    re.IGNORECASE,
)
_SESSION = re.compile(
    r"^(?:raylet|gcs_server|python-core-|worker-[0-9a-f]{32,}-|runtime_env_|"
    r"dashboard(?:_agent)?\.|log_monitor)"
)
_GENERAL = re.compile(
    r"^(?:driver|main|launcher|master|head|console|train(?:ing|er)?|worker|output|log|error|system|nohup|run|"
    r"stdout|stderr|out|err|dmesg|syslog|server)?$",
    re.IGNORECASE,
)
_INNER = re.compile(
    r"^(?:(?:local[_-]?)?(?:rank|worker|node|host|proc|process|replica|shard|attempt|restart|gpu)[._-]?\d+|"
    r"logs?|outputs?|stdout|stderr|driver|workers?|head|launcher|master|session_.+|\.hydra|configs?|"
    r"scripts?)$",
    re.IGNORECASE,
)
_DATED = re.compile(
    r"^(?:\d{4}-?\d{2}(?:-?\d{2})?|\d{2}[-_]\d{2}[-_]\d{2}|"
    r"\d{4}-\d{2}-\d{2}[T_-]\d{2}[-_:]?\d{2}(?:[-_:]?\d{2})?)$"
)
_NOT_A_LOG = re.compile(
    r"^(?:readme|licen[cs]e|changelog|authors|contributing|notice)(?:\.|$)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class JobFiles:
    """One job's files by their names.

    `folder` is the one that they are all of, None where they lie beside others'; `is_whole` tells whether
    they are all that counts in it.
    """

    name: str
    logs: tuple[str, ...]
    configs: tuple[str, ...] = ()
    folder: str | None = None
    is_whole: bool = True


class LogNameStem(NamedTuple):
    """What a log's name says of its job; `word` and `rank` tell the process, where it names one."""

    key: str
    word: str = ""
    rank: int = -1


@dataclass
class _Folder:
    path: str = ""
    logs: list[str] = field(default_factory=list)
    configs: list[str] = field(default_factory=list)
    folders: dict[str, _Folder] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    def below(self) -> Iterator[_Folder]:
        yield self
        for folder in self.folders.values():
            yield from folder.below()


def group_files(logs: Iterable[str], configs: Iterable[str], name: str) -> list[JobFiles]:
    """Give the jobs that files make, by the rule above; `name` is that of a job which is all of it."""
    by_name = _outputs(logs)
    found = _sessions(by_name, name)
    root = _tree([log for log in by_name if not found or session_of(log) is None], configs)
    while not (root.logs or root.configs) and len(root.folders) == 1:
        root = next(iter(root.folders.values()))
    found += _jobs(root, root.name or name)
    # Numbers sort as numbers; a name's digits are no more than its length.
    return sorted(
        found,
        key=lambda job: [
            (int(part), "") if part.isdecimal() and len(part) < 40 else (-1, part)
            for part in re.split(r"(\d+)", job.name)
        ],
    )


def group_entry(logs: Iterable[str], configs: Iterable[str], folder: str) -> list[JobFiles]:
    """Give the jobs of one folder among others: its sessions of Ray, or one job, whatever lies beside it."""
    by_name = _outputs(logs)
    found = _sessions(by_name, folder)
    rest = tuple(log for log in by_name if not found or session_of(log) is None)
    return [*found, JobFiles(folder, rest, tuple(configs), folder)] if rest else found


def group_beside(logs: Iterable[str], configs: Iterable[str], folder: str) -> list[JobFiles]:
    """Give the jobs of the files that lie in one folder, by the fourth rule.

    No number but a rank's is taken for one: a job keeps its name, whatever comes to lie beside it.
    """
    return _flat(_Folder(folder, _outputs(logs), list(configs)), are_counted=False)


def is_dated(folder: str) -> bool:
    """Tell whether a folder is named by a day or a time."""
    return _DATED.match(folder) is not None


def _outputs(logs: Iterable[str]) -> list[str]:
    return [log for log in logs if not (_NOT_A_LOG.match(log.rsplit("/", 1)[-1]) or is_note(log))]


def _sessions(logs: Sequence[str], name: str) -> list[JobFiles]:
    return [
        JobFiles(shown_session(session) or name, tuple(files), folder=session, is_whole=False)
        for session, files in by_session(logs).items()
    ]


def parse_stem(name: str) -> LogNameStem:
    """Take a file's name apart: what is left without its ending, stream, age and rank names the job."""
    last = name.rsplit("/", 1)[-1]
    for expression in (_PACKED, _AGE, _ENDING, _ENDING, _STREAM, _AGE):
        last = expression.sub("", last)
    last = _PBS.sub(".", last)
    rank = _RANK.search(last)
    if rank is None:
        return LogNameStem(last)
    return LogNameStem(
        (last[: rank.start()] + last[rank.end() :]).strip("._-"), rank["word"].lower(), int(rank["index"])
    )


def _tree(logs: Iterable[str], configs: Iterable[str]) -> _Folder:
    root = _Folder()
    for name in logs:
        _folder(root, name).logs.append(name)
    for name in configs:
        _folder(root, name).configs.append(name)
    return root


def _folder(root: _Folder, name: str) -> _Folder:
    for part in name.split("/")[:-1]:
        if part not in root.folders:
            root.folders[part] = _Folder(f"{root.path}/{part}" if root.path else part)
        root = root.folders[part]
    return root


def _jobs(folder: _Folder, name: str) -> list[JobFiles]:
    if _is_one(folder):
        return [_whole(folder, name)]
    found = _flat(folder)
    for inner in folder.folders.values():
        is_dated = _DATED.match(inner.name) and not inner.logs and ".hydra" not in inner.folders
        found += _jobs(inner, inner.path) if is_dated else [_whole(inner, inner.path)]
    return [job for job in found if job.logs]


def _whole(folder: _Folder, name: str) -> JobFiles:
    parts = list(folder.below())
    return JobFiles(
        name,
        tuple(log for part in parts for log in part.logs),
        tuple(config for part in parts for config in part.configs),
        folder.path,
    )


def _is_one(folder: _Folder) -> bool:
    if ".hydra" in folder.folders or any(_SESSION.match(log.rsplit("/", 1)[-1]) for log in folder.logs):
        return True
    inner = [part for part in folder.folders.values() if any(below.logs for below in part.below())]
    for part in inner:
        # As torchrun writes them: a folder for each local rank, with its two streams.
        is_of_rank = bool(part.logs) and all(not parse_stem(log).key for log in part.logs)
        if not (is_of_rank if part.name.isdecimal() else _INNER.match(part.name)):
            return False
    keys = _keys(folder.logs)
    if any(not key and parse_stem(log).word for log, key in keys.items()):
        return True
    # General names are one job's; and a folder without logs of its own is one where its folders are.
    return all(_GENERAL.match(key) for key in keys.values()) if keys else bool(inner)


def _keys(logs: Sequence[str], are_counted: bool = True) -> dict[str, str]:
    """Give each log's key; numbers that do not count from 0 or 1 are no ranks, but part of the job's name.

    Without `are_counted` only those that are called ranks are.
    """
    stems = {log: parse_stem(log) for log in logs}
    indices: dict[tuple[str, str], set[int]] = defaultdict(set)
    for found in stems.values():
        indices[found.key, found.word].add(found.rank)
    keys: dict[str, str] = {}
    for log, found in stems.items():
        numbers = indices[found.key, found.word]
        counted = are_counted and (
            len(numbers) > 1 and min(numbers) in (0, 1) and max(numbers) - min(numbers) == len(numbers) - 1
        )
        if not found.word or found.word == "rank" or counted:
            keys[log] = found.key
            continue
        keys[log] = log.rsplit("/", 1)[-1]
        for expression in (_PACKED, _AGE, _ENDING, _STREAM):
            keys[log] = expression.sub("", keys[log])
    return keys


def _flat(folder: _Folder, are_counted: bool = True) -> list[JobFiles]:
    groups: dict[str, list[str]] = defaultdict(list)
    for log, key in _keys(folder.logs, are_counted).items():
        groups[key].append(log)
    own: dict[str, list[str]] = defaultdict(list)
    for config in folder.configs:
        own[parse_stem(config).key].append(config)
    shared = tuple(config for key, found in own.items() if key not in groups for config in found)[:MAX_SHARED]
    prefix = f"{folder.path}/" if folder.path else ""
    return [
        JobFiles(f"{prefix}{key or folder.name or 'job'}", tuple(logs), (*own.get(key, ()), *shared))
        for key, logs in groups.items()
    ]
