"""A key that the settings do not have is a setting's, wherever the script that looks it up lies."""

from __future__ import annotations

from tests.factories import ReadLog
from tests.tables import each_row

RAISED = (
    'Traceback (most recent call last):\n  File "/job/multidataset_run/train.py", line 7, in <module>\n'
    "    {code}\nKeyError: {key}\n"
)


@each_row(
    ("code", "key", "cause"),
    [
        ('config["Model"]["heads"][kind][number][', "0", "config-key-invalid"),
        ('width = cfg["width"]', "'width'", "config-key-invalid"),
        ('net = Net(args.model["width"], 3)', "'width'", "config-key-invalid"),
        ('self.hparams["width"]', "'width'", "config-key-invalid"),
        ('return self.train_cfg.optim["betas"]', "'betas'", "config-key-invalid"),
        # What a setting chooses from is no setting, nor is what is only called alike.
        ('net = NETS[config["model"]]', "'small'", "dataset-schema"),
        ('rows = batch["text"]', "'text'", "dataset-schema"),
        ('rows = kwargs["text"]', "'text'", "dataset-schema"),
    ],
)
def test_that_a_key_that_the_settings_lack_is_a_setting(
    code: str, key: str, cause: str, read: ReadLog
) -> None:
    root = read(RAISED.format(code=code, key=key)).root
    assert root is not None
    assert root.cause == cause
