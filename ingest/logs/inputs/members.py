"""What the files of a job are, told by their names: logs and their order, configs, and what is no log."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ingest.logs.inputs.streams import Readable
from ingest.logs.lines import printable

# How many of those left out are named.
NAMED = 5
MAX_CONFIGS = 20
CONFIG_BYTES = 1 << 20
CONFIG = "config"
# What a tool wrote beside the log, if its content is of a kind that is known.
ARTEFACT = "artefact"
LONGEST_NAME = 300


@dataclass(frozen=True, slots=True)
class JobLimits:
    """How much of a job is read at most.

    `files` are logs (ten times as many names are looked at), `bytes` what they hold unpacked, `ratio` how
    many times its packed size that may be, `depth` how deep folders are followed, `spool` how many bytes a
    compressed tar may put into a temporary file.
    """

    files: int = 10_000
    bytes: int = 64 << 30
    ratio: int = 1000
    depth: int = 16
    spool: int = 8 << 30


LIMITS = JobLimits()


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a folder or an archive: its name there, only ever a label, and how to open it."""

    name: str
    open: Callable[[], Readable]

    @property
    def label(self) -> str:
        """The name as it may be shown."""
        return printable(self.name)[:LONGEST_NAME] or "?"


@dataclass
class Skipped:
    """Counts by reason what is left out, names the first few, and keeps `omitted` up to date."""

    omitted: dict[str, int | str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: str, count: int = 1) -> None:
        """Note that `name` is left out."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        named = self.names.setdefault(reason, [])
        if len(named) < NAMED:
            named.append(printable(name)[:LONGEST_NAME])
        more = ", ..." if self.counts[reason] > len(named) else ""
        self.omitted[reason] = f"{self.counts[reason]}: {', '.join(named)}{more}"

    def __str__(self) -> str:
        """Say what was left out, in words."""
        return "; ".join(
            f"{self.counts[reason]} {reason.replace('_', ' ')} ({str(told).partition(': ')[2]})"
            for reason, told in self.omitted.items()
        )


# Kinds of file by name, the first that fits; what none fits is a log if its content is text.
_KINDS = tuple(
    (kind, re.compile(expression, re.IGNORECASE))
    for kind, expression in (
        (
            "not_a_log",
            (
                r"(?:^|/)(?:\.git|__pycache__|node_modules|\.venv|site-packages|\.ipynb_checkpoints|"
                r"\.DS_Store|\._[^/]*)(?:/|$)"
            ),
        ),
        (ARTEFACT, r"(?:^|/)[^/]*tfevents[^/]*$"),
        (CONFIG, r"(?:^|/)\.hydra/[^/]+$"),
        (CONFIG, r"\.(?:ya?ml|toml|ini|cfg|conf|sbatch|slurm|sh|bash|zsh|env)$"),
        (CONFIG, r"(?:^|/)(?:requirements[^/]*\.txt|Dockerfile[^/]*|Makefile|hostfile)$"),
        (CONFIG, r"(?:^|/)(?:ds_|zero|deepspeed|accelerate|[^/]*config|[^/]*args)[^/]*\.json$"),
        ("checkpoint", r"\.(?:pt|pth|ckpt|safetensors|bin|distcp|gguf|onnx|h5|pdparams|model)$"),
        # torchelastic's record of the failure is JSON, too, and a log.
        (ARTEFACT, r"\.(?:pkl|pickle)$|(?<!/error)(?<!^error)\.json$"),
        ("not_a_log", r"\.(?:npy|npz|arrow|parquet|idx|metadata|db|sqlite|csv|tsv|lock)$"),
        ("image", r"\.(?:png|jpe?g|gif|svg|webp|bmp|ico|pdf|mp4|wav)$"),
        ("nested_archive", r"\.(?:tar|tgz|tbz2?|txz|zip|whl|jar|7z|rar|tar\.(?:gz|zst|xz|bz2))$"),
        (
            "code",
            (
                r"\.(?:py|pyc|pyx|ipynb|so|o|a|c|cc|cpp|cu|cuh|h|hpp|js|ts|css|go|rs|java|patch|diff|md|rst|"
                r"html?|xml|proto)$"
            ),
        ),
    )
)

_PACKED = re.compile(r"\.(?:gz|zst|xz|bz2)$", re.IGNORECASE)
_ROTATED = re.compile(r"(?P<base>.*\.(?:log|out|err|txt))[.-](?P<age>\d{1,3})$", re.IGNORECASE)
_OUTPUT = re.compile(r"\.(?:log|out|err|stdout|stderr)(?:[.-]\d{1,3})?$", re.IGNORECASE)
_PREVIOUS = re.compile(r"[._-]previous(?=[._-]|$)", re.IGNORECASE)
_DIGITS = re.compile(r"(\d+)")
# Who writes to a file, by its last name: what started the job first, what merely surrounds it last.
_WRITERS = tuple(
    (place, re.compile(expression, re.IGNORECASE))
    for place, expression in (
        (3, r"^(?:python-core|dashboard|monitor|log_monitor|runtime_env|agent|event_|export_)"),
        (2, r"^(?:raylet|gcs_server|old_raylet)"),
        (0, r"(?:^|[-_.])(?:driver|main|launcher|master|head|console)(?:[-_.]|$)"),
        (0, r"^(?:train|slurm|nohup|job|run|output|stdout|stderr)"),
    )
)
# What watches a cluster or shows it, and no job needs: Ray's autoscaler, dashboard and forwarder of logs.
_HELPER = re.compile(
    r"(?:^|/)(?:dashboard\w*|log_monitor|monitor)\.(?:log|out|err)(?:\.\d{1,3})?$", re.IGNORECASE
)


def kind_of(name: str) -> str | None:
    """Give CONFIG, ARTEFACT, the reason why a file is no log, or None where its content is to tell."""
    return next((kind for kind, expression in _KINDS if expression.search(name)), None)


def is_output(name: str) -> bool:
    """Tell whether a file is what a program wrote, by its name: `slurm-12.err`, `train.log.1`."""
    return _OUTPUT.search(name) is not None


def is_helper(name: str) -> bool:
    """Tell whether a file is what a helper beside the job wrote, whose own failures end no job."""
    return _HELPER.search(name) is not None


def order(name: str) -> tuple[object, ...]:
    """Give the key that sorts a job's files: the driver's first, rank2 before rank10, older before newer.

    A rotated log's parts carry their age: train.log.2 was written before train.log.1, and that before
    train.log.
    """
    name = _PACKED.sub("", name)
    age = 0
    if rotated := _ROTATED.match(name):
        name, age = rotated["base"], int(rotated["age"])
    if _PREVIOUS.search(name):
        name, age = _PREVIOUS.sub("", name), age + 1
    last = name.rsplit("/", 1)[-1]
    place = next((place for place, expression in _WRITERS if expression.search(last)), 1)
    # Split a name so that its numbers are compared as numbers; int() takes 4300 digits, names are shorter.
    parts = _DIGITS.split(name)
    natural = [
        (int(part) if part.isdecimal() and len(part) < 400 else -1, len(part), part)
        if index % 2
        else (-1, 0, part)
        for index, part in enumerate(parts)
    ]
    return place, natural, -age
