"""Rows of a prompt that decide: numbers amid routine output, overridden values, forms of keys, runs."""

from __future__ import annotations

from dataclasses import replace

from ingest.logs.inputs import sources
from service.llm.odd_rows import odd_rows
from service.llm.prompt import for_answer
from service.llm.prompt_context import build_prompt_context
from service.llm.row_folding import folded
from service.llm.telling_rows import telling, told_first
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.factories import OOM, steps, traceback
from tests.tables import each_row

FAILED = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 9, in <module>\n'
    "    main()\n"
    "ValueError: nothing came\n"
)
ROUTINE = "".join(map(steps, range(1, 300)))


def sent(triage: Triage, log: str, *files: ConfigFile) -> str:
    """Give the prompt about a log that can be read again."""
    context = triage.diagnose(triage.read(sources.from_text(log), files=list(files)))
    context = replace(context, reopen=lambda: sources.from_text(log))
    return for_answer(build_prompt_context(context), 8000).messages[1].text


@each_row(
    ("text", "says"),
    [
        ('INFO: 10.0.0.1:5000 - "POST /v1/chat HTTP/1.1" 503 Service Unavailable', 'HTTP/1.1" 503'),
        ("reward server answered with status code 429", "status code 429"),
        ("shard 7: errno=28", "errno=28"),
        ("Failed to read /mnt/part-3.parquet, skipping", "Failed to read"),
        ("retrying in 2 s, attempt 4", "retrying in 2"),
        ("listening on 0.0.0.0:8000", "listening on 0.0.0.0:8000"),
        ("GPU KV cache size: 18,432 tokens", "KV cache size: 1"),
        ("(Worker pid=7) INFO num_gpu_blocks: 211", "num_gpu_blocks: 211"),
        ("node1:77:90 [3] NCCL INFO comm 0x55 rank 3 nranks 8 commId 0x12ab34", "nranks 8"),
        ('INFO: 10.0.0.1:5000 - "POST /v1/chat HTTP/1.1" 200 OK', ""),
        ("step 403: loss 1.25", ""),
        ("saved after 12 attempts were planned", ""),
        ("supporting 4096 tokens", ""),
    ],
)
def test_a_number_that_may_decide_is_known_by_the_words_before_it(text: str, says: str) -> None:
    """A status of failure, an errno, a port, a count of tries, what could not be read; no step or size."""
    assert telling(text) == says


def test_rows_with_such_a_number_stand_amid_rows_alike() -> None:
    """Of a run that reads alike but for its numbers, each number that may decide is shown once."""
    rows = {number: f"reply {number}: status code {503 if number == 40 else 502}" for number in range(1, 90)}
    kept = folded(rows, set(told_first(rows)))
    assert {1, 40, 89} <= set(kept)
    assert len(kept) < 30


def test_a_rank_whose_number_is_not_as_the_others_is_found() -> None:
    """One count that differs among ranks is odd; their own numbers, and steps that all count, are not."""
    rows = {
        10 * step
        + rank: f"[rank{rank}]: step {step}, rank {rank} of 8: {3 if rank == 5 else 4} micro batches"
        for step in range(1, 3)
        for rank in range(8)
    }
    assert list(odd_rows(rows)) == [15, 25]
    assert not list(odd_rows({number: text.replace(": 3 ", ": 4 ") for number, text in rows.items()}))
    assert not list(odd_rows({number: text.partition(": ")[2] for number, text in rows.items()}))


def test_an_odd_rank_far_above_the_failure_is_sent(triage: Triage) -> None:
    """The row of the rank that differs is sent, and of the seven others none."""
    ranks = "".join(f"[rank{rank}]: bucket of {7 if rank == 6 else 9} layers\n" for rank in range(8))
    prompt = sent(triage, f"{ROUTINE}{ranks}{ROUTINE}{FAILED}")
    assert "bucket of 7 layers" in prompt
    assert "bucket of 9 layers" not in prompt


def test_a_row_that_holds_what_the_message_quotes_is_sent(triage: Triage) -> None:
    """A file, a key or a module that the message quotes is sought above; a plain word is not."""
    failed = FAILED.replace("nothing came", "'shard-07.idx' of 'training' is broken")
    log = f"wrote shard-07.idx with 3 rows\n{ROUTINE}training goes on\n{ROUTINE}{failed}"
    prompt = sent(triage, log)
    assert "wrote shard-07.idx with 3 rows" in prompt
    assert "training goes on" not in prompt


def test_a_telling_row_far_above_the_failure_is_sent(triage: Triage) -> None:
    """No rule knows it and a thousand steps stand below it."""
    log = steps(1, 2) + "Failed to read /mnt/part-3.parquet, skipping\n" + steps(*range(3, 900)) + FAILED
    assert "| Failed to read /mnt/part-3.parquet" in sent(triage, log)


def test_a_value_that_the_command_overrides_is_told_as_such(triage: Triage) -> None:
    """The run's value stands first, and the file's is said to be overridden; of one of two alike, nothing."""
    held = "training:\n  epochs: 3\n  batch_size: 64\neval:\n  batch_size: 16\n"
    log = f"+ python train.py --config conf.yaml --epochs 50 --batch_size 8\n{FAILED}"
    text = sent(triage, log, ConfigFile("conf.yaml", held))
    assert "training.epochs=3 (in the file, overridden: the run has --epochs=50)" in text
    assert "training.batch_size=64 (in the file" not in text
    same = sent(triage, log.replace("50", "3"), ConfigFile("conf.yaml", held))
    assert "overridden: the run has --epochs" not in same


def test_the_forms_of_keys_that_the_job_has_are_told_by_example(triage: Triage) -> None:
    """An option of its command and a new key of its file; without either, no example."""
    held = ConfigFile("conf.yaml", "training:\n  epochs: 3\n")
    text = sent(triage, f"+ python train.py --config conf.yaml --lr 1e-4\n{FAILED}", held)
    assert "an option of the command is spelled as `--config` (kind flag)" in text
    assert "such as `training.<name>` (kind setting)" in text
    assert "Keys of your own changes here" not in sent(triage, FAILED)


def test_each_run_of_a_file_begins_with_what_says_so(triage: Triage) -> None:
    """Where it is shown, a row above its first line counts it, and one alone is judged."""
    run = "Launching the trainer on 8 cards\nReading settings of base.yaml\nLoading words from /models/lark\n"
    text = sent(triage, f"{run}{traceback(OOM)}{run}{FAILED}")
    assert "--- run 1 of 2 begins here ---\nL1| Launching" in text
    assert "--- run 2 of 2 begins here; this one is judged ---\nL10| Launching" in text
    assert "begins here" not in sent(triage, f"{run}{FAILED}")
