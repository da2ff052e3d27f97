"""Recorded answers of chat models: asked once, replayed without a model.

A cassette is a file of JSON lines, one an answer: the incident, a hash of the request, the answer's text or
the tools that it calls, and its tokens. The request itself is not kept: it is made anew from the incident,
what the calls found included, and has to have the same hash. An answer that was recorded for another request
of the same incident is replayed too, and counted as stale.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eval.errors import EvalError
from service.llm.client import joined_calls
from service.llm.models import AnswerPiece, ChatMessage, ChatModel, ToolCallingModel, ToolCallPiece
from service.schemas.errors import ModelRejectedError, ModelToolsError

FOLDER = Path(__file__).parent / "recordings"


@dataclass(frozen=True)
class RecordedCall:
    """A call of a tool; `arguments` is JSON as the model wrote it."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Recording:
    """One answer to one request of an incident; `number` counts the requests of the incident from 1.

    `tools` tells that the request offered tools, `calls` which of them the answer calls, in its order.
    """

    incident: str
    number: int
    request: str
    answer: str
    sent: int = 0
    received: int = 0
    tools: bool = False
    calls: tuple[RecordedCall, ...] = ()

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Recording:
        """Read a row of a cassette; raises TypeError where it is none."""
        calls = tuple(RecordedCall(**call) for call in row.get("calls", ()))
        return cls(**{**row, "calls": calls})

    def row(self) -> dict[str, Any]:
        """Give the row of a cassette; what an answer without tools has none of is left out."""
        every = asdict(self)
        return {name: value for name, value in every.items() if value or name not in ("tools", "calls")}


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
                found = Recording.read(json.loads(row))
                made.recordings[found.incident, found.number] = found
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise EvalError(f"{path} cannot be read as recorded answers: {error}") from error
        return made

    def save(self) -> None:
        """Write all recordings, in the order of the incidents."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [json.dumps(self.recordings[key].row(), ensure_ascii=False) for key in sorted(self.recordings)]
        beside = self.path.with_suffix(".new")
        beside.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        beside.replace(self.path)

    def add(self, recording: Recording) -> None:
        """Keep an answer in the place of an earlier one to the same request."""
        self.recordings[recording.incident, recording.number] = recording

    def requests(self, incident: str) -> list[Recording]:
        """Give the recordings of an incident in the order of its requests, up to the first that lacks."""
        found: list[Recording] = []
        while (incident, len(found) + 1) in self.recordings:
            found.append(self.recordings[incident, len(found) + 1])
        return found

    def offers_tools(self, incident: str) -> bool:
        """Tell whether the model was offered tools when it was asked about an incident."""
        return any(recording.tools for recording in self.requests(incident))


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
        model = self.model
        yield from self._answered(messages, None if model is None else model.stream(messages, schema), False)

    def stream_with_tools(
        self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]
    ) -> Iterator[AnswerPiece]:
        """Give the recorded answer, or the tools that it calls; raises ModelError as `stream` does."""
        model = self.model
        if model is not None and not isinstance(model, ToolCallingModel):
            raise ModelToolsError(f"{model.name} calls no tools")
        asked = None if model is None else model.stream_with_tools(messages, tools)
        yield from self._answered(messages, asked, True)

    def _answered(
        self, messages: Sequence[ChatMessage], asked: Iterator[AnswerPiece] | None, tools: bool
    ) -> Iterator[AnswerPiece]:
        """Give what is recorded for a request; `asked` is what the model would say, if there is one."""
        key = request_key(messages)
        # A request that fails is made again under the same number.
        number = self._asked + 1
        found = self.cassette.recordings.get((self.incident, number))
        if asked is not None and (found is None or found.request != key):
            found = self._record(list(asked), key, number, tools)
        if found is None:
            # What is asked behind a whole answer, such as its changes anew, was not asked when that was said.
            before = self.cassette.recordings.get((self.incident, self._asked))
            if before is None or before.calls:
                self.cassette.missing.add(self.incident)
            raise ModelRejectedError(f"no answer is recorded for {self.incident}")
        if found.request != key:
            self.cassette.stale.add(self.incident)
        self._asked = number
        calls = tuple(
            ToolCallPiece(place, f"call_{number}_{place}", call.name, call.arguments)
            for place, call in enumerate(found.calls)
        )
        yield AnswerPiece(found.answer, found.sent, found.received, calls)

    def _record(self, pieces: Sequence[AnswerPiece], key: str, number: int, tools: bool) -> Recording:
        made = Recording(
            self.incident,
            number,
            key,
            "".join(piece.text for piece in pieces),
            max((piece.sent for piece in pieces), default=0),
            max((piece.received for piece in pieces), default=0),
            tools,
            tuple(RecordedCall(call.name, call.arguments) for call in joined_calls(pieces)),
        )
        self.cassette.add(made)
        # Kept at once: an answer may have cost money.
        self.cassette.save()
        return made


def request_key(messages: Sequence[ChatMessage]) -> str:
    """Give the hash of what is sent: each message with the calls that it makes, without their ids."""
    told: list[list[object]] = []
    for message in messages:
        calls = [[call.name, call.arguments] for call in message.calls]
        told.append([message.role, message.text, *([calls] if calls else [])])
    text = json.dumps(told, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
