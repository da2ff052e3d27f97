"""Options that a program's own parser refuses: the option, its value, and what is taken instead."""

from __future__ import annotations

from service.remediation.changes import propose_changes
from service.remediation.named_options import NamedOption, named_options, read_options
from tests.service.factories import failed, library, report, setting

CHOOSE = "train.py: error: argument --mode: invalid choice: 'p-tune' (choose from 'none', 'p_tune', 'full')"


def test_that_what_a_parser_refuses_is_read() -> None:
    """The formats of argparse and of click; a list too long to choose from is left out."""
    many = ", ".join(f"'v{number}'" for number in range(40))
    rows: dict[str, list[NamedOption]] = {
        CHOOSE: [NamedOption("--mode", "p-tune", ("none", "p_tune", "full"))],
        "t.py: error: argument --tp/--tensor-parallel: invalid choice: 3 (choose from 1, 2, 4)": [
            NamedOption("--tp", "3", ("1", "2", "4"))
        ],
        "t.py: error: argument -b/--batch-size: invalid int value: 'many'": [
            NamedOption("--batch-size", "many", sort="int")
        ],
        "t.py: error: argument --lr: expected one argument": [NamedOption("--lr", "", required=True)],
        "t.py: error: argument --fp16: a truth value is expected": [NamedOption("--fp16")],
        "t.py: error: the following arguments are required: --model, --data-path": [
            NamedOption("--model", required=True),
            NamedOption("--data-path", required=True),
        ],
        "Error: Invalid value for '--dtype': 'fp17' is not one of 'fp16', 'bf16'.": [
            NamedOption("--dtype", "fp17", ("fp16", "bf16"))
        ],
        "Error: Invalid value for '-n' / '--nodes': 'x' is not a valid integer.": [NamedOption("--nodes")],
        "Error: Missing option '--model'.": [NamedOption("--model")],
        f"t.py: error: argument --kind: invalid choice: 'w' (choose from {many})": [
            NamedOption("--kind", "w")
        ],
        "Error merging override trainer.cards=eight": [NamedOption("trainer.cards", "eight")],
        "Ambiguous value for argument 'data.files=a.txt,b.txt'": [
            NamedOption("data.files", "a.txt,b.txt", value="[a.txt,b.txt]")
        ],
        "Error parsing override 'data.prompt=a {b}'": [NamedOption("data.prompt", "a {b}", value='"a {b}"')],
        "MissingMandatoryValue: Missing mandatory value: rollout.name": [
            NamedOption("rollout.name", required=True)
        ],
        "Interpolation key 'model.fused' not found": [NamedOption("model.fused", required=True)],
        "`ModelCheckpoint(monitor='val_acc')` could not find the monitored key in the returned metrics: "
        "['train_loss', 'step'].": [
            NamedOption("ModelCheckpoint.monitor", "val_acc", ("train_loss", "step"))
        ],
        "Early stopping conditioned on metric `acc` which is not available. Pass in or modify your "
        "`EarlyStopping` callback to use any of the following: `loss`, `val_acc`": [
            NamedOption("EarlyStopping.monitor", "acc", ("loss", "val_acc"))
        ],
        "the argument of --mode is ignored": [],
        "t.py: error: unrecognized arguments: --mode": [],
    }
    assert {text: list(read_options(text)) for text in rows} == rows


def test_that_the_key_of_a_refused_value_is_read_below_the_reason() -> None:
    """OmegaConf tells the key in a row of its own, and what it could not read the value as."""
    lines = [
        "ValidationError: Value 'eight' of type 'str' could not be converted to Integer",
        "    full_key: a.cards",
    ]
    told = report(failed(text=lines[0], body=lines[0]), surroundings=tuple(enumerate(lines, 1)))
    assert named_options(told) == [NamedOption("a.cards", "eight", sort="int")]


def test_that_all_levels_of_a_key_that_nothing_sets_are_read_below_the_reason() -> None:
    said = "omegaconf.errors.ConfigAttributeError: Missing key width"
    log = report(failed(text=said, body=said), surroundings=((1, said), (2, "    full_key: net.head.width")))
    assert named_options(log) == [NamedOption("net.head.width", required=True)]


def test_that_a_slip_of_one_choice_is_told_from_a_guess() -> None:
    rows = {("p-tune", ("none", "p_tune")): "p_tune", ("3", ("1", "2")): None, ("x", ()): None}
    assert {row: NamedOption("--k", *row).nearest for row in rows} == rows
    assert NamedOption("--k", "fp1", ("fp16", "fp18")).nearest is None


def test_that_the_option_is_proposed_though_no_catalogue_has_it() -> None:
    """With the choice that was meant, else with all of them; the message's value counts before the job's."""
    told = report(failed(text=CHOOSE, body=CHOOSE, kind="error"), settings=[setting("--mode", "x")])
    (made,), _ = propose_changes((), told, library(), told.settings, "en", refusals=named_options(told))
    assert (made.key, made.from_, made.to, made.kind, made.status) == (
        "--mode",
        "p-tune",
        "p_tune",
        "flag",
        "verified",
    )
    words = {
        NamedOption("--k", "9", ("1", "2")): "one of: 1, 2",
        NamedOption("--k", required=True): "a value; the program needs one",
        NamedOption("--k"): "a value that the message allows",
    }
    found = {
        option: propose_changes((), told, library(), (), "en", refusals=[option])[0][0].to for option in words
    }
    assert found == words


def test_that_a_value_is_led_back_to_the_one_setting_that_has_it() -> None:
    """A message that lists what is taken and quotes another value means the setting that has this value."""
    body = (
        "ValueError: 'cosin' is not a valid Schedule, please select one of ['linear', 'cosine', 'constant']"
    )
    told = report(failed(text=body, body=body, kind="error"))
    mine = [setting("--lr_scheduler_type", "cosin"), setting("--seed", "7")]
    (option,) = named_options(told, mine)
    assert (option.key, option.present, option.nearest) == ("--lr_scheduler_type", "cosin", "cosine")
    assert named_options(told, [*mine, setting("--name", "cosin")]) == []
    assert named_options(told, [setting("--lr_scheduler_type", "cosine_with_restarts")]) == []


def test_that_an_argument_is_read_with_the_list_of_what_it_may_be() -> None:
    """By its quotes or underscores, or as a setting of the job; a plain word of a sentence is no name."""
    rows = {
        "`reduction` must be one of ['mean', 'sum'], got 'meen'": ("reduction", "meen", "mean"),
        "loss_kind should be in ('ce', 'focal')": ("loss_kind", None, None),
        "mode has to be one of 'fast', 'exact' but got quick": ("--mode", "quick", None),
        "The value must be one of 'fast', 'exact'": None,
    }
    for message, expected in rows.items():
        body = f"ValueError: {message}"
        found = named_options(
            report(failed(text=body, body=body, kind="error")), [setting("--mode", "quick")]
        )
        assert [(each.key, each.present, each.nearest) for each in found[:1]] == (
            [expected] if expected else []
        )


def test_that_a_shorter_form_of_a_value_is_a_slip_too() -> None:
    precisions = ("fp32", "fp16", "bf16")
    assert NamedOption("--precision", "bfloat16", precisions).nearest == "bf16"
    assert NamedOption("--precision", "float", precisions).nearest is None


def test_that_the_choices_of_a_group_stand_a_row_each() -> None:
    """Hydra lists them below the one that it lacks; what it says of its search path is none."""
    rows = ("In 'main': Could not find 'model/lama'", "", "Available options in 'model':", "\tgpt", "\tllama")
    below = ("Config search path:", "\tprovider=hydra, path=pkg://hydra.conf")
    told = report(failed(line=1, text=rows[0]), surroundings=tuple(enumerate((*rows, *below), 1)))
    (option,) = named_options(told)
    assert option == NamedOption("model", "lama", ("gpt", "llama"))
    assert option.nearest == "llama"


def test_that_the_nearest_choice_is_one_that_is_plainly_meant() -> None:
    """A slip by letters, else the one choice that goes on where the value stops; none where two do."""
    rows: dict[tuple[str, tuple[str, ...]], str | None] = {
        ("adamww", ("adam", "adamw", "sgd")): "adamw",
        ("cos", ("cosine", "constant", "linear")): "cosine",
        ("bfloat16", ("bf16", "fp16")): "bf16",
        ("flash", ("flash_attention_2", "sdpa", "eager")): "flash_attention_2",
        ("co", ("cosine", "constant")): None,
        ("other", ("adamw", "sgd")): None,
    }
    assert {row: NamedOption("--x", row[0], row[1]).nearest for row in rows} == rows


def test_that_a_list_without_quotes_is_read_behind_the_words_that_announce_it() -> None:
    rows = {
        "ValueError: Unknown backend: flash. Supported: flash_attention_2, sdpa, eager": (
            "flash_attention_2",
            "sdpa",
            "eager",
        ),
        "ValueError: flash is none; choose from [sdpa, eager]": ("sdpa", "eager"),
        "ValueError: got flash, expected one of: sdpa | eager": ("sdpa", "eager"),
        "ValueError: flash failed on sdpa, eager and others": None,
    }
    for text, wanted in rows.items():
        told = report(failed(kind="error", body=text, text=text), settings=[setting("attn", "flash")])
        found = [option.choices for option in named_options(told, told.settings)]
        assert found == ([wanted] if wanted else []), text
