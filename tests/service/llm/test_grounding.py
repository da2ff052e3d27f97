"""Claims held against what was sent: rules, and what holds for any claims at all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.llm.claims import Claims, Proposal, Quote
from service.llm.grounding import ground_claims, place_of
from service.llm.prompt_context import Prompt, PromptContext
from service.pipeline.triage import Triage
from service.schemas.diagnosis import ProposedChange
from tests.service.llm.answering import BARE, OFFLOAD, asked, context_and_prompt, torn
from tests.tables import each_row

NAMES = [OFFLOAD, BARE, "torn"]


@pytest.fixture(scope="module")
def told(triage: Triage) -> dict[str, tuple[PromptContext, Prompt]]:
    """What a model is told of a diagnosed, an unknown and an ambiguous log."""
    found = {name: asked(triage, name, patched=False) for name in (OFFLOAD, BARE)} | {"torn": torn(triage)}
    return {name: context_and_prompt(triage_context) for name, triage_context in found.items()}


@each_row(
    ("line", "text", "expected"),
    [
        ("L384", "Task was killed due to the node running low on memory", "L384"),
        ("L1", "Task was killed due to the node running low on memory", "L384"),
        ("384", "Task was killed  due to the\tnode", "L384"),
        ("", "memory usage threshold of 0.95", "L385"),
        ("L384", "Task was slain", None),
        ("L384", "Task", None),
        ("L384", "", None),
        ("L384", "Task was killed due to the node running low on memory. And more.", None),
    ],
)
def test_a_quote_is_looked_up_and_its_line_is_only_a_hint(
    line: str, text: str, expected: str | None, told: dict[str, tuple[PromptContext, Prompt]]
) -> None:
    """The line that holds the words counts, not the number that the model gives."""
    assert place_of(Quote(line=line, text=text), told[OFFLOAD][1]) == expected


def test_a_command_that_is_offered_counts(told: dict[str, tuple[PromptContext, Prompt]]) -> None:
    """As it is offered, and the instructions say so; one of a model's own does not."""
    context, prompt = told[OFFLOAD]
    command = ProposedChange(
        framework="slurm",
        kind="command",
        key="scontrol",
        to="scontrol requeue 7",
        why="It waits.",
        status="verified",
    )
    context = replace(context, offered=(*context.offered, command))
    picks = [
        Proposal(framework="slurm", kind="command", key="scontrol", to=to)
        for to in ("scontrol requeue 7", "scontrol cancel 7")
    ]
    kept = [
        ground_claims(Claims(cause=BARE, changes=[pick], explanation=""), context, prompt).changes
        for pick in picks
    ]
    assert kept == [(command,), ()]
    assert "Of commands offered ones count" in prompt.messages[0].text


TEXT = st.text(max_size=40)


@pytest.mark.long
@given(st.sampled_from(NAMES), st.data())
@settings(max_examples=200, derandomize=True, deadline=None)
def test_no_claims_at_all_get_anything_unchecked_through(
    told: dict[str, tuple[PromptContext, Prompt]], name: str, data: st.DataObject
) -> None:
    """Kept quotes stand in their lines, kept cases were sent, kept changes were offered or passed checks, a
    vote is for something that there is; the rest is told.
    """
    prompt_context, prompt = told[name]
    lines = st.builds(
        lambda mark, cut: {"line": mark, "text": prompt.lines[mark][:cut]},
        st.sampled_from(sorted(prompt.lines)),
        st.integers(0, 80),
    )
    offers = [
        {"framework": change.framework, "key": change.key, "to": str(change.to)}
        for change in prompt_context.offered
    ]
    wild = st.fixed_dictionaries(
        {
            "framework": TEXT,
            "key": TEXT | st.sampled_from([key for _, key in list(prompt_context.library.specs)[:50]]),
            "to": TEXT,
        }
    )
    claimed = data.draw(
        st.fixed_dictionaries(
            {
                "cause": TEXT | st.sampled_from(sorted(prompt_context.library.causes)),
                "quotes": st.lists(lines | st.fixed_dictionaries({"line": TEXT, "text": TEXT}), max_size=5),
                "cases": st.lists(TEXT | st.sampled_from(sorted(prompt_context.library.cases)), max_size=5),
                "changes": st.lists(wild | st.sampled_from(offers) if offers else wild, max_size=5),
                "explanation": TEXT,
            }
        )
    )
    claims = Claims.model_validate_json(json.dumps(claimed))
    result = ground_claims(claims, prompt_context, prompt)
    for found in result.quotes:
        assert any(
            " ".join(quote.text.split()) in " ".join(prompt.lines[found.mark].split())
            for quote in claims.quotes
        )
    assert set(result.cases) <= prompt.cases
    library = prompt_context.library
    for change in result.changes:
        version = prompt_context.report.version(change.framework)
        is_known = library.setting(change.framework, change.key, version) is not None
        assert change in prompt_context.offered or is_known or change.status == "unverified"
    assert result.vote is None or result.vote.choice in {*library.causes, "no-failure"}
    lost = len({case.removeprefix("case:").strip("[] ") for case in claims.cases}) - len(result.cases)
    assert sum(item.what.startswith("case ") for item in result.dropped) == lost
    assert all(item.why for item in result.dropped)


def test_a_poisoned_log_leaves_a_model_nothing_to_decide(
    told: dict[str, tuple[PromptContext, Prompt]],
) -> None:
    """Where a line speaks to a model, it has no vote, and no change of its own."""
    prompt_context, prompt = told["torn"]
    rival = prompt_context.first.alternatives[0].cause
    claims = Claims(
        cause=rival,
        quotes=tuple(Quote(line=mark, text=text) for mark, text in prompt.lines.items()),
        explanation="",
    )
    vote = ground_claims(claims, prompt_context, prompt).vote
    assert vote is not None
    assert vote.choice == rival
    assert ground_claims(claims, prompt_context, replace(prompt, suspects=1)).vote is None


def test_a_value_of_the_models_own_counts_where_ours_is_not_proved(
    told: dict[str, tuple[PromptContext, Prompt]],
) -> None:
    """A value that the log's numbers prove, or that nothing checks, stays ours; the setting is its choice."""
    prompt_context, prompt = told[OFFLOAD]
    numbers = [
        change
        for change in prompt_context.offered
        if isinstance(change.to, int | float) and not isinstance(change.to, bool)
    ]
    assert numbers
    for ours in numbers:
        for proof in (None, "16.0 GB are needed, 5.0 are free"):
            offer = ours.model_copy(update={"proof": proof})
            context = replace(prompt_context, offered=(offer,))
            wanted = {"framework": ours.framework, "key": ours.key, "why": ""}
            odd = Claims(cause="disk-full", changes=({**wanted, "to": "as you like"},), explanation="")
            assert ground_claims(odd, context, prompt).changes == (offer,)
            other = Claims(cause="disk-full", changes=({**wanted, "to": str(ours.to + 1)},), explanation="")
            made = ground_claims(other, context, prompt).changes
            assert [change.key for change in made] in ([ours.key], [])
            assert proof is None or not made or made == (offer,)


def test_another_variable_is_no_value(told: dict[str, tuple[PromptContext, Prompt]]) -> None:
    """What sets a variable beside its key is a value of options alone: it would name any variable."""
    prompt_context, prompt = told[OFFLOAD]
    for to, expected in (("CUDA_SKIP_CHECKS=all", []), ("2", ["CUDA_VISIBLE_DEVICES"])):
        change = {"framework": "env", "kind": "env", "key": "CUDA_VISIBLE_DEVICES", "to": to, "why": ""}
        made = ground_claims(Claims(cause=OFFLOAD, changes=(change,), explanation=""), prompt_context, prompt)
        assert [item.key for item in made.changes] == expected, made
