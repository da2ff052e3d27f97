"""What the log's own arithmetic asks of any value of a setting."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ValueBounds(BaseModel):
    """What the log's own arithmetic asks of any value of a setting, beside the one that is proposed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at_most: float | None = None
    at_least: float | None = None
    multiple_of: float | None = None

    def hold(self, value: float) -> bool:
        """Tell whether a value keeps to all of them."""
        return (
            (self.at_most is None or value <= self.at_most)
            and (self.at_least is None or value >= self.at_least)
            and (not self.multiple_of or value % self.multiple_of == 0)
        )
