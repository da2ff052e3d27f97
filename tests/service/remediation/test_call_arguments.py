"""Whose setting an argument is that a package refuses: the program's own option, or a trainer's argument."""

from __future__ import annotations

from ingest.logs.stacks.stack import Frame
from service.pipeline.triage import Triage
from service.remediation.call_arguments import passed_options, told_arguments
from tests.service.factories import failed, report, setting
from tests.tables import each_row
from tests.warm import explained

SITE = "/env/lib/python3.11/site-packages"
LOADER = Frame(f"{SITE}/torch/utils/data/dataloader.py", 261, "__init__", "raise ValueError(")


@each_row(
    ("code", "expected"),
    [
        ("loader = DataLoader(rows, num_workers=args.workers)", {"num_workers": ("--workers", None)}),
        (
            "loader = DataLoader(rows, num_workers=args.loader_threads)",
            {"num_workers": ("--loader_threads", "-2")},
        ),
        ("loader = DataLoader(rows, num_workers=cfg.data.workers)", {"num_workers": ("data.workers", "-1")}),
        (
            "loader = DataLoader(rows, num_workers=cfg['data']['workers'],",
            {"num_workers": ("data.workers", "-1")},
        ),
        ("loader = DataLoader(rows, num_workers=-1)", {}),
        ("loader = DataLoader(rows, num_workers=count())", {}),
        ("loader = Loader(Rows(size=args.a), size=args.b)", {}),
    ],
)
def test_that_the_jobs_own_call_says_which_option_fills_an_argument(
    code: str, expected: dict[str, tuple[str, str | None]]
) -> None:
    """What is computed, or written in the code itself, is no option; nor is a name that two calls have."""
    frames = (Frame("/job/train.py", 12, "main", code), LOADER)
    settings = [setting("--loader_threads", "-2"), setting("data.workers", "-1")]
    told = report(failed(frames=frames), settings=settings)
    found = passed_options(told, told.settings if "cfg" in code or "threads" in code else ())
    assert {name: (option.key, option.value) for name, option in found.items()} == expected


@each_row(
    ("message", "expected"),
    [
        ("cosine requires `num_turns`, please provide that argument.", ["num_turns"]),
        ("`Fitter` requires either a `moon` or `moon_init` argument", ["moon", "moon_init"]),
        ("`moon_size` and `moon_mass` cannot both be set", ["moon_size", "moon_mass"]),
        ("moon_size must be an integer", ["moon_size"]),
        ("the 'phase' argument is not supported", ["phase"]),
        # A value is no name, nor is a function of the stack, a word of a sentence, or one of many names.
        ("'waxing' is not supported here", []),
        ("`forward` must be called first", []),
        ("the moon must be whole", []),
        ("pass `a_1`, or set `b_1`, or set `c_1`", []),
    ],
)
def test_that_a_message_is_a_witness_for_the_argument_that_it_refuses(
    message: str, expected: list[str]
) -> None:
    frames = (Frame("/job/train.py", 3, "main", "fit()"), Frame(f"{SITE}/moon/fit.py", 9, "forward", ""))
    told = report(failed(body=f"ValueError: {message}", frames=frames))
    assert [option.key for option in told_arguments(told, ())] == expected


def stack(*calls: tuple[str, str, str]) -> str:
    rows = "".join(f'  File "{file}", line 10, in {function}\n    {code}\n' for file, function, code in calls)
    return f"Traceback (most recent call last):\n{rows}"


OWN = ("/job/train.py", "main", "trainer.train()")
TRAINER = (f"{SITE}/transformers/trainer.py", "get_train_dataloader", "return DataLoader(dataset, **params)")
LOADING = (f"{SITE}/torch/utils/data/dataloader.py", "__init__", "raise ValueError(")
ADAM = (f"{SITE}/torch/optim/adamw.py", "__init__", 'raise ValueError(f"Invalid learning rate: {lr}")')
NEGATIVE = (
    "ValueError: num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.\n"
)
CALLED = ("/job/train.py", "main", "optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)")
CREATING = (f"{SITE}/transformers/trainer.py", "create_optimizer", "self.optimizer = optimizer_cls(**kwargs)")


@each_row(
    ("log", "first"),
    [
        (stack(OWN, TRAINER, LOADING) + NEGATIVE, ("transformers", "dataloader_num_workers")),
        (
            stack(OWN, CREATING, ADAM) + "ValueError: Invalid learning rate: -1\n",
            ("transformers", "learning_rate"),
        ),
        (stack(CALLED, ADAM) + "ValueError: Invalid learning rate: -1\n", ("python", "--lr")),
        (
            stack(("/job/train.py", "main", "loader = DataLoader(rows, shuffle=True)"), LOADING) + NEGATIVE,
            ("python", "num_workers"),
        ),
    ],
)
def test_that_a_change_is_spelled_as_this_job_can_set_it(
    triage: Triage, log: str, first: tuple[str, str]
) -> None:
    """What a trainer makes is set by its argument, what the job's code makes by its option or in the code."""
    told = explained(triage, log)
    assert told.cause == "config-key-invalid"
    assert (told.changes[0].framework, told.changes[0].key) == first
