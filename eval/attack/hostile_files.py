"""Files and folders made to break whoever reads them, from a seed, and what each is to be answered with."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import sqlite3
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from random import Random
from typing import Literal

from ingest.logs.inputs.compression import packed

# The failure that stands in every file in which one can be read.
FAILURE = (
    "\nTraceback (most recent call last):\n"
    '  File "/job/train.py", line 88, in <module>\n'
    "    loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "79.15 GiB of which 1.25 GiB is free.\n"
)
# What a pickle leaves in the folder that it is read in, should anybody load it.
RAN = "was-run"
# A call of os.open in a pickle's opcodes (Lib/pickletools.py), protocol 0; nothing here makes pickles.
_COMMAND = f"cposix\nopen\n(V{RAN}\nI{os.O_CREAT}\ntR".encode()
_SEED = 20261123
_MIB = 1 << 20


@dataclass(frozen=True)
class HostileFile:
    """One file or folder: its name, how it is written, and how reading it ends.

    `ends` is `failure` where FAILURE is to be found, `unknown` where nothing that is known stands in it,
    `refused` where a sentence says what it is instead. `told` are words of the answer that say what is wrong
    with it.
    """

    name: str
    write: Callable[[Path, Random], None]
    ends: str = "failure"
    told: str = ""


def _bytes(content: bytes | Callable[[Random], bytes]) -> Callable[[Path, Random], None]:
    def write(path: Path, random: Random) -> None:
        path.write_bytes(content(random) if callable(content) else content)

    return write


def _text(*parts: str, encoding: str = "utf-8") -> Callable[[Path, Random], None]:
    return _bytes("".join((*parts, FAILURE)).encode(encoding, "surrogatepass"))


def _zip(members: Iterable[tuple[str | zipfile.ZipInfo, str | bytes]]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return made.getvalue()


def _tar(members: Iterable[tuple[str, bytes, str]], form: Literal["w", "w:gz"] = "w") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=form) as archive:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content) * (kind == tarfile.REGTYPE)
            member.linkname = "/etc/passwd"
            member.devmajor, member.devminor = 1, 5
            archive.addfile(member, io.BytesIO(content.encode()))
    return made.getvalue()


def _log(count: int) -> bytes:
    """Give a log with the failure in its midst that no compression makes much smaller: a cut leaves most."""
    random = Random(_SEED)  # noqa: S311 - a log, not a secret
    steps = "".join(f"step {number} loss {random.random()}\n" for number in range(count))
    dump = "".join(f"[dump] {random.getrandbits(512):x}\n" for _ in range(count))
    return (steps + FAILURE + dump).encode()


def _linked(path: Path, _random: Random) -> None:
    path.mkdir()
    (path / "train.log").write_text(FAILURE, encoding="utf-8")
    (path / "again").symlink_to(".")
    (path / "zero.log").symlink_to("/dev/zero")
    (path / "nowhere.log").symlink_to("nowhere")
    os.mkfifo(path / "pipe.log")


def _deep_folder(path: Path, _random: Random) -> None:
    path.joinpath(*["d"] * 150).mkdir(parents=True)
    (path / "train.log").write_text(FAILURE, encoding="utf-8")


def _beside(others: Mapping[str, str]) -> Callable[[Path, Random], None]:
    """Give what writes a folder with a failure's log, and other files by their names."""

    def write(path: Path, _random: Random) -> None:
        path.mkdir()
        for name, content in {"train.log": FAILURE, **others}.items():
            (path / name).write_text(content, encoding="utf-8")

    return write


def _database(path: Path, _random: Random) -> None:
    with sqlite3.connect(path) as made:
        made.execute("create table t (a)")
    made.close()


def _linked_zip() -> bytes:
    member = zipfile.ZipInfo("a.log")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return _zip([(member, "/etc/passwd")])


# The size of a zip's first file, as its directory tells it.
_SIZE = re.compile(rb"(PK\x01\x02.{20}).{4}", re.DOTALL)
# Files that look like an option, write to a terminal, and are no UTF-8.
_NAMES = ("-rf.log", "a\x1b[31m\nb.log", os.fsdecode(b"\xff\xfe.log"))
_ALIASES = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{below}: &{below} [{','.join([f'*{above}'] * 9)}]\n"
    for above, below in zip("abcdefghijk", "bcdefghijkl", strict=True)
)
_ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[1;1H\x1b]8;;http://evil.example\x07click\x1b]8;;\x07 loss\n"
_HANDLED = (
    'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x\n\n'
    "During handling of the above exception, another exception occurred:\n\n"
)
_PACKED = lzma.compress(FAILURE.encode() * 100)
_REFUSED: dict[str, tuple[bytes | Callable[[Random], bytes], str]] = {
    "empty.log": (b"", "empty"),
    "nul.log": (bytes(_MIB), "not text"),
    "program.log": (b"\x7fELF" + bytes(2000), "program"),
    "paper.log": (b"%PDF-1.7\n" + bytes(range(256)) * 20, "PDF"),
    "bomb.log.gz": (lambda _: gzip.compress(bytes(256 * _MIB), 1, mtime=0), "not text"),
    "nested.log.gz": (
        reduce(lambda raw, _: gzip.compress(raw, mtime=0), range(5), FAILURE.encode()),
        "not text",
    ),
    "broken.log.xz": (_PACKED[:40] + bytes([_PACKED[40] ^ 0xFF]) + _PACKED[41:], "Nothing"),
    "link.zip": (_linked_zip(), "no log"),
    "devices.tar": (
        _tar(
            (
                ("device.log", tarfile.CHRTYPE, ""),
                ("pipe.log", tarfile.FIFOTYPE, ""),
                ("link.log", tarfile.LNKTYPE, ""),
            )
        ),
        "no log",
    ),
    "command.pkl": (b"\x80\x04" + _COMMAND + b".", "pickle"),
    "nccl_trace_rank_0": (b"\x80\x04(Vversion\nV2.4\nVentries\n((Vstate\n" + _COMMAND + b"dld.", "pickle"),
}

FILES = (
    *(HostileFile(name, _bytes(raw), "refused", told) for name, (raw, told) in _REFUSED.items()),
    HostileFile("noise.log", _bytes(lambda random: random.randbytes(_MIB)), "refused", "not text"),
    HostileFile("rows.sqlite", _database, "refused", "database"),
    HostileFile("loop", lambda path, _random: path.symlink_to(path), "refused", "loop"),
    HostileFile("device", lambda path, _random: path.symlink_to("/dev/zero"), "refused", "device"),
    HostileFile("-rf.log", _text()),
    HostileFile("a\x1b[31m\nb.log", _text()),
    HostileFile("one-line.log", _text("x y " * (2 * _MIB))),
    HostileFile("blanks.log", _text("\n" * _MIB)),
    HostileFile("returns.log", _text("\r".join(f"{number}% it" for number in range(200_000)))),
    HostileFile("escapes.log", _text(_ESCAPES * 10_000)),
    HostileFile("directions.log", _text("\u202e\u2066 evil \u2069\n" * 5000)),
    HostileFile("surrogates.log", _text("\ud800\udfff bad")),
    HostileFile("gbk.log", _bytes(b"\xd1\xb5\xc1\xb7\xca\xa7\xb0\xdc" + FAILURE.encode() + b"\xe9\xe8")),
    HostileFile("utf-16.log", _bytes(FAILURE.encode("utf-16-le")[:-1])),
    HostileFile("utf-32.log", _bytes(FAILURE.encode("utf-32-be"))),
    HostileFile("utf-7.log", _text("+ADw-script+AD4-alert(1)+ADw-/script+AD4-\n")),
    HostileFile("cut.log.gz", _bytes(lambda _: gzip.compress(_log(5000), mtime=0)[:-20]), told="cut"),
    HostileFile("cut.log.bz2", _bytes(lambda _: bz2.compress(_log(30_000))[:-30]), told="cut"),
    HostileFile("cut.log.xz", _bytes(lambda _: lzma.compress(_log(5000))[:-300]), told="cut"),
    HostileFile("cut.log.zst", _bytes(lambda _: b"".join(packed([_log(5000)]))[:-20]), told="cut"),
    HostileFile(
        "cut.tar.gz",
        _bytes(lambda _: _tar([("a.log", tarfile.REGTYPE, _log(5000).decode())], "w:gz")[:-20_000]),
        told="cut",
    ),
    HostileFile("out.zip", _bytes(_zip([("../../../escaped.log", FAILURE), ("/escaped.log", FAILURE)]))),
    HostileFile("name.zip", _bytes(_zip([("n" * 60_000 + ".log", FAILURE)]))),
    HostileFile("lies.zip", _bytes(_SIZE.sub(b"\\1\xff\xff\xff\x7f", _zip([("a.log", FAILURE)]), count=1))),
    HostileFile(
        "many.zip", _bytes(lambda _: _zip([("0.log", FAILURE), *((f"{n}.log", "x") for n in range(1, 3000))]))
    ),
    HostileFile("tracebacks.log.bz2", _bytes(lambda _: bz2.compress(FAILURE.encode() * 20_000))),
    HostileFile("handled.log", _text(_HANDLED * 3000, 'Traceback (most recent call last):\n  File "b.py"\n')),
    HostileFile("frames.log", _text(FAILURE.replace("    loss", '  File "a.py", line 1, in f\n' * 50_000))),
    HostileFile("brackets.log", _text("loss " + '{"a":' * 50_000 + "1" + "}" * 50_000)),
    HostileFile("deep.json", _bytes(b"[" * 200_000 + b"]" * 200_000), "unknown"),
    HostileFile("wide.jsonl", _bytes((json.dumps({"message": "m" * _MIB}) + "\n").encode() * 4), "unknown"),
    HostileFile("page.html", _text(f"<script>alert(1)<{chr(47)}script><pre>")),
    HostileFile("signs.log", _text(*(sign * 100_000 + "\n" for sign in "a('/=\"[{<-"))),
    HostileFile("assigned.log", _text(*["--a=" * 5000 + "\n"] * 20)),
    HostileFile("expanded.log", _text("${a:-" * 20_000 + "\n")),
    HostileFile("ranks.log", _text("".join(f"[rank{n}]: step 1\n" for n in range(100_000)))),
    HostileFile("times.log", _text("99999-13-45 25:61:61,999 x\n0000-00-00 00:00:00 y\n" * 1000)),
    HostileFile("numbers.log", _text(f"step {'9' * 400}: loss -1e999 lr 1e-{'9' * 400} nan\n" * 200)),
    HostileFile("aliases", _beside({"config.yaml": _ALIASES})),
    HostileFile("deep-yaml", _beside({"config.yaml": "a: " + "[" * 20_000})),
    HostileFile(
        "one-word", _beside({"config.yaml": "a: " + "[" * 200_000, "run.sh": "a --x=" + "a/" * 90_000})
    ),
    HostileFile("deep-json", _beside({"config.json": '{"a":' * 20_000})),
    HostileFile("deep-shell", _beside({"run.sh": "$(" * 20_000})),
    HostileFile("links", _linked),
    HostileFile("deep-folder", _deep_folder),
    HostileFile("many-files", _beside({f"rank{number}.log": "step 1\n" for number in range(3000)})),
    HostileFile("names", _beside(dict.fromkeys(_NAMES, "step 1\n"))),
)


def written(folder: Path, hostile: HostileFile) -> Path:
    """Write a file or folder into a folder, the same whenever it is written; gives its place."""
    path = folder / hostile.name
    hostile.write(path, Random(f"{_SEED} {hostile.name}"))  # noqa: S311 - hostile rows, not secrets
    return path
