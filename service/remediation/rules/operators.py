"""The names and operators that the rows of `corpus/rules.yaml` compute values with."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from statistics import median

from corpus.condition_nodes import EvaluationContext, Node
from corpus.frameworks import known_frameworks
from corpus.keys import levels
from corpus.model_sizes import named_model
from service.remediation.named_options import closest
from service.remediation.rules.clocked_steps import pace_of_clock
from service.remediation.rules.cluster_resources import asked_of, cluster_free, cluster_has, listed_cards
from service.remediation.rules.context import GIB, RuleContext, down_to, gib_of, up_to
from service.remediation.rules.disks import near_mount, roomy_folder
from service.remediation.rules.interfaces import interface, interface_alone, interface_listed, interface_there
from service.remediation.rules.listed_choices import choice_beside
from service.remediation.rules.packages import asked_version, asking_package

# Gets its arguments as they are written, with what evaluates them; None where what it gives is not known.
Operator = Callable[[tuple[Node, ...], EvaluationContext], object]

_TIME_LIMIT = re.compile(r"(?:(?P<days>\d{1,3})-)?(?P<clock>\d{1,6}(?::\d{2}){0,2})")
# A bar of tqdm: tqdm/std.py, format_meter.
_BAR = re.compile(
    r"\| (?P<done>\d{1,12})/(?P<total>\d{1,12}) \[(?P<spent>[\d:]+)<(?P<left>[\d:?]+(?: days?, [\d:]+)?)"
)
# A row of steps with what each takes: nanoGPT's train.py; megatron/training/training.py, training_log; Keras.
_STEP = re.compile(
    r"(?i)\b(?:iter(?:ation)?|(?:global[ _])?step)s?[ :=\[]{0,4}(?P<done>\d{1,12})"
    r"(?: ?/ ?(?P<total>\d{1,12}))?"
)
_STEP_TIME = re.compile(
    r"(?i)\b(?:elapsed time per iteration|(?:step|iter(?:ation)?)?[ _]?time)(?: \((?P<before>m?s)\))?"
    r"[ :=]{0,3}(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<behind>ms|s(?:ec(?:onds)?)?\b|)"
)
# What sets the number of steps.
_TOTALS = (
    "max_iters",
    "max_steps",
    "train_iters",
    "total_steps",
    "num_steps",
    "num_iterations",
    "num_train_steps",
    "max_train_steps",
    "total_training_steps",
)
# Fewer rows tell no pace.
FEWEST_STEPS = 3
_COUNTED = re.compile(r"\d{1,12}")
# What a setting's number counts: bytes or seconds, by the thousand or by 1024.
_UNITS = (1, 1000, 1024, 10**6, 2**20, 10**9, 2**30, 60, 3600)
# Names that an evaluation reports beside what it measures.
_NO_MEASURE = re.compile(r"(?i)loss|runtime|time$|_per_second|epoch|step|samples|^(?:eval|train|test)$")
# The keys of a dictionary that a message prints, and the members of a list.
_KEY_LISTED = re.compile(r"['\"]([\w./@:-]{1,80})['\"]: ")
_NAME_LISTED = re.compile(r"['\"`]([\w./@:-]{1,80})['\"`]")
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

    What divides the present one keeps what is counted by it whole too; one that is half of the nearest or
    less costs more than that.
    """
    fitting = [number for text in re.findall(r"\d{1,9}", listed) if (number := int(text)) >= least]
    below = [number for number in fitting if number < present]
    nearest = max(below, default=0)
    whole = [number for number in below if present % number == 0 and 2 * number > nearest]
    value = max(whole or below or fitting[:1], default=0)
    return value if value >= least and value != present else None


def _longer_time(written: str, factor: float) -> str | None:
    """Give so many times a time limit of Slurm (`90`, `12:00:00`, `1-06:00:00`); None for others."""
    present = _seconds_of(written)
    return None if present is None else _time_limit(int(factor * present), written)


def _seconds_of(written: str) -> int | None:
    """Read a time limit of Slurm in seconds."""
    found = _TIME_LIMIT.fullmatch(written.strip("'\""))
    if found is None:
        return None
    parts = [int(part) for part in found["clock"].split(":")]
    if found["days"] is None and len(parts) < len(("hours", "minutes", "seconds")):
        # Without days, one number is minutes and two are minutes and seconds.
        parts = [0, *parts]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    return ((int(found["days"] or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _time_limit(whole: int, like: str) -> str:
    """Write seconds as a time limit, with days where the present one has them."""
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24) if "-" in like else (0, hours)
    clock = f"{hours:02d}:{minutes:02d}:{seconds:02d}"
    return f"{days}-{clock}" if "-" in like else clock


def _hours_allowed(written: str, hours: float) -> str | None:
    """Write hours, counted up to a whole one, as a time limit; None where the present one has them."""
    present, whole = _seconds_of(written), 3600 * math.ceil(hours)
    return None if present is None or whole <= present else _time_limit(whole, written)


def _pace_of_bar(context: RuleContext, written: str) -> tuple[int, int, float] | None:
    """Give how far the bar of the whole run came, its total, and the hours that all of it takes.

    It is the bar that ran longest, and through most of the time limit: others begin anew within the run. What
    it has left is what it says itself, or what its mean pace makes of it if that is more.
    """
    limit, found = _seconds_of(written), []
    for text in context.texts:
        for match in _BAR.finditer(text):
            done, total, spent = int(match["done"]), int(match["total"]), _clock(match["spent"])
            if 0 < done < total and spent:
                found.append((spent, done, total, max(spent / done * (total - done), _clock(match["left"]))))
    spent, done, total, left = max(found, default=(0, 0, 0, 0.0))
    is_whole = limit is not None and limit / 2 <= spent <= 2 * limit
    return (done, total, (spent + left) / 3600) if is_whole else None


def _pace_of_steps(context: RuleContext) -> tuple[int, int, float] | None:
    """Give how far the steps came, how many there are, and the seconds that each takes, by their median.

    The total stands behind the step, else it is a setting of the job's. Where no row tells what a step takes,
    the clocks of the rows do.
    """
    rows = [(count, timed) for text in context.texts for count, timed in _counted_and_timed(text)]
    if len(rows) < FEWEST_STEPS:
        return pace_of_clock(context)
    done = max(int(count["done"]) for count, _ in rows)
    told = [int(count["total"]) for count, _ in rows if count["total"]]
    total = max(told) if told else int(context.setting(*_TOTALS) or 0)
    each = median(
        float(timed["number"]) * _SECONDS.get((timed["before"] or timed["behind"]).lower(), 1.0)
        for _, timed in rows
    )
    return (done, total, each) if done < total and each > 0 else None


def _counted_and_timed(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Give what a row tells of a step's number and of its time, where it tells both."""
    for row in text.split("\n"):
        count = _STEP.search(row)
        timed = _STEP_TIME.search(row, count.end()) if count is not None else None
        if count is not None and timed is not None and (timed["before"] or timed["behind"]):
            yield count, timed


def _clock(text: str) -> int:
    """Read what tqdm writes of a time: `[[days-]hours:]minutes:seconds`, or `?` where it knows none."""
    days, _, clock = text.rpartition(" day")
    parts = [int(part) for part in re.findall(r"\d+", clock)]
    hours, minutes, seconds = (0, 0, 0, *parts)[-3:]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _count_listed(text: str) -> int | None:
    """Count the numbers of a list such as `4,5,6`; None where it names anything else."""
    names = [name.strip() for name in text.strip("'\"").split(",") if name.strip()]
    return len(names) if names and all(name.isdigit() for name in names) else None


def _first_listed(text: str) -> str:
    """Give the first of a list such as `4,5,6`."""
    return text.strip("'\"").split(",")[0].strip()


def _unit_told(now: object, told: float) -> int | None:
    """Give the unit in which a setting has a number that a message tells in bytes or seconds, if one fits."""
    if not isinstance(now, int | float):
        return None
    return next((unit for unit in _UNITS if now > 0 and now * unit == told), None)


def _listed(text: str) -> str | None:
    """Write numbers that commas part as a list; None where a text holds anything else or one alone."""
    members = text.strip("()").split(",")
    return (
        f"[{', '.join(map(str.strip, members))}]"
        if len(members) > 1 and all(map(_is_number, members))
        else None
    )


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\s*", text) is not None


def _shares(name: str, text: str) -> bool:
    """Tell whether a text has a word of a setting's name, each of three letters at least."""
    spoken = set(re.findall(r"[a-z]{3,}", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()))
    return any(word in spoken for word in re.findall(r"[a-z]{3,}", name.lower()))


def _measure(listed: str) -> str | None:
    """Give the one metric among the names that a message lists which is no loss, no time and no count."""
    names = re.findall(r"['\"]([\w./@-]{2,60})['\"]", listed) or re.findall(r"[\w./@-]{2,60}", listed)
    found = [name for name in names if not _NO_MEASURE.search(name)]
    return found[0] if len(found) == 1 else None


def _near_listed(name: str, listed: str) -> str | None:
    """Give the one name of a list or of a dictionary's keys that another is a slip of, or the only one."""
    names = _KEY_LISTED.findall(listed) or _NAME_LISTED.findall(listed)
    return names[0] if len(names) == 1 else closest(name, names)


def _point_number(text: str) -> str:
    """Write a number with an exponent as YAML 1.1 knows it for one: with a point and a sign."""
    mantissa, _, exponent = text.lower().partition("e")
    sign = "" if exponent[:1] in ("+", "-") else "+"
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}e{sign}{exponent}"


def _size(context: RuleContext, gib: float) -> str | int:
    """Write a size the way the setting's framework reads it."""
    suffix = known_frameworks().row(context.change.framework).size_suffix
    return f"{gib:.0f}{suffix}" if suffix else int(gib * GIB)


def _parameters_b(context: RuleContext) -> float | None:
    """Give the parameters, in billions, of the largest model that the job names with its size."""
    named = named_model({setting.key: setting.value for setting in context.settings})
    return named.parameters_b if named is not None else None


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


def _earlier_file(context: RuleContext, written: str) -> str | None:
    """Give the last of the log's files that are named as one is, but for a lower number."""
    folder, slash, name = written.strip("'\"").rstrip("/").rpartition("/")
    now = [int(number) for number in _COUNTED.findall(name)]
    found: dict[tuple[int, ...], str] = {}
    for text in context.texts if now else ():
        for other in re.findall(r"[\w.@+=-]{2,200}", text):
            numbers = tuple(map(int, _COUNTED.findall(other)))
            if _COUNTED.sub("#", other) == _COUNTED.sub("#", name) and numbers < tuple(now):
                found[numbers] = other
    return f"{folder}{slash}{found[max(found)]}" if found else None


def _near_file(context: RuleContext, written: str) -> str | None:
    """Give the one file that the log names nearly as one that is not there, in the same folder."""
    folder, slash, name = written.strip("'\"").rpartition("/")
    found = set()
    for text in context.texts:
        for path in re.findall(r"[\w./@+=-]{3,300}", text):
            where, _, other = path.rpartition("/")
            is_kin = other.rpartition(".")[2] == name.rpartition(".")[2] and (not where or where == folder)
            if is_kin and other != name and _COUNTED.findall(other) == _COUNTED.findall(name):
                found.add(other)
    near = get_close_matches(name, sorted(found), n=2, cutoff=0.8) if "." in name else []
    return f"{folder}{slash}{near[0]}" if len(near) == 1 else None


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


def _speaks_of(setting: str, parameter: str, common: str) -> bool:
    """Tell whether a size may be one of a parameter: the part of the model that it names is that one's.

    `common` are words that names of sizes have whatever part they are of.
    """
    parts = set(re.findall(r"[a-z]+", setting.lower())) - set(common.split())
    return all(part[:4] in parameter.lower() for part in parts)


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
    "first_listed": _first_listed,
    "interface": interface,
    "longer_time": _longer_time,
    "hours_allowed": _hours_allowed,
    "lower": str.lower,
    "with_ending": lambda text, ending: re.sub(r"\.?[A-Za-z0-9]+$", lambda _: ending, text),
    "only_item": lambda text: text.strip("[]() ").rstrip(","),
    "unit_told": _unit_told,
    "gib": gib_of,
    "listed_cards": listed_cards,
    "listed": _listed,
    "shares": _shares,
    "measure": _measure,
    "near_listed": _near_listed,
    "point_number": _point_number,
    "speaks_of": _speaks_of,
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
    "pace_of_bar": _pace_of_bar,
    "pace_of_steps": _pace_of_steps,
    "earlier_file": _earlier_file,
    "near_file": _near_file,
    "roomy_folder": roomy_folder,
    "near_mount": near_mount,
    "cluster_has": cluster_has,
    "cluster_free": cluster_free,
    "asked_of": asked_of,
    "interface_alone": interface_alone,
    "choice_beside": choice_beside,
    "interface_listed": interface_listed,
    "interface_there": interface_there,
    "sharers": _sharers,
    "parameters_b": _parameters_b,
    "accumulation": _accumulation,
    "asked_version": asked_version,
}
# What an expression may name of a job: `now` is the job's value as a number, `written` as it stands, `whole`
# where it is a whole one above zero, `present_gib` where it is a size; `to` the proposed one; `unit_s` the
# seconds of the setting's unit; `package` the one that is asked for; `is_saved` tells that the log shows a
# whole checkpoint.
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
    "is_saved": lambda context: context.is_saved,
    "saved_n": lambda context: context.saved_n,
    "GIB": lambda _: GIB,
}
OPERATORS: frozenset[str] = frozenset((*_LAZY, *_PLAIN, *_OF_JOB))
