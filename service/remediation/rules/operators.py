"""The names and operators that the rows of `corpus/rules.yaml` compute values with."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial

from corpus.condition_nodes import EvaluationContext, Node
from corpus.frameworks import known_frameworks
from corpus.keys import levels
from service.remediation.rules.context import GIB, RuleContext, down_to, gib_of, up_to
from service.remediation.rules.packages import asked_version, asking_package

# Gets its arguments as they are written, with what evaluates them; None where what it gives is not known.
Operator = Callable[[tuple[Node, ...], EvaluationContext], object]

_TIME_LIMIT = re.compile(r"(?:(?P<days>\d{1,3})-)?(?P<clock>\d{1,6}(?::\d{2}){0,2})")
_SECONDS = {"minutes": 60.0, "milliseconds": 1e-3, "ms": 1e-3}


def names_in(context: RuleContext) -> dict[str, object]:
    """Give what an expression may name of a job; what is not known is None."""
    return {name: read(context) for name, read in NAMES.items()}


def operators_of(context: RuleContext) -> Mapping[str, Operator]:
    """Give the operators of expressions, over one job's facts and settings."""
    of_job = {name: partial(of, context) for name, of in _OF_JOB.items()}
    return {**_LAZY, **{name: _eager(of) for name, of in (_PLAIN | of_job).items()}}


def plain_operators() -> Mapping[str, Operator]:
    """Give the operators of expressions that ask nothing of a job."""
    return {**_LAZY, **{name: _eager(of) for name, of in _PLAIN.items()}}


def divisor_at_most(number: int, most: int) -> int:
    """Give the largest divisor of `number` that is not over `most`; one at least."""
    return next((value for value in range(min(number, most), 0, -1) if number % value == 0), 1)


def _flat(names: tuple[object, ...]) -> list[str]:
    """Take lists of names apart."""
    return [str(each) for name in names for each in (name if isinstance(name, tuple) else (name,))]


def _multiple(now: int, step: int, least: int) -> int | None:
    """Give the multiple of `step` next below, or above to hold `least`; None where it is `now`."""
    below = int(down_to(now, step))
    value = below if below >= max(least, 1) else int(up_to(max(now, least), step))
    return value if value != now else None


def _choice_below(listed: str, present: int, least: int) -> int | None:
    """Choose of the numbers that a text lists: below the present one, and if there is one, a divisor of it.

    What divides the present one keeps what is counted by it whole too.
    """
    fitting = [number for text in re.findall(r"\d{1,9}", listed) if (number := int(text)) >= least]
    below = [number for number in fitting if number < present]
    value = max([number for number in below if present % number == 0] or below or fitting[:1], default=0)
    return value if value >= least and value != present else None


def _longer_time(written: str, factor: float) -> str | None:
    """Give so many times a time limit of Slurm (`90`, `12:00:00`, `1-06:00:00`); None for others."""
    found = _TIME_LIMIT.fullmatch(written.strip("'\""))
    if found is None:
        return None
    parts = [int(part) for part in found["clock"].split(":")]
    days = int(found["days"] or 0)
    if found["days"] is None and len(parts) < len(("hours", "minutes", "seconds")):
        # Without days, one number is minutes and two are minutes and seconds.
        parts = [0, *parts]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    whole = int(factor * (((days * 24 + hours) * 60 + minutes) * 60 + seconds))
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24) if found["days"] is not None else (0, hours)
    clock = f"{hours:02d}:{minutes:02d}:{seconds:02d}"
    return f"{days}-{clock}" if found["days"] is not None else clock


def _count_listed(text: str) -> int | None:
    """Count the numbers of a list such as `4,5,6`; None where it names anything else."""
    names = [name.strip() for name in text.strip("'\"").split(",") if name.strip()]
    return len(names) if names and all(name.isdigit() for name in names) else None


def _size(context: RuleContext, gib: float) -> str | int:
    """Write a size the way the setting's framework reads it."""
    suffix = known_frameworks().row(context.change.framework).size_suffix
    return f"{gib:.0f}{suffix}" if suffix else int(gib * GIB)


def _sharers(context: RuleContext) -> int | None:
    """Give how many GPUs share the micro batch: all where the setting counts over them, else one."""
    counted = known_frameworks().row(context.change.framework).batches.counted_over_gpus
    if not context.change.key.endswith(counted):
        return 1
    cards = context.setting("trainer.n_gpus_per_node")
    nodes = context.setting("trainer.nnodes") or 1
    return int(cards * nodes) if cards is not None and cards >= 1 else None


def _accumulation(context: RuleContext) -> tuple[str, int] | None:
    """Give the setting that counts accumulation steps, and the steps; None where they are worked out."""
    batches = known_frameworks().row(context.change.framework).batches
    if not batches.steps or context.change.key.endswith("eval_batch_size"):
        return None
    name = levels(batches.steps)[-1]
    shown = context.text_of(name)
    if shown is None:
        # The program chooses the steps by itself, as DeepSpeed does where the whole batch is set.
        inferred = batches.steps_inferred or context.setting("train_batch_size") is not None
        return None if inferred else (batches.steps, 1)
    steps = context.setting(name)  # None for `auto`
    return (batches.steps, int(steps)) if steps is not None and steps >= 1 else None


def _eager(of: Callable[..., object]) -> Operator:
    """Make an operator that needs all of its arguments."""

    def apply(arguments: tuple[Node, ...], context: EvaluationContext) -> object:
        values = [argument.evaluate(context).value for argument in arguments]
        return None if None in values else of(*values)

    return apply


def _first(fits: Callable[[object], bool]) -> Operator:
    """Make an operator that gives its first argument that is known and fits."""

    def choose(arguments: tuple[Node, ...], context: EvaluationContext) -> object:
        values = (argument.evaluate(context).value for argument in arguments)
        return next((value for value in values if value is not None and fits(value)), None)

    return choose


_LAZY: Mapping[str, Operator] = {
    "first": _first(lambda _: True),
    "nonzero": _first(bool),
    "positive": _first(lambda found: isinstance(found, int | float) and found > 0),
}
_PLAIN: dict[str, Callable[..., object]] = {
    "min": min,
    "max": max,
    "int": int,
    "gcd": math.gcd,
    "lcm": math.lcm,
    "down": down_to,
    "up": up_to,
    "divisor": divisor_at_most,
    "multiple": _multiple,
    "digits": lambda number, count: float(f"{number:.{count}g}"),
    "pair": lambda *items: items,
    "second": lambda items: items[1],
    "next_of": lambda items, least: min((item for item in items if item >= least), default=None),
    "choice_below": _choice_below,
    "count_listed": _count_listed,
    "longer_time": _longer_time,
    "lower": str.lower,
    "mentions": lambda text, parts: any(part in text for part in parts),
}
# Over a job's facts and settings. `fact` gives the first number of a fact under one of the names, `most` the
# greatest of all its numbers, `together` several numbers of one and the same fact, `words` a text; `setting`
# what the job sets as a number, `text` as it is written.
_OF_JOB: Mapping[str, Callable[..., object]] = {
    "fact": lambda context, kind, *names: context.stated(kind, *_flat(names)),
    "most": lambda context, kind, *names: max(context.every(kind, *_flat(names)), default=None),
    "together": lambda context, kind, *names: context.together(kind, *names),
    "words": lambda context, kind, name: context.words(kind, name) or None,
    "setting": lambda context, *names: context.setting(*_flat(names)),
    "text": lambda context, name: context.text_of(name),
    "size": _size,
    "sharers": _sharers,
    "accumulation": _accumulation,
    "asked_version": asked_version,
}
# What an expression may name of a job: `now` is the job's value as a number, `written` as it stands, `whole`
# where it is a whole one above zero, `present_gib` where it is a size; `to` the proposed one; `unit_s` the
# seconds of the setting's unit; `package` the one that is asked for.
NAMES: Mapping[str, Callable[[RuleContext], object]] = {
    "now": lambda context: context.number,
    "whole": lambda context: context.whole,
    "written": lambda context: context.now,
    "default": lambda context: context.default,
    "present_gib": lambda context: gib_of(context.now, context.spec.unit),
    "to": lambda context: context.change.to,
    "key": lambda context: context.change.key,
    "cause": lambda context: context.cause,
    "card_gib": lambda context: context.card_gib,
    "unit": lambda context: context.spec.unit or "seconds",
    "unit_s": lambda context: _SECONDS.get(context.spec.unit or "", 1.0),
    "sums_gradients": lambda context: known_frameworks().row(context.change.framework).batches.sums_gradients,
    "package": asking_package,
    "GIB": lambda _: GIB,
}
OPERATORS: frozenset[str] = frozenset((*_LAZY, *_PLAIN, *_OF_JOB))
