"""Values of the job's own settings that rows of `own_values.yaml` work out of a message."""

from __future__ import annotations

import re

from corpus.own_values import OwnValueRow, known_own_values
from ingest.logs.configs.launch import Setting
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.told_values import values_by
from tests.service.factories import setting
from tests.tables import each_row
from tests.warm import explained

TORCH = (
    'Traceback (most recent call last):\n  File "/job/train.py", line 9, in <module>\n    {code}\n{error}\n'
)
PARSER = 'parser.add_argument("--{name}", {how})\n'


@each_row("row", known_own_values(), ids=lambda row: row.id)
def test_that_examples_of_a_row_give_what_they_say(row: OwnValueRow) -> None:
    """Cue and expression are in each message; the setting that it speaks of gets the value, or goes."""
    for example in row.examples:
        given = [Setting(key, value, 1, example.spelled) for key, value in example.settings.items()]
        found = values_by(row, example.message, given)
        wanted = None if example.to is None else str(example.to)
        wanted = {"true": "True", "false": "False"}.get(wanted or "", wanted)
        assert row.cue in example.message
        assert re.search(row.expression, example.message)
        assert [(option.key, option.value) for option in found] == (
            [(example.key, wanted)] if example.key else []
        )


MISMATCH = (
    "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for e.weight: copying a param "
    "with shape torch.Size([320, 8]) from checkpoint, the shape in current model is torch.Size([384, 8])."
)
# The error with its statement, the files, and the rows that the patch takes out and puts in.
SHELL = "torchrun --standalone --nproc_per_node 2 train.py "


@each_row(
    ("error", "files", "gone", "new"),
    [
        (
            "ValueError: Expected more than 1 value per channel when training, got input size [1, 4]",
            {
                "run.sh": "python train.py --batch_size 8\n",
                "train.py": PARSER.format(name="drop_last", how='action="store_true"'),
            },
            "python train.py --batch_size 8",
            "python train.py --batch_size 8 --drop_last",
        ),
        (
            "TypeError: '<=' not supported between instances of 'float' and 'str'",
            {"config.yaml": "optim:\n  lr: 1e-4\n"},
            "  lr: 1e-4",
            "  lr: 0.0001",
        ),
        (
            "RuntimeError: Mesh should not be bigger than default world size 2, but found 4 ranks!",
            {"run.sh": f"{SHELL}--dp_size 2 --tp_size 2\n"},
            f"{SHELL}--dp_size 2 --tp_size 2",
            f"{SHELL}--dp_size 1 --tp_size 2",
        ),
        (
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x48 and 64x32)",
            {"config.yaml": "model:\n  in_features: 64\n  hidden_size: 32\n"},
            "  in_features: 64",
            "  in_features: 48",
        ),
        # Of two commands the one that gives the value which the run had.
        (
            MISMATCH,
            {"run.sh": "python train.py --vocab 320\npython train.py --vocab 384 --resume a.pt\n"},
            "python train.py --vocab 384 --resume a.pt",
            "python train.py --vocab 320 --resume a.pt",
        ),
        # An option that the command gives counts before the value that the code falls back to.
        (
            "RuntimeError: DataLoader timed out after 3 seconds",
            {
                "run.sh": "python train.py --num_workers 1 --dataloader_timeout 3\n",
                "train.py": PARSER.format(name="dataloader_timeout", how="type=int, default=0"),
            },
            "python train.py --num_workers 1 --dataloader_timeout 3",
            "python train.py --num_workers 1 --dataloader_timeout 120",
        ),
    ],
)
def test_that_the_first_change_is_of_the_job_s_own_setting(
    triage: Triage, error: str, files: dict[str, str], gone: str, new: str
) -> None:
    """It comes before a change of the code, and the patch writes it where the job has the setting."""
    log = TORCH.format(code="main(args)", error=error)
    answer = explained(triage, log, *(ConfigFile(name, text) for name, text in files.items()))
    rows = (answer.patch or "").splitlines()
    assert f"-{gone}" in rows
    assert f"+{new}" in rows


def test_that_a_setting_with_another_value_is_left_alone() -> None:
    """A number that no setting has, and one that a setting of another kind has, lead to none."""
    row = next(row for row in known_own_values() if row.id == "layer-width")
    message = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x48 and 64x32)"
    assert values_by(row, message, [setting("in_features", "32"), setting("batch_size", "64")]) == []
    # Two that have it: the message does not say which.
    assert values_by(row, message, [setting("in_features", "64"), setting("obs_dim", "64")]) == []
