"""What a job was doing when it failed: told by the calls in its traceback, and by what its lines said before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
        ("log-prob", r"compute_(?:ref_)?log_prob|logprobs_from_logits|log_softmax|entropy_from_logits|compute_logprob"),
        ("rollout", r"generate_sequences|rollout|vllm/.*(?:execute_model|generate|wake_up|sleep)|sample|generation"),
        ("update", r"update_actor|update_critic|update_policy|training_step|backward|optimizer|ppo_train|train_batch|:step$"),
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
        ("update", r"^_?(?:train(?:ing)?_step|train_batch|train_one_(?:step|batch)|forward_backward\w*|update_(?:actor|critic|policy)\w*|backward|optimizer_step)$"),
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
class Starts:
    """Where a job's parts were set up and where they counted steps, as far as the lines tell, in order."""

    _changes: list[tuple[int, bool]] = field(default_factory=list)

    def note(self, line: int, part: int, *, counts: bool) -> None:
        """Note a line that counts a step, or one that only a start has; `part` is the part's first line."""
        last = self._changes[-1] if self._changes else (0, False)
        if (last[1] != counts or last[0] < part) and len(self._changes) < MOST_TURNS:
            self._changes.append((line, counts))

    def has_begun(self, line: int, timeline: Timeline) -> bool:
        """Tell whether steps were counted before a line and since the last start that is seen before it.

        In a file of its own a process may count none, as its job's first rank does it for all: then the others' count.
        """
        part = timeline.number(line) if timeline.parts else 0
        own = [counts for at, counts in self._changes if at < line and (not timeline.parts or timeline.number(at) == part)]
        if True in own:
            return own[-1]
        return timeline.has_parts and any(counts and timeline.number(at) != part for at, counts in self._changes)


def of_frames(frames: Sequence[Frame], *, has_begun: bool) -> str:
    """Name the phase that a traceback tells, or give the empty string.

    An object made within a turn of the loop is part of that turn, and once steps were counted nothing is initialised.
    """
    for place, frame in reversed(list(enumerate(frames))):
        name = _named(frame)
        if name == INITIALISE:
            name = next(_turns(frames[:place]), "" if has_begun else name)
        if name:
            return name
    return ""


def _named(frame: Frame) -> str:
    text = f"{frame} {frame.code}"
    return next((name for name, expression in _PHASES if expression.search(text)), "")


def _turns(outer: Sequence[Frame]) -> Iterator[str]:
    """Give what turns of the loop the calls around a frame are, the innermost first."""
    return (name for frame in reversed(outer) for name, expression in _TURNS if expression.match(frame.function))


def of_marks(marks: Sequence[Told], line: int, *, has_begun: bool) -> str:
    """Name the phase that the last line before a failure tells that tells any, unless the job has left it behind."""
    last = next((mark for mark in reversed(marks) if mark.line <= line), None)
    if last is None or (has_begun and last.name == INITIALISE):
        return ""
    return "" if last.name in _PASSING and 0 < last.passed < line else last.name
