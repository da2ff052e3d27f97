"""The calls of a traceback date the package whose files they are in."""

from __future__ import annotations

from corpus.call_lines import CallLine, dated_packages, digest_of
from corpus.extract.call_lines import calls

MODULE = """
class Loop:
    def run(self, steps):
        for step in range(steps):
            self.do(
                step,
            )

    def do(self, step):
        return abs(step)
"""
TRAINER = "/opt/venv/lib/python3.10/site-packages/transformers/trainer.py"


def test_that_each_line_is_read_on_which_a_function_calls_something() -> None:
    """A call over several lines stands where it begins, as a traceback tells it."""
    assert set(calls(MODULE)) == {
        digest_of("run", 4, "for step in range(steps):"),
        digest_of("run", 5, "self.do("),
        digest_of("do", 10, "return abs(step)"),
    }
    assert set(calls(MODULE, ["do"])) == {digest_of("do", 10, "return abs(step)")}


def test_that_calls_leave_the_releases_open_that_have_them_there() -> None:
    """Each further call narrows them; what no release has on that line says nothing."""
    outer = CallLine(TRAINER, 1539, "train", "return inner_training_loop(")
    inner = CallLine(TRAINER, 2902, "training_step", "loss = self.compute_loss(model, inputs)")
    rows = [
        ([outer], {"transformers": ">=4.31,<4.38"}),
        ([outer._replace(file="/home/me/transformers/trainer.py")], {"transformers": ">=4.31,<4.38"}),
        ([outer._replace(line=1)], {}),
        ([outer._replace(code="return somebody_elses_loop(")], {}),
        ([outer._replace(file="/home/me/trainer.py")], {}),
        ([inner], {"transformers": ">=4.38,<4.39"}),
    ]
    assert [dict(dated_packages(given)) for given, _ in rows] == [wanted for _, wanted in rows]
