"""Check the rows of `corpus/rules.yaml`: that they name only facts, settings and values that there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from corpus.condition_nodes import Call, Constant, Name
from corpus.conditions import Vocabulary, parse
from corpus.library import Library
from corpus.rules import RuleSentence, ValueRule, rule_pages
from corpus.schema import Text
from service.remediation.rules.operators import NAMES, OPERATORS

# Operators whose arguments are a kind of fact and its fields, and those whose arguments name settings.
_OF_FACTS = frozenset(("fact", "most", "together", "words"))
_OF_SETTINGS = frozenset(("setting", "text"))


@dataclass(frozen=True)
class _Known:
    """What expressions may name: lists and sentences of all files, facts of logs, and settings."""

    lists: Mapping[str, tuple[str | int, ...]]
    sentences: frozenset[str]
    facts: Collection[str]
    is_setting: Callable[[str], bool]


def rule_findings(library: Library, facts: Collection[str]) -> Iterator[str]:
    """Find expressions that name what there is not; `facts` are the `kind.field` that logs can state.

    Such a name would be missing for ever, and the rule silent.
    """
    pages = list(rule_pages())
    uncatalogued = frozenset(name for _, page in pages for name in page.uncatalogued)
    known = _Known(
        {name: items for _, page in pages for name, items in page.lists.items()},
        frozenset(name for _, page in pages for name in page.sentences),
        facts,
        lambda name: name in uncatalogued or library.is_setting(name),
    )
    for path, page in pages:
        for number, rule in enumerate(page.rules):
            where = f"{path}: rules.{number} ({rule.id})"
            yield from (
                f"{where}: causes: no cause {name}" for name in sorted(rule.causes - library.causes.keys())
            )
            yield from (f"{where}: {wrong}" for wrong in _rule(rule, known))
        for name, sentence in page.sentences.items():
            yield from (f"{path}: sentences.{name}: {wrong}" for wrong in _sentence(sentence, known))


def _rule(rule: ValueRule, known: _Known) -> Iterator[str]:
    shared = {*NAMES, *known.lists}
    yield from _bindings("let", rule.let, shared, known)
    yield from _expressions("present", (rule.present,) if rule.present else (), shared, known)
    for number, way in enumerate(rule.ways):
        where, names = f"ways.{number}", set(shared)
        yield from _bindings(f"{where}.let", way.let, names, known)
        if way.value is not None:
            yield from _bindings(where, {"value": way.value}, names, known)
        for field, texts in (("when", way.when), ("requires", way.requires), ("proves", (way.proves,))):
            yield from _expressions(f"{where}.{field}", texts, names, known)
        for field in ("at_most", "at_least", "multiple_of"):
            yield from _expressions(f"{where}.{field}", filter(None, (getattr(way, field),)), names, known)
        yield from _sentence_names(f"{where}.because", way.because, names | known.sentences)
        for place, row in enumerate(way.also):
            own = set(names)
            yield from _bindings(f"{where}.also.{place}.let", row.let, own, known)
            yield from _bindings(f"{where}.also.{place}", {"key": row.key, "value": row.value}, own, known)
            yield from _sentence_names(f"{where}.also.{place}.because", row.because, own)


def _sentence(sentence: RuleSentence, known: _Known) -> Iterator[str]:
    names = {*NAMES, *known.lists}
    yield from _bindings("let", sentence.let, names, known)
    yield from _expressions("when", sentence.when, names, known)
    yield from _sentence_names("en, zh", sentence, names)


def _bindings(where: str, let: Mapping[str, str], names: set[str], known: _Known) -> Iterator[str]:
    """Check expressions in the order in which they are computed, and add the names that they bind."""
    for name, text in let.items():
        yield from _expressions(f"{where}.{name}", (text,), names, known)
        names.update(name.split(", "))


def _expressions(where: str, texts: Iterable[str], names: set[str], known: _Known) -> Iterator[str]:
    vocabulary = Vocabulary(functions=OPERATORS, is_known=names.__contains__)
    for text in texts:
        try:
            vocabulary.check(text)
        except ValueError as error:
            yield f"{where}: {error}"
        for node in parse(text).walk():
            if isinstance(node, Call):
                yield from (f"{where}: {text!r}: {wrong}" for wrong in _unstated(node, known))


def _unstated(call: Call, known: _Known) -> Iterator[str]:
    """Find facts and settings that no log and no catalogue has."""
    given = [_constants(argument, known) for argument in call.arguments]
    if call.function in _OF_SETTINGS:
        for name in (name for names in given for name in names if not known.is_setting(name)):
            yield f"no framework has a setting {name}"
    if call.function in _OF_FACTS and given:
        for fact in (f"{kind}.{name}" for kind in given[0] for names in given[1:] for name in names):
            if fact not in known.facts:
                yield f"no pattern states {fact}"


def _constants(argument: object, known: _Known) -> Sequence[str]:
    """Give the names that an argument writes out, itself or by a list."""
    if isinstance(argument, Constant):
        return (str(argument.value),)
    return tuple(map(str, known.lists.get(argument.name, ()))) if isinstance(argument, Name) else ()


def _sentence_names(where: str, text: Text, names: Collection[str]) -> Iterator[str]:
    told = {name for each in (text.en, text.zh) for _, name, _, _ in Formatter().parse(each) if name}
    yield from (f"{where}: nothing is called {name}" for name in sorted(told - set(names)))
