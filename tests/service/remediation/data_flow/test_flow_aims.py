"""The rows of `flow_aims.yaml`: their examples, and the words that they are told in."""

from __future__ import annotations

import re

from corpus.flow_aims import FlowAim, known_flow_aims
from corpus.library import Library
from corpus.message import in_both
from service.pipeline.triage import Triage
from service.remediation.setting_values import is_guidance
from tests.tables import each_row


@each_row("aim", known_flow_aims(), ids=lambda aim: aim.id)
def test_that_a_row_finds_its_examples_and_has_words(aim: FlowAim, triage: Triage) -> None:
    """Each example is found, causes and categories exist, and what an option should become is guidance."""
    library: Library = triage.library
    assert all(re.search(aim.expression, example) for example in aim.examples)
    assert set(aim.causes) <= library.causes.keys()
    assert set(aim.categories) <= {cause.category for cause in library.causes.values()}
    assert is_guidance(in_both(f"changes.{aim.to}").en)
    names = {"key": "k", "now": "", "place": "p", "part": "x", "reads": "y"}
    assert "`" in in_both(f"changes.flow-{aim.seeks}", **names).zh
