"""Prose without what is nothing to the job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import yaml

from corpus import job_kinds, library
from corpus.expressions import compiled
from ingest.logs.conditions import ReportView
from service.composition.fitting_prose import fitting_prose
from tests.tables import each_row

PLAIN = ReportView((), None, (), (), (), command="python train.py")
NODE = ReportView((), None, (), (), (), launches=("#SBATCH --nodes=1\ntorchrun train.py",))
CPU = replace(PLAIN, command="", seen=frozenset({"platform.cpu-engine"}))
MOUNTED = "What is mounted must be there on every node that it gets."
UNKNOWN = ReportView((), None, (), (), ())


@each_row(
    ("text", "job", "told"),
    [
        (
            "Install it, on every node or into the image.",
            NODE,
            "Install it, on every node or into the image.",
        ),
        ("Install it, on every node or into the image.", PLAIN, "Install it."),
        (MOUNTED, NODE, MOUNTED),
        ("修好之前多存检查点，并在触顶前重启。", CPU, "修好之前多存检查点，并在触顶前重启。"),
        ("Export it on every node. Then clean up.", NODE, "Export it. Then clean up."),
        ("Open ports between the nodes. They must be free. Start anew.", NODE, "Start anew."),
        ("Set a folder; with Ray it is the shell of ray start. Go on.", PLAIN, "Set a folder. Go on."),
        ("Every rank prints it; read the first line.", PLAIN, "Read the first line."),
        ("Every rank prints it; read the first line.", NODE, "Every rank prints it; read the first line."),
        ("Free the card. Lower max_num_seqs.", CPU, "Lower max_num_seqs."),
        ("Run `a.b --each x; y` on every node.", PLAIN, "Run `a.b --each x; y`."),
        ("检查节点间的网络。再启动一次。", NODE, "再启动一次。"),
        ("Look between the nodes. With Ray too.", UNKNOWN, "Look between the nodes. With Ray too."),
    ],
)
def test_sentences_on_what_the_job_has_not_are_left_out(text: str, job: ReportView, told: str) -> None:
    """A sentence goes with those that go on it, a phrase alone where the rest still holds."""
    assert fitting_prose(text, job) == told


def test_a_text_that_speaks_of_nothing_else_stands() -> None:
    """Nothing at all is told worse than what holds for most jobs."""
    assert fitting_prose("NCCL waits for all ranks.", PLAIN) == "NCCL waits for all ranks."


_BROKEN = re.compile(
    r"\S  +\S|, ?(?:and|or)?[.;,]|[，、](?:并|且)?[。；，]|^(?:[Aa]nd|[Oo]r|[Bb]ut|[Ww]hile|并|且)\b|"
    r"\b(?:on|of|from|in|to|and|or|while|between)[.;]?$"
)
_PART = re.compile(r"(?<=[.!?;])\s+|(?<=[。；！？])|\n")


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _texts(item)
    elif isinstance(node, str) and (" " in node or not node.isascii()):
        yield node


def test_a_phrase_goes_from_the_texts_of_the_knowledge_without_a_trace() -> None:
    """What is left of a sentence has no doubled blank, and ends and begins as sentences do."""
    rows = [row for row in job_kinds.load().phrases if row.instead is not None]
    root = library.roots()[0]
    files = chain(root.glob("causes.yaml"), root.glob("cases/**/*.yaml"), root.glob("remedies/**/*.yaml"))
    texts = {text for file in files for text in _texts(yaml.safe_load(file.read_text(encoding="utf-8")))}
    parts = {part for text in texts for part in _PART.split(text)}
    changed = [
        (part, left)
        for row in rows
        for part in parts
        if (left := compiled(row.expression).sub(row.instead or "", part)) != part
    ]
    assert changed
    assert not [(part, left) for part, left in changed if _BROKEN.search(left) and not _BROKEN.search(part)]
