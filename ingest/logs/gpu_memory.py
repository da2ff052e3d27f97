"""Arithmetic over a card's memory: whose it is, and whether a request or a model's weights fit."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations

from corpus import model_sizes
from ingest.configfiles.settings import Setting
from ingest.logs.facts import Fact, Value, gib

# What PyTorch's own count leaves out at most of a process: CUDA context, NCCL's and cuBLAS's buffers.
BESIDE_POOL_GIB = 1.0
# A process is printed with more than the card has where memory spills to the host (WSL) or a counter wrapped.
MOST_OF_CARD = 1.05
# Of a listed process, what it must hold of the failing process's own pool to be that process itself.
SAME_PROCESS = 0.98
# Failed requests of one card that are compared with one another, at most.
MOST_COMPARED = 64
# How far two messages may differ on what one process holds, as they come moments apart.
SAME_SIZE = 0.03
TRAINING_FIELDS = frozenset(("trained_b", "state_gib", "capacity_gib"))
# What is worked out here for a failing request, and for the weights beside the card that it failed on.
OOM_FIELDS = frozenset(
    (
        "others_gib",
        "others_share",
        "alone_per_asked",
        "reserved_gib",
        "reserved_per_asked",
        "card_ranks_n",
        "largest_pid",
    )
)
FIT_FIELDS = frozenset(
    (
        "parameters_b",
        "model_gib",
        "model_share",
        "bytes_each",
        "weights_gib",
        "weights_share",
        "capacity_gib",
        "budget_gib",
    )
)

# What a trained parameter takes with Adam in mixed precision: weight, gradient, master copy, two moments.
BYTES_TRAINED = 16

# Processes on a card that were started together: how many at least are listed beside this one, how far apart
# their ids may be, and how many times more or less than this one each may hold.
LEAST_STARTED = 3
NEXT_IDS = 4
ALIKE = 2.0

# The processes that a message lists: the id of each, and the GiB that it holds.
Listing = Sequence[tuple[str, float]]
# A card as a message names it: its number, and its size in GiB.
Card = tuple[Value | None, Value | None]

_COUNT = re.compile(r"([\d.,]+) ?([KMB]?)$")
_LISTED = re.compile(r"Process (\d+) has ([\d.]+ [KMG]?i?B)")


def with_owners(facts: Sequence[Fact], streams: Collection[str]) -> list[Fact]:
    """Add to each failed request whose the card's memory is.

    `streams` are the names of the job's own processes: what one of them holds is no neighbour's, nor what
    another process holds that failed on the same card.
    """
    texts = {fact.line: str(fact.fields.get("listed", "")) for fact in facts if fact.kind == "gpu_processes"}
    failed = [fact for fact in facts if fact.kind == "gpu_oom"]
    listed = {
        fact.line: [
            (pid, size)
            for pid, text in _LISTED.findall(texts.get(fact.line, ""))
            if isinstance(size := gib(text), float)
        ]
        for fact in failed
    }
    own_ids = {match for stream in streams for match in re.findall(r"pid=(\d+)", stream)}
    cards: dict[Card, list[Fact]] = {}
    for fact in failed:
        cards.setdefault((fact.fields.get("gpu"), fact.fields.get("capacity_gib")), []).append(fact)
    ranks = {
        fact.line: found
        for group in cards.values()
        for found in [_ranks_on_card(group, listed)]
        for fact in group
    }
    return [
        _with_shares(fact, listed[fact.line], own_ids, ranks[fact.line]) if fact.kind == "gpu_oom" else fact
        for fact in facts
    ]


def _ranks_on_card(failed: Sequence[Fact], listed: Mapping[int, Listing]) -> set[str]:
    """Give the ids of this job's processes that failed together on one card, by what each tells of it.

    Each message leaves its own process out of its list: two that each tell the other's size under an id that
    the other leaves out come from two processes on one card, and both are the job's.
    """
    found = set()
    for one, other in combinations(failed[:MOST_COMPARED], 2):
        ids: list[str | None] = []
        for here, there in permutations((one, other)):
            size = number_in(there.fields, "process_gib")
            told = {pid for pid, _ in listed[there.line]}
            others = [(pid, held) for pid, held in listed[here.line] if pid not in told]
            ids.append(next((pid for pid, held in others if size and abs(held / size - 1) < SAME_SIZE), None))
        found |= {pid for pid in ids if pid is not None} if None not in ids else set()
    return found


def _started_together(entries: Listing, own_gib: float | None) -> set[str]:
    """Give the ids of listed processes that one launcher started with this one; none where it does not show.

    Ranks are started one after the other: their ids follow one another, and each holds about as much as this
    process. Of a stranger's job at least one of both is otherwise.
    """
    if not own_gib:
        return set()
    alike = sorted(int(pid) for pid, held in entries if own_gib / ALIKE <= held <= own_gib * ALIKE)
    groups: list[list[int]] = []
    for pid in alike:
        if groups and pid - groups[-1][-1] <= NEXT_IDS:
            groups[-1].append(pid)
        else:
            groups.append([pid])
    largest = max(groups, key=len, default=[])
    return {str(pid) for pid in largest} if len(largest) >= LEAST_STARTED else set()


def _with_shares(fact: Fact, entries: Listing, own_ids: Collection[str], ranks: Collection[str]) -> Fact:
    """Add what others hold of the card, how often the request fits without them, and what is idle.

    `own_ids` and `ranks` are other processes of the job, `ranks` those that failed on this card as well.
    """
    fields: dict[str, Value] = dict(fact.fields)
    capacity, free, asked, allocated, reserved, total, cached = (
        number_in(fields, name)
        for name in (
            "capacity_gib",
            "free_gib",
            "asked_gib",
            "allocated_gib",
            "reserved_gib",
            "reserved_total_gib",
            "cached_gib",
        )
    )
    if reserved is None and cached is not None:
        # Before 1.4 PyTorch printed the idle part alone, under another name.
        reserved = fields["reserved_gib"] = cached
    if reserved is None and total is not None and allocated is not None:
        # From 1.4 to 2.0 PyTorch printed all that it reserved, later the idle part alone.
        reserved = fields["reserved_gib"] = round(max(0.0, total - allocated), 4)
    if reserved is not None and asked:
        fields["reserved_per_asked"] = round(reserved / asked, 3)
    pool = total if total is not None else None if allocated is None else allocated + (reserved or 0.0)
    others = _of_others(fields, pool, entries)
    ranks = {*ranks, *_started_together(entries, number_in(fields, "process_gib"))}
    together = sum(pid in ranks for pid, _ in entries)
    if together:
        fields["card_ranks_n"] = together + 1
    strangers = [entry for entry in entries if entry[0] not in own_ids and entry[0] not in ranks]
    if len(strangers) > 1 or (strangers and number_in(fields, "process_gib") is not None):
        # One alone may be this process itself, as a container numbers it, where the message tells no share of
        # its own.
        fields["largest_pid"] = max(strangers, key=lambda entry: entry[1])[0]
    if others is not None and capacity:
        kin = sum(size for pid, size in entries if pid in own_ids or pid in ranks)
        others = max(0.0, others - kin)
        fields["others_gib"] = round(others, 3)
        fields["others_share"] = round(others / capacity, 3)
        if asked and free is not None:
            fields["alone_per_asked"] = round((free + others) / asked, 3)
    return replace(fact, fields=fields)


def _of_others(fields: Mapping[str, Value], pool: float | None, listed: Listing) -> float | None:
    """Give the GiB that other processes hold; None where the message does not tell."""
    capacity, free, own = (number_in(fields, name) for name in ("capacity_gib", "free_gib", "process_gib"))
    if capacity is None or free is None:
        return None
    if own is not None and own <= capacity * MOST_OF_CARD:
        return max(0.0, capacity - free - own)
    if listed and own is None and pool is not None:
        # In a container the process cannot find itself in the list: it is the smallest that holds its pool.
        mine = min((size for _, size in listed if size >= pool * SAME_PROCESS), default=None)
        return None if mine is None else sum(size for _, size in listed) - mine
    if pool is not None and not fields.keys().isdisjoint(("reserved_total_gib", "cached_gib")):
        return max(0.0, capacity - free - pool - BESIDE_POOL_GIB)
    return None


def weights_beside_cards(
    facts: Sequence[Fact], settings: Sequence[Setting], *, serves: bool
) -> Iterator[Fact]:
    """Give for each failed request, or cache that is too small, what the weights take of its card.

    Where the job only `serves`, its engine's own figure tells what stands on each card, else the named
    model's size over the cards; a trainer may shard or offload the weights.
    """
    lines = {
        fact.line: number_in(fact.fields, "capacity_gib")
        for fact in facts
        if fact.kind == "gpu_oom" or (fact.kind == "kv_cache" and "missing_gib" in fact.fields)
    }
    if not lines:
        return
    stated = [fact.fields for fact in facts if fact.kind == "gpu_memory"]
    sizes = {setting.key: str(setting.value) for setting in settings}
    named = model_sizes.named_model(sizes)
    held = _first(stated, "weights_gib") if serves else None
    fields: dict[str, Value] = {}
    if named is not None:
        fields = {
            "parameters_b": named.parameters_b,
            "model_gib": round(named.weights_gib, 2),
            "bytes_each": named.bytes_each,
        }
        if held is None and serves:
            held = named.weights_gib / model_sizes.cards_of_weights(sizes)
    share = _first(stated, "utilization") or model_sizes.share_of_card(sizes)
    known = next(filter(None, lines.values()), None) or _first(stated, "capacity_gib", "total_gib")
    for line, own in lines.items():
        if fields or held is not None:
            made = fields | _beside(own or known, held, named, share)
            yield Fact("gpu_fit", line, made)


def _beside(
    capacity: float | None, held: float | None, named: model_sizes.NamedModel | None, share: float | None
) -> dict[str, Value]:
    """Give the weights in GiB, and as a share of the card; the engine's budget where its share is known."""
    made: dict[str, Value] = {} if held is None else {"weights_gib": round(held, 2)}
    if capacity:
        made["capacity_gib"] = capacity
        if held is not None:
            made["weights_share"] = round(held / capacity, 3)
        if named is not None:
            made["model_share"] = round(named.weights_gib / capacity, 3)
        if share is not None:
            made["budget_gib"] = round(share * capacity, 2)
    return made


def states_beside_cards(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Give for each failed request what training asks of its card, where that is more than half of it.

    The parameters that are trained are those that the log counts; adapters alone are few.
    """
    trained = next(filter(None, (_trained_b(fact) for fact in facts if fact.kind == "parameters")), 0.0)
    state = trained * 1e9 * BYTES_TRAINED / model_sizes.GIB
    for fact in facts:
        capacity = number_in(fact.fields, "capacity_gib") if fact.kind == "gpu_oom" else None
        if capacity and state > capacity / 2:
            fields = {"trained_b": round(trained, 3), "state_gib": round(state, 1), "capacity_gib": capacity}
            yield Fact("gpu_training", fact.line, fields)


def _trained_b(fact: Fact) -> float | None:
    """Read the billions of parameters that are trained: `7,615,616,512` or `7.6 B`."""
    told = (
        str(fact.fields[name]) for name in ("trainable", "trainable2", "trainable3") if name in fact.fields
    )
    match = next(filter(None, map(_COUNT.match, told)), None)
    if match is None:
        return None
    return float(match[1].replace(",", "")) * 1000.0 ** {"": -3, "K": -2, "M": -1, "B": 0}[match[2]]


def _first(rows: Sequence[Mapping[str, Value]], *names: str) -> float | None:
    """Give the first number above zero that a row has under one of the names."""
    return next((size for row in rows for name in names if (size := number_in(row, name))), None)


def number_in(fields: Mapping[str, Value], name: str) -> float | None:
    """Give a field as a number; None where there is none."""
    value = fields.get(name)
    return float(value) if isinstance(value, (int, float)) else None
