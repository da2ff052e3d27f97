"""Loading the table of remedies, and what it covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus import library
from corpus.errors import InvalidCorpusError
from corpus.library import Library, dump_yaml
from tests.corpus.test_library import write_corpus
from tests.factories import whole_corpus
from tests.tables import each_row

MEASURE: dict[str, object] = {"why": {"en": "It helps.", "zh": "有帮助。"}, "when": ["phase:save"]}
ROW: dict[str, object] = {"framework": "ray", "kind": "flag", "key": "--temp-dir", "to": "/local"}


def write(root: Path, *rows: dict[str, object], documented: bool = True) -> Path:
    """Write a corpus with one measure of one cause."""
    write_corpus(root)
    (root / "remedies").mkdir()
    if documented:
        (root / "remedies" / "documented.yaml").write_text("ray: https://example.org/ray\n", encoding="utf-8")
    (root / "remedies" / "storage.yaml").write_text(
        dump_yaml({"disk-full": [{**MEASURE, "rows": list(rows)}]}), encoding="utf-8"
    )
    return root


@pytest.fixture(scope="module")
def shipped() -> Library:
    """The corpus that ships."""
    return whole_corpus()


def test_that_a_measure_is_read_as_a_row_for_each_spelling(tmp_path: Path) -> None:
    """What is written once above the rows holds for each; a row's own conditions come on top."""
    other = {**ROW, "key": "--port", "to": 1, "when": ["framework:ray"], "source": "https://example.org/port"}
    first, second = library.load(write(tmp_path, ROW, other)).remedies["disk-full"]
    assert (first.key, first.cause, first.when, first.why.en, first.source) == (
        "--temp-dir",
        "disk-full",
        ("phase:save",),
        "It helps.",
        "https://example.org/ray",
    )
    assert (second.key, second.when, second.source) == (
        "--port",
        ("phase:save", "framework:ray"),
        "https://example.org/port",
    )


@each_row(
    ("row", "told"),
    [
        ({**ROW, "tow": 1}, "tow"),
        ({**ROW, "kind": "wish"}, "kind"),
        ({**ROW, "unless": ["nonsense"]}, "unless"),
        ({"framework": "ray"}, "kind"),
    ],
)
def test_that_a_wrong_row_is_named_with_its_file_and_field(
    row: dict[str, object], told: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidCorpusError, match=rf"storage.yaml: disk-full: .*{told}"):
        library.load(write(tmp_path, row))


def test_that_a_row_without_a_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidCorpusError, match="source"):
        library.load(write(tmp_path, ROW, documented=False))


def test_that_remedies_come_back_out_of_the_cache_and_change_the_digest(tmp_path: Path) -> None:
    root = write(tmp_path / "corpus", ROW)
    before, loaded = library.digest(root), library.load(root, tmp_path / "cache")
    assert library.load(root, tmp_path / "cache").remedies == loaded.remedies
    (root / "remedies" / "storage.yaml").write_text("disk-full: []\n", encoding="utf-8")
    assert library.digest(root) != before
    assert library.load(root, tmp_path / "cache").remedies == {}


def test_that_every_cause_but_the_unknown_one_has_remedies(shipped: Library) -> None:
    assert set(shipped.causes) - set(shipped.remedies) == {"insufficient-evidence"}


TRAINERS = {
    "verl",
    "easyr1",
    "tinyzero",
    "simplerl-reason",
    "openrlhf",
    "trl",
    "transformers",
    "llamafactory",
    "ms-swift",
    "axolotl",
    "megatron",
}
WITH_ENGINE = (TRAINERS - {"transformers", "axolotl", "megatron"}) | {"vllm", "sglang"}
# Failures that a job of any trainer can have.
ANYWHERE = {
    "gpu-oom-training": TRAINERS | {"deepspeed", "accelerate", "lightning", "pytorch"},
    "gpu-oom-rollout": WITH_ENGINE,
    "kv-cache-too-small": WITH_ENGINE,
    "collective-straggler": {
        "verl",
        "trl",
        "transformers",
        "llamafactory",
        "ms-swift",
        "axolotl",
        "megatron",
        "deepspeed",
        "pytorch",
        "vllm",
        "sglang",
    },
    "dataloader-worker-killed": {
        "verl",
        "transformers",
        "llamafactory",
        "ms-swift",
        "axolotl",
        "megatron",
        "pytorch",
    },
    "batch-not-divisible": TRAINERS - {"llamafactory", "axolotl"} | {"deepspeed"},
    "sequence-too-long": TRAINERS - {"transformers", "megatron"} | {"vllm", "sglang"},
    "checkpoint-corrupt": {
        "verl",
        "easyr1",
        "openrlhf",
        "transformers",
        "ms-swift",
        "axolotl",
        "megatron",
        "lightning",
    },
    "nan-or-inf": TRAINERS - {"llamafactory"} | {"deepspeed", "lightning"},
    "file-missing-or-denied": TRAINERS - {"megatron"} | {"vllm", "sglang", "lightning"},
}


@each_row("cause", ANYWHERE)
def test_that_a_failure_of_any_job_has_a_remedy_in_every_framework(cause: str, shipped: Library) -> None:
    assert ANYWHERE[cause] - {row.framework for row in shipped.remedies[cause]} == set()
