"""Arithmetic over a card: whose memory it is, and what a model's weights take of it."""

from __future__ import annotations

from tests.factories import ReadLog

OWN = "Including non-PyTorch memory, this process has {} GiB memory in use. "
OTHER = "Process {} has {} GiB memory in use. "


def refused(
    *whose: str, asked: str = "2.00 GiB", card: int = 80, free: str = "1.00 GiB", pool: float = 38.5
) -> str:
    """Write the allocator's message, of a pool with half a GiB idle."""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity "
        f"of {card}.00 GiB of which {free} is free. {''.join(whose)}Of the allocated memory {pool:.2f} GiB "
        "is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated.\n"
    )


# The message; GiB of others, and free and others together by what is asked.
OWNERS: tuple[tuple[str, tuple[float | None, float | None]], ...] = (
    (refused(OTHER.format(77, "38.50"), OWN.format("40.00")), (39.0, 20.0)),
    # In a container the entry that holds the pool is the process itself.
    (refused(OTHER.format(77, "38.00"), OTHER.format(78, "40.00")), (38.0, 19.5)),
    (refused(OTHER.format(77, "78.90"), pool=77.0), (0.0, 0.5)),
    # Nobody is listed, as on AMD cards; a counter that wrapped tells nothing.
    (refused(free="0 bytes", pool=60.0), (None, None)),
    (refused(OWN.format("17179869184.00"), card=6, free="0 bytes", pool=9.0), (None, None)),
    # Before 2.1: all that is reserved, and a GiB for what is beside it.
    (
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 40.00 GiB total capacity; "
            "13.50 GiB already allocated; 1.00 GiB free; 14.00 GiB reserved in total by PyTorch)"
        ),
        (24.0, 12.5),
    ),
    # Before 1.4: what is idle, under another name.
    (
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 40.00 GiB total capacity; "
            "13.50 GiB already allocated; 1.00 GiB free; 512.00 MiB cached)"
        ),
        (24.0, 12.5),
    ),
    # A process of the job itself is no neighbour.
    (f"(Actor pid=78) {refused(OTHER.format(78, '38.50'), OWN.format('40.00'))}", (0.5, 0.75)),
)
FAILED = refused(asked="80.00 MiB", card=16, free="10.00 MiB", pool=14.3)
SERVED = (
    "+ python -m vllm.entrypoints.openai.api_server --model org/Thing-7B --gpu-memory-utilization 0.8 "
    "--tensor-parallel-size {tp}\n"
)
LOADED = "INFO 05-14 10:00:00 [gpu_model_runner.py:99] Model loading took 14.25 GiB and 6.2 seconds\n"
TRAINED = '  File "/env/lib/python3.11/site-packages/trl/trainer/sft_trainer.py", line 9, in training_step\n'
# The log; the weights on a card, their share of it, and the engine's budget in GiB.
FITS: tuple[tuple[str, tuple[object, ...] | None], ...] = (
    (SERVED.format(tp=1) + LOADED + FAILED, (14.25, 0.891, 12.8)),
    (SERVED.format(tp=1) + FAILED, (13.04, 0.815, 12.8)),
    (SERVED.format(tp=2) + FAILED, (6.52, 0.407, 12.8)),
    (f"+ python train.py --model_name_or_path org/Thing-7B\n{TRAINED}{FAILED}", (None, None, None)),
    (FAILED, None),
    (SERVED.format(tp=1) + LOADED, None),
)


def test_that_the_cards_memory_is_told_apart(read: ReadLog) -> None:
    """Of every wording of the allocator's message."""
    found = []
    for log, expected in OWNERS:
        fact = next(fact.fields for fact in read(log).facts if fact.kind == "gpu_oom")
        told = tuple(fact.get(name) for name in ("others_gib", "alone_per_asked"))
        if told != expected or fact["reserved_gib"] != 0.5:
            found.append((log, told))
    assert found == []


# Two ranks of a job, each of which lists the other; a third process is none of the job's.
SHARERS = tuple(
    refused(
        OTHER.format(other, held), OTHER.format(99, "20.00"), OWN.format(own), asked="100.00 MiB", card=80
    )
    for other, held, own in ((12, "29.50", "29.40"), (11, "29.40", "29.50"))
)
# The trainer of each of two nodes beside its own engine, on the first card of its own node.
NODES = tuple(
    refused(OTHER.format(engine, held), OWN.format("38.00"), asked="100.00 MiB")
    for engine, held in ((21, "41.10"), (22, "41.20"))
)


def test_that_ranks_on_one_card_are_no_strangers(read: ReadLog) -> None:
    """Each tells the size under which the other lists it; what engines of two nodes hold tells nothing."""
    found = [fact.fields for fact in read("".join(SHARERS)).facts if fact.kind == "gpu_oom"]
    assert [fact["card_ranks_n"] for fact in found] == [2, 2]
    assert [fact["others_gib"] for fact in found] == [20.1, 20.1]
    assert all("card_ranks_n" not in fact.fields for fact in read("".join(NODES)).facts)


def test_that_processes_that_were_started_together_are_ranks_of_the_job(read: ReadLog) -> None:
    """Their ids follow one another and each holds about as much; strangers differ in one of both."""
    ranks = [OTHER.format(pid, "3.18") for pid in (1665042, 1665044, 1665045)]
    apart = [OTHER.format(pid, "3.18") for pid in (1665042, 1700001, 1800002)]
    large = [OTHER.format(pid, "16.40") for pid in (1665042, 1665044, 1665045)]
    told = []
    for listed in (ranks, apart, large, ranks[:2]):
        log = refused(*listed, OWN.format("2.80"), asked="224.00 MiB", card=24)
        fact = next(fact.fields for fact in read(log).facts if fact.kind == "gpu_oom")
        told.append(fact.get("card_ranks_n"))
    assert told == [4, None, None, None]


def test_that_weights_are_set_against_the_card_they_stand_on(read: ReadLog) -> None:
    """By the engine's own figure, else by the model's name; of a trainer only the model is known."""
    found = []
    for log, expected in FITS:
        fact = next((fact.fields for fact in read(log).facts if fact.kind == "gpu_fit"), None)
        names = ("weights_gib", "weights_share", "budget_gib")
        told = None if fact is None else tuple(fact.get(name) for name in names)
        if told != expected:
            found.append((log, told))
    assert found == []


def test_that_what_training_asks_of_a_card_follows_from_the_trained_parameters(read: ReadLog) -> None:
    """At 16 bytes each, in every trainer's count; adapters alone are few, and then nothing is said."""
    rows = {
        "  Number of trainable parameters = 7,615,616,512": (7.616, 113.5),
        "trainable params: 1,543,714,304 || all params: 1,543,714,304 || trainable%: 100.0": (1.544, 23.0),
        "1.5 B     Trainable params": (1.5, 22.4),
        "trainable params: 20,185,088 || all params: 7,635,801,600 || trainable%: 0.2643": None,
    }
    found = {}
    for line in rows:
        facts = [fact.fields for fact in read(f"{line}\n{FAILED}").facts if fact.kind == "gpu_training"]
        found[line] = (facts[0]["trained_b"], facts[0]["state_gib"]) if facts else None
    assert found == rows
