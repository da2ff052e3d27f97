"""The right name of an option that only the job's own program knows."""

from __future__ import annotations

from dataclasses import replace

from corpus.log_patterns import Tells
from ingest.logs.facts import Fact
from service.remediation.own_names import own_names, signed_names
from service.remediation.renames import find_renames
from tests.service.factories import failed, library, report, setting

REFUSED: tuple[Tells, ...] = ("unknown-setting",)


def refusal(body: str, key: str, *rows: str, launches: tuple[str, ...] = ()):  # type: ignore[no-untyped-def]
    """Give the report of a job whose option is refused, with the rows of the log before that."""
    event = failed(line=len(rows) + 1, text=body, body=body, kind="error", tells=REFUSED, facts={"key": key})
    made = report(event, facts=[Fact("config_key", event.line, {"key": key})])
    return replace(made, surroundings=tuple(enumerate(rows, 1)), launches=launches)


def test_the_right_name_comes_from_the_programs_own_words() -> None:
    """From its usage, from what its code defines, from its files, from what the message itself suggests."""
    usage = ("usage: train.py [-h] [--learning-rate RATE]", "                [--batch-size N]")
    code = 'parser.add_argument("-l", "--learning-rate", type=float)\n@click.option("--batch-size")\ntrain.py'
    refused = "train.py: error: unrecognized arguments: --learning-rte 1e-3"
    meant = "Error: No such option: --learning-rte Did you mean --learning-rate?"
    mine = [setting("--learning-rte", "1e-3")]
    for told in (
        refusal(refused, "--learning-rte", *usage),
        refusal(refused, "--learning-rte", launches=(code,)),
        refusal(meant, "--learning-rte"),
    ):
        (rename,) = find_renames(told, library(), mine)
        assert (rename.old, rename.new, rename.value) == ("learning-rte", "--learning-rate", "1e-3")
    assert own_names(refusal(refused, "--x", *usage), ()) == ["--learning-rate", "--batch-size"]


def test_a_name_that_is_like_none_of_the_programs_own_stays_unnamed() -> None:
    usage = ("usage: train.py [-h] [--epochs N] [--seed N]",)
    refused = "train.py: error: unrecognized arguments: --warmup 3"
    assert find_renames(refusal(refused, "--warmup", *usage), library(), [setting("--warmup", "3")]) == []


def test_first_letters_stand_for_a_name() -> None:
    usage = ("usage: train.py [-h] [--learning-rate RATE] [--epochs N]",)
    told = refusal("train.py: error: unrecognized arguments: --lr 1", "--lr", *usage)
    assert [item.new for item in find_renames(told, library(), [setting("--lr", "1")])] == ["--learning-rate"]


def test_a_name_that_moved_below_a_level_is_found_there() -> None:
    """But for that of another phase, and where it is at one place alone."""
    refused = "train.py: error: unrecognized arguments: --dataset d"
    rows = {
        "[--data.dataset D] [--eval.dataset D]": ["--data.dataset"],
        "[--data.dataset D] [--prompts.dataset D]": [],
        "[--eval.dataset D]": [],
    }
    for usage, wanted in rows.items():
        told = refusal(refused, "--dataset", f"usage: train.py [-h] {usage}")
        assert [item.new for item in find_renames(told, library(), [setting("--dataset", "d")])] == wanted


def test_the_sign_of_a_key_is_as_the_message_writes_it() -> None:
    """Hydra tells a key that is to be added from one that is there."""
    rows = {
        "To append to your config use +trainer.mode=auto": ["+trainer.mode"],
        "Either remove + prefix: 'trainer.nnodes=2'": ["trainer.nnodes"],
        "To append to the list use a comma": [],
    }
    told = {row: signed_names(refusal("Could not override", "x", row)) for row in rows}
    assert told == rows


def test_a_file_of_a_hydra_group_names_its_keys_below_the_group() -> None:
    """Its folder is a group only where a defaults list says so."""
    lr = replace(setting("lr", "0.001"), spelled="yaml", file="conf/optim/adamw.yaml")
    chosen = replace(setting("defaults.optim", "adamw"), spelled="yaml", file="conf/config.yaml")
    wrong = setting("optim.learning_rate", "3e-3")
    told = refusal("Could not override 'optim.learning_rate'.", "optim.learning_rate")
    (rename,) = find_renames(told, library(), [wrong, lr, chosen])
    assert (rename.old, rename.new, rename.value) == ("optim.learning_rate", "optim.lr", "3e-3")
    assert find_renames(told, library(), [wrong, lr]) == []
