"""Any name whose last words are a secret's gives its value away, in flags, variables, YAML, JSON, SQL,
commands, prose.
"""

from __future__ import annotations

from ingest.redaction.redactor import Redactor
from tests.ingest import planted_names


def test_the_set_is_large_enough() -> None:
    """At least 120 secrets of forty kinds, and 120 texts that only read alike."""
    assert len(planted_names.secrets()) >= 120
    assert len(planted_names.KINDS) >= 40
    assert len(set(planted_names.LOOKALIKES)) >= 120


def test_what_a_name_tells_is_masked() -> None:
    """Nothing of a value is left, whatever stands before the secret's word in its name."""
    left = [
        (item.kind, cleaned)
        for item in planted_names.secrets()
        if item.secret in (cleaned := Redactor().clean(item.text))
    ]
    assert not left


def test_what_reads_like_code_is_masked_behind_a_secrets_name() -> None:
    """A release, a product or an assignment may be a password: only behind a token's name it is none."""
    rows = [(form.format(value), value) for form, value in planted_names.CODE_LIKE]
    left = [(text, cleaned) for text, value in rows if value[2:] in (cleaned := Redactor().clean(text))]
    assert not left


def test_what_only_reads_like_a_name_stays() -> None:
    """Counts, special tokens, results of tests, and where a secret comes from are what a diagnosis needs."""
    masked = [
        (text, cleaned) for text in planted_names.LOOKALIKES if (cleaned := Redactor().clean(text)) != text
    ]
    assert not masked
