"""What a job was doing when it failed: told by the calls in its traceback, and by what its lines said before."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.logs.stacks.tracebacks import Frame
from ingest.logs.timeline import Timeline

INITIALISE = "initialise"
# Which part of a job a call belongs to; the innermost that tells decides.
_PHASES = tuple(
    (name, re.compile(expression))
    for name, expression in (
        ("save", r"(?:^|[_.: ])save(?:_\w+)?\b(?!r)|save_checkpoint|save_pretrained"),
        (
            "log-prob",
            r"compute_(?:ref_)?log_prob|logprobs_from_logits|log_softmax|entropy_from_logits|compute_logprob",
        ),
        (
            "rollout",
            r"generate_sequences|rollout|vllm/.*(?:execute_model|generate|wake_up|sleep)|sample|generation",
        ),
        (
            "update",
            r"update_actor|update_critic|update_policy|training_step|backward|optimizer|ppo_train|train_batch|:step$",
        ),
        ("validate", r"_validate|evaluation_loop|:evaluate$"),
        ("load", r"from_pretrained|load_checkpoint|load_state_dict|load_weights|load_model"),
        (INITIALISE, r"init_model|init_workers|__init__|initialize|init_process_group|setup"),
    )
)
# Functions that are a turn of a job's loop, whatever objects are made within it.
_TURNS = tuple(
    (name, re.compile(expression))
    for name, expression in (
        ("rollout", r"^(?:generate_sequences|generate_rollouts?|rollout_step|make_experience)$"),
        (
            "update",
            r"^_?(?:train(?:ing)?_step|train_batch|train_one_(?:step|batch)|forward_backward\w*|update_(?:actor|critic|policy)\w*|backward|optimizer_step)$",
        ),
        ("validate", r"^_?(?:validat(?:e|ion_step)|evaluation_loop|evaluate|eval_step)$"),
        ("save", r"^_?save_(?:checkpoint|model|pretrained)\w*$"),
    )
)
# Phases that are over when the next step is counted; those within a step come again.
_PASSING = frozenset({INITIALISE, "load", "save", "validate"})
# So many changes between setting up and counting steps are kept; a job has a few for each start.
MOST_TURNS = 1000


class Told(NamedTuple):
    """A line that tells a phase, and the first one after it that counts a step (0 for none)."""

    line: int
    name: str
    passed: int = 0


@dataclass
class Phases:
    """What a job's lines tell of its phases while they go by."""

    _told: deque[Told] = field(default_factory=lambda: deque(maxlen=200))
    # Lines from which on steps were counted, or a start was seen.
    _changes: list[tuple[int, bool]] = field(default_factory=list)

    def tell(self, line: int, name: str, part: int) -> None:
        """Note a line that tells a phase; `part` is the first line of its file."""
        self._told.append(Told(line, name))
        if name == INITIALISE:
            self._change(line, part, counts=False)

    def count(self, line: int, part: int, step: float) -> None:
        """Note a line that counts a step; the zeroth is told before any was made."""
        if step <= 0:
            return
        self._change(line, part, counts=True)
        if self._told and not self._told[-1].passed:
            self._told[-1] = self._told[-1]._replace(passed=line)

    def _change(self, line: int, part: int, *, counts: bool) -> None:
        last = self._changes[-1] if self._changes else (0, False)
        if (last[1] != counts or last[0] < part) and len(self._changes) < MOST_TURNS:
            self._changes.append((line, counts))

    def has_begun(self, line: int, timeline: Timeline) -> bool:
        """Tell whether steps were counted before a line and since the last start that is seen before it.

        In a file of its own a process may count none, as its job's first rank does it for all: then the
        others' count.
        """
        part = timeline.number(line) if timeline.parts else 0
        own = [
            counts
            for at, counts in self._changes
            if at < line and (not timeline.parts or timeline.number(at) == part)
        ]
        if True in own:
            return own[-1]
        return timeline.has_parts and any(
            counts and timeline.number(at) != part for at, counts in self._changes
        )

    def before(self, line: int, *, has_begun: bool) -> str:
        """Name the phase that the last line before a failure tells that tells any, unless the job has left it behind."""
        last = next((told for told in reversed(self._told) if told.line <= line), None)
        if last is None or (has_begun and last.name == INITIALISE):
            return ""
        return "" if last.name in _PASSING and 0 < last.passed < line else last.name


def of_frames(frames: Sequence[Frame], *, has_begun: bool) -> str:
    """Name the phase that a traceback tells, or give the empty string.

    An object made within a turn of the loop is part of that turn, and once steps were counted nothing is
    initialised.
    """
    for place, frame in reversed(list(enumerate(frames))):
        name = _named(frame)
        if name == INITIALISE:
            # What turns of the loop the calls around a frame are, the innermost first.
            turns = (
                name
                for frame in reversed(frames[:place])
                for name, expression in _TURNS
                if expression.match(frame.function)
            )
            name = next(turns, "" if has_begun else name)
        if name:
            return name
    return ""


def _named(frame: Frame) -> str:
    text = f"{frame} {frame.code}"
    return next((name for name, expression in _PHASES if expression.search(text)), "")
