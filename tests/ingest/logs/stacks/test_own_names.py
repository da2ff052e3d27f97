"""Whose is what a message misses: names that people and packages share are told apart by the calls."""

from __future__ import annotations

from ingest.logs.stacks.own_names import misses_own
from ingest.logs.stacks.stack import Frame
from tests.factories import ReadLog
from tests.tables import each_row

SITE = "/env/lib/python3.11/site-packages"
LOCAL = "TypeError: Net.forward.<locals>.wrapped() got an unexpected keyword argument 'mask'"
ASKED = Frame("/job/modules/trainer.py", 9, "train", "self._print_best()")
CHECKPOINT = Frame(f"{SITE}/torch/utils/checkpoint.py", 40, "checkpoint", "return run(*args, **kwargs)")


@each_row(
    ("message", "frames", "expected"),
    [
        ("AttributeError: 'Trainer' object has no attribute '_print_best'", (ASKED,), True),
        # A package's class says on behalf of its subclass that it lacks the attribute.
        (
            "AttributeError: 'Trainer' object has no attribute '_print_best'",
            (ASKED, Frame(f"{SITE}/torch/nn/modules/module.py", 7, "__getattr__", "raise AttributeError(")),
            True,
        ),
        ("AttributeError: 'Trainer' object has no attribute 'tokenizer'", (ASKED,), False),
        (
            "AttributeError: 'Trainer' object has no attribute '_print_best'",
            (Frame("/job/train.py", 9, "main", "trainer._print_best()"),),
            False,
        ),
        (
            "AttributeError: 'Trainer' object has no attribute 'fit'",
            (ASKED, Frame(f"{SITE}/quux/trainer.py", 9, "run", "self.fit()")),
            False,
        ),
        (LOCAL, (Frame("/job/net.py", 5, "forward", "x = checkpoint("), CHECKPOINT), True),
        (LOCAL, (Frame(f"{SITE}/diffusers/net.py", 5, "forward", "x = checkpoint("), CHECKPOINT), False),
        (LOCAL, (Frame("/job/net.py", 5, "main", "net(x)"), CHECKPOINT), False),
        ("TypeError: forward() got an unexpected keyword argument 'mask'", (ASKED,), False),
        ("KeyError: '_print_best'", (ASKED,), False),
        ("AttributeError: 'Trainer' object has no attribute '_print_best'", (), False),
    ],
)
def test_that_a_missing_name_is_the_jobs_where_its_own_class_or_function_lacks_it(
    message: str, frames: tuple[Frame, ...], expected: bool
) -> None:
    assert misses_own(message, frames) == expected


@each_row(
    ("row", "code", "expected"),
    [
        ("/job/modules/trainer.py", "self._print_best()", "user-code-error"),
        ("/job/modules/trainer.py", "trainer._print_best()", "package-incompatible"),
    ],
)
def test_that_a_class_of_the_jobs_with_a_packages_name_is_no_package_of_another_release(
    row: str, code: str, expected: str, read: ReadLog
) -> None:
    """Whose own method asks `self` is of the job, though a package has a class of that name."""
    report = read(
        f'Traceback (most recent call last):\n  File "{row}", line 9, in train\n    {code}\n'
        "AttributeError: 'Trainer' object has no attribute '_print_best'\n"
    )
    assert report.root is not None
    assert report.root.cause == expected
