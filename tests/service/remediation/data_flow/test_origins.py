"""The way of a failing value back through calls and files of the job's own."""

from __future__ import annotations

import textwrap

from ingest.logs.stacks.stack import Frame
from service.composition.value_origins import value_rows
from tests.service.factories import failed, report
from tests.tables import each_row

IMAGES = """
    class Rows:
        def __init__(self, path, transform):
            self.names = open(path).read().split()
            self.transform = transform

        def __getitem__(self, place):
            held = np.load(self.names[place])
            mask = held > 0
            row = {"image": held, "mask": mask}
            row = self.transform(row)
            return row

    class Zoom:
        def __call__(self, row):
            image, mask = row["image"], row["mask"]
            return scaled(image, (2, 2))

    def scaled(image, by):
        sampler = Sampler()
        sampler.scale(image.spacing())
        return sampler.run(image)
"""
IMAGE_CALLS = [
    ("rows.py", 11, "__getitem__", "row = self.transform(row)"),
    ("/usr/lib/python3/site-packages/torchvision/transforms/transforms.py", 60, "__call__", "img = t(img)"),
    ("rows.py", 17, "__call__", "return scaled(image, (2, 2))"),
    ("rows.py", 21, "scaled", "sampler.scale(image.spacing())"),
]
MODEL = """
    class Head:
        def infer(self, batch):
            batch = batch.unsqueeze(1)
            return batch.permute(2, 1, 0, 3, 4)
"""
EVALUATION = """
    def evaluate(model, data, restore):
        for clip in data:
            frames = restore(clip)
            out = model.infer(frames)
"""
EVALUATION_CALLS = [
    ("evaluation.py", 5, "evaluate", "out = model.infer(frames)"),
    ("head.py", 5, "infer", "return batch.permute(2, 1, 0, 3, 4)"),
]
TUNING = """
    rows = load_dataset("json", data_files="a.json")
    labels = rows.rename_column("y", "label")
    model = Model.from_pretrained("base")
    options = Options(output="out", lr=1e-4, steps=10, seed=1)
    trainer = Trainer(model=model, args=options, train_dataset=labels, tokenizer=None)
    trainer.train()
"""
TUNING_CALLS = [
    ("tune.py", 7, "<module>", "trainer.train()"),
    ("/usr/lib/python3/site-packages/transformers/trainer.py", 9, "train", "return inner(dataset[i])"),
    ("/usr/lib/python3/site-packages/datasets/dataset_dict.py", 78, "__getitem__", "raise KeyError("),
]
TWICE = """
    class Net:
        def __init__(self):
            self.parts = None

        def fit(self, rows):
            self.parts = split(rows)
            return join(self.parts)
"""
PLOTS = """
    colours = {"loss": "red"}
    marks = ["x"]
"""
DRAWN = """
    from {how}

    def draw(rows):
        return rows, colours["step"]
"""
DRAWN_CALLS = [("draw.py", 5, "draw", 'return rows, colours["step"]')]
TWICE_CALLS = [("net.py", 8, "fit", "return join(self.parts)")]


def rows_of(
    calls: list[tuple[str, int, str, str]], files: dict[str, str], body: str, exception: str = "RuntimeError"
) -> list[tuple[str, str, str]]:
    """Give the rows that are told for a stack of the job's own files."""
    frames = tuple(
        Frame(path if path.startswith("/") else f"/job/{path}", line, function, code)
        for path, line, function, code in calls
    )
    launches = tuple(f"{textwrap.dedent(code)}\n{name}" for name, code in files.items())
    found = report(failed(frames=frames, body=body, exception=exception), launches=launches)
    return [(row.place, row.code, row.handed) for row in value_rows(found)]


@each_row(
    ("calls", "files", "body", "wanted", "absent"),
    [
        # Through a library that hands one thing on, and the entry of a dict.
        (
            IMAGE_CALLS,
            {"rows.py": IMAGES},
            "AttributeError: 'numpy.ndarray' object has no attribute 'spacing'",
            [("rows.py:8", "held = np.load(self.names[place])", "")],
            ["sampler = Sampler()", "mask = held > 0"],
        ),
        # Through a call into another file.
        (
            EVALUATION_CALLS,
            {"head.py": MODEL, "evaluation.py": EVALUATION},
            "RuntimeError: input.dim() = 6 is not equal to len(dims) = 5",
            [
                ("head.py:4", "batch = batch.unsqueeze(1)", ""),
                ("evaluation.py:5", "frames", "batch"),
                ("evaluation.py:4", "frames = restore(clip)", ""),
            ],
            [],
        ),
        # Of what sets a trainer up, what the calls below it are of.
        (
            TUNING_CALLS,
            {"tune.py": TUNING},
            "KeyError: 'Please first select a split'",
            [
                ("tune.py:3", "labels = rows.rename_column('y', 'label')", ""),
                ("tune.py:2", "rows = load_dataset('json', data_files='a.json')", ""),
            ],
            [
                "model = Model.from_pretrained('base')",
                "options = Options(output='out', lr=0.0001, steps=10, seed=1)",
            ],
        ),
        # What the same function sets above counts before what the object was made with.
        (
            TWICE_CALLS,
            {"net.py": TWICE},
            "TypeError: join() got a list",
            [("net.py:7", "self.parts = split(rows)", "")],
            ["self.parts = None"],
        ),
        # What another file sets, imported by its name or with all others.
        (
            DRAWN_CALLS,
            {"draw.py": DRAWN.format(how="plots import *"), "plots.py": PLOTS},
            "KeyError: 'step'",
            [("plots.py:2", "colours = {'loss': 'red'}", "")],
            ["marks = ['x']"],
        ),
        (
            DRAWN_CALLS,
            {"draw.py": DRAWN.format(how="lib.plots import colours"), "lib/plots.py": PLOTS},
            "KeyError: 'step'",
            [("plots.py:2", "colours = {'loss': 'red'}", "")],
            [],
        ),
        # A name that is missed is no value.
        (
            TWICE_CALLS,
            {"net.py": TWICE},
            "NameError: name 'join' is not defined",
            [],
            ["self.parts = split(rows)"],
        ),
    ],
)
def test_a_failing_value_is_followed_to_where_it_was_made(
    calls: list[tuple[str, int, str, str]],
    files: dict[str, str],
    body: str,
    wanted: list[tuple[str, str, str]],
    absent: list[str],
) -> None:
    """Through arguments, files, entries and set-ups; not to what the message is not of."""
    found = rows_of(calls, files, body, body.partition(":")[0])
    assert [row for row in wanted if row not in found] == []
    assert [code for _, code, _ in found if code in absent] == []


def test_a_function_that_calls_itself_is_followed_once() -> None:
    """The way back ends."""
    code = """
        def depth(tree):
            tree = depth(tree)
            return tree
        value = depth(None)
        print(value.size)
    """
    calls = [("walk.py", 6, "<module>", "print(value.size)")]
    found = rows_of(calls, {"walk.py": code}, "AttributeError: 'NoneType' object has no attribute 'size'")
    assert ("walk.py:5", "value = depth(None)", "") in found
