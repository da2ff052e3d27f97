"""Of two settings that a message calls exclusive of one another, one is to go, where the job sets both."""

from __future__ import annotations

from corpus.schema import Change, Text
from service.remediation.changes import check_change, propose_changes
from service.remediation.exclusions import find_excluded
from tests.service.factories import failed, library, report, setting, spec

GIVEN = {"--fp16": "True", "trainer.bf16": "True", "--packing": "False", "--resume": "last"}


def test_that_the_first_of_two_that_the_job_sets_is_to_go() -> None:
    rows: dict[str, list[tuple[str, str]]] = {
        "ValueError: At most one of fp16 and bf16 can be True, but not both": [("--fp16", "trainer.bf16")],
        "t.py: error: argument --resume: not allowed with argument --fp16": [("--resume", "--fp16")],
        "ValueError: `bf16` cannot be used together with --resume": [("trainer.bf16", "--resume")],
        "ValueError: fp16 and packing are mutually exclusive": [],
        "ValueError: fp16 and tf32 are mutually exclusive": [],
        "ValueError: fp16, bf16 and resume are mutually exclusive": [],
        "ValueError: fp16 and bf16 were given": [],
    }
    for text, wanted in rows.items():
        told = report(
            failed(text=text, body=text), settings=[setting(key, value) for key, value in GIVEN.items()]
        )
        found = find_excluded(told, told.settings)
        assert [(option.key, option.excludes) for option in found] == wanted, text
        made, _ = propose_changes((), told, library(), told.settings, "en", refusals=found)
        assert [(change.removes, change.to) for change in made] == [(True, "leave it out")] * len(wanted)


def test_that_a_switch_of_the_catalogue_is_turned_off() -> None:
    """Whether it is on by default need not be known then."""
    text = "ValueError: fp16 and bf16 are mutually exclusive"
    told = report(
        failed(text=text, body=text),
        frameworks=[("verl", "")],
        settings=[setting(key, value) for key, value in GIVEN.items()],
    )
    shelf = library(spec("--fp16", type="bool", default=False, min=None, max=None))
    made, _ = propose_changes(
        (), told, shelf, told.settings, "en", refusals=find_excluded(told, told.settings)
    )
    assert [(change.removes, change.to, change.status) for change in made] == [(False, False, "verified")]


def test_that_what_a_change_excludes_is_turned_off_with_it() -> None:
    """Only where the change turns on what the job has the other one of."""
    shelf = library(
        spec("bf16", type="bool", default=False, min=None, max=None, excludes=["fp16"]),
        spec("fp16", type="bool", default=False, min=None, max=None),
    )
    asked = Change(framework="verl", kind="setting", key="bf16", to=True, why=Text(en="a", zh="b"))
    rows: dict[str, list[tuple[str, object]]] = {
        "True": [("bf16", True), ("fp16", False)],
        "False": [("bf16", True)],
    }
    for now, wanted in rows.items():
        told = report(failed(), frameworks=[("verl", "")], settings=[setting("fp16", now)])
        made, _ = check_change(asked, "", told, shelf, told.settings, "en")
        assert [(change.key, change.to) for change in made] == wanted
