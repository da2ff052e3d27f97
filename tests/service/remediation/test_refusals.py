"""Keys that a program does not know, by the messages of the parsers that most programs read them with."""

from __future__ import annotations

from service.remediation.refusals import read_unknown, refusing_program
from tests.service.factories import failed, report


def test_that_a_parsers_message_names_what_it_does_not_know() -> None:
    """A value is told where the message shows it behind the key, so that both can go."""
    rows: dict[str, list[tuple[str, str | None]]] = {
        "train.py: error: unrecognized arguments: --tag x --quick --lr=0.1": [
            ("--tag", "x"),
            ("--quick", None),
            ("--lr", "0.1"),
        ],
        "t.py: error: unrecognized arguments: --names a b": [("--names", None)],
        "t.py: error: unrecognized arguments: run.log --tag x": [],
        "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--tag', 'x']": [
            ("--tag", "x")
        ],
        "ValueError: Some keys are not used by the HfArgumentParser: ['tag', 'lr_x']": [
            ("tag", None),
            ("lr_x", None),
        ],
        "ValueError: The config file at /a/acc.yaml had unknown keys (['fsdp_x']), please try": [
            ("fsdp_x", None)
        ],
        "Error: No such option: --tag Did you mean --tags?": [("--tag", None)],
        "Error: No such option '--tag'.": [("--tag", None)],
        "srun: unrecognized option '--gpu-per-node=8'": [("--gpu-per-node", "8")],
        "getopt.GetoptError: option --tag not recognized": [("--tag", None)],
        "error: unknown flag: --gpu": [("--gpu", None)],
        "flag provided but not defined: -tag": [("-tag", None)],
        "error: unexpected argument '--tag' found": [("--tag", None)],
        "│ Unrecognized options: --tag │": [("--tag", None)],
        "FATAL Flags parsing error: Unknown command line flag 'tag'. Did you mean: tags ?": [("tag", None)],
        "ERROR: Could not consume arg: --tag=3": [("--tag", "3")],
        'error: Validation failed: Key "trainer.tag" is not expected': [("trainer.tag", None)],
        "train.py: error: argument --tag: invalid int value: 'x'": [],
        "the unrecognized arguments of the first pass are handed on": [],
        "ValueError: invalid parameters, expected [3, 4]": [],
    }
    read = {text: [(option.key, option.present) for option in read_unknown(text)] for text in rows}
    assert read == rows


def test_that_the_program_is_told_by_its_own_error_or_usage() -> None:
    rows = {
        "train.py: error: unrecognized arguments: --tag": "train.py",
        "[rank0]: train.py: error: unrecognized arguments: --tag": "train.py",
        "vllm serve: error: unrecognized arguments: --tag": "vllm serve",
        "/usr/bin/srun: unrecognized option '--tag'": "/usr/bin/srun",
        "ValueError: unknown keys ['tag']": "",
    }
    for text, wanted in rows.items():
        assert refusing_program(report(failed(text=text, body=text))) == wanted, text
    hint = [(3, "unknown flag: --gpu"), (4, "See 'docker run --help'.")]
    told = report(failed(3, text=hint[0][1], body=hint[0][1]), surroundings=hint)
    assert refusing_program(told) == "docker run"
    above = [(1, "Usage: ray start [OPTIONS]"), (3, "Error: No such option: --tag")]
    told = report(failed(3, text=above[1][1], body=above[1][1]), surroundings=above)
    assert refusing_program(told) == "ray start"
