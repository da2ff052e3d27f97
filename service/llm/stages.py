"""The stages in which an answer comes.

The rules' own at once, a model's words as they stand, the whole at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from service.schemas.diagnosis import Diagnosis, TraceStep


@dataclass(frozen=True, slots=True)
class DraftStage:
    """The first answer, by rules; it stands whatever comes after."""

    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class LookStage:
    """A look of a model into the log or what is known."""

    step: TraceStep


@dataclass(frozen=True, slots=True)
class TextStage:
    """A paragraph of a model's explanation that has passed its checks."""

    text: str


@dataclass(frozen=True, slots=True)
class FinalStage:
    """The whole answer; always the last stage."""

    diagnosis: Diagnosis


Stage = DraftStage | LookStage | TextStage | FinalStage
