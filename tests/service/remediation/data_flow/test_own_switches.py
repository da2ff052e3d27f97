"""What the job's own files let a failing statement pass with: a switch, a path, a composed configuration."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.service.composition.test_message_forms import SITE, raised
from tests.tables import each_row
from tests.warm import explained

PARSED = """import argparse, os
p = argparse.ArgumentParser()
p.add_argument("--out", default="runs/a")
p.add_argument("--force", action="store_true")
args = p.parse_args()
"""
MADE = "os.makedirs(args.out, exist_ok=args.force)"
THERE = "FileExistsError: [Errno 17] File exists: 'runs/a'"
OPENED = "rows = json.load(open(cfg.data.train))"
EMPTY = "FileNotFoundError: [Errno 2] No such file or directory: ''"


@each_row(
    ("row", "command", "is_offered"),
    [
        (MADE, "python train.py --out runs/a\n", True),
        ("os.makedirs(args.out, exist_ok=False)", "python train.py --out runs/a\n", False),
    ],
)
def test_that_a_switch_of_the_program_lets_a_call_go_on(
    row: str, command: str, *, is_offered: bool, triage: Triage
) -> None:
    log = raised(THERE, f"/job/train.py:6:<module>:{row}", f"/usr/lib/python3.11/os.py:225:makedirs:{row}")
    files = (ConfigFile("train.py", f"{PARSED}{row}\n"), ConfigFile("run.sh", command))
    answer = explained(triage, log, *files)
    assert ("--force" in [change.key for change in answer.changes[:1]]) is is_offered
    assert ("--force" in (answer.patch or "")) is is_offered


def test_that_an_empty_path_names_the_key_that_it_comes_from(triage: Triage) -> None:
    """What is opened failed, and not the call that reads what was opened."""
    code = f"import json\nfrom omegaconf import OmegaConf\ncfg = OmegaConf.load('c.yaml')\n{OPENED}\n"
    files = (ConfigFile("train.py", code), ConfigFile("c.yaml", "data:\n  train: ''\n  lr: 1\n"))
    answer = explained(triage, raised(EMPTY, f"/job/train.py:4:<module>:{OPENED}"), *files)
    assert [change.key for change in answer.changes[:1]] == ["data.train"]


@each_row(
    ("listed", "is_composed"), [("- optimizer: adam", True), ("- model: small", False)], ids=["its", "other"]
)
def test_that_a_configuration_with_a_list_of_defaults_is_composed(
    listed: str, *, is_composed: bool, triage: Triage
) -> None:
    log = raised(
        "omegaconf.errors.ConfigAttributeError: Missing key optimizer",
        "/job/train.py:3:<module>:opt = build(cfg.optimizer.name)",
        f"{SITE}/omegaconf/_utils.py:899:format_and_raise:_raise(ex, cause)",
    )
    code = "from omegaconf import OmegaConf\ncfg = OmegaConf.load('conf/c.yaml')\n"
    files = (
        ConfigFile("train.py", f"{code}opt = build(cfg.optimizer.name)\n"),
        ConfigFile("conf/c.yaml", f"defaults:\n  {listed}\nseed: 1\n"),
    )
    answer = explained(triage, log, *files)
    assert ("compose('c')" in (answer.suggestion or "")) is is_composed


@each_row(
    ("file", "row", "is_told"),
    [
        (f"{SITE}/vllm/entrypoints/llm.py", "pdb.set_trace()", True),
        (f"{SITE}/vllm/entrypoints/llm.py", "return pdb", True),
        (f"{SITE}/vllm/entrypoints/llm.py", "return other", False),
        ("/job/vllm/entrypoints/llm.py", "pdb.set_trace()", False),
    ],
)
def test_that_a_package_which_was_edited_in_place_is_installed_anew(
    file: str, row: str, *, is_told: bool, triage: Triage
) -> None:
    """No release stops in a debugger; a checkout is edited on purpose."""
    name = "pdb" if "pdb" in row else "other"
    log = raised(
        f"NameError: name '{name}' is not defined",
        "/job/infer.py:5:<module>:out = llm.generate(prompts)",
        f"{file}:610:generate:{row}",
    )
    keys = [change.key for change in explained(triage, log).changes[:1]]
    assert (keys == ["pip install --force-reinstall --no-deps"]) is is_told


@each_row(("now", "to"), [(16, 16), (128, 32)], ids=["less", "more"])
def test_that_a_file_which_has_gone_further_is_kept(now: int, to: int, triage: Triage) -> None:
    """The run had 64: what cures it is in a file that says 16 by now, and not in one that says 128."""
    found = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which"
    log = raised(
        f"torch.cuda.OutOfMemoryError: {found} 1.20 GiB is free.",
        "/job/train.py:9:fit:out = model(batch)",
        f"{SITE}/torch/nn/modules/module.py:1511:_call_impl:return forward_call(*args, **kwargs)",
    )
    command = ConfigFile("run.sh", f"python train.py --batch_size {now} --epochs 10\n")
    answer = explained(triage, f"Namespace(batch_size=64, epochs=10)\n{log}", command)
    first = answer.changes[0]
    assert (first.key, first.to) == ("batch_size", to)
    assert ("Nothing to do" in first.why) is (now == to)
