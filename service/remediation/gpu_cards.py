"""How much memory a card has that a log names by its type."""

from __future__ import annotations

import re
from collections.abc import Iterable

# GiB by NVIDIA's and AMD's data sheets; of a type in several sizes the largest, unless the name tells it.
_SIZES: tuple[tuple[str, float], ...] = (
    ("B300", 288),
    ("MI325X", 256),
    ("MI300X", 192),
    ("B200|GB200", 192),
    ("H200", 141),
    ("H20", 96),
    ("MI250X?", 128),
    (r"H100\w*(?:[- ]\w+){0,3}|H800", 80),
    (r"A100\w*(?:[- ]\w+){0,2}[- ]40GB|A100-40G", 40),
    ("A100|A800", 80),
    ("RTX PRO 6000", 96),
    ("L40S?|A40|RTX 6000 Ada|RTX A6000", 48),
    ("V100", 32),
    (r"RTX 5090", 32),
    (r"RTX [34]090|A10G?|L4|A30|RTX A5000", 24),
    (r"T4|P100|RTX [45]080", 16),
)
_CARDS = tuple((re.compile(rf"(?i)\b(?:{name})\b"), gib) for name, gib in _SIZES)
_ANY_CARD = re.compile(rf"(?i)\b(?:{'|'.join(name for name, _ in _SIZES)})\b")


def largest_gib(texts: Iterable[str]) -> float | None:
    """Give the memory of the largest card that one of the texts names; None where none does."""
    naming = (text for text in texts if _ANY_CARD.search(text))
    found = (next((gib for name, gib in _CARDS if name.search(text)), None) for text in naming)
    return max((gib for gib in found if gib is not None), default=None)
