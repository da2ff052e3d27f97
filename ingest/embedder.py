"""Turn sentences into vectors.

The default model is all-MiniLM-L6-v2, whose ONNX graph is written once from its weights (see
`ingest.default_model`); onnxruntime runs it. Any other model needs sentence-transformers and torch, which
take seconds to import: it is exported to ONNX once too, and from then on starts as quickly.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corpus.message import Message
from ingest import default_model
from ingest.errors import ModelError
from ingest.extras import advice

DEFAULT_NAME = default_model.NAME
HASHED = "hash"
# A batch whose arrays stay in a core's second cache: larger ones take longer for each token.
BATCH_TOKENS = 512
MOST_THREADS = 8
# The variable that says with how many threads one process computes vectors.
THREADS = "WHYCRASH_THREADS"
RECENT = 1024
TOLERANCE = 1e-3

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Anything that gives vectors; `name` goes into the index, so that vectors of two models never mix."""

    @property
    def name(self) -> str:
        """Name the model."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Give one unit vector a text: shape (texts, dimensions), float32."""


class HashEmbedder:
    """Hash words into a vector: no model, real ranking by shared words; for tests and tiny machines."""

    name = HASHED

    def __init__(self, dimensions: int = 256) -> None:
        self._dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Give one unit vector a text."""
        vectors = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                place = (
                    int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest()) % self._dimensions
                )
                vectors[row, place] += 1.0
        return _unit(vectors)


class OnnxEmbedder:
    """Run an exported model with onnxruntime; no torch is imported. May be shared between threads.

    `threads` is how many batches are computed at once. A batch, and so a single query, takes one thread:
    onnxruntime's own threads wait by spinning, which costs twice the processor time for three quarters of
    the wall time, and takes it from other processes.
    """

    def __init__(self, folder: Path, name: str, threads: int | None = None) -> None:
        # Imported here: a command that needs no vectors should not wait for it.
        import onnxruntime
        from tokenizers import Tokenizer

        self.name = name
        self._threads = threads or _threads()
        facts = json.loads((folder / "export.json").read_text(encoding="utf-8"))
        self._inputs: list[str] = facts["inputs"]
        self._pads = {"input_ids": int(facts["pad_id"])}
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(facts["max_tokens"])
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        # The jobs of a batch, and the stages of one answer, ask the same again.
        self._recent = lru_cache(maxsize=RECENT)(self._single)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Give one unit vector a text.

        Equal texts are computed once, texts of like length share a batch, so that little is padding.
        """
        if len(texts) == 1:
            return self._recent(texts[0])
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        if not places:
            return np.zeros((0, 0), dtype=np.float32)
        return self._unique(list(places))[[places[text] for text in texts]]

    def _single(self, text: str) -> Vectors:
        vectors = self._unique([text])
        vectors.setflags(write=False)  # every asker of the same text gets this array
        return vectors

    def _unique(self, texts: Sequence[str]) -> Vectors:
        encodings = self._tokenizer.encode_batch(list(texts))
        batches = list(batches_of([len(encoding.ids) for encoding in encodings]))
        inputs = [[encodings[place] for place in batch] for batch in batches]
        if self._threads == 1 or len(batches) == 1:
            rows = [self._batch(batch) for batch in inputs]
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                rows = list(pool.map(self._batch, inputs))
        vectors = np.empty((len(texts), rows[0].shape[1]), dtype=np.float32)
        for batch, made in zip(batches, rows, strict=True):
            vectors[batch] = made
        return vectors

    def _batch(self, encodings: Sequence[Any]) -> Vectors:
        columns = {
            "input_ids": [encoding.ids for encoding in encodings],
            "attention_mask": [encoding.attention_mask for encoding in encodings],
            "token_type_ids": [encoding.type_ids for encoding in encodings],
        }
        feed = {}
        for name in self._inputs:
            rows = columns[name]
            table = np.full((len(rows), max(map(len, rows))), self._pads.get(name, 0), dtype=np.int64)
            for place, row in enumerate(rows):
                table[place, : len(row)] = row
            feed[name] = table
        return _unit(np.asarray(self._session.run(None, feed)[0], dtype=np.float32))


def _threads() -> int:
    """Give the threads for many texts: those that THREADS names, else the machine's cores."""
    return int(os.environ.get(THREADS) or min(MOST_THREADS, os.cpu_count() or 1))


def batches_of(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Put places of like length together, the longest first, up to BATCH_TOKENS with their padding."""
    held: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if held and (len(held) + 1) * lengths[held[0]] > BATCH_TOKENS:
            yield held
            held = []
        held.append(place)
    if held:
        yield held


class SentenceEmbedder:
    """Run any sentence-transformers model as it is; slower to start, and the reference for exports."""

    def __init__(self, model: str, name: str) -> None:
        self.name = name
        self._model = _sentence_transformer(model)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Give one unit vector a text."""
        vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def open_embedder(setting: str, home: Path, threads: int | None = None) -> Embedder:
    """Open the model that `setting` names (empty: the default), exporting it under `home` once.

    `threads` is how many it may use for many texts (None: the machine's cores, up to MOST_THREADS).
    Raises ModelError where its files are missing or are not the ones expected.
    """
    if setting == HASHED:
        return HashEmbedder()
    folder = exported(setting, home)
    if folder is None:
        folder = _export(setting, home)
    if folder is None:
        return SentenceEmbedder(setting, setting)
    return OnnxEmbedder(folder, setting or DEFAULT_NAME, threads)


def exported(setting: str, home: Path) -> Path | None:
    """Give the folder of a finished export, or None."""
    folder = export_folder(setting, home)
    return folder if (folder / "export.json").exists() else None


def export_folder(setting: str, home: Path) -> Path:
    """Name the folder of a model's export, which is complete once its last file is there."""
    if not setting:
        return home / "models" / f"{default_model.PUBLISHED_SHA256[:12]}-{default_model.GRAPH}"
    return home / "models" / hashlib.sha256(setting.encode()).hexdigest()[:12]


def _export(setting: str, home: Path) -> Path | None:
    """Write a model's graph and what belongs to it; None where it cannot be exported."""
    target = export_folder(setting, home)
    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    try:
        part.mkdir(parents=True, exist_ok=True)
        if not setting:
            default_model.write(part)
        elif not _export_other(setting, part):
            return None
        if not exported(setting, home):  # else another process was faster
            shutil.rmtree(target, ignore_errors=True)
            part.rename(target)
    except OSError as error:
        if exported(setting, home):
            return target
        raise ModelError(
            Message("errors.cannot-written-set-whycrash", parent=part.parent, reason=error.strerror)
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _export_other(setting: str, part: Path) -> bool:
    """Export a model with PyTorch, and tell whether its vectors are the original's."""
    model = _sentence_transformer(setting)
    probe = ["CUDA out of memory during rollout", "Ray 节点内存不足", "x " * 400]
    try:
        _write_onnx(model, part)
        original = np.asarray(
            model.encode(probe, normalize_embeddings=True, show_progress_bar=False), dtype=np.float32
        )
        return bool(np.abs(OnnxEmbedder(part, "probe").embed(probe) - original).max() < TOLERANCE)
    except (RuntimeError, ValueError, TypeError, AttributeError, KeyError):
        return False  # a model of another make: sentence-transformers itself serves it


def _sentence_transformer(model: str) -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Imported here: it takes seconds, and only another model than the default one needs it.
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging
        except ImportError as error:
            raise ModelError(advice("sentence-transformers")) from error

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # its own annotation is missing
        try:
            return SentenceTransformer(model, device="cpu")
        except (OSError, ValueError) as error:
            raise ModelError(f"The embedding model {model!r} cannot be loaded: {error}") from error


def _write_onnx(model: Any, folder: Path) -> None:
    import torch

    tokenizer = model.tokenizer
    if (inner := getattr(model, "transformers_model", None)) is not None:
        # The fused attention exports a guard against rows without a token, which costs a tenth of long
        # batches.
        inner.set_attn_implementation("eager")
    sample = dict(tokenizer(["a probe", "of two lengths, one longer"], padding=True, return_tensors="pt"))

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model  # registered, so that its weights are traced as weights

        def forward(self, *columns: Any) -> Any:
            return self.model(dict(zip(sample, columns, strict=True)))["sentence_embedding"]

    axes = {name: {0: "batch", 1: "tokens"} for name in sample} | {"embedding": {0: "batch"}}
    raw = folder / "raw.onnx"
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        # The newer exporter fixes the shapes of this model's attention mask; the older one does not.
        torch.onnx.export(
            Encoder().eval(),
            tuple(sample.values()),
            str(raw),
            input_names=list(sample),
            output_names=["embedding"],
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
    _optimise(raw, folder / "model.onnx")
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    facts = {
        "inputs": list(sample),
        "max_tokens": int(model.max_seq_length or 512),
        "pad_id": int(tokenizer.pad_token_id or 0),
        "pad_token": str(tokenizer.pad_token),
    }
    (folder / "export.json").write_text(json.dumps(facts), encoding="utf-8")


def _optimise(raw: Path, target: Path) -> None:
    """Optimise the graph once, here, so that no later start pays for it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(raw), options, providers=["CPUExecutionProvider"])
    raw.unlink()


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.maximum(lengths, 1e-9)).astype(np.float32)
    return unit
