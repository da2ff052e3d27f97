"""Which names came and went in a package's modules: read by release, kept as digests, looked up."""

from __future__ import annotations

from packaging.version import Version

from corpus.extract.members import members
from corpus.extract.messages.packages import ModelNames
from corpus.extract.model_names import model_names
from corpus.extract.standard_library import Stubs, changed
from corpus.extract.symbols import history, last_of_each_minor, modules
from corpus.symbols import ANY_CLASS, PYTHON, SymbolHistory, digest_of, history_of
from tests.tables import each_row

PLAIN = """
import os
from .parts import (
    Wheel,
    Axle as Shaft,
)
try:
    from .fast import speed
except ImportError:
    Speed = None
LIMIT: int = 3
class Car:
    def drive(self):
        import inner
        local = 1
def build(): ...
"""
LAZY = """
import sys
from .lazy import _LazyModule
_structure = {"models": ["Truck"]}
sys.modules[__name__] = _LazyModule(__name__, _structure)
"""


def test_that_a_module_tells_what_others_can_import() -> None:
    """Imports, assignments, classes and functions count; what only running would tell is not known."""
    found = modules(
        [
            ("made/plain.py", PLAIN),
            ("made/__init__.py", LAZY),
            ("made/models/bus.py", "__all__ = ['Bus']\nclass Bus: ...\nclass Hidden: ..."),
            ("made/star.py", "from .plain import *  # all\n"),
            ("made/asked.py", "def __getattr__(name): ...\n"),
            ("made/tests/own.py", "x = 1\n"),
        ],
        "made",
    )
    plain = found["made.plain"]
    assert plain is not None
    assert {"os", "Wheel", "Shaft", "speed", "Speed", "LIMIT", "Car", "build"} <= plain
    assert not {"Axle", "drive", "local"} & plain
    top = found["made"]
    assert top is not None
    assert {"Truck", "Bus"} <= top
    assert "Hidden" not in top
    assert found["made.star"] == plain
    assert found["made.asked"] is None
    assert "made.tests.own" not in found


CLASSES = """
class Base:
    limit: int = 1
    def __init__(self, size):
        self.size = size
class Box(Base):
    colour = "red"
    def fill(self, what, *, fast=False): ...
    def anything(self, **rest): ...
    @wrapped
    def hidden(self, one): ...
class Strange(Elsewhere):
    def go(self): ...
@dataclass
class Record:
    key: str
"""


def test_that_a_class_tells_its_attributes_and_what_its_methods_take() -> None:
    """Bases of the package count with it; what takes anything, or comes from elsewhere, is not known."""
    found = members([CLASSES])
    assert found["Box"] == {"limit", "size", "__init__", "colour", "fill", "anything", "hidden"}
    assert found["Box.fill"] == {"(what", "(fast"}
    assert (found["Box.anything"], found["Box.hidden"], found["Strange"]) == (None, None, None)
    assert found["Record.__init__"] == {"(key"}


def test_that_functions_and_all_classes_together_are_told() -> None:
    """What is written in C has no row; a class of msgspec is made of its fields, as a dataclass is."""
    text = f"{CLASSES}\nclass Given(msgspec.Struct):\n    n: int = 1\ndef build(size, *, fast=False): ...\n"
    found = members([text, "@no_grad()\ndef build(depth): ...\ndef load(path, **rest): ...\n"])
    assert found["build()"] == {"(size", "(fast", "(depth"}
    assert found["load()"] is None
    assert found["Given.__init__"] == {"(n"}
    together = found[ANY_CLASS]
    assert together is not None
    assert {"limit", "fill", "go", "key"} <= together


def test_that_the_last_release_of_each_minor_version_is_read() -> None:
    listed = ["0.9.1", "1.0.0", "1.0.2", "1.1.0", "0.10.3", "0.10.0"]
    assert last_of_each_minor(listed, "0.10") == ["0.10.3", "1.0.2", "1.1.0"]


REGISTRY = """
_MODELS = {
    "PlumForCausalLM": ("plum", "PlumForCausalLM"),
    # Taken out: "PearForCausalLM": ("pear", "PearForCausalLM"),
}
"""


def test_that_the_models_of_a_package_are_read_where_its_row_says() -> None:
    """One place keeps them in a table, another names a class or several in each file."""
    table = ModelNames(files=r"^made/registry\.py$", names=r'^ +"(?P<names>\w+)":\s*\(')
    each = ModelNames(files=r"^made/models/\w+\.py$", names=r"^EntryClass\s*=\s*(?P<names>\[[^\]]*\]|\w+)")
    files = [
        ("made/registry.py", REGISTRY),
        ("made/other.py", '    "FigForCausalLM": (1)\n'),
        ("made/models/fig.py", "class Fig: ...\nEntryClass = [FigForCausalLM,\n  FigModel]\n"),
        ("made/models/kiwi.py", "EntryClass = KiwiModel\n"),
    ]
    assert model_names(files, [table, each]) == {"PlumForCausalLM", "FigForCausalLM", "FigModel", "KiwiModel"}


def test_that_only_what_came_or_went_is_kept() -> None:
    """A name that every release has needs no row, nor one whose whole module came with it."""
    first = {"made.a": frozenset({"old", "always"})}
    second = {"made.a": frozenset({"always", "new"}), "made.b": frozenset({"more"})}
    third = {"made.a": None, "made.b": frozenset({"more"})}
    assert dict(history([first, second])) == {
        digest_of("made.a", "old"): [[0, 0]],
        digest_of("made.a", "new"): [[1, 1]],
        digest_of("made.b", ""): [[1, 1]],
    }
    # A call that may take anything refuses nothing, and stands and goes with its class.
    calls = {"A.go": frozenset({"(old"})}, {"A.go": None}, {"A.go": frozenset({"(old", "(new"})}, {}
    assert dict(history(calls)) == {digest_of("A.go", "(new"): [[1, 2]]}
    # Where one release does not tell a module's names, none of them counts as gone.
    assert dict(history([first, second, third])) == {digest_of("made.b", ""): [[1, 2]]}


@each_row(
    "runs, present, specifier",
    [
        ([(0, 1)], "4.0", "<=2.0"),
        ([(0, 1)], None, "<=2.0"),
        ([(2, 3)], "1.0", ">=3.0"),
        ([(1, 2)], "4.0", ">=2.0,<=3.0"),
        ([(0, 0), (3, 3)], "2.0", "<=1.0"),
        ([(0, 0), (3, 3)], "3.5", ">=4.0"),
    ],
)
def test_that_the_versions_with_a_name_are_those_next_to_the_job(
    runs: list[tuple[int, int]], present: str | None, specifier: str
) -> None:
    """A name that came, went and came back is taken from the run that is nearer."""
    known = SymbolHistory(tuple(map(Version, ("1.0", "2.0", "3.0", "4.0"))), tuple(runs))
    assert known.specifier(Version(present) if present else None) == specifier


@each_row(
    "package, module, name, lacks, has",
    [
        ("trl", "trl", "GRPOTrainer", "0.13.0", "0.15.2"),
        ("huggingface-hub", "huggingface_hub", "cached_download", "0.26.5", "0.25.2"),
        ("datasets", "datasets", "load_metric", "3.0.2", "2.18.0"),
        ("transformers", "transformers", "AdamW", "5.0.0", "4.46.3"),
        ("transformers", "transformers", "AutoModelForVision2Seq", "5.0.0", "4.57.6"),
        ("transformers", "transformers", "Qwen2_5_VLForConditionalGeneration", "4.48.3", "4.50.3"),
        ("transformers", "transformers.modeling_layers", "", "4.50.3", "4.53.3"),
        ("accelerate", "Accelerator.unwrap_model", "(keep_torch_compile", "1.2.1", "1.3.0"),
        ("trl", "DPOTrainer.compute_loss", "(num_items_in_batch", "0.11.4", "0.12.2"),
        ("trl", "trl", "AutoModelForCausalLMWithValueHead", "0.29.1", "0.27.2"),
        ("trl", "DPOTrainer.__init__", "(loss_type", "0.13.0", "0.9.6"),
        ("trl", "GRPOConfig.__init__", "(vllm_mode", "0.17.0", "0.18.2"),
        ("peft", "prepare_model_for_kbit_training()", "(gradient_checkpointing_kwargs", "0.5.0", "0.7.1"),
        ("torchvision", "torchvision.transforms.functional_tensor", "", "0.17.2", "0.16.2"),
        ("trl", "DPOTrainer.get_batch_logps", "(average_log_prob", "0.9.6", "0.8.6"),
        ("transformers", "transformers", "NoSuchNameEver", None, None),
    ],
)
def test_that_names_are_found_in_the_releases_that_have_them(
    package: str, module: str, name: str, lacks: str | None, has: str | None
) -> None:
    """As the packages' own sources and release notes have it; what never changed has no history."""
    found = history_of(package, module, name)
    if lacks is None or has is None:
        assert found is None
        return
    assert found is not None
    assert (found.has(Version(lacks)), found.has(Version(has))) == (False, True)


@each_row(
    ("runs", "version", "expected"),
    [
        ([(0, 1)], "2.0", True),
        ([(0, 1)], "2.5", False),
        ([(0, 2)], "2.5", True),
        ([(0, 3)], "4.5", True),
        ([(2, 3)], "2.5", False),
    ],
)
def test_that_a_version_before_one_that_lost_a_name_may_have_lost_it(
    runs: list[tuple[int, int]], version: str, expected: bool
) -> None:
    """One that was itself read is known; behind the last one that was read nothing is lost."""
    known = SymbolHistory(tuple(map(Version, ("1.0", "2.0", "3.0", "4.0"))), tuple(runs))
    assert known.surely_has(Version(version)) is expected


def test_that_a_decorator_hides_arguments_only_where_it_may_take_others() -> None:
    text = """
class Net:
    @staticmethod
    def read(path): ...
    @deprecate_kwarg("old_name", "2.0")
    def fit(self, name): ...
    @cached
    def run(self, step): ...
"""
    found = members([text])
    expected = (frozenset({"(path"}), frozenset({"(name", "(old_name"}), None)
    assert (found["Net.read"], found["Net.fit"], found["Net.run"]) == expected


def test_that_a_class_which_hands_on_to_the_one_of_its_name_takes_what_that_does() -> None:
    """One that derives from another class and hands on takes whatever it is given, as far as is known."""
    own = "class Tuner:\n    def fit(self, rate): ...\n"
    hands_on = "    def fit(self, *parts, **rest): ...\n"
    again = f"from .tuner import Tuner as _Tuner\nclass Tuner(_Tuner):\n{hands_on}"
    assert members([own, again])["Tuner.fit"] == frozenset({"(rate"})
    assert members([own, f"class Tuner(Other):\n{hands_on}"])["Tuner.fit"] is None


STUBS = """
import sys
from typing import Any as Any
if sys.version_info >= (3, 10):
    def added() -> Any: ...
if sys.version_info < (3, 10):
    from other import *
if sys.platform == "linux" or sys.version_info < (3, 9):
    kept: int
__all__ = ["old_name"]
"""


def test_that_stubs_tell_what_each_python_has() -> None:
    """A condition on anything but the version leaves a name there; other stubs' own names tell nothing."""
    versions = "made: 3.0-\nother: 3.0-\ngone: 3.0-3.9\n_own: 3.0-3.9\n"
    stubs = Stubs(
        {
            "stdlib/VERSIONS": versions,
            "stdlib/made/__init__.pyi": STUBS,
            "stdlib/other.pyi": "class Thing: ...",
            "stdlib/gone.pyi": "x: int",
            "stdlib/_own.pyi": "x: int",
        }
    )
    newer = Stubs({"stdlib/VERSIONS": versions, "stdlib/made.pyi": "def never_told_before() -> None: ..."})
    old, new = (3, 9), (3, 10)
    found = dict(changed([{old: stubs.names(old), new: stubs.names(new)}, {(3, 11): newer.names((3, 11))}]))
    assert found == {
        ("gone", ""): [True, False, False],
        ("made", "Thing"): [True, False, False],
        ("made", "added"): [False, True, True],
    }


def test_that_python_itself_is_known() -> None:
    """Spot checks against Python's own release notes; what is gone is gone from the next version on."""
    told = {
        "inspect.getargspec": "<3.11",
        "collections.Mapping": "<3.10",
        "fractions.gcd": "<3.9",
        "imp.": "<3.12",
        "typing.Self": ">=3.11",
    }
    found = {}
    for name in told:
        history = history_of(PYTHON, *name.split("."))
        found[name] = history.specifier(None) if history else None
    assert found == told
    assert history_of(PYTHON, "json", "dumps") is None
