"""Everything around a server of several machines, as far as this one has it: parts, load, and harms.

What cannot be had here is named with the reason, and the soak goes on without it.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from eval.soak.api_load import BatchLoad, ClusterBatchLoad, ListenLoad, ModelLoad, PasteLoad, UploadLoad
from eval.soak.harms import ClockLeap, DatabaseAway, DiskFull, Harm, ModelMood, NodeLost, VectorsAway
from eval.soak.load import LoadContext, LoadKind
from eval.soak.page_load import PageLoad
from eval.soak.parts import ChromaPart, PostgresPart, RayHeadPart, RayNodePart, SmallDisk
from eval.soak.slack_load import BOT_TOKEN, SECRET, SlackLoad
from eval.soak.standin import ModelStandIn, SlackStandIn
from eval.soak.target import SoakTarget

# The server with its page and Slack.
WHOLE_SERVER = "ui.soaked_server"
# MiB of the home's disk: index, model and caches take half of it.
DISK = 320
NODES = 2
_MADE_ONCE = ("index", "models", "cache")
# libfaketime will not do: where the time since the start is to stay, it breaks Python's waits.
CLOCK = Path(__file__).with_name("clock.c")

# What makes a kind of load, once it is known where the server is.
KindMaker = Callable[[LoadContext], LoadKind]
PLAIN_LOAD: tuple[KindMaker, ...] = (PasteLoad, PasteLoad, UploadLoad, ListenLoad, BatchLoad)


@dataclass
class Surroundings:
    """What a server is started with, who asks it, what happens to it, and what is missing."""

    folder: Path
    home: Path
    program: str = "eval.bench.server"
    database: str = ""
    chroma: str = ""
    more: dict[str, str] = field(default_factory=dict)
    kinds: list[KindMaker] = field(default_factory=lambda: list(PLAIN_LOAD))
    harms: list[Harm] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def take_over(self, home: Path) -> None:
        """Copy what another home has made once, so that the server need not."""
        # A home of the embedder that hashes words has no model.
        for name in filter(lambda each: (home / each).is_dir(), _MADE_ONCE):
            shutil.copytree(home / name, self.home / name)

    def target(self, workers: int) -> SoakTarget:
        """Make the server."""
        log = self.folder / "server.log"
        return SoakTarget(self.home, log, workers, self.database, self.chroma, self.program, self.more)


@contextmanager
def everything(folder: Path, draws: random.Random) -> Iterator[Surroundings]:
    """Start all parts that can be had."""
    with ExitStack() as stack:
        found = Surroundings(folder, folder / "home", WHOLE_SERVER)
        _add_disk(found, stack, folder)
        _add_database(found, stack)
        _add_chroma(found, stack)
        _add_ray(found, stack, draws)
        _add_model(found, stack)
        _add_clock(found)
        _add_page_and_slack(found, stack)
        draws.shuffle(found.harms)
        yield found


def _add_disk(found: Surroundings, stack: ExitStack, folder: Path) -> None:
    disk = SmallDisk(DISK)
    try:
        stack.enter_context(disk)
    except (subprocess.CalledProcessError, OSError):
        found.missing["disk full"] = "this user may mount no disk of its own"
        return
    found.home = disk.folder / "home"
    found.harms.append(DiskFull(disk, folder / "logs"))


def _add_database(found: Surroundings, stack: ExitStack) -> None:
    programs = PostgresPart.programs()
    if programs is None or find_spec("psycopg") is None:
        found.missing["PostgreSQL away"] = "PostgreSQL is not installed"
        return
    part = stack.enter_context(PostgresPart(programs))
    found.database = part.url
    found.harms.append(DatabaseAway(part))


def _add_chroma(found: Surroundings, stack: ExitStack) -> None:
    if not Path(sys.executable).with_name("chroma").exists():
        found.missing["Chroma away"] = "Chroma is not installed"
        return
    part = stack.enter_context(ChromaPart())
    found.chroma = part.url
    found.harms.append(VectorsAway(part))


def _add_ray(found: Surroundings, stack: ExitStack, draws: random.Random) -> None:
    if not Path(sys.executable).with_name("ray").exists():
        found.missing["Ray node lost"] = "Ray is not installed"
        return
    head = stack.enter_context(RayHeadPart())
    nodes = [RayNodePart(head) for _ in range(NODES)]
    # Those that are there at the end, which need not be those that were there at the beginning.
    stack.callback(_end, nodes)
    for node in nodes:
        node.__enter__()
    found.more |= {"WHYCRASH_RAY_ADDRESS": head.address, "WHYCRASH_RAY_FROM": str(ClusterBatchLoad.jobs)}
    found.more |= head.more
    found.kinds.append(ClusterBatchLoad)
    found.harms.append(NodeLost(head, nodes, draws))


def _end(nodes: Sequence[RayNodePart]) -> None:
    for node in nodes:
        node.__exit__(None, None, None)


def _add_model(found: Surroundings, stack: ExitStack) -> None:
    if find_spec("langchain_openai") is None:
        found.missing["model"] = "the packages of a model are not installed"
        return
    model = stack.enter_context(ModelStandIn())
    found.more |= {
        "WHYCRASH_MODEL": "openai:soak",
        "WHYCRASH_MODEL_BASE_URL": f"{model.url}/v1",
        "WHYCRASH_MODEL_DEADLINE": f"{ModelLoad.deadline:g}",
        "WHYCRASH_MODEL_CALLS": "0",
        # Jobs of batches are answered by rules: a late model would hold them up, which is another matter.
        "WHYCRASH_MODEL_BATCH_BELOW": "0",
        "OPENAI_API_KEY": "none",
    }
    found.kinds.append(ModelLoad)
    found.harms.append(ModelMood(model))


def _add_clock(found: Surroundings) -> None:
    compiler, made = shutil.which("cc"), found.folder / "clock.so"
    if compiler is None:
        found.missing["clock leap"] = "there is no C compiler for the clock that is set wrong"
        return
    words = [compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(CLOCK)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)  # noqa: S603 - a source of ours
    leap = ClockLeap(found.folder / "clock")
    leap.mend()
    found.more |= {"LD_PRELOAD": str(made), "SOAK_CLOCK": str(found.folder / "clock")}
    found.harms.append(leap)


def _add_page_and_slack(found: Surroundings, stack: ExitStack) -> None:
    if find_spec("gradio") is None:
        found.missing["page"] = "gradio is not installed"
    else:
        found.kinds.append(PageLoad)
    if find_spec("slack_bolt") is None:
        found.missing["Slack"] = "slack_bolt is not installed"
        return
    slack = stack.enter_context(SlackStandIn())
    found.more |= {
        "SOAK_SLACK": f"{slack.url}/api/",
        "WHYCRASH_SLACK_BOT_TOKEN": BOT_TOKEN,
        "WHYCRASH_SLACK_SIGNING_SECRET": SECRET,
    }
    found.kinds.append(lambda context: SlackLoad(context, slack))
