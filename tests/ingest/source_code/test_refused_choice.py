"""What a program refuses since it is none of the choices that it knows is told by the code that raised."""

from __future__ import annotations

from textwrap import dedent

from ingest.source_code.guarded_statement import read_statement
from ingest.source_code.refused_choice import refused_choices
from tests.tables import each_row


@each_row(
    ("code", "refused"),
    [
        (
            """
            def build(config):
                if config.algorithm.adv_estimator == 'gae':
                    critic = True
                elif config.algorithm.adv_estimator == 'grpo':
                    critic = False
                else:
                    raise NotImplementedError  # here
            """,
            [("config.algorithm.adv_estimator", ("gae", "grpo"))],
        ),
        (
            """
            def load(args):
                known = ["zinc", "ec50"]
                if args.dataset not in known:
                    raise ValueError(f"unknown data set {args.dataset}")  # here
            """,
            [("args.dataset", ("zinc", "ec50"))],
        ),
        (
            """
            def pick(args):
                if not args.kind in (Kind.A, Kind.B):
                    raise ValueError(args.kind)  # here
            """,
            [("args.kind", ())],
        ),
        # What is compared with a number or another value is no choice, and a text that fits is not refused.
        ("def f(n):\n    if n == 3:\n        return\n    raise ValueError(n)  # here\n", []),
        ("def f(a, b):\n    if a != b:\n        raise ValueError(a)  # here\n", []),
        ("def f(kind):\n    if kind == 'a':\n        raise ValueError(kind)  # here\n", []),
        # A call that fails there is no refusal.
        ("def f(kind):\n    if kind != 'a':\n        run(kind)  # here\n", []),
    ],
)
def test_names_of_what_is_refused(code: str, refused: list[tuple[str, tuple[str, ...]]]) -> None:
    text = dedent(code)
    line = next(number for number, row in enumerate(text.split("\n"), 1) if "# here" in row)
    statement = read_statement(text, line)
    assert statement is not None
    assert [(found.name, found.choices) for found in refused_choices(statement)] == refused
