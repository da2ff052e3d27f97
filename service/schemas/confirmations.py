"""What persons said of a crash before: a sign in the next answer of its kind."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict


class ConfirmedCause(BaseModel):
    """A cause that a person confirmed for a crash of a kind, and when."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fingerprint: str
    cause: str
    on: datetime


class Confirmation(BaseModel):
    """What a person said of the same crash before: its cause, when, and whether that made a difference.

    It counts as one sign, and never against a cause that the log itself states.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cause: str
    on: datetime
    counted: bool
