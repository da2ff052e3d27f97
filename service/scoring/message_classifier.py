"""What a failing message says by its words: odds over the causes, learned from the frameworks' sources.

A multinomial logistic regression over hashed words of the message, its exception and the innermost call of an
installed package. It was fitted by `python -m eval.classify` on the labelled sites of `corpus/labels/` and on
our own examples, and holds no text: a feature is the hash of a word or of two neighbours. Odds are calibrated
on packages that were left out of the fit.

Format of the file: arrays of numpy (`.npz`). `features` are the hashes (uint32, sorted), `weights` a row a
feature and a column a cause (int8), to be multiplied by `scales` (float32, a cause), `bias` (float32, a
cause), and `head`, JSON with `causes`, `temperature` and `labels`, the digest of the labels of its fit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from corpus.message_words import words
from ingest.logs.events import Event
from ingest.logs.stacks.stack import Frame

FILE = Path(__file__).parent / "message_classifier.npz"
# What is read of a message: hostile lines have megabytes, a sentence that tells has a few dozen words.
LONGEST, MOST_WORDS = 1000, 60
# How much the groups of features weigh against each other, chosen by cross-validation over packages.
TEXT_SHARE, PLACE_SHARE = 1.0, 0.5
_INSTALLED = re.compile(r"(?:site|dist)-packages/(?P<path>.+)")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TYPE = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit))\b:? ?")


@dataclass(frozen=True, slots=True)
class FailingMessage:
    """A message as it is classified.

    `file` is the path in the installed package, from its top, whose call failed, and `symbol` the function,
    with its class where that is known; both empty where no call of a package is known.
    """

    text: str
    exception: str = ""
    file: str = ""
    symbol: str = ""


def failing_message_of(event: Event) -> FailingMessage:
    """Give what is classified of an event."""
    file, function = _installed_call(event.frames)
    told = message_in(event.body)
    exception = event.exception.rsplit(".", 1)[-1] or told.exception
    return FailingMessage(told.text, exception, file, function)


def message_in(line: str) -> FailingMessage:
    """Give what a line without its prefixes says, its exception apart."""
    told = _TYPE.match(line[:LONGEST])
    return FailingMessage(line[told.end() :], told["name"]) if told else FailingMessage(line)


def _installed_call(frames: Sequence[Frame]) -> tuple[str, str]:
    """Give path and function of the innermost call of an installed package."""
    for frame in reversed(frames):
        found = _INSTALLED.search(frame.file.replace("\\", "/"))
        if found:
            return found["path"], frame.function
    return "", ""


def features_of(message: FailingMessage) -> dict[int, float]:
    """Give the hashes of what a message shows, each with its share.

    Each of the two groups, text and place, is a unit vector times its weight, so that long messages weigh no
    more than short ones.
    """
    told = words(message.text[:LONGEST])[:MOST_WORDS]
    text = [f"w {word}" for word in told] + [f"w {one} {two}" for one, two in pairwise(told)]
    if message.exception:
        text.append(f"e {message.exception}")
        text += (f"e {part}" for part in _parts(message.exception))
    place: list[str] = []
    if message.file:
        package, *levels = message.file.removesuffix(".py").split("/")
        place.append(f"p {package}")
        place += (f"f {part}" for level in levels[-2:] for part in _parts(level))
        place += (f"s {part}" for part in _parts(message.symbol))
    return {**_unit(text, TEXT_SHARE), **_unit(place, PLACE_SHARE)}


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _PART.findall(name)]


def _unit(names: Iterable[str], share: float) -> dict[int, float]:
    found = {crc32(name.encode()) for name in names}
    return dict.fromkeys(sorted(found), share / math.sqrt(len(found))) if found else {}


class MessageClassifier:
    """The fitted model; safe to be shared by threads."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as arrays:
            head = json.loads(str(arrays["head"]))
            self._features: NDArray[np.uint32] = arrays["features"]
            self._weights: NDArray[np.int8] = arrays["weights"]
            self._scales: NDArray[np.float32] = arrays["scales"]
            self._bias: NDArray[np.float32] = arrays["bias"]
        self.causes: tuple[str, ...] = tuple(head["causes"])
        self.temperature: float = head["temperature"]
        self.labels: str = head["labels"]

    def odds(self, message: FailingMessage) -> Mapping[str, float]:
        """Give the probability of each cause, the likeliest first; they add up to 1.

        Empty where the model knows nothing of what the message shows.
        """
        shown = features_of(message)
        hashes = np.fromiter(shown, dtype=np.uint32, count=len(shown))
        places = np.minimum(np.searchsorted(self._features, hashes), len(self._features) - 1)
        known = self._features[places] == hashes
        if not known.any():
            return {}
        shares = np.fromiter(shown.values(), dtype=np.float32, count=len(shown))[known]
        sums = (shares @ self._weights[places[known]]) * self._scales + self._bias
        sums = sums / self.temperature
        powers = np.exp(sums - sums.max())
        odds = powers / powers.sum()
        return {self.causes[place]: float(odds[place]) for place in np.argsort(-odds, kind="stable")}


@cache
def shipped() -> MessageClassifier:
    """Open the model that ships, once a process."""
    return MessageClassifier(FILE)
