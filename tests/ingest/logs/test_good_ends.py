"""What is printed only once the work is done closes a log; the same words amid a run that died do not."""

from __future__ import annotations

from tests.factories import STRANGE, ReadLog, traceback
from tests.tables import each_row

WORK = "step 10/10 loss 0.5\n"
AMID = "step 4/10 loss 0.5\n"
# Words of trainers and tools, by what they do last.
LAST = (
    "Max number of steps has been reached, stopping training early\n",
    "20260105-03:04:05 [INFO] trainer: Training completes! Total time elapsed 512.33.\n",
    "Final evaluation | val loss: 2.311 | val ppl: 10.084\n",
    "swanlab: Experiment lark-3 has completed\n",
    "peak_vram_mb:     45060.2\nnum_steps:        953\ndepth:            8\n",
    " validation loss at iteration 500 on test set | lm loss value: 6.01E+00 | \n" + "-" * 80 + "\n",
    "   Job Id:             4711.lark\n   Exit Status:        0\n   Service Units:      10.00\n",
    # HTCondor's event is called so whatever the end was.
    "005 (7.000.000) 2026-01-05 01:26:40 Job terminated.\n\t(1) Normal termination (return value 0)\n",
    ">> FINAL FID SCORE for lark-xl: 148.38\n",
)
# Those that end a part: here nothing else is counted.
LAST_OF_TOOLS = (
    "07/10 10:10:10 - OpenCompass - INFO - write summary to /job/out/summary/summary_20260105.txt\n",
    "The evaluation of model lark-7b x dataset MMBench has finished! \nEvaluation Results:\n",
    "INFO:hf-to-gguf:Model successfully exported to lark.gguf\n",
    "Results saved to runs/detect/train3\n",
    "All outputs saved to: results/gpu0\nDone.\n",
    "| Succeed requests                  | 100   |\n",
    "[2026-01-05T03:04:05Z] lark worker exit=0\n",
    "P99 ITL (ms):                            445.33    \n" + "=" * 50 + "\n",
    "  predict_runtime          = 1:02:58.14\n  predict_steps_per_second =      0.251\n",
    "CPU times: user 2h 42min, sys: 24.8 s, total: 2h 42min 37s\nWall time: 5min 55s\n",
    "[lark] DONE | last10=0.264 | path=out/final\n",
    "=== ALL LAYERS Lark Analysis Complete ===\n",
    "Program complete and files placed in -> out/lark\n",
    "   accuracy                   0.53   2654\nweighted avg    0.52    0.53    0.52    2654\n",
    "Accuracy: {'eval_loss': 0.85, 'eval_accuracy': 0.61, 'eval_steps_per_second': 0.378, 'epoch': 5.0}\n",
    "Training stopped at epoch 21 due to early stopping.\n",
    "Lark Fine-tuning 완료!\n",
)


@each_row("words", [*LAST, *LAST_OF_TOOLS])
def test_that_what_a_program_prints_last_closes_its_log(read: ReadLog, words: str) -> None:
    assert read("Loading the model of the run\n" + words).log_end.kind == "closed"


@each_row("words", [*LAST, *LAST_OF_TOOLS])
def test_that_no_such_word_hides_an_exception_below_it(read: ReadLog, words: str) -> None:
    assert read(WORK + words + traceback(STRANGE)).root is not None


@each_row("words", LAST_OF_TOOLS[:-1])
def test_that_the_end_of_a_part_ends_no_run_that_counts_on(read: ReadLog, words: str) -> None:
    rows = "".join(f"step {number}/900 loss 0.5\n" for number in range(5, 40))
    assert read(AMID + words + rows).log_end.kind == "open"


@each_row(
    "rows",
    [
        # A model is written at step 4 of 10, or at one of nobody knows how many.
        AMID + "Saved model to out/model.pt\n",
        "epoch 1\nLoss = tensor(0.5)\nepoch 2\nLoss = tensor(0.4)\nSaved model to out/model.pt\n",
        # The last epoch is announced and not told.
        "Epoch 1/2\nloss: 0.5\nEpoch 2/2\n",
        # An end that is foretold, or that has not come.
        AMID + "All outputs will be saved to: results/gpu0\n",
        AMID + "Lark Fine-tuning 완료 예정\n",
        AMID + "   Exit Status:        271\n",
        AMID + "Succeed requests: 0\n",
        AMID + "P99 ITL (ms):                            0.00      \n",
        AMID + "[2026-01-05T03:04:05Z] lark worker exit=1\n",
        AMID + "005 (7.000.000) 2026-01-05 01:26:40 Job terminated.\n\t(0) Abnormal termination (signal 9)\n",
        AMID + "#13 DONE 11.0s\n",
        # What is said of each part, between its steps.
        "".join(f"step {n}/90 loss 0.5\n[lark] DONE\nWall time: 5 s\nstep {n + 1}/90\n" for n in range(1, 9)),
        # The best so far, after each epoch.
        "".join(f"step {n}/90 loss 0.5\nBest Epoch {n} Acc: 0.8{n}\n" for n in range(1, 5)),
        # One measure of many.
        "[PERF] first: median time 0.059 ms; achieved tflops 91.3\n" * 3,
    ],
)
def test_that_the_same_words_amid_a_run_are_no_good_end(read: ReadLog, rows: str) -> None:
    assert read("Loading the model of the run\n" + rows).log_end.kind != "closed"


FOOTER = (
    "wandb: Run summary:\nwandb:    epoch 45\nwandb: val_loss 0.01\nwandb: \n"
    "wandb: Synced 6 W&B file(s), 0 media file(s), 0 artifact file(s) and 0 other file(s)\n"
    "wandb: Find logs at: ./wandb/run-20260105_030405-lark/logs\n"
)


def test_that_a_trackers_summary_is_no_sign_that_the_dead_went_on(read: ReadLog) -> None:
    """Of several runs that write into one file one ends by an exception, and the bars of the others go on."""
    bars = "".join(f"  {n}%|#   | {n}/500 [{n:02}:28<4:10:49, 32.09s/it]\n" for n in range(10, 40))
    dead = traceback("ValueError: the range of [nan, nan] is not finite", "<module>")
    assert read(bars + dead.replace("in main", "in <module>") + bars + FOOTER).log_end.kind != "closed"


SKIPPED = "{0} ERROR probe: Failed to load the probes: release lark-1 not found in the list\n"


@each_row(
    ("below", "is_failed"),
    [
        ("INFO probe: there are others\nWARNING probe: Skipping the stage, as it has none\n", False),
        ("INFO probe: continuing without the probes\n", False),
        ("", True),
        ("INFO probe: nothing is skipped here\n", True),
        ("INFO a\nINFO b\nINFO c\nINFO d\nINFO probe: skipping this stage\n", True),
    ],
)
def test_that_a_stage_that_is_skipped_was_lived_without(read: ReadLog, below: str, is_failed: bool) -> None:
    report = read(WORK + SKIPPED.format("2026-01-05 03:04:05") + below + "INFO probe: Pipeline complete!\n")
    assert (report.root is not None) == is_failed
