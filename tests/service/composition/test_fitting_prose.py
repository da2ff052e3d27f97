"""Prose without what is nothing to the job."""

from __future__ import annotations

from dataclasses import replace

from ingest.logs.conditions import ReportView
from service.composition.fitting_prose import fitting_prose
from tests.tables import each_row

PLAIN = ReportView((), None, (), (), (), command="python train.py")
NODE = ReportView((), None, (), (), (), launches=("#SBATCH --nodes=1\ntorchrun train.py",))
CPU = replace(PLAIN, command="", seen=frozenset({"platform.cpu-engine"}))
UNKNOWN = ReportView((), None, (), (), ())


@each_row(
    ("text", "job", "told"),
    [
        ("Install it, on every node or into the image.", PLAIN, "Install it or into the image."),
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
