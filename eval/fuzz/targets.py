"""The fuzz targets: each reader of a user's bytes, with what must hold of its result, and its seeds."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import gettempdir

from corpus import log_patterns
from eval.fuzz.invariants import violations
from ingest.errors import InputError
from ingest.logs.configs import launch
from ingest.logs.inputs import jobs
from ingest.logs.inputs.members import JobLimits
from ingest.logs.inputs.sources import LogSource
from ingest.logs.reader import Reader
from service.patching import patch
from service.patching.target import PatchTarget

# Compiled patterns are shared with the benchmarks.
CACHE = Path(gettempdir()) / "whycrash-bench-cache"
LIMITS = JobLimits(files=40, bytes=4 << 20, ratio=1000, depth=4, spool=4 << 20)
# Number of patterns whose examples make one seed.
TOGETHER = 12

# A file name for each format of a job's files; the first byte of an input chooses one.
NAMES = (
    "run.sh",
    "job.sbatch",
    "config.yaml",
    "environment.yml",
    "ds.json",
    "requirements.txt",
    ".env",
    "Dockerfile",
    "pyproject.toml",
    "notes",
)
CHANGES = (
    PatchTarget("verl", "setting", ("actor_rollout_ref.rollout.gpu_memory_utilization",), 0.5, "hydra"),
    PatchTarget("transformers", "flag", ("--per_device_train_batch_size", "--batch"), 1, "flag"),
    PatchTarget("pytorch", "env", ("PYTORCH_CUDA_ALLOC_CONF",), "expandable_segments:True", "env"),
    PatchTarget("slurm", "setting", ("mem",), "64G", "directive"),
    PatchTarget("deepspeed", "setting", ("zero_optimization.stage",), 3, "json"),
    PatchTarget("axolotl", "setting", ("micro_batch_size",), 1, "yaml"),
    PatchTarget("vllm", "package", ("vllm",), "0.8.5", "package"),
    PatchTarget("kubernetes", "setting", ("resources.limits.memory",), "64Gi", "yaml"),
)
FILES = (
    (
        "#!/bin/bash\n#SBATCH --mem=1G\nexport PYTORCH_CUDA_ALLOC_CONF=a:1\npython3 -m verl.trainer.main_ppo "
        "\\\n    +a.b='[1,2]' \\\n"
        '    actor_rollout_ref.rollout.gpu_memory_utilization=0.9  # why\ntorchrun t.py --batch 8 "$@"\n'
    ),
    '#SBATCH --mem=1G\nA=1\nsrun --mem=2G bash -c "python t.py --batch $A | tee x" <<EOF\nb: 1\nEOF\n',
    (
        "micro_batch_size: 4  # rows\nzero_optimization: {stage: 2}\nresources:\n  limits:\n  - &a {memory: "
        "1Gi}\n  - *a\nx: |\n  y\n"
    ),
    "name: x\ndependencies:\n- python=3.11\n- pip:\n  - vllm==0.6.0\n",
    '{"zero_optimization": {"stage": 2, "x": [1, 2.5e3, null]},\n  "micro_batch_size": 4}\n',
    "vllm==0.6.0  # pinned\ntorch>=2,<3 ; python_version < '3.12'\n-r other.txt\n",
    "PYTORCH_CUDA_ALLOC_CONF=a:1\nB='x y'\n",
    (
        'FROM a:1 AS b\nENV PYTORCH_CUDA_ALLOC_CONF=a:1 B=2\nRUN pip install vllm==0.6.0\nCMD ["python", '
        '"t.py"]\n'
    ),
    "[tool.x]\na = 1\n",
    "config: {'a': {'b': 1}}\nNamespace(a=1, b='x')\n",
)


class InvariantError(Exception):
    """A reader returned a result that violates an invariant."""


@dataclass(frozen=True)
class Subject:
    """A reader of bytes: `run` raises an exception for a finding; `seeds` are valid inputs."""

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


@cache
def _reader() -> Reader:
    return Reader(log_patterns.load(cache=CACHE), CACHE)


def read_log(data: bytes) -> None:
    """Read bytes as a log and check the report's invariants."""
    try:
        report = _reader().read(LogSource("log", io.BytesIO(data)))
    except InputError:
        return
    if wrong := violations(report):
        raise InvariantError("; ".join(wrong))


def open_archive(data: bytes) -> None:
    """Open bytes as a file of any kind and read all its logs; raises InvariantError above the byte limit."""
    path = Path(gettempdir()) / f"whycrash-fuzz-{os.getpid()}"
    path.write_bytes(data)
    with suppress(InputError), jobs.open_job(path, LIMITS) as job:
        total = sum(len(chunk) for part in job.parts() for chunk in part.chunks())
        if total > LIMITS.bytes + (1 << 20):
            raise InvariantError(f"{total} bytes were given of at most {LIMITS.bytes}")


def read_launch(data: bytes) -> None:
    """Read bytes as one of a job's files, patch it, and look for the changes in it."""
    name, text = NAMES[data[0] % len(NAMES)] if data else "run.sh", data[1:].decode("utf-8", "replace")
    for setting in (
        *launch.from_file(text, name),
        *launch.from_file(text),
        *launch.from_command(text, 1),
        *launch.from_dump(text, 1),
    ):
        if setting.line < 0:
            raise InvariantError(f"{setting} has no line")
    patch.patch(name, text, CHANGES)
    for target in CHANGES:
        patch.carries(name, text, target)


def logs() -> Iterator[bytes]:
    """Give the patterns' examples, whole, and cut in the middle behind prefixes, in several encodings."""
    lines = [line for row in log_patterns.load(cache=CACHE).rows for line in row.examples]
    for begin in range(0, len(lines), TOGETHER):
        yield "\n".join(lines[begin : begin + TOGETHER]).encode()
    for begin in range(0, len(lines), TOGETHER * 10):
        yield "\r\n".join(
            f"(W pid={begin})\x1b[0m [rank3]: {line[: len(line) // 2]}"
            for line in lines[begin : begin + TOGETHER]
        ).encode()
    yield "\n".join(lines[:TOGETHER]).encode("utf-16")
    yield ("显存不足\n" + "\n".join(lines[:TOGETHER])).encode("gb18030")


def archives() -> Iterator[bytes]:
    """Give one log in every compression and archive format, damaged and nested ones included."""
    text = next(logs())
    packed = [
        text,
        gzip.compress(text),
        bz2.compress(text),
        lzma.compress(text),
        gzip.compress(text)[:-9],
        gzip.compress(text) * 2,
    ]
    members = {
        "a/rank0.log": text,
        "a/rank1.log.gz": gzip.compress(text),
        "config.yaml": b"a: 1\n",
        "../up.log": b"x",
        "n.zip": b"PK\x03\x04",
    }
    yield from packed
    for mode in ("w", "w:gz", "w:bz2", "w:xz"):
        yield _tar(members, mode)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", method) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        yield target.getvalue()


def _tar(members: dict[str, bytes], mode: str) -> bytes:
    target = io.BytesIO()
    # The mode is one of four.
    with tarfile.open(fileobj=target, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return target.getvalue()


def files() -> Iterator[bytes]:
    """Give each text of FILES under each name of NAMES."""
    for number in range(len(NAMES)):
        yield from (bytes([number]) + text.encode() for text in FILES)


SUBJECTS = {
    "reader": Subject(read_log, logs),
    "archives": Subject(open_archive, archives),
    "launch": Subject(read_launch, files),
}
