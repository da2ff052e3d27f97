"""What a file of Python code is run with, as far as it stands there plainly."""

from __future__ import annotations

from ingest.configfiles import python_code, reader
from tests.tables import each_row


@each_row(
    ("code", "found"),
    [
        ("ROWS = 64", {"ROWS": "64"}),
        ("p.add_argument('-b', '--batch-size', default=64, help='rows')", {"batch-size": "64"}),
        ("p.add_argument('-visible_gpus', default='-1')", {"visible_gpus": "-1"}),
        ("class A:\n    rows: int = 8\n    width: int = field(default=16)", {"rows": "8", "width": "16"}),
        # What a tracker is told is read by nobody, unless a row reads it by its name.
        ("wandb.init(config={'rows': 64})", {}),
        ("run = wandb.init(config={'rows': 64})\nload(run.config['rows'])", {"rows": "64"}),
        # A name that is computed later is not what it began as; a text that is filled in tells its form.
        ("rows = 64\nrows = rows // cards", {}),
        ("out = 'a'\nfor n in names:\n    out = f'../{n.id}/c'", {"out": "../{n.id}/c"}),
        ("rows = 64\ndef f():\n    rows = 32 // cards", {"rows": "64"}),
        # What holds the options gets them one by one: an object, a mapping, a class of them.
        ("args.rows = 64\nself.opt.width = 8\nnet.depth = 3", {"rows": "64", "width": "8"}),
        ("cfg['rows'] = 64\n_C.TRAIN.WIDTH = 8", {"rows": "64", "TRAIN.WIDTH": "8"}),
        ("class TrainConfig:\n    def __init__(self):\n        self.rows = 64", {"rows": "64"}),
        ("class Net:\n    def __init__(self):\n        self.rows = 64", {}),
        ("args.rows = 64\nargs.rows = args.rows // cards", {}),
        ("args.rows = 64\nargs.rows *= cards", {}),
        # A command line calls a function with what it is given.
        ("def f(a, rows=64, *, width=8): ...\nfire.Fire(f)\ndef g(b=1): ...", {"rows": "64", "width": "8"}),
        ("def f(rows=64): ...\nf()", {}),
    ],
)
def test_that_plain_values_are_read_that_the_run_may_have(code: str, found: dict[str, str]) -> None:
    assert {item.key: item.value for item in python_code.read(code)} == found


def test_a_type_of_numbers_is_a_value() -> None:
    """A module names it; another one is written as a name of the same module, what is none as a text."""
    text = "model = load('x', torch_dtype=torch.float16, act=torch.relu)\nkind = torch.half\nkind = pick()\n"
    (found,) = reader.read(text, "a.py")
    assert (found.key, found.value) == ("torch_dtype", "torch.float16")
    assert "torch_dtype=torch.bfloat16, act" in reader.edited(text, "a.py", found, "bfloat16")
    assert "torch_dtype='auto', act" in reader.edited(text, "a.py", found, "auto")
