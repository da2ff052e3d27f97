"""Reading an object that is still being written, and one that was never JSON."""

from __future__ import annotations

import contextlib
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from service.llm.claims import MAX_CASES, MAX_QUOTES, MAX_TEXT, Claims, ModelReply, parse, schema
from service.llm.streaming_json import growing_text, whole_fields
from tests.tables import each_row

texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=60)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(texts.filter(lambda name: name != "explanation"), values, max_size=4),
    texts,
    st.booleans(),
    st.data(),
)
@settings(max_examples=150, derandomize=True, deadline=None)
def test_every_beginning_of_an_object_reads_as_a_part_of_it(
    before: dict[str, object], text: str, ascii_only: bool, data: st.DataObject
) -> None:
    """Complete fields have their final values, and the growing text is a beginning of the whole one."""
    whole = {**before, "explanation": text}
    written = json.dumps(whole, ensure_ascii=ascii_only)
    cut = data.draw(st.integers(0, len(written)))
    fields = whole_fields(written[:cut])
    so_far, complete = growing_text(written[:cut], "explanation")
    assert all(whole[name] == value for name, value in fields.items())
    assert text.startswith(so_far)
    assert not complete or so_far == text


@given(st.text(max_size=200))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_nothing_that_a_model_writes_breaks_the_reading(text: str) -> None:
    """Whatever comes, it is read or refused with a ValueError."""
    whole_fields(text)
    growing_text(text, "explanation")
    for kind in (Claims, ModelReply):
        with contextlib.suppress(ValueError):
            parse(kind, text)


@given(st.dictionaries(st.sampled_from([*Claims.model_fields, "more"]), values, max_size=7))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_claims_are_bounded_whatever_their_types(fields: dict[str, object]) -> None:
    """Wrong types become empty or are refused; nothing is longer than its bound."""
    try:
        claims = parse(Claims, json.dumps(fields))
    except ValueError:
        return
    assert len(claims.quotes) <= MAX_QUOTES
    assert len(claims.cases) <= MAX_CASES
    assert len(claims.explanation) <= MAX_TEXT


def test_long_claims_are_cut_to_their_bounds() -> None:
    """A flood is cut, not refused."""
    flood = {
        "cause": "x" * 9000,
        "quotes": [{"line": "L1", "text": "y" * 5000}] * 4 + [{}] * 200,
        "cases": ["z"] * 500,
        "explanation": "w" * 90_00,
    }
    claims = parse(Claims, json.dumps(flood))
    assert (
        len(claims.cause),
        len(claims.quotes),
        len(claims.quotes[0].text),
        len(claims.cases),
        len(claims.explanation),
    ) == (300, 12, 1000, 8, MAX_TEXT)


@each_row("kind", [Claims, ModelReply])
def test_the_schema_is_closed_and_plain(kind: type[Claims]) -> None:
    """Providers that enforce a schema take objects with all fields required, no others, and no references."""
    made = schema(kind)
    assert "$ref" not in json.dumps(made)
    assert made["required"] == list(made["properties"])
    assert json.dumps(made).count('"additionalProperties": false') == json.dumps(made).count(
        '"type": "object"'
    )
