"""Which words of a line speak of a failure, and which only of one that may come."""

from ingest.logs.wording import happened
from tests.factories import ReadLog, steps
from tests.tables import each_row

MODAL = [
    "WARNING: a context length of 128000. This may cause OOM errors during memory profiling.",
    "[WARN] more workers than cores might lead to OOM",
    "Set a smaller batch to avoid OOM on 24 GiB cards",
    "If you see OOM, lower the batch size",
    "显存较小，长序列可能会导致 OOM",
    "In case of OOM the batch is halved",
]


@each_row("line", MODAL)
def test_that_a_line_which_only_warns_of_a_failure_is_none(line: str, read: ReadLog) -> None:
    report = read(f"loading weights\n{line}\nINFO: server is ready\n")
    assert report.root is None


@each_row(
    "line",
    [
        "job killed to avoid OOM on the node",
        "OOM on rank 3. You may lower the batch size.",
        "trainer: OOM! To avoid it, halve the batch",
        "The first step may hang for a while. sh: torchrun: not found.",
        "Large batches may cause a stall. acme.loader.dataloadererror.",
    ],
)
def test_that_advice_beside_a_failure_does_not_hide_it(line: str, read: ReadLog) -> None:
    report = read(f"loading weights\n{line}\n")
    assert report.root is not None
    assert report.root.line == 2


@each_row(
    "line",
    [
        "Sweep 3 ended without a CUDA out of memory error.",
        "stage 2 is over without any exceptions",
        "the second attempt did not fail",
    ],
)
def test_that_a_failure_which_a_line_denies_is_none(line: str, read: ReadLog) -> None:
    report = read(f"loading weights\n{line}\nINFO: server is ready\n")
    assert report.root is None


@each_row(
    "line", ["job failed without a message", "job failed without any error", "worker 3 died without an error"]
)
def test_that_a_failure_without_its_reason_is_one(line: str, read: ReadLog) -> None:
    assert read(f"loading weights\n{line}\n").root is not None


def test_that_only_the_sentences_that_suppose_are_left_out() -> None:
    assert happened("The run failed. This may cause a retry.") == "The run failed."
    assert happened("plain words") == "plain words"


def test_that_what_was_wrong_with_a_call_comes_before_how_it_is_made(read: ReadLog) -> None:
    report = read(
        "usage: train.py [-h] [--fp16 FP16]\n"
        "                [--lr LR]\n"
        "train.py: error: argument --fp16: Truthy value expected: got s\n"
    )
    assert report.root is not None
    assert (report.root.line, report.root.cause) == (3, "config-key-invalid")


def test_that_a_warning_of_gloo_is_survived_and_an_engine_says_what_it_was_doing(read: ReadLog) -> None:
    report = read(
        "[rank0]:[W1031 16:32:24.505 ProcessGroupGloo.cpp:514] Warning: Unable to resolve hostname to a "
        "(local) address. Using the loopback address as fallback. (function operator())\n"
        "INFO 10-31 16:32:26 [gpu_model_runner.py:2338] Starting to load model acme/x-7b...\n"
        "ERROR 10-31 16:33:01 [gpu_model_runner.py:4219] Failed to load model - not enough GPU memory. "
        "(original error: CUDA out of memory. Tried to allocate 260.00 MiB. GPU 0 has a total capacity of "
        "23.52 GiB of which 12.00 MiB is free.)\n"
    )
    assert report.root is not None
    assert (report.root.line, report.root.cause) == (3, "gpu-oom-model-load")


@each_row(
    "line",
    [
        "EarlyStopping: Training stopped early as no improvement observed in last 20 epochs.",
        "Stopping training early as no improvement observed in last 20 epochs.",
        "Training stopped after 12 epochs without improvement",
        "val_loss did not improve for 5 epochs; stopping training",
        "Early stopping triggered, stopping training now",
    ],
)
def test_that_who_stops_since_it_gets_no_better_has_not_failed(line: str, read: ReadLog) -> None:
    assert read(f"{line}\nbest model saved\n").root is None


@each_row(
    "line",
    [
        "Training stopped early: gradient overflow",
        "Training stopped early because of a lost worker",
        "early stopping callback crashed at epoch 4",
    ],
)
def test_that_who_stops_early_for_anything_else_has(line: str, read: ReadLog) -> None:
    assert read(f"{line}\n").root is not None


@each_row(
    ("log", "root"),
    [
        ("loading\nError preparing the rows of part 3\n", 2),
        ("loading\nCould not fetch the model card\nbye\n", 2),
        ("loading\nCould not fetch the model card\n" + "reading one more part\n" * 9, None),
        ("Starting server\nerror: bind: address already in use\n", 2),
        ("2025-06-01 10:00:00.1: W lib/a.cc:38] Warning: Could not find Tee\nfit\nThe job failed\n", 3),
    ],
)
def test_that_what_could_not_be_done_is_the_failure_of_a_log_that_ends_with_it(
    log: str, root: int | None, read: ReadLog
) -> None:
    """In the midst of a log the program lived with it, and a warning of it gives way to a later line."""
    found = read(log).root
    assert (found.line if found else None) == root


@each_row(
    "line",
    [
        "[skip] Failed to load a.ckpt: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "Skipping b.ckpt: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "CUDA out of memory. Tried to allocate 2.00 GiB, skipping it.",
    ],
)
def test_that_what_a_program_says_it_skips_has_not_ended_it(line: str, read: ReadLog) -> None:
    """It goes on with the next and comes to its end."""
    assert read(f"{line}\n{steps(9)}Results saved to out/eval.csv\n").root is None
