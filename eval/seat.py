"""A reader in a model's seat: `python -m eval.seat`, one incident over the product's own loop.

Each run shows where the talk about an incident stands: first the prompt, then what the last call found. A
line of JSON on the standard input is the reader's next word: a call of a tool, `{"tool": "read_lines",
"arguments": {"first": "L10", "last": "L40"}}`, or the answer, the object that the prompt asks for. Several
lines are taken in turn. Words are kept at once, a file an incident, and replayed when the next run begins;
`--collect` puts what is answered into a cassette. `--round N` takes the logs of a round, each with its job's
files as `python -m eval.fresh` lays them out, which scores the answers by `--words`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from eval import incidents
from eval.answers import Answer
from eval.cassette import FOLDER, Cassette, ReplayedModel
from eval.errors import EvalError
from eval.explained import UNHURRIED, Explained
from eval.fresh import rounds, texts
from eval.fresh.scoring import laid_out
from eval.incidents import Incident
from service.llm.chain import explain_with_model
from service.llm.claims import Claims, parse
from service.llm.investigation import SINGLE_SHOT, LookLimits
from service.llm.models import AnswerPiece, ChatMessage, ToolCallPiece
from service.llm.stages import FinalStage
from service.llm.tokens import estimate_tokens
from service.llm.tools import schemas
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import ModelRefusedError, ServiceError
from service.settings import Settings, load_settings

WORDS = Path("out/seat")


def seat_name(incident: str) -> str:
    """Give the name under which a reader knows an incident: its own id may tell the cause."""
    return hashlib.sha256(f"seat {incident}".encode()).hexdigest()[:8]


@dataclass
class SeatedReader:
    """A chat model whose words are lines of JSON from `words`; what it is sent goes to `shown`.

    `has_begun` tells that the prompt was shown before; `is_waiting` that the lines ended before the talk did.
    """

    words: Iterator[str]
    shown: TextIO
    has_begun: bool = False
    name: str = "seat"
    is_waiting: bool = False
    _is_shown: bool = False

    def stream(
        self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None
    ) -> Iterator[AnswerPiece]:
        """Give the reader's answer; raises ModelRefusedError where there is no further line."""
        del schema  # the prompt says the form
        yield self._next_piece(messages, may_call=False)

    def stream_with_tools(
        self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]
    ) -> Iterator[AnswerPiece]:
        """Give the reader's call or answer; raises ModelRefusedError where there is no further line."""
        del tools  # --tools shows them
        yield self._next_piece(messages, may_call=True)

    def _next_piece(self, messages: Sequence[ChatMessage], *, may_call: bool) -> AnswerPiece:
        sent = sum(estimate_tokens(message.text) for message in messages)
        lines = filter(str.strip, self.words)
        # What an earlier run has shown is what the first line of this one answers.
        first = next(lines, "") if self.has_begun and not self._is_shown else ""
        if not first:
            said = [place for place, message in enumerate(messages, 1) if message.role == "assistant"]
            # What stands behind the reader's own last message; of a prompt that goes on, the last.
            unseen = messages[said[-1] if said else -1 :] if self.has_begun else messages
            for message in unseen:
                calls = "".join(f"{call.name} {call.arguments}\n" for call in message.calls)
                self.shown.write(f"===== {message.role} =====\n{message.text}\n{calls}\n")
            self.shown.flush()
        self.has_begun = self._is_shown = True
        for line in chain(filter(None, [first]), lines):
            try:
                return _said(line, sent, may_call=may_call)
            except ValueError as error:
                self.shown.write(f"not taken: {error}\n")
        self.is_waiting = True
        raise ModelRefusedError("the reader has not said more")


def _said(line: str, sent: int, *, may_call: bool) -> AnswerPiece:
    """Read a line as a call or an answer; raises ValueError with what is wrong."""
    said = json.loads(line)
    if not isinstance(said, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - one error for whatever is wrong with a line
    received = estimate_tokens(line)
    if "tool" not in said:
        parse(Claims, line)
        return AnswerPiece(json.dumps(said, ensure_ascii=False), sent, received)
    if not may_call:
        raise ValueError("no tool may be called any more: answer")
    arguments = json.dumps(said.get("arguments", {}), ensure_ascii=False)
    return AnswerPiece("", sent, received, (ToolCallPiece(0, "", str(said["tool"]), arguments),))


@dataclass
class Seat:
    """The seat of a model that is asked about incidents; what a reader says is kept in `folder`."""

    triage: Triage
    settings: Settings
    folder: Path
    may_look: bool = True
    name: str = "seat"

    def words(self, incident: Incident) -> Cassette:
        """Open what a reader has said of an incident so far."""
        return Cassette.load(seat_name(incident.id), self.folder)

    def hear(
        self, incident: Incident, lines: Iterator[str], shown: TextIO, *, whole: bool = False
    ) -> Diagnosis | None:
        """Go on with the talk about an incident; gives the answer with the reader's vote once there is one.

        The request that waits is shown; with `whole`, what was shown before too. Raises EvalError where a
        model is not asked.
        """
        kept = self.words(incident)
        context = Explained(self.triage, self.settings, kept).diagnose(incident)
        if context.first.ended_well:
            raise EvalError("a model is not asked about this job: its log shows a good end")
        reader = SeatedReader(lines, shown, has_begun=kept.path.exists() and not whole)
        limits = LookLimits(self.settings.model_calls, UNHURRIED) if self.may_look else SINGLE_SHOT
        model = ReplayedModel(kept, incident.id, reader)
        final = None
        for stage in explain_with_model(context, model, UNHURRIED, self.settings.model_tokens, limits):
            final = stage.diagnosis if isinstance(stage, FinalStage) else final
        # Also without a word: that the prompt was shown is known from the file.
        kept.save()
        return None if reader.is_waiting else final

    def answer(self, incident: Incident) -> Answer:
        """Answer with what a reader has said; by the rules alone where it said nothing."""
        return Explained(self.triage, self.settings, self.words(incident)).answer(incident)

    def asked(self, found: Iterable[Incident]) -> Iterator[str]:
        """Give the names of the incidents to measure by that a model is asked about."""
        system = Explained(self.triage, self.settings, Cassette("seat", self.folder))
        for incident in found:
            is_measured = incident.label.split == "test" or incident.label.verdict != "diagnosed"
            if is_measured and not system.diagnose(incident).first.ended_well:
                yield seat_name(incident.id)

    def collect(self, found: Iterable[Incident], name: str, folder: Path = FOLDER) -> tuple[int, int]:
        """Put all talks that ended in an answer into a cassette; gives how many did, and how many did not."""
        cassette = Cassette.load(name, folder)
        ended, open_ = 0, 0
        for incident in found:
            recordings = self.words(incident).requests(incident.id)
            if not recordings or recordings[-1].calls:
                open_ += bool(recordings)
                continue
            ended += 1
            cassette.recordings = {
                key: each for key, each in cassette.recordings.items() if each.incident != incident.id
            }
            for recording in recordings:
                cassette.add(recording)
        cassette.save()
        return ended, open_


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m eval.seat", description=__doc__)
    parser.add_argument("name", nargs="?", help="the incident, by the name that --list gives")
    parser.add_argument(
        "--incidents", type=Path, default=incidents.FOLDER, help="folder of labelled incidents"
    )
    parser.add_argument("--round", type=int, metavar="N", help="the logs of a round in place of incidents")
    texts.add_options(parser)
    parser.add_argument("--words", type=Path, default=WORDS, help="folder for what readers say")
    parser.add_argument("--single", action="store_true", help="without tools: one answer to the prompt")
    parser.add_argument("--whole", action="store_true", help="show the talk from its beginning")
    parser.add_argument("--list", action="store_true", help="name the incidents that a model is asked about")
    parser.add_argument(
        "--tools", action="store_true", help="show the tools with the form of their arguments"
    )
    parser.add_argument(
        "--collect", metavar="NAME", help="put what is answered into eval/recordings/NAME.jsonl"
    )
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Go on with a talk; exit code 2 for misuse."""
    options = _options(words)
    try:
        return _run(options)
    except (EvalError, ServiceError) as error:
        sys.stderr.write(f"eval.seat: {error}\n")
        return 2


def _run(options: argparse.Namespace) -> int:
    if options.tools:
        sys.stdout.write("".join(f"{json.dumps(tool, ensure_ascii=False)}\n" for tool in schemas("en")))
        return 0
    settings = load_settings()
    with _incidents(options) as found:
        return _seated(options, settings, found)


@contextmanager
def _incidents(options: argparse.Namespace) -> Iterator[Iterable[Incident]]:
    """Give the incidents; those of a round are there one at a time, as their texts are fetched."""
    if options.round is None:
        yield incidents.load(options.incidents)
        return
    with (
        texts.opened(options.folder) as source,
        closing(laid_out(rounds.load(options.round, options.rounds), source)) as found,
    ):
        yield found


def _seated(options: argparse.Namespace, settings: Settings, found: Iterable[Incident]) -> int:
    seat = Seat(Triage(settings), settings, options.words, may_look=not options.single)
    if options.collect:
        ended, waiting = seat.collect(found, options.collect)
        sys.stdout.write(f"{ended} answered, {waiting} not to their end\n")
        return 0
    if options.list:
        sys.stdout.write("".join(f"{name}\n" for name in seat.asked(found)))
        return 0
    incident = next((item for item in found if seat_name(item.id) == options.name), None)
    if incident is None:
        raise EvalError(f"{options.name} is no incident: --list names those that a model is asked about")
    lines = iter(sys.stdin)
    answer = seat.hear(incident, lines, sys.stdout, whole=options.whole)
    sys.stdout.write("waiting for the next line\n" if answer is None else "the answer is kept\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
