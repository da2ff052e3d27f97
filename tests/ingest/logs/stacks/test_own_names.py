"""Whose is what a message misses: names that people and packages share are told apart by the calls."""

from __future__ import annotations

from corpus import package_classes
from ingest.logs.stacks.own_names import WHOSE, misses_own
from ingest.logs.stacks.stack import Frame
from tests.factories import ReadLog
from tests.tables import each_row

SITE = "/env/lib/python3.11/site-packages"
UNKNOWN = "cannot import name 'Net' from"
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


def _asked(file: str, code: str, *below: Frame) -> tuple[Frame, ...]:
    return (Frame("/job/train.py", 3, "<module>", "main()"), Frame(file, 9, "prepare", code), *below)


ADAPTERS = f"{SITE}/peft/tuners/lora/bnb.py"
LACKS = "AttributeError: 'MatmulLtState' object has no attribute 'has_fp16_weight'"
LOST = "AttributeError: 'MatmulLtState' object has no attribute 'memory_efficient_backward'"
RAISES = Frame(f"{SITE}/torch/nn/modules/module.py", 7, "__getattr__", "raise AttributeError(")


@each_row(
    ("message", "frames", "expected"),
    [
        # Releases of the class's package differ in it, whoever asks.
        (LOST, _asked(ADAPTERS, "target.state.memory_efficient_backward"), {"release", "other-package"}),
        (LOST, _asked("/job/net.py", "state.memory_efficient_backward"), {"release"}),
        (LACKS, _asked(ADAPTERS, "target.state.has_fp16_weight"), {"other-package"}),
        # The class answers by `__getattr__`: the one who asked stands above it.
        (LACKS, _asked(ADAPTERS, "target.state.has_fp16_weight", RAISES), {"other-package"}),
        (LACKS, _asked("/job/net.py", "target.state.has_fp16_weight", RAISES), set()),
        (LACKS, _asked(f"{SITE}/bitsandbytes/nn/modules.py", "state.has_fp16_weight"), {"same-package"}),
        # A class of no package is the job's: what it lacks, the job has to give.
        (
            "AttributeError: 'OrchardNet' object has no attribute 'config'",
            _asked(f"{SITE}/transformers/trainer.py", "self.model.config"),
            set(),
        ),
        # An argument that a package's class does not take, whose method alone old messages name.
        (
            "TypeError: __init__() got an unexpected keyword argument 'gpus'",
            (Frame("/job/train.py", 3, "<module>", "trainer = pl.Trainer(gpus=2)"),),
            {"argument"},
        ),
        (
            "TypeError: GRPOTrainer.__init__() got an unexpected keyword argument 'tokenizer'",
            (),
            {"argument"},
        ),
        (
            "TypeError: __init__() got an unexpected keyword argument 'gpus'",
            (Frame("/job/train.py", 3, "<module>", "trainer = OrchardTrainer(gpus=2)"),),
            set(),
        ),
        # A model's name, unless the job's own code looks it up in its own mapping.
        ("KeyError: 'mistral'", (), {"model"}),
        ("KeyError: 'mistral'", _asked("/job/net.py", 'table["mistral"]'), set()),
        ("KeyError: 'mistral'", _asked(f"{SITE}/pandas/core/indexes/base.py", "get_loc"), set()),
        ("KeyError: 'mistral'", _asked(f"{SITE}/transformers/models/auto.py", "MAPPING[kind]"), {"model"}),
        ("KeyError: 'phi'", (), set()),
        ("KeyError: 'answer'", (), set()),
        # A folder of the own job in the place of a package; a clone of it is the package.
        (f"ImportError: {UNKNOWN} 'datasets' (/job/datasets/__init__.py)", (), {"shadowed"}),
        (f"ImportError: {UNKNOWN} 'datasets.utils' (/job/datasets/utils.py)", (), {"shadowed"}),
        (f"ImportError: {UNKNOWN} 'datasets' ({SITE}/datasets/__init__.py)", (), set()),
        (f"ImportError: {UNKNOWN} 'datasets' (/job/datasets-main/src/datasets/__init__.py)", (), set()),
        (f"ImportError: {UNKNOWN} 'verl' (/job/verl/verl/__init__.py)", (), set()),
        (f"ImportError: {UNKNOWN} 'own_tools' (/job/own_tools/__init__.py)", (), set()),
        # The class itself is asked by whoever imported it.
        (
            "AttributeError: type object 'GRPOTrainer' has no attribute 'from_args'",
            _asked("/job/train.py", "GRPOTrainer.from_args(args)"),
            {"other-package"},
        ),
        (
            "AttributeError: type object 'OrchardTrainer' has no attribute 'from_args'",
            _asked("/job/train.py", "OrchardTrainer.from_args(args)"),
            set(),
        ),
    ],
)
def test_that_what_a_class_of_a_package_lacks_is_told_by_who_asks_for_it(
    message: str, frames: tuple[Frame, ...], expected: set[str]
) -> None:
    assert {whose for whose, holds in WHOSE.items() if holds(message, frames)} == expected


@each_row(
    ("owner", "code", "expected"),
    [
        ("MatmulLtState", "target.state.threshold_of(x)", "package-incompatible"),
        # What people hand to a package as they call it is theirs to give.
        ("DataLoader", "loader.threshold_of(x)", "user-code-error"),
        ("OrchardNet", "target.state.threshold_of(x)", "user-code-error"),
    ],
)
def test_that_a_package_which_asks_anothers_class_in_vain_is_of_another_release(
    owner: str, code: str, expected: str, read: ReadLog
) -> None:
    report = read(
        'Traceback (most recent call last):\n  File "/job/train.py", line 9, in <module>\n    main()\n'
        f'  File "{ADAPTERS}", line 3, in dispatch\n    {code}\n'
        f"AttributeError: '{owner}' object has no attribute 'threshold_of'\n"
    )
    assert report.root is not None
    assert report.root.cause == expected


def test_that_the_classes_are_known_by_the_module_that_one_imports() -> None:
    assert package_classes.modules_with("GRPOTrainer") >= {"trl"}
    assert package_classes.modules_with("vllm.config.VllmConfig") == {"vllm"}
    assert package_classes.modules_with("OrchardNet") == frozenset()
