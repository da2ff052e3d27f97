"""The corpus as a whole: each kind of mistake is found and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpus.library import KNOWLEDGE, Library
from corpus.log_patterns import Pattern, PatternTable
from corpus.schema import Case
from service.pipeline.lint import findings, table_findings
from service.pipeline.triage import Triage
from tests.service.factories import case, change, spec
from tests.service.remediation.test_remedies import remedy
from tests.tables import each_row


def pattern(name: str = "x.boom", **fields: Any) -> Pattern:
    """Make a failure's pattern without a mistake."""
    made: dict[str, Any] = {
        "kind": "error",
        "role": "origin",
        "cause": "disk-full",
        "expression": "boom: \\d+",
        "examples": ("boom: 12",),
        "near": ("boom: twelve",),
    }
    return Pattern.model_validate({"id": name, **made, **fields})


# What the real causes ask of a log: which call the ranks were in, and whether Ascend's runtime wrote a line.
CALL = pattern(
    "ascend.call",
    kind="fact",
    role="none",
    cause=None,
    expression="call (?P<op>[A-Z]+)",
    fact="collective",
    examples=("call ALLREDUCE",),
    near=("call back",),
)


# And whose lines stand in it: what LSF and the runtime of TPUs write.
NAMED = tuple(
    pattern(
        f"{name}.line",
        kind="fact",
        role="none",
        cause=None,
        expression=f"{name} says (?P<what>\\w+)",
        fact=f"{name}_line",
        examples=(f"{name} says no",),
        near=(f"{name} is there",),
    )
    for name in ("lsf", "tpu")
)


def found(triage: Triage, row: Pattern | None = None, made: Case | None = None) -> list[str]:
    """Check a corpus of the real causes, one setting, one failure's pattern and one case."""
    setting = spec()
    library = Library(
        triage.library.causes, {made.id: made} if made else {}, {(setting.framework, setting.key): setting}
    )
    return findings(library, PatternTable((row or pattern(), CALL, *NAMED)))


def of(*conditions: str, **fields: Any) -> Case:
    """Make a case with these conditions."""
    return case(**{"signatures": {"any": list(conditions)}, **fields})


@each_row("made", [None, of("pattern:x.*"), of("root:x.boom"), of("pattern:x.*", changes=[change()])])
def test_a_corpus_without_a_mistake_has_no_findings(made: Case | None, triage: Triage) -> None:
    """All is well where nothing is wrong."""
    assert found(triage, made=made) == []


@each_row(
    ("fields", "told"),
    [
        ({"cause": "no-such-cause"}, "unknown cause no-such-cause"),
        ({"refine": [{"when": ["phase:save"], "cause": "no-such-cause"}]}, "unknown cause no-such-cause"),
        ({"near": ()}, "needs a line that nearly matches"),
        ({"examples": ("bang: 12",)}, "does not match its example 'bang: 12'"),
        ({"near": ("boom: 13",)}, "matches its near miss 'boom: 13'"),
    ],
)
def test_a_wrong_pattern_is_named(fields: dict[str, Any], told: str, triage: Triage) -> None:
    """Each mistake of a pattern is a sentence with the pattern's id."""
    assert [
        text
        for text in found(triage, pattern(**fields))
        if text.startswith("pattern x.boom") and told in text
    ]


@each_row(
    ("made", "told"),
    [
        (of("pattern:x.*", cause="no-such-cause"), "unknown cause no-such-cause"),
        (of("pattern:y.*"), "no pattern y.*"),
        (of("root:y.bang"), "no pattern y.bang"),
        (of("phase:asleep"), "no phase asleep"),
        (of("job:training|asleep"), "no kind or trait of jobs: asleep"),
        (of("gpu_oom.free_gb < 1"), "no pattern states gpu_oom.free_gb"),
        (of("config:max_modle_len > 1"), "no framework has a setting max_modle_len"),
        (of("cause:no-such-cause"), "unknown cause no-such-cause"),
        (of("pattern:x.*", refines=["x/none"]), "refines no known case x/none"),
        (of("pattern:x.*", id="x/self", refines=["x/self"]), "refines itself"),
        (case(signatures={"none": ["pattern:x.*"]}), "no condition that must hold"),
        (of("pattern:x.*", changes=[change("data.nothing")]), "no setting data.nothing"),
        (of("pattern:x.*", changes=[change(to=1024)]), "over the greatest value"),
        (of("pattern:x.*", changes=[change(to="many")]), "no int"),
    ],
)
def test_a_wrong_case_is_named(made: Case, told: str, triage: Triage) -> None:
    """Each mistake of a case is a sentence with the case's id."""
    (finding,) = found(triage, made=made)
    assert finding.startswith(f"case {made.id}: ")
    assert told in finding


@each_row(
    ("fields", "told"),
    [
        ({"cause": "no-such-cause"}, "unknown cause"),
        ({"key": "data.nothing"}, "no setting data.nothing"),
        ({"framework": "trl"}, "trl has no setting data.size"),
        ({"to": 1024}, "over the greatest value"),
        ({"rule": "no-such-rule"}, "no rule no-such-rule"),
        ({"framework": "verl", "key": "data.name", "to": "unset"}, "only a variable can be unset"),
        ({"when": ["pattern:y.*"]}, "no pattern y.*"),
        ({"unless": ["root:y.bang"]}, "no pattern y.bang"),
        ({"why": {"en": "it helps", "zh": "it helps"}}, "one language only"),
        ({"costs": {"en": "", "zh": "更慢"}}, "one language only"),
        ({"framework": "pip", "kind": "package", "key": "nothing"}, "no package nothing"),
    ],
)
def test_that_a_wrong_remedy_is_named(fields: dict[str, Any], told: str, triage: Triage) -> None:
    row = remedy(**fields)
    settings = {
        (made.framework, made.key): made
        for made in (spec(), spec("data.name", type="str", default=None, min=None, max=None))
    }
    shelf = Library(triage.library.causes, {}, settings, {row.cause: [row]})
    (finding,) = findings(shelf, PatternTable((pattern(), CALL, *NAMED)))
    assert finding.startswith(f"remedy of {row.cause}: {row.framework}")
    assert told in finding


def test_a_pattern_that_only_one_engine_knows_is_found(triage: Triage) -> None:
    """Examples go through the real scanner as well, which reads bytes and knows no Unicode digits."""
    assert any("scanner" in text for text in found(triage, pattern(examples=("boom: ٣",))))


def test_cases_that_always_match_together_are_named(triage: Triage) -> None:
    """Where nothing in a log can choose between two cases, one of them is too many."""
    one, two = (of("pattern:x.*", id=f"x/{name}") for name in ("one", "two"))
    other = of("pattern:x.boom", id="x/other")
    library = Library(triage.library.causes, {made.id: made for made in (one, two, other)}, {})
    assert findings(library, PatternTable((pattern(), CALL, *NAMED))) == [
        "case x/two: always matches together with x/one"
    ]


@each_row(
    ("to", "guidance", "told"),
    [
        ("as many as fit", {"as many as fit": "能放下多少就填多少"}, []),
        ('{"image": 8}', {}, []),
        ("as many as fit", {}, ["case x/one: data.size: no Chinese in guidance.yaml for 'as many as fit'"]),
        (
            "as many as fit",
            {"as many as fit": "AMAF"},
            ["guidance.yaml: 'as many as fit' stands in one language only"],
        ),
        (
            "as many as fit",
            {"as many as fit": "能放下多少就填多少", "half": "一半"},
            ["guidance.yaml: no case or remedy says 'half'"],
        ),
    ],
)
def test_that_guidance_without_chinese_and_chinese_without_guidance_are_found(
    to: str, guidance: dict[str, str], told: list[str], triage: Triage
) -> None:
    """A value in words needs a row of its own; JSON is a value, though it has blanks."""
    made, setting = of("pattern:x.*", id="x/one", changes=[change(to=to)]), spec()
    library = Library(
        triage.library.causes, {made.id: made}, {(setting.framework, setting.key): setting}, guidance=guidance
    )
    assert findings(library, PatternTable((pattern(), CALL, *NAMED))) == told


def test_the_rules_and_telemetry_rules_name_only_what_there_is(triage: Triage, table: PatternTable) -> None:
    """A misspelt name would be missing for ever, and the rule silent."""
    assert table_findings(triage.library, table) == []


RULE = """
- id: own
  causes: [{cause}]
  formula: half of it
  source: https://example.org/
  let: {{first: "{let}"}}
  ways:
  - when: ["{when}"]
    value: "{value}"
    because: {{en: "{because}", zh: "{because}"}}
"""


@pytest.mark.long
@each_row(
    ("fields", "told"),
    [
        ({}, None),
        ({"cause": "no-such-cause"}, "causes: no cause no-such-cause"),
        (
            {"let": "fact('gpu_oom', 'free_gb')"},
            "let.first: \"fact('gpu_oom', 'free_gb')\": no pattern states gpu_oom.free_gb",
        ),
        ({"let": "fact('gpu_ooom', 'free_gib')"}, "no pattern states gpu_ooom.free_gib"),
        ({"when": "setting('max_modle_len') > 1"}, "no framework has a setting max_modle_len"),
        ({"when": "setting(PROMTP) > 1"}, "there is no PROMTP"),
        ({"when": "hwole > 1"}, "ways.0.when: 'hwole > 1': there is no hwole"),
        ({"value": "half(first)"}, "ways.0.value: 'half(first)': there is no function half"),
        ({"because": "{frist} GiB"}, "ways.0.because: nothing is called frist"),
    ],
    quick=4,
)
def test_a_misspelt_name_of_a_rule_is_told_with_file_and_row(
    fields: dict[str, str],
    told: str | None,
    triage: Triage,
    table: PatternTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each fact, setting, name and operator of an expression must be one that there is."""
    given = {
        "cause": "disk-full",
        "let": "fact('gpu_oom', 'free_gib')",
        "when": "setting('max_model_len') > first",
        "value": "whole // 2",
        "because": "{first} GiB",
    }
    path = tmp_path / "rules.yaml"
    path.write_text("rules:" + RULE.format(**{**given, **fields}))
    monkeypatch.setenv(KNOWLEDGE, str(tmp_path))
    wrong = table_findings(triage.library, table)
    if told is None:
        assert wrong == []
    else:
        assert [text for text in wrong if text.startswith(f"{path}: rules.0 (own): ") and told in text]
