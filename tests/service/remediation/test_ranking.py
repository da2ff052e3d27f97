"""Which change an answer puts first, and how many it shows."""

from __future__ import annotations

from typing import Any

from service.remediation.ranking import (
    MOST_CURES,
    MOST_LOOKS,
    ChangeGroup,
    is_situated,
    ranked,
    shown,
    without_strangers,
    without_unset,
)
from service.schemas.diagnosis import ProposedChange
from tests.service.factories import proposal


def group(key: str, proof: str | None = None, purpose: str = "cure", **fields: Any) -> ChangeGroup:
    """Make a group of one change."""
    of = {"framework": fields.pop("framework", "verl"), "from": fields.pop("now", None)}
    change = proposal(key, proof=proof, purpose=purpose, **of)
    return ChangeGroup([change], **fields)


def order(*groups: ChangeGroup) -> list[str]:
    """Give the keys in the order in which they are shown."""
    return [change.key for made in ranked(groups) for change in made.changes]


def test_what_stands_before_what() -> None:
    """A row names what comes first, from a list that has it last."""
    case = group("of.case", from_case=True)
    rows = {
        "what the log's numbers prove": ("proved", [case, group("proved", proof="5 of 16 GiB are free")]),
        "what the message names": ("named", [case, group("named", advised=0)]),
        "what the job's settings call for": ("fits", [case, group("fits", situated=True)]),
        "the part that failed before what fits the rest of the job": (
            "eval",
            [group("length", situated=True, computed=True), group("eval", of_failed=True)],
        ),
        "what leaves the job its data": (
            "batch",
            [group("length", situated=True, computed=True, yields=True), group("batch", situated=True)],
        ),
        "a case before the table": ("of.case", [group("of.table"), case]),
        "a case before the last resort": (
            "of.case",
            [group("hides", from_case=True, last_resort=True), case],
        ),
        "a cure before a look": (
            "of.table",
            [group("look", purpose="find-out", advised=0), group("of.table")],
        ),
        "a last resort before a look": (
            "hides",
            [group("look", purpose="find-out", from_case=True), group("hides", last_resort=True)],
        ),
    }
    found = {name: order(*groups)[0] for name, (_, groups) in rows.items()}
    assert found == {name: first for name, (first, _) in rows.items()}


def test_that_one_remedy_is_told_once_before_the_others() -> None:
    """Its further spellings follow the other remedies; what a framework has from another is told by it."""
    groups = [
        group("--a", framework="trl", measure="less"),
        group("a", framework="transformers", measure="less"),
        group("A", framework="env", measure="less"),
        group("b", framework="trl", measure="more"),
    ]
    assert order(*groups) == ["--a", "b", "A"]


def test_that_conditions_on_figures_phase_and_values_are_of_the_situation() -> None:
    """That a pattern, a framework or a mere setting is there is none of them."""
    rows = {
        "config:zero_stage == 3": True,
        "gpu_oom.free_gib < 1": True,
        "phase:save": True,
        "config:image_max_pixels": False,
        "framework:ray": False,
        "root:hf.*": False,
    }
    assert {condition: is_situated([condition]) for condition in rows} == rows


def test_that_an_answer_shows_a_few_cures_and_a_few_looks() -> None:
    """What must follow a change goes with it, and is not counted; who is left out takes it along."""
    cures = [proposal(f"cure{place}") for place in range(MOST_CURES + 1)]
    follower = proposal("follows", goes_with=cures[-1].key)
    first: ProposedChange = proposal("goes", goes_with="cure0")
    looks = [proposal(f"look{place}", purpose="find-out") for place in range(MOST_LOOKS + 1)]
    kept = [change.key for change in shown([cures[0], first, *cures[1:], follower, *looks])]
    assert kept == ["cure0", "goes", "cure1", "cure2", "look0", "look1", "look2"]


def test_that_of_two_settings_of_one_rule_the_one_that_the_job_sets_comes_first() -> None:
    """Between frameworks alone, and not before what finds out or is left to try."""
    unseen = group("--micro", framework="megatron", from_case=True, rule="micro-batch")
    rows = {
        "another framework's": (
            [group("rows", framework="deepspeed", rule="micro-batch", now="8")],
            ["rows"],
        ),
        "the same framework's": ([group("rows", framework="megatron", rule="micro-batch", now="8")], []),
        "of another rule": ([group("rows", framework="deepspeed", rule="half-length", now="8")], []),
        "not seen either": ([group("rows", framework="deepspeed", rule="micro-batch")], []),
    }
    found = {name: order(unseen, *others)[0] for name, (others, _) in rows.items()}
    assert found == {name: (first or ["--micro"])[0] for name, (_, first) in rows.items()}


def test_that_another_programs_guess_does_not_stand_behind_a_setting_of_the_job() -> None:
    """A value that any job may have is left out; what the job sets, a firm one and one in words are not."""
    own = proposal("batch", 4, framework="python", **{"from": "8"})
    guess = proposal("--micro", 1, framework="megatron", kind="flag", tier=13)
    follows = proposal("--steps", 2, framework="megatron", kind="flag", goes_with="--micro", tier=13)
    kept = [
        proposal("batch_b", 1, framework="python", tier=13),
        proposal("stage", 2, framework="deepspeed", tier=13, **{"from": "1"}),
        proposal("flash", True, framework="verl", tier=12),
        proposal("length", "below the present value", framework="trl", tier=13),
        proposal("LOOK", 1, framework="env", kind="env", purpose="find-out", tier=45),
        proposal("--shm-size", "32g", framework="docker", kind="flag", tier=13),
    ]
    assert without_strangers([own, guess, follows, *kept]) == [own, *kept]
    assert without_strangers([guess, own]) == [guess, own]
    same = proposal("batch", 2, framework="megatron", tier=13)
    assert without_strangers([own, same]) == [own]


def test_that_beside_a_lacking_package_only_variables_are_guesses() -> None:
    """A job may be set to do without a package; a variable installs nothing."""
    package = proposal("ninja", "install", framework="pip", kind="package", tier=13)
    variable = proposal("MAX_JOBS", 4, framework="env", kind="env", tier=14)
    setting = proposal("optim", "adamw", framework="transformers", tier=14)
    assert without_strangers([package, variable, setting]) == [package, setting]


def test_that_words_for_an_unset_setting_give_way_to_the_one_that_is_told() -> None:
    """Where a setting of the job holds what the failing line tells, another one is not asked for in words."""
    held = group("data.path", now="/a", held=True)
    unset = ChangeGroup([proposal("model_path", "a path that is there", framework="trl")])
    named = ChangeGroup([proposal("named", "a path that is there", framework="trl")], advised=0)
    assert without_unset([held, unset, named]) == [held, named]
    assert without_unset([unset, named]) == [unset, named]


def test_what_the_message_tells_with_its_value_leaves_out_what_the_cause_alone_calls_for() -> None:
    """A case, the job's own figures and packages stay beside it."""
    general = group("tensor.size")
    others = [group("of.case", from_case=True), group("fits", situated=True), group("named", advised=1)]
    assert "tensor.size" in order(general, group("pipeline.size", advised=0), *others)
    shown_keys = order(general, group("pipeline.size", advised=0, told=True), *others)
    assert shown_keys[0] == "pipeline.size"
    assert set(shown_keys) == {"pipeline.size", "of.case", "fits", "named"}
