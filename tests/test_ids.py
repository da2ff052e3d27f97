"""Knowledge is data: no id of a cause or a pattern stands in code, where it would decide something."""

from __future__ import annotations

from corpus import library, log_patterns
from corpus.library import read_causes
from tests.syntax import modules

FOLDERS = ("corpus", "ingest", "service", "ui", "whycrash")
# Where an id stands that decides nothing, or that the answer's contract names itself.
ALLOWED = {
    ("service/schemas/diagnosis.py", "insufficient-evidence"): "the contract's cause of an unknown verdict",
    ("service/api/bodies.py", "gpu-oom-training"): "an example in the API's description",
}


def test_that_no_id_of_a_cause_or_pattern_stands_in_code() -> None:
    causes = {cause.id for cause in read_causes(library.ROOT / "causes.yaml")}
    # Ids of one word are words of the language too.
    ids = {name for name in causes if "-" in name} | set(log_patterns.load().by_id)
    found = {
        (module.name, text)
        for module in modules(*FOLDERS)
        for _, literal in module.texts
        # A condition's name holds an id.
        for text in [literal.removeprefix("pattern:").removeprefix("root:").removeprefix("cause:")]
        if text in ids
    }
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == [], "an exemption that nothing needs"
