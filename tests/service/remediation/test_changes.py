"""Proposed changes: checked against the catalogue, the version and the job's own configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from corpus.schema import Language, Scalar, SettingSpec
from ingest.logs.configs.launch import Setting
from service.pipeline.triage import Triage
from service.remediation.changes import propose_changes
from service.remediation.feasibility import value_of
from service.remediation.setting_values import is_guidance, misfit_reason
from service.schemas.diagnosis import Dropped, ProposedChange
from tests.service.factories import case, change, failed, library, report, setting, spec
from tests.tables import each_row
from tests.warm import EVERY, answered


def proposed(
    *changes: dict[str, Any],
    specs: Sequence[SettingSpec] = (),
    version: str = "0.3.1",
    settings: Sequence[Setting] = (),
    seen: str = "verl",
    serves: dict[str, str] | None = None,
) -> tuple[list[ProposedChange], list[Dropped]]:
    """Propose the changes of one case to a job of one framework."""
    told = report(failed(), frameworks=[(seen, version)], settings=settings)
    made = case(changes=list(changes), frameworks=serves or {})
    return propose_changes([made], told, library(*(specs or (spec(),))), settings, "en")


def test_a_change_that_fits_is_verified() -> None:
    """A setting of the catalogue with a value in its range is proposed as verified, with its case."""
    (made,), dropped = proposed(change(to=128))
    assert (made.key, made.to, made.status, made.from_case) == ("data.size", 128, "verified", "verl/one")
    assert dropped == []


@each_row(
    ("wanted", "specs", "version", "now", "reason"),
    [
        (change("data.nothing"), (), "0.3.1", None, "not in the catalogue"),
        (change("NO_SUCH", kind="env"), (), "0.3.1", None, "not in the catalogue"),
        (change(), (spec(versions=">=0.5"),), "0.3.1", None, "not in the catalogue for version 0.3.1"),
        (change(versions=">=0.5"), (), "0.3.1", None, "not for version 0.3.1"),
        (change(to=1024), (), "0.3.1", None, "over the greatest value"),
        (change(to=0), (), "0.3.1", None, "under the least value"),
        (change(to="many"), (), "0.3.1", None, "no int"),
        (change(to=128), (), "0.3.1", "128", "has this value already"),
        (change(to=128), (), "0.3.1", "'128'", "has this value already"),
        (change(to=True), (spec(type="bool"),), "0.3.1", "true", "has this value already"),
        (change(to=0.5), (spec(type="float", min=0),), "0.3.1", "0.50", "has this value already"),
    ],
)
def test_a_change_that_does_not_fit_is_dropped_with_the_reason(
    wanted: dict[str, Any], specs: Sequence[SettingSpec], version: str, now: str | None, reason: str
) -> None:
    """What fails a check is not shown as a change; it is listed with why."""
    settings = [setting(wanted["key"], now)] if now is not None else []
    made, (dropped,) = proposed(wanted, specs=specs, version=version, settings=settings)
    assert made == []
    assert wanted["key"] in dropped.what
    assert reason in dropped.why


def test_an_unknown_version_may_be_the_right_one() -> None:
    """A log that prints no version loses no change."""
    made, dropped = proposed(change(versions=">=0.5"), version="", specs=[spec(versions=">=0.5")])
    assert len(made) == 1
    assert dropped == []


@each_row(
    ("framework", "kind", "kept"),
    [
        ("verl", "setting", True),
        ("easyr1", "setting", False),
        ("env", "env", True),
        # Nothing in its log shows the package.
        ("pip", "package", False),
        ("host", "command", True),
    ],
)
def test_only_the_jobs_own_frameworks_get_changes(framework: str, kind: str, kept: bool) -> None:
    """A case of several frameworks proposes those of the one that runs, and what belongs to none."""
    wanted = change(framework=framework, kind=kind, to="128")
    made, dropped = proposed(
        wanted, specs=[spec(framework=framework, default=None)], serves={"verl": "", "easyr1": ""}
    )
    assert bool(made) is kept
    assert {item.why.partition(" shows the package")[0] for item in dropped} <= {"nothing in the job"}


def test_a_change_waits_for_its_condition() -> None:
    """A change whose `when` does not hold is not proposed."""
    wanted = change(when=["config:data.size > 100"])
    assert proposed(wanted, settings=[setting("data.size", "64")])[0] == []
    assert len(proposed(wanted, settings=[setting("data.size", "256")])[0]) == 1


def test_the_jobs_own_value_is_shown_as_from() -> None:
    """`from` is the value as the job writes it, and null where the job does not show one."""
    assert proposed(change(), settings=[setting("data.size", "256")])[0][0].from_ == "256"
    assert proposed(change())[0][0].from_ is None


def test_the_first_case_decides_a_setting() -> None:
    """Two cases that change the same setting give one change."""
    cases = [case("verl/one", changes=[change(to=128)]), case("verl/two", changes=[change(to=32)])]
    made, dropped = propose_changes(cases, report(failed()), library(spec()), [], "en")
    assert [(item.to, item.from_case) for item in made] == [(128, "verl/one")]
    assert dropped == []


def test_a_renamed_setting_is_proposed_once() -> None:
    """Of two names of one setting the job is told one, unless it uses the other."""
    specs = [spec("offload", type="bool"), spec("ds.offload", type="bool")]
    both = [change("offload", False), change("ds.offload", False)]
    assert [item.key for item in proposed(*both, specs=specs)[0]] == ["offload"]


@each_row("language", ["en", "zh"])
def test_reasons_come_in_the_answers_language(language: str) -> None:
    """`why` and `costs` are in the language that was asked for."""
    wanted = change(costs={"en": "slower", "zh": "更慢"})
    made, _ = propose_changes(
        [case(changes=[wanted])], report(failed()), library(spec()), [], "zh" if language == "zh" else "en"
    )
    assert made[0].costs == ("更慢" if language == "zh" else "slower")


def test_guidance_is_shown_as_unverified() -> None:
    """A change that says in words how to choose the value is shown, and never passes for a value."""
    (made,), dropped = proposed(change(to="a divisor of the GPUs"))
    assert made.status == "unverified"
    assert dropped == []


@each_row(
    ("value", "expected"),
    [
        ("half of it", True),
        ("False", False),
        (128, False),
        (True, False),
        (" x ", False),
        ("出故障的节点", False),
        ("链路出故障的节点", True),
        ("与 offload 相同的值", True),
        ("/数据/模型", False),
        ("实验一", False),
    ],
)
def test_guidance_is_told_from_values_by_its_words(value: Scalar, expected: bool) -> None:
    """A value has no space in it.

    A Chinese one may be a path or a name, so guidance is what the corpus says.
    """
    assert is_guidance(value) is expected


@each_row(("language", "told"), [("en", "the node that failed"), ("zh", "出故障的节点")])
def test_guidance_and_a_command_in_words_come_in_the_answers_language(language: Language, told: str) -> None:
    """A value, a setting's name and the catalogue's checks stay what they are."""
    rows = {"the node that failed": "出故障的节点", "run it again": "重新运行"}
    shelf = dataclasses.replace(library(spec()), guidance=rows)
    wanted = [
        change(to="the node that failed"),
        change("run it again", "the node that failed", kind="command"),
    ]
    made, _ = propose_changes([case(changes=wanted)], report(failed()), shelf, [], language)
    assert [item.to for item in made] == [told, told]
    assert [item.key for item in made] == ["data.size", "重新运行" if language == "zh" else "run it again"]
    assert {item.status for item in made} == {"unverified"}


@each_row(
    ("fields", "value", "fits"),
    [
        ({}, 1, True),
        ({}, 512, True),
        ({}, "16", True),
        ({}, 0, False),
        ({}, 513, False),
        ({}, 1.5, False),
        ({}, True, False),
        ({}, "x", False),
        ({}, "inf", False),
        ({}, "nan", False),
        ({}, "as many as fit", True),
        ({"choices": [0, -1]}, -1, True),
        ({"default": 1024}, 1024, True),
        ({"type": "float"}, 1.5, True),
        ({"type": "float"}, "1e2", True),
        ({"type": "float"}, "nan", False),
        ({"type": "bool"}, True, True),
        ({"type": "bool"}, "False", True),
        ({"type": "bool"}, "maybe", False),
        ({"type": "enum", "choices": ["a", "b"]}, "a", True),
        ({"type": "enum", "choices": ["a", "b"]}, "c", False),
        ({"type": "str"}, "anything", True),
    ],
)
def test_a_value_must_fit_its_setting(fields: dict[str, Any], value: Scalar, fits: bool) -> None:
    """Type, range and choices decide; the default always fits."""
    assert (misfit_reason(value, spec(**fields)) == "") is fits


@each_row(
    ("asked", "written", "found"),
    [
        ("zero_stage", "--zero-stage", True),
        ("zero_stage", "zero_stage", True),
        ("trainer.x", "+trainer.x", True),
        ("trainer.x", "++trainer.x", True),
        ("x", "trainer.x", False),
        ("zero_stage", "zero_stages", False),
    ],
)
def test_a_setting_is_found_however_it_is_spelled(asked: str, written: str, found: bool) -> None:
    """Dashes, underscores and Hydra's signs make no difference; a part of a name is not the name."""
    assert value_of(asked, [setting(written, "3")]) == ("3" if found else None)


@each_row("name", EVERY)
def test_verified_changes_stand_in_the_real_catalogue(name: str, triage: Triage) -> None:
    """Each verified setting of a real answer is one that its framework's version has, with a value that
    fits.
    """
    answer = answered(triage, name)
    versions = {seen.name: seen.version for seen in answer.frameworks}
    for made in answer.changes:
        found = triage.library.setting(made.framework, made.key, versions.get(made.framework))
        assert made.status == "unverified" or (found is not None and misfit_reason(made.to, found) == "")
