"""Recorded answers of chat models: asked once, replayed without a model.

A cassette is a file of JSON lines, one an answer: the incident, a hash of the request, the answer's text and
its tokens. The request itself is not kept: it is made anew from the incident and has to have the same hash.
An answer that was recorded for another prompt of the same incident is replayed too, and counted as stale.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eval.errors import EvalError
from service.llm.models import AnswerPiece, ChatMessage, ChatModel
from service.schemas.errors import ModelRejectedError

FOLDER = Path(__file__).parent / "recordings"


@dataclass(frozen=True)
class Recording:
    """One answer to one request of an incident; `number` counts the requests of the incident from 1."""

    incident: str
    number: int
    request: str
    answer: str
    sent: int = 0
    received: int = 0


@dataclass
class Cassette:
    """The recordings of one model."""

    name: str
    path: Path
    recordings: dict[tuple[str, int], Recording] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)

    @classmethod
    def load(cls, name: str, folder: Path = FOLDER) -> Cassette:
        """Read the cassette of a model; an empty one where there is none. Raises EvalError."""
        path = folder / f"{name}.jsonl"
        made = cls(name, path)
        if not path.exists():
            return made
        try:
            for row in filter(str.strip, path.read_text(encoding="utf-8").split("\n")):
                found = Recording(**json.loads(row))
                made.recordings[found.incident, found.number] = found
        except (OSError, ValueError, TypeError) as error:
            raise EvalError(f"{path} cannot be read as recorded answers: {error}") from error
        return made

    def save(self) -> None:
        """Write all recordings, in the order of the incidents."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [
            json.dumps(asdict(self.recordings[key]), ensure_ascii=False) for key in sorted(self.recordings)
        ]
        beside = self.path.with_suffix(".new")
        beside.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        beside.replace(self.path)

    def add(self, recording: Recording) -> None:
        """Keep an answer in the place of an earlier one to the same request."""
        self.recordings[recording.incident, recording.number] = recording


@dataclass
class ReplayedModel:
    """Answers one incident's requests from a cassette; what it lacks is asked of `model` and recorded."""

    cassette: Cassette
    incident: str
    model: ChatModel | None = None
    _asked: int = 0

    @property
    def name(self) -> str:
        """Name the model whose answers they are."""
        return self.cassette.name

    def stream(
        self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None
    ) -> Iterator[AnswerPiece]:
        """Give the recorded answer; raises ModelRejectedError where there is none and no model to ask."""
        key = request_key(messages)
        # A request that fails is made again under the same number.
        number = self._asked + 1
        found = self.cassette.recordings.get((self.incident, number))
        if self.model is not None and (found is None or found.request != key):
            found = self._record(self.model, messages, schema, key, number)
        if found is None:
            self.cassette.missing.add(self.incident)
            raise ModelRejectedError(f"no answer is recorded for {self.incident}")
        if found.request != key:
            self.cassette.stale.add(self.incident)
        self._asked = number
        yield AnswerPiece(found.answer, found.sent, found.received)

    def _record(
        self,
        model: ChatModel,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any] | None,
        key: str,
        number: int,
    ) -> Recording:
        pieces = list(model.stream(messages, schema))
        made = Recording(
            self.incident,
            number,
            key,
            "".join(piece.text for piece in pieces),
            max((piece.sent for piece in pieces), default=0),
            max((piece.received for piece in pieces), default=0),
        )
        self.cassette.add(made)
        # Kept at once: an answer may have cost money.
        self.cassette.save()
        return made


def request_key(messages: Sequence[ChatMessage]) -> str:
    """Give the hash of what is sent."""
    told = json.dumps([[message.role, message.text] for message in messages], ensure_ascii=False)
    return hashlib.sha256(told.encode()).hexdigest()[:32]
