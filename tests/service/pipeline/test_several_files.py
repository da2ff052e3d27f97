"""Jobs of many files and ranks, told as one: who is missing, what lies beside the logs, what a healthy run
says too.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path

from ingest.logs.inputs import jobs, sources
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import Diagnosis
from tests.factories import OOM, STRANGE, steps, traceback
from tests.service.patching.applying import applied, is_bash
from tests.service.pipeline.test_triage import OFFLOAD, SECRETS
from tests.tables import each_row
from tests.warm import diagnosed, explained, script

WORLD = 64
HOME = "w-easyr1-offload-host-ram"
REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused by 10.0.0.3:29500\n"


def watchdog(rank: int, prefix: str = "[rank{rank}]:") -> str:
    """Write what PyTorch's watchdog of a rank says of a collective that timed out."""
    return (
        f"{prefix.format(rank=rank)}[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank {rank}] "
        "Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 "
        "milliseconds before timing out.\n"
    )


def folder(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write the files of a job."""
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def told(triage: Triage, path: Path, language: str = "en") -> Diagnosis:
    """Explain a folder, a file or an archive."""
    return diagnosed(triage, jobs.open_job(path), language)


@each_row(
    ("language", "sentence"),
    [
        ("en", "63 ranks report it; rank 17 does not: look at what it printed last."),
        ("zh", "有 63 个 rank 报了这个错误，rank 17 没有：请先看它最后输出了什么。"),
    ],
)
def test_the_rank_that_does_not_time_out_is_named(language: str, sentence: str, triage: Triage) -> None:
    """Of 64 ranks 63 wait for the one that never came: the cascade and the explanation name it."""
    log = "".join(watchdog(rank) for rank in range(WORLD) if rank != 17)
    answer = explained(triage, log, language=language)
    (entry,) = [item for item in answer.cascade if item.role == "root"]
    assert (entry.count, entry.missing_ranks) == (63, (17,))
    assert sentence in answer.explanation
    assert "rank 17" in answer.checks[0]
    assert "py-spy dump" in answer.checks[0]


@each_row("language", ["en", "zh"])
def test_a_missing_rank_of_what_follows_is_named(language: str, triage: Triage) -> None:
    """The rank that ran out of memory reports no timeout: what came after says by whom it did not."""
    log = f"[rank5]: {OOM}\n" + "".join(watchdog(rank) for rank in range(WORLD) if rank != 5)
    answer = explained(triage, log, language=language)
    assert {item.role: item.missing_ranks for item in answer.cascade} == {"root": (), "collateral": (5,)}
    assert {"en": "(not from rank 5)", "zh": "(没有 rank 5)"}[language] in answer.explanation


@each_row(
    ("silent", "expected"),
    [
        ([], ()),
        ([0], (0,)),
        ([3, 40, 41], (3, 40, 41)),
        (list(range(31)), tuple(range(31))),
        (list(range(32)), ()),
        (list(range(60)), ()),
    ],
    ids=["none", "first", "some", "fewer-than-half", "half", "most"],
)
def test_who_is_missing_is_told_where_most_are_there(
    silent: list[int], expected: tuple[int, ...], triage: Triage
) -> None:
    """Where half of the ranks or more say nothing, the log just does not hold them."""
    answer = explained(triage, "".join(watchdog(rank) for rank in range(WORLD) if rank not in silent))
    assert answer.cascade[0].missing_ranks == expected


@each_row(
    ("line", "missing"),
    [
        ("all is well", ()),
        ("Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/64", (63,)),
        (
            (
                "node7:81:402 [0] NCCL INFO ncclCommInitRank comm 0x55d0aa rank 0 nranks 64 cudaDev 0 "
                "nvmlDev 0 busId 4b000 commId 0x7a1 - Init COMPLETE"
            ),
            (63,),
        ),
    ],
    ids=["nobody", "lightning", "nccl"],
)
def test_the_highest_rank_is_missed_where_the_world_is_told(
    line: str, missing: tuple[int, ...], triage: Triage
) -> None:
    """Where no line says how many ranks there are, nobody can miss the last one."""
    answer = explained(triage, f"{line}\n" + "".join(watchdog(rank) for rank in range(WORLD - 1)))
    assert answer.cascade[0].missing_ranks == missing


def test_missing_ranks_are_found_over_a_file_a_rank(triage: Triage, tmp_path: Path) -> None:
    """A folder is one job, and the answer names file and line."""
    answer = told(
        triage,
        folder(
            tmp_path,
            {f"rank{rank}.log": "loading\n" + (watchdog(rank) if rank != 9 else "") for rank in range(16)},
        ),
    )
    assert (answer.cascade[0].missing_ranks, answer.cascade[0].file, answer.cascade[0].line) == (
        (9,),
        "rank0.log",
        2,
    )


def test_the_answer_names_file_and_line(triage: Triage, tmp_path: Path) -> None:
    """Evidence, cascade, explanation and frameworks lead to the file, and to the line in it."""
    path = folder(
        tmp_path, {"node0/rank0.log": "loading\n" * 9, "node1/rank1.log": "loading\n" * 4 + traceback(OOM)}
    )
    answer = told(triage, path)
    assert [(item.file, item.line) for item in answer.evidence][:1] == [("node1/rank1.log", 10)]
    assert [(item.file, item.line) for item in answer.cascade] == [("node1/rank1.log", 10)]
    assert "[node1/rank1.log:L10]" in answer.explanation
    assert (answer.limits.lines, answer.source) == (19, str(path))
    assert "[node1/rank1.log:L10]" in told(triage, path, "zh").explanation


def test_a_log_alone_names_no_file(triage: Triage) -> None:
    """The answer's form is that of before."""
    answer = explained(triage, traceback(OOM))
    assert [(item.file, item.line) for item in answer.evidence][:1] == [(None, 6)]
    assert "[L6]" in answer.explanation


@each_row("name", ["run.sh", "scripts/launch.sh"])
def test_a_config_beside_the_logs_is_patched(name: str, triage: Triage, tmp_path: Path) -> None:
    """What lies in the job's folder is the job's: its patch is that of a file that is given."""
    before = script(HOME).read_text(encoding="utf-8")
    answer = told(triage, folder(tmp_path, {"driver.log": OFFLOAD, name: before}))
    assert answer.patch
    assert (
        answer.patch == diagnosed(triage, sources.from_text(OFFLOAD), "en", [ConfigFile(name, before)]).patch
    )


def test_the_patch_of_a_config_beside_the_logs_applies(triage: Triage, tmp_path: Path) -> None:
    """It changes the file, and leaves a script that bash parses."""
    before = script(HOME).read_text(encoding="utf-8")
    answer = told(triage, folder(tmp_path / "job", {"driver.log": OFFLOAD, "run.sh": before}))
    (tmp_path / "git").mkdir()
    after = applied(tmp_path / "git", before, answer.patch or "")
    assert after != before
    assert is_bash(after)


def test_a_config_in_an_archive_is_patched(triage: Triage, tmp_path: Path) -> None:
    """What a user sends is often packed."""
    path = tmp_path / "job.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, raw in {"driver.log": OFFLOAD.encode(), "run.sh": script(HOME).read_bytes()}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(raw)
            archive.addfile(entry, io.BytesIO(raw))
    assert "+++ b/run.sh" in (told(triage, path).patch or "")


def test_a_config_beside_the_logs_counts_as_one_that_is_given(triage: Triage, tmp_path: Path) -> None:
    """A value in the job's own file is what a change goes from, as if the file had been given."""
    own = script(HOME).read_text(encoding="utf-8")
    answer = told(triage, folder(tmp_path, {"driver.log": OFFLOAD, "run.sh": own}))
    assert (
        answer.changes
        == diagnosed(triage, sources.from_text(OFFLOAD), "en", [ConfigFile("run.sh", own)]).changes
    )
    assert answer.patch is not None


def test_a_config_that_is_given_replaces_those_beside_the_logs(triage: Triage, tmp_path: Path) -> None:
    """Who names a file means that one."""
    path = folder(
        tmp_path / "job", {"driver.log": OFFLOAD, "other.sh": script(HOME).read_text(encoding="utf-8")}
    )
    given = folder(tmp_path, {"run.sh": script(HOME).read_bytes()}) / "run.sh"
    answer = diagnosed(triage, jobs.open_job(path), "en", [read_config(given)])
    assert "+++ b/run.sh" in (answer.patch or "")
    assert "other.sh" not in (answer.patch or "")


def test_no_secret_of_a_config_beside_the_logs_is_in_the_answer(triage: Triage, tmp_path: Path) -> None:
    """A folder holds more than its owner remembers."""
    own = f"export HF_TOKEN={SECRETS['huggingface']}\n" + script(HOME).read_text(encoding="utf-8")
    answer = told(triage, folder(tmp_path, {"driver.log": OFFLOAD, "run.sh": own}))
    assert answer.patch
    assert [name for name, secret in SECRETS.items() if secret in answer.to_json()] == []


@each_row("is_saved", [False, True], ids=["log", "templates"])
def test_an_error_of_the_healthy_run_is_not_the_cause(is_saved: bool, triage: Triage, tmp_path: Path) -> None:
    """Given as its output, or as what was saved of it."""
    good = (
        folder(tmp_path, {"good.log": REFUSED.replace("10.0.0.3", "10.0.0.9") + steps(1, 2, 3)}) / "good.log"
    )
    if is_saved:
        triage.healthy_templates(good).save(tmp_path / "good.json")
        good = tmp_path / "good.json"
    log = steps(1) + REFUSED
    alone = explained(triage, log)
    compared = diagnosed(triage, sources.from_text(log), "en", (), triage.healthy_templates(good))
    assert (alone.verdict == "no-failure", compared.verdict, compared.evidence) == (False, "no-failure", ())


@each_row("language", ["en", "zh"])
def test_an_unknown_shows_what_the_healthy_run_does_not_say(
    language: str, triage: Triage, tmp_path: Path
) -> None:
    """Where no line tells the cause, those that are new are the best to look at."""
    good = folder(tmp_path, {"good.log": "loading\n" + steps(1, 2, 3) + "saving\n"}) / "good.log"
    log = "loading\n" + steps(1, 2) + "the gateway stutters\n" + f"{STRANGE}\n"
    answer = diagnosed(triage, sources.from_text(log), language, (), triage.healthy_templates(good))
    lead = {
        "en": "The healthy run prints nothing like these last lines:",
        "zh": "正常运行的日志里没有类似的最后几行：",
    }[language]
    assert answer.verdict == "unknown"
    assert lead in answer.explanation
    assert "[L4] `the gateway stutters`" in answer.explanation
    assert lead not in explained(triage, log, language=language).explanation


def test_a_known_cause_needs_no_novel_lines(triage: Triage, tmp_path: Path) -> None:
    """The explanation of a diagnosis stays about its cause."""
    good = folder(tmp_path, {"good.log": "loading\n"}) / "good.log"
    answer = diagnosed(triage, sources.from_text(traceback(OOM)), "en", (), triage.healthy_templates(good))
    assert answer.verdict == "diagnosed"
    assert "healthy run" not in answer.explanation


def test_a_healthy_folder_is_read_as_one_run(triage: Triage, tmp_path: Path) -> None:
    """`--good` takes what `explain` takes."""
    good = folder(tmp_path / "good", {"rank0.log": "loading\n", "rank1.log": REFUSED})
    compared = diagnosed(triage, sources.from_text(REFUSED), "en", (), triage.healthy_templates(good))
    assert (compared.shows_failure, compared.evidence) == (False, ())


def test_a_watchdog_that_names_its_rank_in_its_message_counts_as_that_rank(triage: Triage) -> None:
    """PyTorch 2.1 and older put no rank before the line."""
    log = "".join(watchdog(rank, prefix="") for rank in range(WORLD) if rank != 17)
    assert explained(triage, log).cascade[0].missing_ranks == (17,)


@each_row("language", ["en", "zh"])
def test_a_cut_log_is_never_called_healthy(language: str, triage: Triage, tmp_path: Path) -> None:
    """What it still holds may go well, may even say that all is done: how the job ended stands in what is
    missing.
    """
    wrong = []
    for name, text in {
        "amid its work": steps(*range(1, 3000)),
        "after a good end": "Training finished.\n" * 500,
        "silent": "plain words\n" * 999,
    }.items():
        for pack in (gzip.compress, lzma.compress):
            packed = pack(text.encode())
            (tmp_path / "job.data").write_bytes(packed[:-5])
            answer = told(triage, tmp_path / "job.data", language)
            if (answer.verdict, answer.standing, answer.action, answer.limits.cut) != (
                "unknown",
                "none",
                "collect-more",
                True,
            ):
                wrong.append((name, answer.verdict, answer.standing))
            if {"en": "is cut", "zh": "截断"}[language] not in answer.headline + answer.explanation:
                wrong.append((name, answer.headline, ""))
    assert not wrong
