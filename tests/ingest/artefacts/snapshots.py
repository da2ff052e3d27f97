"""Snapshots of GPU memory in the form that PyTorch's allocator gives them, made without a card."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

Value = dict[str, object]
MIB = 1 << 20
GIB = 1 << 30

FORWARD = [
    ("??", 0, "c10::cuda::CUDACachingAllocator::raw_alloc"),
    ("/opt/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", 125, "forward"),
    ("/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", 1750, "_call_impl"),
    ("/opt/env/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", 190, "forward"),
    ("/work/train.py", 40, "train_step"),
    ("/work/train.py", 90, "<module>"),
]
KEPT = [("/work/train.py", 47, "log_losses"), ("/work/train.py", 90, "<module>")]
WEIGHTS = [
    ("/opt/env/lib/python3.11/site-packages/transformers/modeling_utils.py", 4100, "from_pretrained"),
    ("/work/train.py", 12, "build"),
]

Call = tuple[str, int, str]


def stack(calls: Sequence[Call]) -> list[Value]:
    """Give a stack as the allocator keeps it, innermost first."""
    return [{"filename": file, "line": line, "name": name} for file, line, name in calls]


def block(address: int, size: int, calls: Sequence[Call] = (), state: str = "active_allocated") -> Value:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": stack(calls)}


def segment(blocks: Sequence[Value], device: int = 0) -> Value:
    total = sum(int(str(item["size"])) for item in blocks)
    used = sum(int(str(item["size"])) for item in blocks if item["state"] == "active_allocated")
    return {
        "device": device,
        "address": blocks[0]["address"],
        "total_size": total,
        "allocated_size": used,
        "active_size": used,
        "requested_size": used,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": list(blocks),
    }


def entry(action: str, address: int, size: int, calls: Sequence[Call] = (), **more: object) -> Value:
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": stack(calls), **more}


def oom(size: int, free: int, calls: Sequence[Call] = FORWARD) -> Value:
    return {"action": "oom", "device_free": free, "size": size, "stream": 0, "frames": stack(calls)}


def snapshot(segments: Sequence[Value], traces: Sequence[Sequence[Value]] = ()) -> Value:
    return {
        "segments": list(segments),
        "device_traces": [list(trace) for trace in traces],
        "allocator_settings": {"expandable_segments": False, "max_split_size": -1},
        "external_annotations": [],
    }


def full() -> Value:
    """Give a card that activations fill: 40 of 62 GiB are the model's forward pass's."""
    base = 0x7F0000000000
    blocks = [block(base, 14 * GIB, WEIGHTS)]
    blocks += [block(base + (20 + each) * GIB, 2 * GIB, FORWARD) for each in range(20)]
    blocks += [block(base + 60 * GIB, 8 * GIB, KEPT), block(base + 70 * GIB, 100 * MIB, state="inactive")]
    return snapshot([segment(blocks)], [[oom(2 * GIB, 300 * MIB)]])


def fragmented() -> Value:
    """Give a card where 6 GiB lie idle in pieces of 256 MiB."""
    base = 0x7F0000000000
    blocks = []
    for each in range(24):
        blocks += [
            block(base + 2 * each * GIB, 2 * GIB, FORWARD),
            block(base + (2 * each + 1) * GIB, 256 * MIB, state="inactive"),
        ]
    return snapshot([segment(blocks)], [[oom(2 * GIB, 100 * MIB)]])


def growing(steps: int = 400) -> Value:
    """Give a card where each step keeps a tensor and frees its activations."""
    base = 0x7F0000000000
    trace = []
    for step in range(steps):
        kept = base + step * 2 * GIB
        trace += [entry("alloc", kept, 100 * MIB, KEPT), entry("alloc", kept + GIB, 512 * MIB, FORWARD)]
        trace += [
            entry("free_requested", kept + GIB, 512 * MIB),
            entry("free_completed", kept + GIB, 512 * MIB),
        ]
    blocks = [block(base + step * 2 * GIB, 100 * MIB, KEPT) for step in range(steps)]
    return snapshot([segment(blocks)], [[*trace, oom(512 * MIB, 20 * MIB)]])


def packed(value: object, protocol: int = 4) -> bytes:
    return pickle.dumps(value, protocol)
