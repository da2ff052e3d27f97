"""Cards that a job is to take, held against the degrees by which it spreads its model over them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from corpus.keys import canonical, last_level
from corpus.message import joined, words
from corpus.schema import Language
from ingest.logs.configs.launch import Setting
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange

_LISTS = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
# Of each kind the largest counts: an engine and a trainer beside it may have one each.
_DEGREES = (
    re.compile(r"(?:tensor_)?(?:model_)?parallel_(?:size|degree)|tp(?:_size|_degree)?|model_parallel_size"),
    re.compile(r"(?:pipeline|pipe)_(?:model_)?parallel_(?:size|degree)|pp(?:_size|_degree)?"),
    re.compile(r"context_parallel_(?:size|degree)|cp(?:_size|_degree)?"),
)
_MOST = 4096


def with_degrees(
    changes: Sequence[ProposedChange], settings: Sequence[Setting], language: Language
) -> list[ProposedChange]:
    """Say of each list of cards, which words alone describe, of what number its count must be a multiple."""
    degrees = [
        max(numbers, default=1)
        for kind in _DEGREES
        for numbers in [
            [
                int(item.value)
                for item in settings
                if kind.fullmatch(canonical(last_level(item.key)).lower())
                and re.fullmatch(r"\d{1,4}", item.value.strip())
            ]
        ]
    ]
    total = prod(max(1, degree) for degree in degrees)
    if not 1 < total <= _MOST:
        return list(changes)
    told = words("changes.cards-multiple", language, total=total)
    return [
        change.model_copy(update={"why": joined(change.why, told, language)})
        if change.key in _LISTS and change.purpose == "cure" and is_guidance(change.to)
        else change
        for change in changes
    ]
