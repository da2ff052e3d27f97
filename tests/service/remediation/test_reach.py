"""A setting must be able to reach what failed: its call is made, and is given more than constants."""

from __future__ import annotations

from dataclasses import replace

from ingest.logs.stacks.stack import Frame
from service.remediation.reach import lacks_call, takes_constants
from tests.service.factories import failed, report
from tests.tables import each_row

OWN = Frame("/job/decode.py", 9, "main", "out = decoder(rows)")
BELOW = Frame("/opt/env/lib/python3.11/site-packages/keras/src/layer.py", 122, "__call__")
CODE = "decoder = load_model(path)\nout = decoder(rows)\n# decoder.fit(rows)\n"


@each_row(
    ("key", "files", "frames", "lacks"),
    [
        ("Model.fit.batch_size", (f"{CODE}\ndecode.py",), (OWN, BELOW), True),
        ("Model.fit.batch_size", (f"{CODE}decoder.fit(rows)\n\ndecode.py",), (OWN, BELOW), False),
        ("Model.fit.batch_size", (f"{CODE}\ndecode.py",), (OWN, replace(BELOW, function="fit")), False),
        # Code that is not at hand may make the call.
        ("Model.fit.batch_size", (f"{CODE}\nother.py",), (OWN, BELOW), False),
        ("Model.fit.batch_size", (), (OWN, BELOW), False),
        # A function that a change adds is called by nobody yet.
        ("torch.cuda.set_device", (f"{CODE}\ndecode.py",), (OWN, BELOW), False),
    ],
)
def test_that_an_argument_needs_its_call(
    key: str, files: tuple[str, ...], frames: tuple[Frame, ...], lacks: bool
) -> None:
    told = replace(report(failed(frames=frames, kind="error")), launches=files)
    assert lacks_call(key, told) is lacks


@each_row(
    ("code", "constant"),
    [
        ('self.model = World(model_id="world/l")', True),
        ("self.model = World(args.path)", False),
        ("self.model = World(name, size=3)", False),
        ("trainer.train()", False),
        ("for row in load(3):", False),
    ],
)
def test_that_a_call_of_constants_takes_no_setting(code: str, constant: bool) -> None:
    told = report(failed(frames=(replace(OWN, code=code),), kind="error"))
    assert takes_constants(told) is constant
