"""How values follow from facts: the rows of `rules.yaml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from corpus.conditions import parse
from corpus.library import RULES, pages, read_yaml, validated_table
from corpus.schema import Record, Text, accepted_by

Direction = Literal["down", "up", "any"]


ValueExpression = Annotated[str, accepted_by(parse)]
# Names with their values, in the order in which they are computed; `a, b` takes a pair apart.
Bindings = Annotated[dict[str, ValueExpression], Field(default_factory=dict)]


class RuleSentence(Text):
    """A sentence that rules add where what it says is known and its conditions hold."""

    let: Bindings
    when: tuple[ValueExpression, ...] = ()


class DependentRow(Record):
    """Another setting of the same framework that must follow: its key, its value and why."""

    let: Bindings
    key: ValueExpression
    value: ValueExpression
    because: Text


class RuleWay(Record):
    """One way to a value.

    It is taken where all names of `let` and the `value` are known and every condition of `when` holds; the
    first way taken decides. Where then one of `requires` does not hold, the rule gives nothing. A way
    without a value says why no value can help. `proves` tells that by these numbers the value suffices,
    rather than only goes the right way; `at_most`, `at_least` and `multiple_of` then say what they ask of any
    value. A proof without them is one of another kind. Names stand in the texts in braces.
    """

    let: Bindings
    value: ValueExpression | None = None
    when: tuple[ValueExpression, ...] = ()
    requires: tuple[ValueExpression, ...] = ()
    proves: ValueExpression = "false"
    at_most: ValueExpression | None = None
    at_least: ValueExpression | None = None
    multiple_of: ValueExpression | None = None
    because: Text
    also: tuple[DependentRow, ...] = ()


class ValueRule(Record):
    """How a setting's value follows from facts, for the causes that it serves.

    `formula` says it in words, `source` is where the setting's meaning and bounds are documented. `let`
    names what all ways need. A value outside `low` to `high`, or on the wrong side of the present one, is
    none. `present` is the job's value as the log states it, which stands where its configuration shows none.
    """

    id: str
    causes: frozenset[str]
    formula: str
    source: Annotated[str, Field(pattern=r"^https://[^\s]+$")]
    direction: Direction = "any"
    low: float | None = None
    high: float | None = None
    let: Bindings
    present: ValueExpression | None = None
    ways: Annotated[tuple[RuleWay, ...], Field(min_length=1)]


class RulePage(Record):
    """One file of rules: lists of names, groups of causes, sentences, and the rules.

    `uncatalogued` holds names that a job's files give to settings and no framework's catalogue has.
    """

    lists: dict[str, tuple[str | int, ...]] = Field(default_factory=dict)
    uncatalogued: frozenset[str] = frozenset()
    causes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    sentences: dict[str, RuleSentence] = Field(default_factory=dict)
    rules: tuple[ValueRule, ...]


@dataclass(frozen=True)
class RuleBook:
    """All rules, with the lists and sentences that they share."""

    rules: tuple[ValueRule, ...]
    lists: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    sentences: Mapping[str, RuleSentence] = field(default_factory=dict)


def load_rules() -> RuleBook:
    """Read the rules of every folder of knowledge; raises InvalidCorpusError naming the field."""
    pages = [page for _, page in rule_pages()]
    return RuleBook(
        tuple(rule for page in pages for rule in page.rules),
        {name: items for page in pages for name, items in page.lists.items()},
        {name: sentence for page in pages for name, sentence in page.sentences.items()},
    )


def rule_pages() -> Iterator[tuple[Path, RulePage]]:
    """Read each file of rules, with its path; raises InvalidCorpusError naming the field."""
    groups: dict[str, Any] = {}
    for path in pages(RULES):
        page = read_yaml(path)
        groups |= page.get("causes", {})
        rules = [
            # A name in capitals is a group of causes.
            {**rule, "causes": [cause for name in rule["causes"] for cause in groups.get(name, (name,))]}
            for rule in page["rules"]
        ]
        yield path, validated_table(RulePage, {**page, "rules": rules}, path)


@cache
def known_rules() -> RuleBook:
    """Give the rules of this process, read once."""
    return load_rules()
