"""A row of a module read: its statement, what led there, what that reads, and what a message tells of it."""

from __future__ import annotations

import ast
import textwrap
from time import perf_counter

from ingest.source_code.guarded_statement import GuardedStatement, find_raise, read_statement
from ingest.source_code.message_template import is_said, pieces_of
from tests.tables import each_row

HERE = "  # here"


def read(code: str) -> GuardedStatement:
    """Read the statement of the row that is marked."""
    text = textwrap.dedent(code)
    line = next(place for place, row in enumerate(text.split("\n"), 1) if row.endswith(HERE))
    found = read_statement(text, line)
    assert found is not None
    return found


IF = """
    class Engine:
        def start(self, config, shards=2):
            if config.max_len > self.limit:
                raise ValueError("too long")  # here
"""
ELSE = """
    def start(mode, args):
        if mode == "a":
            return 1
        elif args.mode == "b":
            return 2
        else:
            raise ValueError("no such mode")  # here
"""
ASSERT = """
    def check(cfg):
        size = cfg.data.batch_size
        assert size % cfg["ranks"] == 0, (
            "they do not divide"  # here
        )
"""
LEFT = """
    def check(args):
        if args.resume or args.fresh:
            return
        raise RuntimeError("neither of both")  # here
"""
MATCH = """
    def load(kind):
        match kind:
            case "a" if kind.small:
                raise KeyError(kind)  # here
"""
EXCEPT = """
    import os

    def load():
        try:
            pass
        except (OSError, KeyError) as error:
            if not os.environ.get("CACHE_DIR"):
                raise RuntimeError("no cache") from error  # here
"""
TEXT = '''
def usage():
    """A text
that begins at the left:
def other():
"""
    if getattr(opts, "dry_run", False):
        raise SystemExit("dry")  # here
'''
TOP = """
    import sys

    if len(sys.argv) < 2:
        raise SystemExit("usage")  # here
"""


@each_row(
    ("code", "function", "conditions", "names"),
    [
        (IF, "start", ("config.max_len > self.limit",), ("config.max_len", "self.limit")),
        (ELSE, "start", ("not (args.mode == 'b')", "not (mode == 'a')"), ("args.mode",)),
        (ASSERT, "check", ("not (size % cfg['ranks'] == 0)",), ("cfg.data.batch_size", "cfg.ranks")),
        (LEFT, "check", ("not (args.resume or args.fresh)",), ("args.resume", "args.fresh")),
        (MATCH, "load", ("kind.small", "case 'a'"), ("kind.small",)),
        (EXCEPT, "load", ("not os.environ.get('CACHE_DIR')", "except (OSError, KeyError)"), ("CACHE_DIR",)),
        (TEXT, "usage", ("getattr(opts, 'dry_run', False)",), ("opts.dry_run",)),
        (TOP, "<module>", ("len(sys.argv) < 2",), ("sys.argv",)),
    ],
)
def test_what_led_to_a_statement(
    code: str, function: str, conditions: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """Each condition of the function that held is given, the nearest first, with the names behind it."""
    found = read(code)
    assert (found.function, tuple(each.text for each in found.conditions)) == (function, conditions)
    if found.names[: len(names)] != names:
        raise AssertionError(found.names)
    assert found.raises


def test_the_defaults_of_the_function_are_given() -> None:
    """A parameter with a value of its own shows it."""
    assert read(IF).defaults == {"shards": "2"}


@each_row(
    ("message", "line", "told"),
    [
        (
            'f"{n} tokens exceed {self.limit}"',
            "ValueError: 12 tokens exceed 8",
            {"n": "12", "self.limit": "8"},
        ),
        ('"%d tokens exceed %s" % (n, limit)', "ValueError: 12 tokens exceed 8", {"n": "12", "limit": "8"}),
        ('"{} tokens exceed {limit}".format(n, limit=m)', "E: 12 tokens exceed 8", {"n": "12", "m": "8"}),
        ('"over {limit} tokens are {}".format(n, limit=m)', "over 8 tokens are 12", {"n": "12", "m": "8"}),
        ('"{a.size} tokens exceed {}".format(n, a=b)', "12 tokens exceed 8", {}),
        ('"the length " + str(n) + " is beyond"', "E: the length 12 is beyond", {"str(n)": "12"}),
        ('f"{n} tokens exceed {m} and more"', "E: 12 tokens exceed 8 an", {"n": "12"}),
        ('f"{n} tokens exceed {m}"', "E: another message with 12 and 8", {}),
        ('f"{n}{m} tokens exceed all"', "E: 128 tokens exceed all", {}),
        ('f"{n}: {m}"', "E: 1: 2", {}),
    ],
)
def test_a_line_tells_the_values_of_its_statement(message: str, line: str, told: dict[str, str]) -> None:
    """The fixed words of a message say which value is whose; where they are other ones, none is told."""
    assert read(f"def f(n, m):\n    raise ValueError({message}){HERE}").told(line) == told


@each_row(
    "code",
    [
        "def f(:\n    raise ValueError" + HERE,
        "x = " + "(" * 5000 + ")" * 5000 + HERE,
        "raise ValueError(" + "-" * 20_000 + "1)" + HERE,
        "def f():\n    raise E(" + "+".join(["a" * 50] * 3000) + ")" + HERE,
        "\0" + HERE,
        "".join(f"def f{place}():\n  x = 1\n" for place in range(60_000)) + "raise E" + HERE,
    ],
)
def test_code_made_to_break_its_reader_is_read_or_left(code: str) -> None:
    """Whatever stands in a file, it ends without an error and soon."""
    line = code.count("\n") + 1
    started = perf_counter()
    found = read_statement(code, line)
    assert perf_counter() - started < 20
    assert found is None or len(found.statement) < 300


def test_names_that_stand_for_one_another_are_followed_within_bounds() -> None:
    """Names that each stand for many others give no more than is told."""
    rows = "\n".join(f"    a{place} = {' + '.join(f'a{each}' for each in range(60))}" for place in range(60))
    found = read(f"def f():\n{rows}\n    if a1 > a2:\n        raise ValueError(a3){HERE}")
    assert 0 < len(found.names) <= 24


TWO_CHECKS = """
    def start(size):
        if size > 8:
            raise ValueError(f"size={size} is beyond the cards")
        if size > 1 and "RANK" not in os.environ:
            raise ValueError(f"size={size} wants a launcher")

    def other(size):
        raise ValueError(f"size={size} wants a launcher")
"""


@each_row(
    ("message", "function", "found"),
    [
        ("size=2 wants a launcher", "start", "size > 1 and 'RANK' not in os.environ"),
        ("size=9 is beyond the cards", "start", "size > 8"),
        ("size=2 wants a launcher", "<module>", None),
        ("length is wrong", "start", None),
    ],
)
def test_the_raise_of_a_message_is_found_in_its_function(
    message: str, function: str, found: str | None
) -> None:
    """By the fixed words of what it says, where one statement of the function has them."""
    read_raise = find_raise(textwrap.dedent(TWO_CHECKS), message, function)
    assert (read_raise.conditions[0].text if read_raise else None) == found


@each_row(
    ("code", "line", "said"),
    [
        ('f"size={size} wants a launcher"', "size=2 wants a launcher (see the manual)", True),
        ('f"size={size} wants a launcher"', "LOCAL_RANK=2 but only 1 card is there", False),
        ('f"{name}: {value}"', "anything: else", None),
        ('"first row of it\\\\nsecond row"', "first row of it", True),
        ('"a whole sentence of words"', "a whole sent", True),
        ("message", "whatever it was", None),
    ],
)
def test_a_line_is_held_against_what_a_statement_says(code: str, line: str, said: bool | None) -> None:
    """Other fixed words are another statement's; too few tell nothing."""
    assert is_said(pieces_of(ast.parse(code.replace("\\\\", "\\"), mode="eval").body, {}), line) is said
