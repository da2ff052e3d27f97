"""The language of conditions: what it parses, what it comes to, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from corpus.condition_nodes import ConditionResult, EvaluationContext, Node, SeenReading, compare
from corpus.conditions import (
    LOG,
    Vocabulary,
    expression_test,
    framework_range,
    names_of,
    parse,
    predicates_of,
    subjects_of,
)
from tests.tables import each_row


@dataclass(frozen=True)
class Things(EvaluationContext):
    """Names with values, tests that hold, and parts with several items."""

    names: Mapping[str, object] = field(default_factory=dict)
    tests: frozenset[str] = frozenset()
    many: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)

    def look_up(self, name: str) -> ConditionResult:
        value = self.names.get(name)
        return ConditionResult(
            value, (SeenReading(name, unavailable="nobody looked") if value is None else SeenReading(name),)
        )

    def test(self, subject: str, argument: str) -> ConditionResult:
        return ConditionResult(f"{subject}:{argument}" in self.tests)

    def call(self, function: str, arguments: tuple[Node, ...]) -> ConditionResult:
        assert function == "first"
        found = [argument.evaluate(self).value for argument in arguments]
        return ConditionResult(next((value for value in found if value is not None), None))

    def items(self, part: str) -> Sequence[EvaluationContext] | None:
        if part not in self.many:
            return None
        rows = ({f"{part}.{name}": value for name, value in item.items()} for item in self.many[part])
        others = {name: items for name, items in self.many.items() if name != part}
        return [Things({**self.names, **row}, self.tests, others) for row in rows]


THINGS = Things(
    {
        "now": 8,
        "share": 0.9,
        "word": "auto",
        "host.free": 5.0,
        "card.flags": ("hot", "slow"),
        "NAMES": ("a", "b"),
    },
    frozenset(("pattern:x.boom", "frame:a (b)", "framework:verl>=0.5,<1")),
    {
        "gpu": [{"used": 10, "total": 80}, {"used": 79, "total": 80}, {"used": None, "total": 80}],
        "disk": [{"free": 1}, {"free": 50}],
        "nic": [],
    },
)


@each_row(
    ("text", "expected"),
    [
        # Arithmetic and choice.
        ("now // 2", 4),
        ("-now + 1.5", -6.5),
        ("now - 1 - 1", 6),
        ("now % 3 * 2", 4),
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("1e-6 * 1e6", 1.0),
        ("1 if now > 4 else absent", 1),
        ("1 if now < 4 else absent", None),
        ("2 if now < 4 else unknown", None),
        ("absent + 1", None),
        ("now / 0", None),
        # Comparison.
        ("1 <= now < 10", True),
        ("1 <= now < 8", False),
        ("word == 'AUTO'", True),
        ("word ~ '^a.t'", True),
        ('word ~ "it\'s"', False),
        ("word != 'auto'", False),
        ("share > 0.5", True),
        ("absent == 1", None),
        ("1 < absent", None),
        # Membership.
        ("word in ['off', 'auto']", True),
        ("now in [1, 2]", False),
        ("'hot' in card.flags", True),
        ("'cold' in card.flags", False),
        ("'a' in NAMES", True),
        # And, or, not, with three answers.
        ("now == 8 and share > 1", False),
        ("now == 8 or share > 1", True),
        ("not (share > 1)", True),
        ("not share > 1 and now == 8", True),
        ("absent > 1 and share > 1", False),
        ("absent > 1 and share < 1", None),
        ("share < 1 or absent > 1", True),
        ("share > 1 or absent > 1", None),
        ("not absent > 1", None),
        ("share > 1 or now > 1 and word == 'auto'", True),
        # Tests by name.
        ("pattern:x.boom", True),
        ("pattern:x.bang", False),
        ("frame:'a (b)'", True),
        ('frame:"a (b)"', True),
        ("framework:verl>=0.5,<1 and not pattern:x.bang", True),
        ("(pattern:x.boom)", True),
        # Existence and functions.
        ("known(now)", True),
        ("known(absent * 3)", False),
        ("first(absent, now) + 1", 9),
        ("true", True),
        ("false", False),
        # Parts of which there are several.
        ("gpu.used > 70", True),
        ("gpu.used > 100", None),
        ("gpu.used > 0.9 * gpu.total", True),
        ("disk.free < gpu.used", True),
        ("disk.free > 100", False),
        ("all(disk.free > 0)", True),
        ("all(disk.free > 10)", False),
        ("all(gpu.used > 0)", None),
        ("none(disk.free > 100)", True),
        ("one(disk.free > 10)", True),
        ("one(disk.free > 0)", False),
        ("any(disk.free > 10 and disk.free < 40)", False),
        ("disk.free > 10 and disk.free < 40", True),
        ("nic.errors > 0", None),
    ],
)
def test_what_a_condition_comes_to(text: str, expected: object) -> None:
    """What is not known is neither true nor false; a part of several is asked item by item."""
    assert parse(text).evaluate(THINGS).value == expected


def test_the_readings_that_decided_are_told() -> None:
    """A comparison shows what stands left; where the right is not known, what is written there and why."""
    assert [item.name for item in parse("host.free < now").evaluate(THINGS).seen] == ["host.free"]
    assert [item.name for item in parse("'hot' in card.flags").evaluate(THINGS).seen] == ["card.flags"]
    seen = parse("host.free < 2 * absent").evaluate(THINGS).seen
    assert [(item.name, item.unavailable) for item in seen] == [("2 * absent", "nobody looked")]


@each_row(
    ("text", "told"),
    [
        ("", "column 1: a value is missing"),
        ("now +", "column 6: a value is missing"),
        ("now 8", "column 5: '8' where its end is expected"),
        ("now => 8", "'=> 8'"),
        ("(now", "where ')' is expected"),
        ("[1, 2", "where ',' is expected"),
        ("1 if now", "where 'else' is expected"),
        ("now.bit_length()", "where its end is expected"),
        ("now ** 99", "a value is missing"),
        ("lambda: 1", "is no condition"),
        ("f'{now}'", "where its end is expected"),
        ("min(now, key=1)", "'=1)'"),
        ("now[0]", "where its end is expected"),
        ("x := 1", "':= 1'"),
        ("__import__('os').system('true')", '".system'),
        ("all(now, now)", "all takes one argument"),
        ("known()", "known takes one argument"),
        ("gpu_oom.free_gib <1x", "'1x'"),
        ("word == 'open", '"\'open"'),
        # What `"message:'\\bopen'"` is in YAML without a second backslash.
        ("message:'\bopen'", "holds a backspace"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse(text)


@each_row(
    ("text", "told"),
    [
        ("colour:red", "there is no test colour"),
        ("framework:Verl", "is no framework with a range of versions"),
        ("missing:theirs", "is not known"),
        ("framework:verl0,5", "is no framework"),
        ("framework:verl>=x", "Invalid specifier"),
        ("frame:'(unclosed'", "unterminated"),
        ("exception:[a-", "unterminated"),
        ("config:zero_stage == three", "there is no three"),
        ("first(gpu_oom.free_gib)", "there is no function first"),
        ("pattern: x", "is no condition"),
        ("exit.signal ~ '(unclosed'", "is no expression"),
    ],
)
def test_a_condition_over_a_log_names_only_what_a_log_has(text: str, told: str) -> None:
    """What is wrong is found where it is written, not when a log meets it."""
    with pytest.raises(ValueError, match=re.escape(told)):
        LOG.check(text)


def test_a_vocabulary_knows_names_and_functions() -> None:
    words = Vocabulary(functions=frozenset(("first",)), is_known={"now"}.__contains__)
    words.check("first(now, 1) > 2")
    for text in ("then > 1", "last(now)", "pattern:x"):
        with pytest.raises(ValueError, match=r"there is no"):
            words.check(text)


@each_row(
    ("argument", "expected"),
    [
        ("verl", (("verl",), "")),
        ("vllm|sglang>=0.7,<0.8.3", (("vllm", "sglang"), ">=0.7,<0.8.3")),
        ("flash-attn~=2.6", (("flash-attn",), "~=2.6")),
    ],
)
def test_a_framework_is_named_with_a_range_of_versions(
    argument: str, expected: tuple[tuple[str, ...], str]
) -> None:
    assert framework_range(argument) == expected


@each_row("text", ["KeyError", "a b", "f(it's)", 'say "it"', '"it\'s"'])
def test_a_test_by_expression_is_written_as_it_is_read(text: str) -> None:
    """Blanks, quotes and brackets stand in quotes."""
    (read,) = predicates_of(expression_test("frame", re.escape(text)))
    assert re.fullmatch(read.argument, text)


def test_what_a_condition_names() -> None:
    assert names_of("first(now, default) / 2") == {"first", "now", "default"}
    assert subjects_of("pattern:x and gpu_oom.free_gib < 1") == {"pattern", "fact"}
    assert [test.argument for test in predicates_of("not (frame:'a b' or config:zero_stage == 3)")] == [
        "a b",
        "zero_stage",
    ]


@each_row(
    ("left", "sign", "right", "expected"),
    [
        (0.5, "<", "1", True),
        (1, "<=", 1, True),
        (2, ">", 10, False),
        ("10", ">", 9, True),
        ("1e-6", "==", 0.000001, True),
        (3, "!=", 3.0, False),
        ("True", "==", True, True),
        (True, "==", "True", True),
        (True, "==", 1, False),
        ("'bf16'", "==", "bf16", True),
        (" fp16 ", "==", "FP16", True),
        ("fp16", "!=", "bf16", True),
        ("SIGKILL", "~", "KILL|TERM", True),
        ("SIGINT", "~", "KILL|TERM", False),
        ("unknown", "<", 1, False),
        ("unknown", ">=", 1, False),
        ("B", "in", ("a", "b"), True),
        (79, "in", (48, 79), True),
        (1, "in", 1, True),
    ],
)
def test_values_compare_as_numbers_where_both_are(
    left: object, sign: str, right: object, expected: bool
) -> None:
    """Words are equal without quotes, case and blanks around them; order needs numbers."""
    assert compare(left, sign, right) is expected
