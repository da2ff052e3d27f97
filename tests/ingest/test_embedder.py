"""Embedders: unit vectors, the same whichever way they are computed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ingest import default_model, embedder
from ingest.embedder import (
    DEFAULT_NAME,
    TOLERANCE,
    HashEmbedder,
    OnnxEmbedder,
    SentenceEmbedder,
    open_embedder,
)
from ingest.errors import ModelError
from tests.tables import each_row

TEXTS = (
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    "actor_rollout_ref.rollout.free_cache_engine=False",
    "Ray 节点内存不足，工作进程被杀",
    "",
    "x",
    "NCCL watchdog timeout " * 300,
    "ein Rang wartet",
)


@pytest.fixture(scope="module")
def exported_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home where the default model is exported once; takes seconds."""
    home = tmp_path_factory.mktemp("home")
    open_embedder("", home)
    return home


@pytest.mark.long
def test_the_export_gives_the_models_own_vectors(exported_home: Path) -> None:
    """Short, long, empty and Chinese texts differ from sentence-transformers by less than a thousandth."""
    exported = open_embedder("", exported_home)
    assert isinstance(exported, OnnxEmbedder)
    assert exported.name == DEFAULT_NAME
    reference = SentenceEmbedder(str(default_model.folder()), "reference").embed(TEXTS)
    found = exported.embed(TEXTS)
    assert found.shape == reference.shape == (len(TEXTS), 384)
    assert float(np.abs(found - reference).max()) < TOLERANCE
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@pytest.mark.long
def test_a_text_has_one_vector_whatever_it_shares_a_batch_with(exported_home: Path) -> None:
    """Batches are sorted by length; the rows come back in the order of the texts."""
    exported = open_embedder("", exported_home)
    many = [f"{text[:200]} {number}" for number in range(6) for text in TEXTS]
    together, alone = exported.embed(many), np.concatenate([exported.embed([text]) for text in many])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert exported.embed([]).shape[0] == 0


@pytest.mark.long
def test_a_text_has_one_vector_however_many_threads_compute(
    exported_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread, two, and what a process sets for itself; equal texts are computed once."""
    many = [f"{text[:300]} {number}" for number in range(9) for text in TEXTS] + list(TEXTS)
    one, two = (open_embedder("", exported_home, threads).embed(many) for threads in (1, 2))
    monkeypatch.setenv("WHYCRASH_THREADS", "1")
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, open_embedder("", exported_home).embed(many))
    np.testing.assert_allclose(
        open_embedder("", exported_home, 2).embed([*many, *many])[len(many) :], one, atol=1e-5
    )


@pytest.mark.long
def test_a_query_that_comes_again_is_not_computed_again(exported_home: Path) -> None:
    """The same array comes back, and nobody can change it for the others."""
    exported = open_embedder("", exported_home)
    first = exported.embed(["CUDA out of memory"])
    assert exported.embed(["CUDA out of memory"]) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1.0


@each_row("lengths", [[], [5], [7, 7, 7], [1, 300, 2, 299, 3], list(range(1, 257)), [10_000, 1]])
def test_batches_hold_each_place_once_and_little_padding(lengths: list[int]) -> None:
    """No batch is wider than its bound, but for a text that is so by itself; the longest come first."""
    batches = list(embedder.batches_of(lengths))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    widths = [max(lengths[place] for place in batch) for batch in batches]
    assert widths == sorted(widths, reverse=True)
    assert all(
        len(batch) == 1 or len(batch) * width <= embedder.BATCH_TOKENS
        for batch, width in zip(batches, widths, strict=True)
    )


@pytest.mark.long
def test_meaning_decides(exported_home: Path) -> None:
    """The real model puts a paraphrase before a text that shares words."""
    vectors = open_embedder("", exported_home).embed(
        [
            "the GPU ran out of memory",
            "not enough VRAM left on the graphics card",
            "the list of those who ran out of the house",
        ]
    )
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


@pytest.mark.long
def test_an_exported_model_needs_no_torch(exported_home: Path) -> None:
    """A second process starts without the packages that take seconds to import."""
    code = (
        "import sys; from pathlib import Path; from ingest.embedder import open_embedder; "
        "shape = open_embedder('', Path(sys.argv[1])).embed(['x']).shape; "
        "print(shape, sorted({'torch', 'sentence_transformers', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(exported_home)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(1, 384) []"


@each_row(
    ("files", "message"),
    [
        ({"model.safetensors": b"other weights"}, r"weights at .* are not the pinned ones"),
        ({}, r"has no weights at .*reinstall"),
    ],
)
def test_wrong_weights_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], message: str
) -> None:
    """A package of the model's name with other weights is not exported, and nothing is left behind."""
    model = tmp_path / "packages" / default_model.PACKAGE / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").touch()
    for name, content in files.items():
        (model / name).write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    with pytest.raises(ModelError, match=message):
        open_embedder("", tmp_path / "home")
    assert embedder.exported("", tmp_path / "home") is None


def test_an_unfinished_export_is_none(tmp_path: Path) -> None:
    """Only a folder with its last file counts."""
    folder = embedder.export_folder("", tmp_path)
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"half")
    assert embedder.exported("", tmp_path) is None


@pytest.mark.long
def test_a_model_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    """No download is tried: the message names what was asked for."""
    with pytest.raises(ModelError, match=r"'.*no-such-model' cannot be loaded"):
        open_embedder(str(tmp_path / "no-such-model"), tmp_path / "home")


def test_the_hash_embedder_needs_no_model(tmp_path: Path) -> None:
    """It writes nothing and has a name of its own, so that its vectors never mix with a model's."""
    found = open_embedder("hash", tmp_path / "home")
    assert found.name == "hash"
    assert not (tmp_path / "home").exists()


def test_hashed_vectors_rank_by_shared_words() -> None:
    """More shared words, higher cosine; case does not count; no words, no direction."""
    query, near, far, none = HashEmbedder().embed(
        ["CUDA out of memory", "cuda memory error", "nccl timeout", ""]
    )
    assert query @ near > 0.4 > query @ far
    assert not none.any()
    np.testing.assert_allclose(np.linalg.norm([query, near, far], axis=1), 1, atol=1e-6)


def test_hashed_vectors_are_the_same_in_every_process() -> None:
    """Python's own hash is salted; this one is not."""
    code = (
        "from ingest.embedder import HashEmbedder; print(HashEmbedder().embed(['cuda "
        "memory'])[0].nonzero()[0].tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(HashEmbedder().embed(["cuda memory"])[0].nonzero()[0].tolist())
