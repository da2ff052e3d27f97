"""The set of incidents keeps its rules, and a set that breaks them is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from eval import incidents
from eval.errors import InvalidIncidentError
from tests.factories import whole_corpus
from tests.tables import each_row

GOOD = {
    "id": "amber-tern",
    "causes": ["port-in-use"],
    "verdict": "diagnosed",
    "root_lines": [2],
    "kind": "paste",
    "mechanism": "port-taken",
    "split": "fit",
    "origin": {"kind": "written"},
}


def put(
    root: Path, text: str = "start\nOSError: [Errno 98] Address already in use\n", **changes: object
) -> None:
    """Write one incident."""
    label = GOOD | changes
    place = root / str(changes.get("folder", label["id"]))
    label.pop("folder", None)
    place.mkdir()
    (place / "label.yaml").write_text(yaml.safe_dump(label), encoding="utf-8")
    (place / "log.txt").write_text(text, encoding="utf-8")


@pytest.mark.long
def test_the_set_is_sound() -> None:
    """No label leaks into its log, no two logs are the same, nothing stands on both sides of the split."""
    assert incidents.findings(incidents.load(), whole_corpus().causes) == []


def test_the_set_is_broad() -> None:
    """Every cause, both languages, every length, healthy and unanswerable logs are there in numbers."""
    labels = [incident.label for incident in incidents.load()]
    verdicts = Counter(label.verdict for label in labels)
    assert len(labels) >= 150
    assert verdicts["no-failure"] >= 20
    assert verdicts["unknown"] >= 20
    assert {label.kind for label in labels} == {"paste", "short", "medium", "long"}
    assert sum(label.language == "zh" for label in labels) >= 12
    assert sum(label.pair is not None for label in labels) >= 8
    assert sum(label.origin.kind == "lab" for label in labels) >= 25
    assert set(whole_corpus().causes) - {cause for label in labels for cause in label.causes} == set()


@each_row(
    ("changes", "message"),
    [
        ({"verdict": "perhaps"}, "verdict"),
        ({"colour": "red"}, "colour"),
        ({"folder": "other"}, "must be the same"),
        ({"split": "train"}, "split"),
    ],
)
def test_a_broken_label_names_file_and_field(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    """A label that breaks the form is refused with a sentence."""
    put(tmp_path, **changes)
    with pytest.raises(InvalidIncidentError, match=message):
        incidents.load(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """A folder without incidents says what one is."""
    with pytest.raises(InvalidIncidentError, match="holds no incident"):
        incidents.load(tmp_path)


@each_row(
    ("rows", "finding"),
    [
        ([{"causes": ["no-such-cause"]}], "unknown cause"),
        ([{"root_lines": [9]}], "has no line 9"),
        ([{"root_lines": []}], "needs a cause and a root line"),
        ([{"verdict": "no-failure"}], "healthy run has neither"),
        ([{"text": "x\nthe port-in-use cause\n"}], "label's word 'port-in-use'"),
        ([{"text": "x\nrun amber-tern\n"}], "label's word 'amber-tern'"),
        ([{}, {"id": "b-b", "text": "start\nOSError: [Errno 77] Address already in use\n"}], "same text as"),
        (
            [{}, {"id": "b-b", "split": "test", "text": "other\ntext\n"}],
            "mechanism port-taken: is in fit and in test",
        ),
        (
            [{"pair": "b-b"}, {"id": "b-b", "split": "test", "mechanism": "m", "text": "other\ntext\n"}],
            "twins",
        ),
    ],
)
def test_a_broken_set_is_found_out(tmp_path: Path, rows: list[dict[str, object]], finding: str) -> None:
    """What would make figures dishonest is named."""
    for row in rows:
        text = str(row.pop("text", "start\nOSError: [Errno 98] Address already in use\n"))
        put(tmp_path, text, **row)
    assert any(
        finding in found for found in incidents.findings(incidents.load(tmp_path), whole_corpus().causes)
    )
