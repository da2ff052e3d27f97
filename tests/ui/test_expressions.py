"""Regular expressions that mean the same on every version of Python that is supported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASE = ROOT / "eval" / "incidents" / "w-easyr1-offload-host-ram"

# Runs in a process of its own, so that nothing is compiled before it listens. Prints an expression per row.
RECORD = """
import importlib, pkgutil, re, sys
from re import _compiler, _parser

compiled, compile_ = set(), _compiler.compile
def recorded(pattern, flags=0):
    frame = sys._getframe(1)
    while frame.f_code.co_filename == re.__file__:
        frame = frame.f_back
    # A package of others may choose by the version of Python.
    if isinstance(pattern, str) and "site-packages" not in frame.f_code.co_filename:
        compiled.add((pattern, int(flags)))
    return compile_(pattern, flags)
_compiler.compile = recorded

ONE = {"LITERAL", "NOT_LITERAL", "ANY", "IN"}
def greedy_groups(parsed):
    for operator, argument in parsed:
        name = str(operator)
        if name == "POSSESSIVE_REPEAT" and not (len(argument[2]) == 1 and str(argument[2][0][0]) in ONE):
            yield argument
        for part in argument if isinstance(argument, (tuple, list)) else (argument,):
            for inner in part if isinstance(part, list) else (part,):
                if isinstance(inner, _parser.SubPattern):
                    yield from greedy_groups(inner)

for package in ("corpus", "ingest", "service", "ui", "whycrash"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
from ui.cli.main import main
log, config, found = sys.argv[1:]
sys.argv = ["whycrash", "explain", log, "--config", config]
try:
    main()
except SystemExit as end:
    assert not end.code, end
wrong = [entry for entry in compiled if any(greedy_groups(_parser.parse(*entry)))]
with open(found, "w", encoding="utf-8") as file:
    print(len(compiled), *map(repr, wrong), sep="\\n", file=file)
"""


@pytest.mark.long
def test_that_no_group_is_repeated_possessively(warm: Path, tmp_path: Path) -> None:
    """An atomic group, `(?>(?:...)*)`, means the same as a possessive repetition of a group.

    The latter takes more than it matches before Python 3.11.5 (gh-106052): keys stood unmasked on Debian 12.
    """
    environment = {**os.environ, "WHYCRASH_HOME": str(warm), "WHYCRASH_EMBEDDING_MODEL": "hash"}
    subprocess.run(
        [sys.executable, "-c", RECORD, str(CASE / "log.txt"), str(CASE / "run.sh"), str(tmp_path / "found")],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    count, *found = (tmp_path / "found").read_text(encoding="utf-8").splitlines()
    assert int(count) > 800
    assert not found
