"""A change that is named by its place, or is a whole command, counts by the settings that it writes."""

from __future__ import annotations

from corpus.message import words
from eval.incidents import LabelledChange
from eval.metrics import is_right
from eval.written_keys import written_keys
from tests.tables import each_row

BEHIND = "answer.code-edit-insert-after"


@each_row(
    ("framework", "key", "value", "expected"),
    [
        ("code", "a.py:3", "insert before this line: tok.pad_token = tok.eos_token", {"tok.pad_token"}),
        ("code", "a.py:3", words(BEHIND, "zh", after="tok.pad_token = tok.eos_token"), {"tok.pad_token"}),
        ("code", "run.sh:2", 'export LIB="/a:$LIB" -> export LIB="/a:${LIB:-}"', {"LIB"}),
        ("code", "a.py:3", "load(path, strict=True) -> load(path, strict=False)", {"strict"}),
        ("code", "a.py:3", "serve({'port': 1, 'fast': True}) -> serve({'port': 2, 'fast': True})", {"port"}),
        ("code", "a.py:3", "build the model with `num_labels=7` (now 2)", {"num_labels"}),
        ("code", "a.py:3", "start it as a module: `accelerate launch -m src.train`", {"m"}),
        ("pytorch", "torchrun --nproc_per_node=4 train.py", "in place of one process", {"nproc_per_node"}),
        # What stays as it was is not written, nor what a call gives, nor what is only read or compared.
        ("code", "a.py:3", "fit(rows, epochs=3, lr=lr) -> fit(rows, epochs=3, lr=float(lr))", set()),
        ("code", "a.py:3", "insert before this line: model = wrap(model)", set()),
        ("code", "a.py:3", "if mode == 1: -> if kind == 1:", set()),
        ("code", "a.py:3", "look at `model.width` and at width=3", set()),
        ("verl", "trainer.save_freq", "--save_freq=10", set()),
    ],
)
def test_that_a_change_names_what_it_writes(framework: str, key: str, value: str, expected: set[str]) -> None:
    """An assignment that is new counts, and an option of a command that is to be run."""
    assert written_keys(framework, key, value) == expected


def test_that_a_written_setting_is_a_labelled_one() -> None:
    """It is compared as any key: with or without what it belongs to; another name is none."""
    wanted = [LabelledChange(framework="tokenizers", key="pad-token", to="any")]
    assert is_right(("code", "a.py:3", "insert behind this line: tok.pad_token = tok.eos_token"), wanted)
    assert not is_right(("code", "a.py:3", "insert behind this line: tok.padding_side = 'left'"), wanted)
