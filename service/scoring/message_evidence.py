"""What the words of a failing message alone say of its cause, where nothing that is known states one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from corpus.message_atlas import Site
from corpus.message_words import words
from ingest.configfiles.formats import CODE
from ingest.logs.events import Event
from ingest.logs.stacks.own_calls import is_own
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.scoring import message_classifier

# Odds below which words are no evidence.
LEAST_ODDS = 0.55
# Odds from which words outweigh what the type of an exception and its place alone suggest.
SURE_ODDS = 0.75
# Odds from which words are surer than what an exception means by default.
LIKELY_ODDS = 0.45
# How far such a default would settle a cause where no words do.
DEFAULT_WEIGHT = 0.4
# Fewer words than these are said of anything.
LEAST_WORDS = 3
# And fewer than these outweigh nothing else.
TELLING_WORDS = 5
# How far sure words would settle a cause: as much as a line that suggests one.
WORDS_WEIGHT = 0.66
# What a check raises that somebody wrote in words of his own.
_CHECKS = frozenset({"AssertionError", "ValueError", "RuntimeError"})
# An option's name of two words or more: a plain word may mean anything.
_OPTION = re.compile(r"(?<![\w./\\])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/\\(]|\.\w)")


def message_votes(
    root: Event,
    launches: Sequence[str] = (),
    option_cause: str | None = None,
    told_by: Callable[[], Site | None] = lambda: None,
) -> Mapping[str, float]:
    """Give the causes that the root's own words tell, each with how far they settle it, from 0 to 1.

    A check that names in a sentence an option which the job's own files set (`launches`: text and name of
    each) is about that option, and so of `option_cause`. Else none where a pattern knows the line, where
    it follows another failure, and where its words can mean too much: what a line states is never
    overturned by what it sounds like. What only a type of Python's own and the package that raised it
    suggest gives way to words that are sure: a package's own type is a name for what happened, and what
    the job's own code says, whoever called it, is about the job. An exception whose words tell nothing
    either means what is usual of such a call, if its table knows that. Where no calls are shown, as where
    somebody pasted the last line alone, the place in a package's source that says it (`told_by`) stands
    for the innermost.
    """
    message = message_classifier.failing_message_of(root)
    if option_cause is not None and _is_of_option(root, message.text, launches):
        return {option_cause: WORDS_WEIGHT}
    by_type = root.handler == "unknown-exception" and root.strength == "suggests"
    by_type = by_type and "." not in root.exception and bool(message.file) and not is_own(root.frames[-1])
    if root.pattern_role != "origin" or (root.cause is not None and not by_type):
        return {}
    default = {} if root.default_cause is None else {root.default_cause: DEFAULT_WEIGHT}
    least_words = LEAST_WORDS if root.cause is None else TELLING_WORDS
    if len(words(message.text[: message_classifier.LONGEST])) < least_words:
        return default
    site = None if root.frames else told_by()
    if site is not None:
        message = replace(message, file=site.file, symbol=site.symbol)
    least = SURE_ODDS if root.cause is not None else LIKELY_ODDS if default else LEAST_ODDS
    odds = message_classifier.shipped().odds(message)
    told = {
        cause: WORDS_WEIGHT * share
        for cause, share in odds.items()
        if share >= least and cause not in (UNKNOWN_CAUSE, root.cause)
    }
    return told or default


def _is_of_option(root: Event, text: str, launches: Sequence[str]) -> bool:
    if (
        root.handler != "unknown-exception"
        or root.exception not in _CHECKS
        or len(words(text)) < TELLING_WORDS
    ):
        return False
    configs = [launch for launch in launches if not launch.endswith(CODE)]
    return any(
        re.search(rf"(?m)(?:^|[\s.+'\"-]){name}['\"]?(?:\s*[:=]|\s+[^\s=:])", config)
        for name in {name.replace("_", "[_-]") for name in _OPTION.findall(text)}
        for config in configs
    )
