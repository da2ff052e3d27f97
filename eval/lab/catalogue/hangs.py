"""Experiments whose log only stops: what was looked at beside it tells who did not come."""

from ..experiment import Experiment, LineMatch, Verdict


def _hang(
    name: str,
    variant: str,
    causes: tuple[str, ...],
    mechanism: str,
    *,
    looks: str = "text",
    ranks: int = 4,
    trap: str = "",
    verdict: Verdict = "diagnosed",
) -> Experiment:
    decides = "flight_recorder verdict=" if looks.startswith("record") else "stacks verdict="
    return Experiment(
        id=name,
        causes=causes,
        script="ranks_hang.py",
        project="sft",
        launch="python train.py",
        mechanism=mechanism,
        verdict=verdict,
        root=(LineMatch(decides),) if verdict == "diagnosed" else (),
        shows=(decides,),
        needs=("torch",) if looks.startswith("record") else ("torch", "py-spy"),
        env=(("VARIANT", variant), ("LOOKS", looks), ("RANKS", str(ranks)), ("OMP_NUM_THREADS", "1")),
        traps=("the log ends at a step like any other", *([trap] if trap else [])),
        beside=True,
    )


_LATE = ("collective-straggler",)

EXPERIMENTS: tuple[Experiment, ...] = (
    _hang("lab-actinolite", "shard", _LATE, "one-rank-parses-an-endless-shard"),
    _hang("lab-andradite", "save", _LATE, "rank-zero-saves-while-others-reduce", looks="json"),
    _hang(
        "lab-anglesite", "kernels", ("stale-state", "collective-straggler"), "one-rank-waits-at-a-left-lock"
    ),
    _hang(
        "lab-anhydrite",
        "judge",
        ("external-service-failed", "reward-function-failed", "collective-straggler"),
        "one-rank-asks-a-judge-that-never-answers",
    ),
    _hang(
        "lab-apatite",
        "score",
        ("collective-straggler", "reward-function-failed"),
        "a-pattern-of-the-reward-backtracks",
        looks="signal",
    ),
    _hang("lab-atacamite", "check", ("user-code-error",), "a-rank-stands-in-a-debugger"),
    _hang("lab-augite", "evaluate", _LATE, "rank-zero-evaluates-alone", looks="together", ranks=6),
    _hang(
        "lab-barite",
        "publish",
        ("collective-desync",),
        "rank-zero-alone-in-a-barrier",
        trap="the odd rank is the first one",
    ),
    _hang("lab-benitoite", "workers", _LATE, "one-rank-waits-for-its-own-thread", looks="signal", ranks=3),
    _hang("lab-calcite", "shard", _LATE, "one-rank-parses-an-endless-shard", looks="record"),
    _hang("lab-cerussite", "publish", ("collective-desync",), "rank-zero-alone-in-a-barrier", looks="record"),
    _hang("lab-chabazite", "uneven", ("collective-desync",), "one-rank-has-a-batch-less", looks="record"),
    _hang("lab-chrysoberyl", "pair", _LATE, "a-group-waits-for-a-late-rank", looks="record", ranks=3),
    _hang(
        "lab-cinnabar",
        "save",
        ("insufficient-evidence",),
        "rank-zero-saves-while-others-reduce",
        looks="record-json",
        verdict="unknown",
        trap="rank 0 could write no dump in a call that keeps the interpreter's lock; it is late",
    ),
    _hang("lab-clinozoisite", "evaluate", _LATE, "rank-zero-evaluates-alone", looks="record-json", ranks=6),
    _hang("lab-bixbyite", "shard", _LATE, "one-rank-parses-an-endless-shard", looks="together", ranks=8),
    _hang("lab-kaolinite", "collect", _LATE, "one-rank-collects-garbage-without-end"),
    _hang(
        "lab-kernite",
        "fetch",
        ("external-service-failed", "hub-unreachable", "collective-straggler"),
        "rank-zero-downloads-from-a-server-that-never-answers",
        looks="json",
    ),
    _hang("lab-lawsonite", "build", _LATE, "one-rank-waits-for-a-program-that-it-started", looks="together"),
    _hang("lab-magnesite", "rows", _LATE, "a-loaders-worker-never-gives-its-batch"),
    _hang(
        "lab-marcasite",
        "service",
        ("external-service-failed", "reward-function-failed", "collective-straggler"),
        "one-rank-retries-a-service-that-refuses",
        looks="signal",
    ),
    _hang(
        "lab-microcline",
        "twice",
        ("collective-straggler", "user-code-error"),
        "rank-zero-takes-its-own-lock-twice",
        looks="json",
        ranks=3,
    ),
    _hang(
        "lab-mimetite",
        "share",
        ("collective-desync",),
        "one-rank-alone-broadcasts",
        looks="record",
        trap="all ranks wait in a collective",
    ),
    _hang(
        "lab-monazite",
        "collect",
        _LATE,
        "one-rank-collects-garbage-without-end",
        looks="record-json",
        ranks=5,
    ),
    _hang(
        "lab-nepheline",
        "build",
        _LATE,
        "one-rank-waits-for-a-program-that-it-started",
        looks="record",
        ranks=6,
    ),
)
