"""Names of packages are gathered from lists as they are at hand, and kept in one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpus.extract.package_names import listed_names, main
from tests.tables import each_row


@each_row(
    ("text", "names"),
    [
        ("torch==2.6.0 \\\n    --hash=sha256:ab12\n# by hand\nray[default]>=2 ; x\n", ["torch", "ray"]),
        (json.dumps({"rows": [{"project": "boto3", "download_count": 9}]}), ["boto3"]),
        (json.dumps(["one", "two"]), ["one", "two"]),
        ("acme adal  zict\n", ["acme", "adal", "zict"]),
        ("-e .\nthis is, not a list\n", []),
    ],
)  # fmt: skip
def test_that_names_are_read_from_locks_rankings_and_texts(text: str, names: list[str]) -> None:
    assert list(listed_names(text)) == names


def test_that_what_was_known_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One spelling of each name, in rows that fit, with what the tables of releases speak of."""
    listed, out = tmp_path / "lock.txt", tmp_path / "names.txt"
    listed.write_text("Made_Up.Name==1\n", encoding="utf-8")
    out.write_text("known-before\n", encoding="utf-8")
    assert main([str(listed), "--out", str(out)]) == 0
    rows = out.read_text(encoding="utf-8").split("\n")
    assert {"made-up-name", "known-before", "vllm", "flashinfer-python"} <= set(" ".join(rows).split())
    assert all(len(row) <= 110 for row in rows)
    assert " new" in capsys.readouterr().out
