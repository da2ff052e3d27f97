"""The fit of the message classifier: words that tell, what is left out, and the file that it is kept in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corpus.extract.messages.labels import NO_FAILURE, label_of
from corpus.extract.messages.packages import atlas_packages
from corpus.extract.messages.sampling import DrawnSite
from eval.classify import (
    LabelledMessage,
    figures_of,
    fitted,
    fold_of,
    labelled_sites,
    left_out,
    odds_of,
    own_examples,
    save,
    temperature_of,
)
from service.scoring.message_classifier import FailingMessage, MessageClassifier

WORDS = {
    "disk-full": ["no crate left on the shelf", "the shelf holds no crate more"],
    "port-in-use": ["the gate is taken by another cart", "another cart stands in the gate"],
}


def learned(groups: int = 4) -> list[LabelledMessage]:
    """Give labelled messages of made-up packages, which share their words."""
    return [
        LabelledMessage(FailingMessage(text, "OSError"), {cause: 1.0}, 1.0, f"package {group}", is_site=True)
        for group in range(groups)
        for cause, texts in WORDS.items()
        for text in texts
    ]


def site(words: str, line: int = 1, package: str = "vllm") -> DrawnSite:
    """Give a site of words."""
    runs = (tuple(words.split()),)
    return DrawnSite(
        package=package,
        version="1",
        file=f"{package}/a.py",
        symbol="f",
        line=line,
        kind="raise",
        exception="OSError",
        runs=runs,
    )


def test_a_message_of_the_same_words_gets_the_cause_that_they_tell() -> None:
    model = fitted(learned())
    asked = [
        LabelledMessage(FailingMessage("a crate and no shelf left"), {"disk-full": 1.0}, 1.0, "other"),
        LabelledMessage(FailingMessage("a cart in the gate"), {"port-in-use": 1.0}, 1.0, "other"),
    ]
    odds = odds_of(model, asked)
    assert figures_of(odds, model.causes, asked).top1 == 1.0
    assert np.allclose(odds.sum(axis=1), 1.0)
    again = fitted(learned())
    assert np.array_equal(model.weights, again.weights)


def test_each_package_is_answered_by_a_fit_that_has_not_seen_it() -> None:
    """A word that one package alone uses says nothing of it where that package is left out."""
    own = [
        LabelledMessage(FailingMessage("plumbago plumbago"), {"node-lost": 1.0}, 1.0, "lonely", is_site=True)
        for _ in range(3)
    ]
    folds = 2
    odds, causes, asked = left_out([*learned(), *own], [], folds)
    assert len(asked) == len(learned()) + len(own)
    lonely = [number for number, item in enumerate(asked) if item.group == "lonely"]
    assert all(odds[number, causes.index("node-lost")] < 0.01 for number in lonely)
    assert {fold_of(item.group, folds) for item in asked} == {0, 1}


def test_labels_meet_their_sites_and_what_is_no_failure_is_left_out() -> None:
    sites = [site("no crate left", 1), site("the gate is taken", 2), site("not meant for a job", 3)]
    rows = [
        label_of(sites[0], "A", "disk-full"),
        label_of(sites[0], "B", "stale-state", "disk-full"),
        label_of(sites[1], "A", "port-in-use"),
        label_of(sites[2], "A", NO_FAILURE),
        label_of(site("what nobody drew", 9), "A", "disk-full"),
    ]
    found = labelled_sites(sites, rows)
    assert [item.message.text for item in found] == ["no crate left", "the gate is taken"]
    assert found[0].causes == pytest.approx({"disk-full": 0.65, "stale-state": 0.35})
    assert found[0].group == atlas_packages()["vllm"].framework


def test_the_file_gives_the_odds_of_the_fit(tmp_path: Path) -> None:
    model = fitted(learned())._replace(temperature=1.5)
    save(model, tmp_path / "model.npz", "labels' digest")
    kept = MessageClassifier(tmp_path / "model.npz")
    message = FailingMessage("no shelf for another crate")
    odds = odds_of(model, [LabelledMessage(message, {"disk-full": 1.0}, 1.0, "other")])[0]
    assert kept.odds(message) == pytest.approx(dict(zip(model.causes, odds, strict=True)), abs=0.01)
    assert (kept.labels, kept.temperature) == ("labels' digest", 1.5)


def test_odds_that_were_too_sure_are_cooled() -> None:
    asked = learned()
    causes = tuple(WORDS)
    right = np.array([[item.causes.get(cause, 0.0) for cause in causes] for item in asked])
    sure = 0.99 * right + 0.01 * (1 - right)
    half_wrong = sure.copy()
    half_wrong[::2] = sure[::2, ::-1]
    assert temperature_of(half_wrong, causes, asked) > 1 > temperature_of(0.6 * right + 0.2, causes, asked)


def test_our_own_examples_are_none_that_only_measure() -> None:
    """Patterns, known bugs and incidents of the split `fit`; a prefix of a line says nothing of its cause."""
    found = list(own_examples())
    assert len(found) > 1500
    assert {item.group.split()[0] for item in found} >= {"vllm", "torch", "incident"}
    assert not any(item.is_site for item in found)
    prefixed = [item for item in found if item.message.text.startswith("(EngineCore")]
    assert not prefixed
