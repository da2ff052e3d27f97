"""How much may be spent on a text.

What looking for secrets costs is bounded by its bytes, whatever they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# In bytes that one expression looks through. A text has so many to begin with, which a usual log never needs;
# each of its bytes earns some more. About 20 to 50 ns each.
FLOOR, EARNED = 8_000_000, 3
# What looking at anything costs, however short.
CALL = 150


@dataclass(slots=True)
class RedactionBudget:
    """What may still be spent.

    What it does not last for is masked without being read, so that nothing gets by.
    """

    left: int = field(default_factory=lambda: FLOOR)

    def earn(self, size: int) -> None:
        """Add what some bytes of text are worth."""
        self.left += EARNED * size

    def spend(self, cost: int) -> None:
        """Take away what something has cost."""
        self.left -= cost + CALL

    def charge_share(self, before: int, part: int, whole: int) -> None:
        """Count a part of what looking at some bytes has cost since `before`: the rest is looked at again."""
        self.left = before + (self.left - before) * part // whole

    def affords(self, cost: int) -> bool:
        """Take away what something will cost, where there is enough left for it."""
        if cost > self.left:
            return False
        self.left -= cost
        return True

    @property
    def is_spent(self) -> bool:
        """Tell whether nothing is left."""
        return self.left <= 0
