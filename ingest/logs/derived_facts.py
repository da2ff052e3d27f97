"""Facts that no single line states: how ranks differ, how memory grew, who else holds a card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from corpus import driver_events
from ingest.configfiles.settings import Setting
from ingest.logs import gpu_memory
from ingest.logs.events import Event
from ingest.logs.facts import Fact, Value
from ingest.logs.gpu_memory import number_in
from ingest.logs.stacks.own_calls import own_call
from ingest.logs.stacks.stack import Frame

# Fewer readings than this are no trend; beside the machine's size, one less tells where the next leads.
MIN_READINGS = 4
# How the ranks differ in what they wait for.
SPREAD = "collective_spread"
# A collective of as many numbers moves data; what a group exchanges as it is set up is far smaller, and few.
BULK = 1_000_000
SET_UP = 3
_DRIVER_FIELDS = frozenset(("name", "speaks_for", "recovery", "later"))
# What is added here to each kind of fact.
DERIVED_FIELDS: Mapping[str, frozenset[str]] = {
    SPREAD: frozenset(("ranks_n", "calls_n", "seqs_n", "first_n", "bulk_n", "world_n")),
    "nccl_spread": frozenset(("ids_n",)),
    "host_growth": frozenset(("ratio", "last_gib", "rising_share", "readings_n", "next_share")),
    "gpu_oom": gpu_memory.OOM_FIELDS,
    "gpu_fit": gpu_memory.FIT_FIELDS,
    "gpu_training": gpu_memory.TRAINING_FIELDS,
    "kv_cache": frozenset(("missing_gib",)),
    "ray_versions": frozenset(("ray_version", "python_version", "other_ray_version", "other_python_version")),
    "xid": _DRIVER_FIELDS,
    "sxid": _DRIVER_FIELDS,
}
# Facts that belong to no line, but to the whole log: a snapshot beside it tells of the failure that it says.
DERIVED = frozenset((SPREAD, "nccl_spread", "host_growth", "memory_snapshot"))


def derive_facts(
    facts: Sequence[Fact],
    ranks: Sequence[tuple[int, str]],
    settings: Sequence[Setting] = (),
    *,
    serves: bool = False,
    world: int = 0,
    counted_from: int | None = 0,
) -> tuple[Fact, ...]:
    """Give all facts with what follows from several of them.

    `ranks` names the stream of each fact's line where the line tells it; `serves` tells that the job runs an
    engine alone; `world` is how many ranks it has, as far as the log shows.
    `counted_from` is the line from which on steps are counted, None for a job that was only set up.
    """
    owned = gpu_memory.with_owners(facts, {stream for _, stream in ranks})
    found = []
    for fact in owned:
        # The table is read where a log has such a line: few have.
        is_event = fact.kind in driver_events.KINDS
        known = driver_events.load().of(fact.kind, fact.fields.get("code")) if is_event else None
        if known is not None:
            told = {"name": known.name, "speaks_for": known.speaks_for, "recovery": known.recovery}
            later = {"later": known.later} if known.later else {}
            found.append(replace(fact, fields={**fact.fields, **told, **later}))
            continue
        needed, available = (number_in(fact.fields, name) for name in ("needed_gib", "available_gib"))
        if fact.kind == "kv_cache" and needed is not None and available is not None:
            missing = round(max(0.0, needed - available), 3)
            found.append(replace(fact, fields={**fact.fields, "missing_gib": missing}))
        else:
            found.append(fact)
    fits = gpu_memory.weights_beside_cards(found, settings, serves=serves)
    states = gpu_memory.states_beside_cards(found)
    spread = _spread(found, dict(ranks), world)
    # What a job takes while it is set up rises from one part of that to the next, and not from step to step.
    growth = [] if counted_from is None else _growth(found, counted_from)
    return (*found, *fits, *states, *spread, *_apart(found), *growth, *_ray_versions(found))


def _spread(facts: Sequence[Fact], ranks: dict[int, str], world: int) -> list[Fact]:
    """Compare what each rank was waiting in when its collective timed out.

    `first_n` counts the ranks of which none of the group's collectives had ended before, `bulk_n` those of
    which only the few small ones of the set-up had, and that wait in the first one that moves much: none
    where most of the job's ranks tell of it, as one that does not may be late.
    """
    first: dict[str, Fact] = {}
    ended: dict[str, float] = {}
    for fact in facts:
        # A message counts the ranks of its group, which the job may count otherwise.
        rank = ranks.get(fact.line) or str(fact.fields.get("rank", ""))
        if fact.kind == "collective" and "op" in fact.fields:
            first.setdefault(rank, fact)
        done = fact.fields.get("completed", fact.fields.get("last_completed"))
        if fact.kind == "collective_status" and isinstance(done, int | float) and done > 0:
            ended.setdefault(rank, done)
    if len(first) < 2:
        return []
    calls = {
        (fact.fields.get("op"), fact.fields.get("numel_in"), fact.fields.get("numel_out"))
        for fact in first.values()
    }
    numbers = {fact.fields["seq"] for fact in first.values() if "seq" in fact.fields}
    line = min(fact.line for fact in first.values())
    begun = [rank for rank, fact in first.items() if fact.fields.get("seq") == 1 and rank not in ended]
    is_one_late = 0 < world - len(first) < len(first)
    bulk = [] if is_one_late else [r for r, fact in first.items() if _is_first_bulk(fact, ended.get(r, 0))]
    fields: dict[str, Value] = {
        "ranks_n": len(first),
        "calls_n": len(calls),
        "seqs_n": len(numbers),
        "first_n": len(begun),
        "bulk_n": len(bulk),
        "world_n": world,
    }
    return [Fact(SPREAD, line, fields)]


def _is_first_bulk(fact: Fact, ended: float) -> bool:
    size, number = (number_in(fact.fields, name) for name in ("numel_in", "seq"))
    return size is not None and size >= BULK and 0 < ended <= SET_UP and number == ended + 1


def ranks_apart(events: Iterable[Event], facts: Iterable[Fact]) -> list[Fact]:
    """Tell that ranks which all wait for each other do so in different calls of the job's own code.

    All ranks enter their collectives in one order. Where no line tells the collective, as with gloo, the
    tracebacks show by which statement each rank came to wait.
    """
    if any(fact.kind == SPREAD for fact in facts):
        return []
    first: dict[str, tuple[int, Frame]] = {}
    for event in events:
        call = own_call(event.frames) if event.pattern_role == "collateral" and event.rank else None
        if call is not None:
            first.setdefault(event.rank, (event.line, call))
    calls = {(call.file, call.line) for _, call in first.values()}
    if len(calls) < 2:
        return []
    line = min(line for line, _ in first.values())
    return [Fact(SPREAD, line, {"ranks_n": len(first), "calls_n": len(calls)})]


def _apart(facts: Iterable[Fact]) -> list[Fact]:
    """Tell where ranks that would have to meet in one communicator of NCCL began it under several ids.

    Groups that begin theirs at the same time have an id each as well, but then a rank has several, or an id
    has all of its ranks.
    """
    open_ranks: dict[object, dict[object, Fact]] = {}
    sizes: dict[object, object] = {}
    for fact in facts:
        if fact.kind != "nccl_comm":
            continue
        key, rank = fact.fields.get("id"), fact.fields.get("rank")
        sizes[key] = fact.fields.get("nranks")
        if fact.fields.get("state") == "START":
            open_ranks.setdefault(key, {})[rank] = fact
        else:
            open_ranks.get(key, {}).pop(rank, None)
    lone = {key: told for key, told in open_ranks.items() if told and len(told) != sizes[key]}
    seen = [rank for told in lone.values() for rank in told]
    if len(lone) < 2 or len({sizes[key] for key in lone}) > 1 or len(set(seen)) != len(seen):
        return []
    line = min(fact.line for told in lone.values() for fact in told.values())
    return [Fact("nccl_spread", line, {"ids_n": len(lone)})] if len(seen) == sizes[next(iter(lone))] else []


def _ray_versions(facts: Iterable[Fact]) -> list[Fact]:
    """Tell in which versions a process and the cluster that it joins differ: the cluster's, and its own.

    Ray prints the cluster's first, each below a heading (`check_version_info`, python/ray/_private/utils.py).
    """
    told: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.kind == "ray_version_pair":
            told.setdefault(str(fact.fields["what"]).lower(), []).append(fact)
    pairs = {what: pair[:2] for what, pair in told.items() if len(pair) > 1}
    versions = {what: [str(fact.fields["version"]) for fact in pair] for what, pair in pairs.items()}
    fields: dict[str, Value] = {}
    for what, (theirs, own) in versions.items():
        if theirs != own:
            fields |= {f"{what}_version": theirs, f"other_{what}_version": own}
    first = min((pair[0].line for pair in pairs.values()), default=1)
    # The heading, which is the failing line, stands right above.
    return [Fact("ray_versions", first - 1, fields)] if fields else []


def _growth(facts: Iterable[Fact], counted_from: int) -> list[Fact]:
    """Tell how the host's memory rose over the readings that the log prints while steps are counted."""
    told = [fact for fact in facts if fact.kind == "host_memory"]
    readings = [
        fact for fact in told if fact.line >= counted_from and number_in(fact.fields, "used_gib") is not None
    ]
    sizes = [size for fact in told if (size := number_in(fact.fields, "limit_gib"))]
    if len(readings) < MIN_READINGS - bool(sizes):
        return []
    values = [number_in(fact.fields, "used_gib") or 0.0 for fact in readings]
    rises = sum(later >= earlier for earlier, later in pairwise(values))
    share = rises / (len(values) - 1)
    fields: dict[str, Value] = {
        "ratio": round(values[-1] / max(values[0], 1e-9), 2),
        "last_gib": values[-1],
        "rising_share": round(share, 2),
        "readings_n": len(values),
    }
    if sizes:
        # What one more rise, as they were on average, would take of the machine.
        rise = (values[-1] - values[0]) / (len(values) - 1)
        fields["next_share"] = round((values[-1] + rise) / max(sizes), 2)
    return [Fact("host_growth", readings[-1].line, fields)]
