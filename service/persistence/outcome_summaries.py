"""The outcome summary of an answer: what the summary of a batch needs of it, in a column of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from corpus.schema import Action
from ingest.logs import clock
from ingest.logs.lines import message_of
from service.schemas.diagnosis import ProposedChange, Standing, Verdict
from service.schemas.records import JobState

_TOLD = ("verdict", "cause", "category", "standing", "action", "headline", "confidence")
# So many characters of a failing line's message are kept.
PROOF = 300


class OutcomeSummary(NamedTuple):
    """An answer in brief.

    `engine` is what wrote it, `time` the root line's own, `change` the first one as the contract has it.
    `tokens` are what a model read and wrote for it and whether that was counted, None where none was asked.
    `confidence` is the probability that the cause is right, `proof` the root line's message, `step` what to
    run, look at or do first where no change is known; all are unknown of answers that were kept before them.
    """

    verdict: Verdict
    cause: str | None
    category: str | None
    standing: Standing
    action: Action
    headline: str
    engine: str
    time: str | None
    change: Mapping[str, Any] | None
    tokens: tuple[int, int, bool] | None = None
    confidence: float | None = None
    proof: str = ""
    step: str = ""

    @property
    def ended_well(self) -> bool:
        """Whether the log shows a good end."""
        return self.verdict == "no-failure" and self.standing == "established"

    @property
    def proposal(self) -> ProposedChange | None:
        """The first change."""
        return ProposedChange.model_validate(self.change) if self.change else None


class JobSummaryRow(NamedTuple):
    """A job that is over, as far as a summary counts it.

    `same_as` is the number of the job whose answer it has.
    """

    number: int
    name: str
    state: JobState
    same_as: int | None
    fingerprint: str
    error: str
    nodes: int | None
    gpu_hours: float | None
    started: datetime | None
    ended: datetime | None
    finished: datetime | None
    node_names: tuple[str, ...]
    gist: OutcomeSummary | None

    @property
    def died_at(self) -> datetime | None:
        """When the job died: as it was given, else as its log's root line says."""
        if self.ended or self.started or self.gist is None:
            return self.ended or self.started
        told = self.gist.time
        seconds = clock.parse_time(told, self.finished.year if self.finished else None) if told else None
        try:
            return datetime.fromtimestamp(seconds, UTC) if seconds is not None else None
        except (ValueError, OverflowError, OSError):
            return None  # a wrong date in the log


def pack_summary(plain: Mapping[str, Any]) -> str:
    """Give the outcome summary of an answer, which is given as its cleaned values, as it is stored."""
    time = next(
        (entry["time"] for entry in plain["cascade"] if entry["role"] == "root" and entry["time"]), None
    )
    # What only the cause in general calls for, or helps to find out more, is no change to make first.
    cures = (
        change
        for change in plain["changes"]
        if change.get("purpose", "cure") == "cure" and not change.get("guess")
    )
    change = next(cures, None)
    engine = plain["engine"]
    tokens = engine["tokens"] and (
        engine["tokens"]["sent"],
        engine["tokens"]["received"],
        engine["tokens"]["counted"],
    )
    # What is to be run: the command that acts before those that look; else the first check.
    steps = sorted(plain["steps"], key=lambda step: not step["acts"])
    runs = [step["run"] for step in steps] or plain["checks"]
    root = next((item["text"] for item in plain["evidence"] if item["role"] == "root"), "")
    told = {name: plain[name] for name in _TOLD} | {
        "proof": message_of(root)[:PROOF],
        "engine": engine["name"],
        "time": time,
        "change": change,
        "step": str(runs[0])[:PROOF] if runs and not change else "",
        "tokens": tokens,
    }
    return json.dumps(told, ensure_ascii=False)


def unpack_summary(text: str) -> OutcomeSummary:
    """Read what `pack_summary` wrote."""
    return OutcomeSummary(**json.loads(text))
