"""A headline carries the object and the numbers of its log, behind the title of the cause or the case."""

from __future__ import annotations

import pytest

from corpus.schema import Language
from service.composition.diagnosis_view import diagnosis_view
from service.composition.headlines import QUOTED, quoted, without_names
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

DESYNC = (
    "[rank2]:[E0401 10:00:00.000 ProcessGroupNCCL.cpp:633] [Rank 2] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=4812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600012 milliseconds before timing out.\n"
)
SIGNALLED = (
    "W0401 10:00:00.000 7 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, "
    "shutting down workers\n"
)
POOL = "HTTPConnectionPool(host='10.9.0.7', port=8080)"
REFUSED = "Max retries exceeded (Caused by NewConnectionError('[Errno 111] Connection refused'))"
FAILED_RANK = (
    "E0401 10:00:00.000 9 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -11) "
    "local_rank: 3 (pid: 44) of binary: /opt/python\n"
)
LIMITED = "slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2026-04-11T23:59:31 DUE TO TIME LIMIT ***"
LOADING = (
    "RuntimeError: Error(s) in loading state_dict for Net:\n"
    '\tMissing key(s) in state_dict: "stem.weight", "stem.bias".'
)
FULL = (
    'Traceback (most recent call last):\n  File "/job/load.py", line 12, in read\n    open(path)\n'
    "OSError: [Errno 24] Too many open files\n"
)
FULL_OF_RANK = "".join(f"[rank3]: {row}\n" for row in FULL.splitlines())


@each_row(
    ("log", "language", "end"),
    [
        (
            "slurmstepd: error: *** JOB 77 ON n3 CANCELLED AT 2026-04-11T23:59:31 DUE TO TIME LIMIT ***\n",
            "en",
            ": time limit reached on n3 at 2026-04-11T23:59:31",
        ),
        (
            "slurmstepd: error: *** JOB 77 ON n3 CANCELLED AT 2026-04-11T23:59:31 DUE TO PREEMPTION ***\n",
            "zh",
            "：n3 上于 2026-04-11T23:59:31 被抢占",
        ),
        (SIGNALLED, "en", ": SIGTERM"),
        (
            "kernel: Out of memory: Killed process 4120 (trainer) total-vm:9000000kB, anon-rss:8388608kB\n",
            "en",
            ": `trainer` (pid 4120) held 8 GiB",
        ),
        (DESYNC, "en", ": ALLREDUCE 4812 waited 600 s"),
        (
            "ValueError: Total available GPUs 3.0 is less than total desired GPUs 4\n",
            "en",
            ": 3 there, 4 asked",
        ),
        (FAILED_RANK, "en", "rank 3 ended with exit code -11 (SIGSEGV)"),
        (
            f"requests.exceptions.ReadTimeout: {POOL}: Read timed out.\n",
            "en",
            ": 10.9.0.7:8080 did not answer in time",
        ),
        (f"requests.exceptions.ConnectionError: {POOL}: {REFUSED}\n", "zh", "10.9.0.7:8080 拒绝了连接"),
        # What refused is not the host that was asked for.
        (
            f"requests.exceptions.ConnectionError: {POOL}: ProxyError {REFUSED}\n",
            "en",
            " 10.9.0.7:8080 failed",
        ),
    ],
)
def test_a_headline_ends_with_what_the_line_states(
    log: str, language: Language, end: str, triage: Triage
) -> None:
    assert explained(triage, log, language=language).headline.endswith(end)


@each_row(
    ("message", "is_general", "said"),
    [
        # The type, the level and the place are none of the message.
        ("ValueError: rope_scaling has no key 'type'", False, "rope_scaling has no key 'type'"),
        ("pkg.io.BrokenFile: shard 7 ends early", False, "shard 7 ends early"),
        ("pkg._io._BrokenFile: shard 7 ends early", False, "shard 7 ends early"),
        ("fit.py: error: argument --rank: 3 is too many", False, "argument --rank: 3 is too many"),
        ("[enforce fail at file.cc:88] . writing block 3 of 9 failed", False, "writing block 3 of 9 failed"),
        (
            "Epoch 2:  24%|##4   | 41/170 [09:42<28:57,  1.30s/it, loss=1.1]RuntimeError: shard 7 is empty",
            False,
            "shard 7 is empty",
        ),
        # The first sentence says it, what follows advises.
        ("The shape is (3, 4). Try another one.", False, "The shape is (3, 4)"),
        ("version 2.6.1 of the format is unknown", False, "version 2.6.1 of the format is unknown"),
        # A key as Python prints it, a shell's script, and the place of a source are no part of what is said.
        ("KeyError: \"There is no split 7. Choose one of 'a', 'b'\"", False, "There is no split 7"),
        (
            "/spool/job9/slurm_script: line 30: USER_: unbound variable",
            False,
            "line 30: USER_: unbound variable",
        ),
        (
            "RuntimeError: NCCL error in: /b/torch/csrc/Group.cpp:957, bad usage, NCCL version 2.7.8",
            False,
            "bad usage, NCCL version 2.7.8",
        ),
        ("OP_REQUIRES failed at op_impl.h:959 : no room for 8 rows", False, "no room for 8 rows"),
        # What names nothing of the job says no more than an exact title, but more than a general one.
        ("RuntimeError: the graph was freed", False, ""),
        ("RuntimeError: the graph was freed", True, "the graph was freed"),
        ("No slots are left", True, ""),
        ("", True, ""),
    ],
)
def test_a_message_is_quoted_without_what_stands_before_it(message: str, is_general: bool, said: str) -> None:
    assert quoted(message, "no slots are left", is_general=is_general) == said


OBJECT = "<urllib3.connection.HTTPSConnection object at 0x7f>"


@each_row(
    ("caused", "said"),
    [
        (
            f"ConnectTimeoutError({OBJECT}, 'Connection to h.example timed out. (connect timeout=9)'",
            "Connection to h.example timed out. (connect timeout=9)",
        ),
        (f"NewConnectionError('{OBJECT}: [Errno 111] refused'", "h.example:443: [Errno 111] refused"),
        (
            f"NameResolutionError(\"{OBJECT}: Failed to resolve 'h.example' ([Errno -2] no such name)\"",
            "Failed to resolve 'h.example' ([Errno -2] no such name)",
        ),
        (
            "NewConnectionError(\"HTTPConnection(host='h.example', port=443): [Errno 111] refused\"",
            "h.example:443: [Errno 111] refused",
        ),
    ],
)
def test_a_connection_is_told_by_what_it_failed_of(caused: str, said: str) -> None:
    """Of exceptions that are printed one in another the innermost tells, with whom was not reached."""
    pool = "HTTPSConnectionPool(host='h.example', port=443): Max retries exceeded with url: /a/b"
    message = f"ConnectTimeout: (MaxRetryError(\"{pool} (Caused by {caused}))\"), '(Request ID: 1)')"
    assert quoted(message, "no slots are left", is_general=False) == said


@each_row(
    ("below", "end"),
    [
        (
            "- ds optimizer.params.lr=1e-05 vs hf learning_rate=5e-06",
            "`ds optimizer.params.lr=1e-05 vs hf learning_rate=5e-06`",
        ),
        ("Another program begins", "that mismatch TrainingArguments values`"),
    ],
)
def test_what_a_failing_line_announces_is_told(below: str, end: str, triage: Triage) -> None:
    """A line that ends in a colon names what stands in the rows that belong to it, and in no others."""
    announcing = (
        "ValueError: Please correct the following DeepSpeed config values that mismatch TrainingArguments "
        "values:"
    )
    frames = 'Traceback (most recent call last):\n  File "/job/train.py", line 12, in main\n    fit()\n'
    assert explained(triage, f"{frames}{announcing}\n{below}\n", language="en").headline.endswith(end)


@pytest.mark.parametrize(
    ("below", "end"),
    [
        ("  Value error, at least 2 stages [type=value_error, input_value={}]\n", "`at least 2 stages`"),
        ("plan.lr\n  Field required [type=missing, input_value={}]\n", "`plan.lr: Field required`"),
        ("The next program begins\nand works\n", "`2 validation errors for Plan`"),
    ],
)
def test_a_heading_that_counts_errors_says_the_first_of_them(below: str, end: str, triage: Triage) -> None:
    """How many there are tells nothing to do; the rows of another program are none of them."""
    heading = "pydantic_core._pydantic_core.ValidationError: 2 validation errors for Plan"
    frames = 'Traceback (most recent call last):\n  File "/job/train.py", line 12, in main\n    fit()\n'
    said = explained(triage, f"{frames}{heading}\n{below}", language="en").headline
    assert said.removesuffix(" (train.py:12)").endswith(end)


def test_a_long_message_is_cut_between_its_parts() -> None:
    """No number and no name is cut open, whatever the length."""
    parts = [f"weight.{number}.bias of 123456 entries" for number in range(12)]
    said = quoted(", ".join(parts), "title", is_general=False)
    assert len(said) <= QUOTED
    assert said.removesuffix("…").split(", ") == parts[: said.count(",") + 1]


def test_a_shape_is_not_cut_amid_its_brackets() -> None:
    """The part before it is quoted instead."""
    said = quoted(
        f"expected (1, 4096, 450) for a layer of {'long ' * 18}names, got (1, 1024, 450)",
        "t",
        is_general=True,
    )
    assert said.endswith("names…")


def test_the_proof_is_the_message_behind_a_progress_bar(triage: Triage) -> None:
    """What another process prints behind a bar is the message, the bar is none of it."""
    cancelled = "*** JOB 77 ON n3 CANCELLED AT 2026-04-11T23:59:31 DUE TO TIME LIMIT ***"
    log = f"Epoch 1:  24%|##4  | 41/170 [09:42<28:57,  1.30s/it]slurmstepd: error: {cancelled}\n"
    proof = diagnosis_view(explained(triage, log, language="en")).proof
    assert proof.endswith(cancelled)
    assert "41/170" not in proof


def test_the_rows_that_a_message_announces_are_part_of_its_proof(triage: Triage) -> None:
    """What is missing and what is there instead are read together; a long row leaves the next its room."""
    many = ", ".join(f'"stem.{number}.weight"' for number in range(40))
    loading = f"{LOADING.partition(chr(10))[0]}\n\tMissing key(s) in state_dict: {many}.\n"
    shown = diagnosis_view(
        explained(triage, f'{loading}\tUnexpected key(s) in state_dict: "trunk.weight".\n')
    ).proof
    assert 'Missing key(s) in state_dict: "stem.0.weight"' in shown
    assert shown.endswith('Unexpected key(s) in state_dict: "trunk.weight".')


def test_that_the_end_of_a_long_path_is_told_and_an_address_stays_whole() -> None:
    """Which file it is stands in its last parts; a message that has room is left as it is."""
    path = "/data/" + "/".join(f"folder-{number}" for number in range(20)) + "/images/cat-17.jpg"
    said = quoted(f"FileNotFoundError: [Errno 2] No such file: '{path}'", "title", is_general=True)
    assert said == "No such file: '…/images/cat-17.jpg'"
    short = "No such file: '/data/a/b/c/cat-17.jpg'"
    assert quoted(short, "title", is_general=True) == short
    address = f"cannot fetch https://hub.example/{'a/' * 70}weights.bin"
    assert "…/" not in quoted(address, "title", is_general=True)


@each_row(
    ("title", "shown"),
    [
        ("Out of memory in the training step (verl update)", "Out of memory in the training step"),
        ("Out of memory in the training step (Megatron-LM)", "Out of memory in the training step"),
        ("训练步显存不足(verl 更新阶段)", "训练步显存不足"),
        ("A library is built for another processor (SIGILL)", None),
        ("The driver gives no card to this process (CUDA unknown error at the start)", None),
        ("No brackets at all", None),
    ],
)
def test_a_title_beside_numbers_names_no_framework_in_brackets(title: str, shown: str | None) -> None:
    assert without_names(title) == (shown or title)


def test_a_place_in_a_package_stands_in_no_headline_beside_a_title(triage: Triage) -> None:
    """Nobody opens PyTorch's own file first; a line of the job's own code is told."""
    oom = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
        "of 10.00 GiB of which 1.00 GiB is free. Process 1 has 8.00 GiB memory in use.\n"
    )
    trace = 'Traceback (most recent call last):\n  File "{file}", line 7, in {name}\n    {code}\n'
    own = trace.format(file="/job/loop.py", name="fit", code="loss.backward()")
    inner = (
        '  File "/opt/lib/python3.11/site-packages/torch/_tensor.py", line 5, in backward\n    backward(\n'
    )
    headline = explained(triage, own + inner + oom).headline
    assert "1 GiB" in headline
    assert "_tensor.py" not in headline


@each_row(
    ("log", "language", "end"),
    [
        (FULL_OF_RANK, "en", "(rank 3, load.py:12)"),
        (FULL_OF_RANK, "zh", "（rank 3，load.py:12）"),
        (FULL, "en", "(load.py:12)"),
        # An exception without words of its own has those of its form.
        (
            FULL.replace("OSError: [Errno 24] Too many open files", "bdb.BdbQuit"),
            "en",
            "ends it (load.py:12)",
        ),
        ("OSError: [Errno 24] Too many open files\n", "en", "reached"),
    ],
)
def test_that_a_headline_that_names_nothing_says_who_and_where(
    triage: Triage, log: str, language: Language, end: str
) -> None:
    """The ranks and the call that the log shows; nothing is made up where it shows none."""
    assert explained(triage, log, language=language).headline.rstrip(".。").endswith(end)


def test_that_numbers_and_statements_are_told_once(triage: Triage) -> None:
    """The headline has the sizes as the log has them, and what the message means names the statement."""
    log = (
        'Traceback (most recent call last):\n  File "/job/loop.py", line 7, in fit\n    loss = model(batch)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.00 MiB. GPU 0 has a total capacity "
        "of 3.68 GiB of which 44.88 MiB is free.\n"
    )
    answer = explained(triage, log, language="en")
    assert "44.88 MiB" in answer.headline
    assert "were asked for" not in answer.explanation
    assert answer.explanation.count("loss = model(batch)") == 1


@each_row(
    ("line", "headline"),
    [
        ("jobs/go.sh: line 30: OUT_: unbound variable", "shell variable `OUT_`, which is not set (line 30)"),
        (
            "jobs/go.sh: line 27: cd: /home/m/state: No such file or directory",
            "`/home/m/state` does not exist",
        ),
        (LOADING, "The checkpoint has no `stem.weight`, which `Net` has"),
        (" 37%|###8   " + LIMITED, "time limit reached on n3 at 2026-04-11T23:59:31"),
    ],
)
def test_a_headline_says_what_a_shell_a_loader_or_a_scheduler_says(
    line: str, headline: str, triage: Triage
) -> None:
    """The object itself, not the class of its failure."""
    answer = explained(triage, f"{line}\n", language="en")
    assert headline in answer.headline
    assert "%|" not in diagnosis_view(answer).proof


def test_a_bar_that_is_full_tells_nothing_of_a_stop(triage: Triage) -> None:
    """That of the shards which were loaded last, or of an epoch: the job went on behind it."""
    bar = "Loading checkpoint shards: 100%|####| 4/4 [00:01<00:00,  2.17it/s]\n"
    assert "4 of 4" not in explained(triage, f"step 1 loss 0.5\n{bar}", language="en").headline


def test_a_bar_that_stops_tells_how_far_it_came(triage: Triage) -> None:
    """Its count and length stand in the headline, the line that it is in the explanation."""
    bars = "".join(f" {n}%|##   | {n * 20}/2000 [0{n // 10}:00<09:00,  3.1it/s]\n" for n in range(10, 37))
    answer = explained(triage, f"{{'loss': 1.9, 'epoch': 0.1}}\n{bars}", language="en")
    assert answer.headline.endswith("its progress bar stops at 720 of 2000")
    assert "[L28] is the last sign of work: `36%|##   | 720/2000" in answer.explanation
