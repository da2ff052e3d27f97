"""Write the ONNX graph of a BERT encoder with mean pooling, from its weights alone.

No package for models is needed: the file is Protocol Buffers, whose wire format is a few rows
(https://protobuf.dev/programming-guides/encoding/, field numbers from onnx/onnx.proto of ONNX). The operators
of the domain com.microsoft compute a whole attention or a normalisation each, so that nothing is left to
optimise when the graph is opened.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[np.float32]]

INPUTS = ("input_ids", "attention_mask")
OUTPUT = "embedding"
# The file of the large tensors, each from the beginning of a page on.
NUMBERS, _PAGE = "model.weights", 4096
_FUSED = "com.microsoft"
# Versions that onnxruntime has read since 1.14: of the format, and of ONNX's and Microsoft's operators.
_FORMAT = 8
_OPERATORS = (("", 17), (_FUSED, 1))
# Numbers of onnx.proto: TensorProto.DataType and AttributeProto.AttributeType.
_FLOAT, _INT32, _INT64 = 1, 6, 7
# TensorProto.DataLocation.
_EXTERNAL = 1
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2
_TENSOR_TYPES = {np.dtype(np.float32): _FLOAT, np.dtype(np.int64): _INT64}


@dataclass(frozen=True)
class BertShape:
    """What the weights do not tell by their own shapes."""

    layers: int
    heads: int
    epsilon: float


@dataclass(frozen=True)
class _Node:
    operator: str
    inputs: Sequence[str]
    output: str
    domain: str = ""
    attributes: Mapping[str, int | float] | None = None
    second: str = ""


def write(weights: Weights, shape: BertShape, target: Path) -> None:
    """Write the graph: token ids and a mask, both int64 (texts, tokens), to float32 (texts, dimensions).

    `weights` are named as in Hugging Face's BertModel; raises KeyError where one is missing. The vectors are
    sums over the tokens: of unit length, they are the same as means. The numbers of large tensors go to a
    file beside the graph, which is mapped into memory: processes share it, and none reads more than it uses.
    """
    tensors, rows = dict(_tensors(weights, shape)), []
    with target.with_name(NUMBERS).open("wb") as stream:
        for name, tensor in tensors.items():
            is_apart = tensor.nbytes >= _PAGE
            stream.write(bytes(-stream.tell() % _PAGE))
            rows.append(_message(5, _tensor(name, tensor, stream.tell() if is_apart else None)))
            stream.write(tensor.tobytes() if is_apart else b"")
    ends = [_message(11, _value(name, _INT64, ("texts", "tokens"))) for name in INPUTS]
    ends.append(_message(12, _value(OUTPUT, _FLOAT, ("texts", tensors["embeddings.words"].shape[1]))))
    nodes = [_message(1, _node(node)) for node in _nodes(shape)]
    graph = b"".join([*nodes, _text(2, "encoder"), *rows, *ends])
    head = _number(1, _FORMAT) + _text(2, "whycrash")
    operators = (_message(8, _text(1, domain) + _number(2, version)) for domain, version in _OPERATORS)
    target.write_bytes(b"".join([head, *operators, _message(7, graph)]))


def _tensor(name: str, tensor: NDArray[np.generic], place: int | None) -> bytes:
    """Write a tensor with its numbers, or with where they begin in the file beside the graph."""
    fields = b"".join(_number(1, size) for size in tensor.shape) + _number(2, _TENSOR_TYPES[tensor.dtype])
    if place is None:
        return fields + _text(8, name) + _message(9, tensor.tobytes())
    where = {"location": NUMBERS, "offset": str(place), "length": str(tensor.nbytes)}
    entries = b"".join(_message(13, _text(1, key) + _text(2, value)) for key, value in where.items())
    return fields + _text(8, name) + entries + _number(14, _EXTERNAL)


def _tensors(weights: Weights, shape: BertShape) -> Iterator[tuple[str, NDArray[np.generic]]]:
    yield "pooled_axis", np.array([1], dtype=np.int64)
    yield "embeddings.words", weights["embeddings.word_embeddings.weight"]
    # One text has one segment, the first.
    first = weights["embeddings.token_type_embeddings.weight"][0]
    yield "embeddings.positions", weights["embeddings.position_embeddings.weight"] + first
    yield from _normalisation("embeddings", weights, "embeddings.LayerNorm")
    for number in range(shape.layers):
        ours, theirs = f"layer.{number}", f"encoder.layer.{number}"
        parts = [f"{theirs}.attention.self.{part}" for part in ("query", "key", "value")]
        yield f"{ours}.attention.weight", _columns([weights[f"{part}.weight"] for part in parts])
        yield f"{ours}.attention.bias", np.concatenate([weights[f"{part}.bias"] for part in parts])
        for name, place in (
            ("projection", "attention.output.dense"),
            ("wide", "intermediate.dense"),
            ("narrow", "output.dense"),
        ):
            yield f"{ours}.{name}.weight", _columns([weights[f"{theirs}.{place}.weight"]])
            yield f"{ours}.{name}.bias", weights[f"{theirs}.{place}.bias"]
        yield from _normalisation(f"{ours}.attention", weights, f"{theirs}.attention.output.LayerNorm")
        yield from _normalisation(f"{ours}.output", weights, f"{theirs}.output.LayerNorm")


def _columns(matrices: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Put PyTorch's matrices (outputs, inputs) beside each other, as ONNX multiplies from the left."""
    return np.ascontiguousarray(np.concatenate(matrices).T)


def _normalisation(ours: str, weights: Weights, theirs: str) -> Iterator[tuple[str, NDArray[np.float32]]]:
    yield f"{ours}.scale", weights[f"{theirs}.weight"]
    yield f"{ours}.shift", weights[f"{theirs}.bias"]


def _nodes(shape: BertShape) -> Iterator[_Node]:
    epsilon = {"epsilon": shape.epsilon}
    yield _Node("Cast", ["input_ids"], "ids", attributes={"to": _INT32})
    yield _Node("Cast", ["attention_mask"], "mask", attributes={"to": _INT32})
    # Without segments: their inputs stay empty.
    embeddings = ["ids", "", "embeddings.words", "embeddings.positions", "", *_scaled("embeddings")]
    # Its second output, how long each text is, must be named though nobody reads it.
    yield _Node("EmbedLayerNormalization", embeddings, "hidden.0", _FUSED, epsilon, second="lengths")
    for number in range(shape.layers):
        name, hidden = f"layer.{number}", f"hidden.{number}"
        attention = [hidden, f"{name}.attention.weight", f"{name}.attention.bias", "mask"]
        yield _Node("Attention", attention, f"{name}.attended", _FUSED, {"num_heads": shape.heads})
        yield _Node("MatMul", [f"{name}.attended", f"{name}.projection.weight"], f"{name}.projected")
        first = [f"{name}.projected", hidden, *_scaled(f"{name}.attention"), f"{name}.projection.bias"]
        yield _Node("SkipLayerNormalization", first, f"{name}.middle", _FUSED, epsilon)
        yield _Node("MatMul", [f"{name}.middle", f"{name}.wide.weight"], f"{name}.wide")
        yield _Node("BiasGelu", [f"{name}.wide", f"{name}.wide.bias"], f"{name}.active", _FUSED)
        yield _Node("MatMul", [f"{name}.active", f"{name}.narrow.weight"], f"{name}.narrow")
        second = [f"{name}.narrow", f"{name}.middle", *_scaled(f"{name}.output"), f"{name}.narrow.bias"]
        yield _Node("SkipLayerNormalization", second, f"hidden.{number + 1}", _FUSED, epsilon)
    yield _Node("Cast", ["attention_mask"], "weight", attributes={"to": _FLOAT})
    yield _Node("Unsqueeze", ["weight", "pooled_axis"], "weights")
    yield _Node("MatMul", ["weights", f"hidden.{shape.layers}"], "sums")
    yield _Node("Squeeze", ["sums", "pooled_axis"], OUTPUT)


def _scaled(name: str) -> tuple[str, str]:
    return f"{name}.scale", f"{name}.shift"


def _node(node: _Node) -> bytes:
    parts = [_text(1, name) for name in node.inputs]
    parts += [_text(2, name) for name in (node.output, node.second) if name]
    parts += [_text(3, node.output), _text(4, node.operator)]
    for name, value in (node.attributes or {}).items():
        if isinstance(value, int):
            number = _number(3, value) + _number(20, _ATTRIBUTE_INT)
        else:
            number = _tag(2, 5) + struct.pack("<f", value) + _number(20, _ATTRIBUTE_FLOAT)
        parts.append(_message(5, _text(1, name) + number))
    return b"".join(parts) + (_text(7, node.domain) if node.domain else b"")


def _value(name: str, kind: int, sizes: Sequence[str | int]) -> bytes:
    shape = b"".join(
        _message(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in sizes
    )
    return _text(1, name) + _message(2, _message(1, _number(1, kind) + _message(2, shape)))


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return _tag(field, 2) + _varint(len(content)) + content


def _number(field: int, value: int) -> bytes:
    return _tag(field, 0) + _varint(value)


def _tag(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(value: int) -> bytes:
    """Give a number, which must not be negative, seven bits a byte."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
