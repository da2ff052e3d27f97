"""Keys of a file that a call hands on: which of them it refuses, and which it lacks."""

from __future__ import annotations

from collections.abc import Mapping

from ingest.configfiles.settings import Setting
from ingest.logs.configs.handed_keys import missing_keys, unknown_key
from ingest.logs.stacks.stack import Frame
from tests.tables import each_row

PACKAGE = "/env/lib/python3.11/site-packages/oddlib/build.py"
OWN = "/job/build.py"
UNKNOWN = "TypeError: {callee}() got an unexpected keyword argument '{key}'"
MISSING = "TypeError: {callee}() missing 1 required positional argument: '{key}'"
NAMED = {"opt.type": "Adam", "opt.params.lr": "0.1", "opt.params.beta": "0.9"}
TARGET = {"opt._target_": "torch.optim.Adam", "opt.lr": "0.1", "opt.beta": "0.9", "model.beta": "2"}


def settings(given: Mapping[str, str]) -> list[Setting]:
    """Give the settings of a YAML file."""
    return [Setting(key, value, 1, "yaml") for key, value in given.items()]


@each_row(
    "given, file, code, key",
    [
        (NAMED, PACKAGE, "return cls(**params)", "opt.params.beta"),
        (NAMED, OWN, "opt = cls(net.parameters(), **cfg['opt']['params'])", "opt.params.beta"),
        # Of several places with such a key, the one that is the called one's.
        (TARGET, PACKAGE, "return target(*args, **kwargs)", "opt.beta"),
        ({"a.beta": "1", "b.beta": "2"}, PACKAGE, "return cls(**params)", None),
        # Where the file names no class: what the statement reads, or a file's top level.
        ({"a.beta": "1", "b.beta": "2"}, OWN, "opt = Adam(**cfg['b'])", "b.beta"),
        ({"beta": "1"}, OWN, "opt = Adam(**cfg)", "beta"),
        ({"schedule.beta": "1"}, OWN, "opt = Adam(**kwargs)", None),
        # A package's own code may write what it read of a file.
        ({"beta": "1"}, PACKAGE, "optimizer = Adam(", None),
        # A call's first row alone is shown: a package's may hand on what stands below, the job's own says so.
        (NAMED, PACKAGE, "optimizer = Adam(", "opt.params.beta"),
        (NAMED, OWN, "optimizer = Adam(", None),
        # What a script gathers under a name that is no configuration's may hold objects of its own.
        ({"beta": "1"}, OWN, "opt = Adam(**kwargs)", None),
        ({"beta": "1"}, OWN, "opt = Adam(**conf)", "beta"),
        ({"beta": "1"}, OWN, "opt = Adam(**yaml.safe_load(stream))", "beta"),
        # What the call itself writes is no file's.
        (NAMED, PACKAGE, "return cls(beta=beta, **params)", None),
        ({"opt.type": "Adam"}, PACKAGE, "return cls(**params)", None),
    ],
)
def test_that_a_key_of_a_file_is_refused(
    given: Mapping[str, str], file: str, code: str, key: str | None
) -> None:
    frames = [Frame(file, 3, "build", code)]
    found = unknown_key(UNKNOWN.format(callee="Adam.__init__", key="beta"), frames, settings(given))
    assert (found.key if found else None) == key


@each_row(
    "given, key, lacking",
    [
        (NAMED, "eps", ["opt.params.eps"]),
        (TARGET, "eps", ["opt.eps"]),
        ({"type": "Adam", "lr": "0.1"}, "eps", ["eps"]),
        # A key that is there was left out by somebody's code; without the class nobody knows the place.
        (NAMED, "beta", []),
        ({"opt.params.lr": "0.1"}, "eps", []),
    ],
)
def test_that_a_file_lacks_a_key_beside_its_class(
    given: Mapping[str, str], key: str, lacking: list[str]
) -> None:
    frames = [Frame(PACKAGE, 3, "build", "return cls(**params)")]
    found = missing_keys(MISSING.format(callee="Adam.__init__", key=key), frames, settings(given))
    assert [item.key for item in found] == lacking


@each_row(
    "code, lacking",
    [
        ("cfg = ModelConfig(**conf['model'])", ["model.layers"]),
        ("cfg = ModelConfig(**conf.model)", ["model.layers"]),
        ("cfg = ModelConfig(**conf['head'])", []),
        ("cfg = ModelConfig(**conf.model.to_dict())", []),
    ],
)
def test_that_the_statement_tells_the_level_where_the_file_names_no_class(
    code: str, lacking: list[str]
) -> None:
    given = settings({"model.hidden": "64", "train.steps": "10"})
    frames = [Frame(OWN, 3, "main", code)]
    found = missing_keys(MISSING.format(callee="ModelConfig.__init__", key="layers"), frames, given)
    assert [item.key for item in found] == lacking
