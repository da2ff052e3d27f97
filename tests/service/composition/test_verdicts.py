"""What short pastes come to: a dead job is never called healthy, a good end is established, and all else is
unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from tests.warm import diagnosed

DEAD = (
    "exit status 17",
    "aborting run\nexit status 17",
    "Command exited with non-zero status 1",
    "command terminated with exit code 1",
    "Exit 137",
    "returned exit code -11",
    "container exited with code 137",
    "the process exited with 3",
    "+ exit 3",
    "rc=1",
    "Process finished with exit code 9",
    "JobId=4711 State=FAILED ExitCode=1:0",
    "4711  train  gpu  acct  8  FAILED  1:0",
    "job 4711 FAILED",
    "job train-llama-7b FAILED after 3h 12m",
    "Job 4711 failed",
    "The job was terminated because of a node failure",
    "Training crashed at step 3200",
    "Pod train-0 status: Error, exitCode 1",
    "Container terminated: OOMKilled",
    "- OOM on rank 3",
    "we hit an OOM.",
    "make: *** [train] Error 1",
    "make[1]: *** [Makefile:12: run] Error 137",
    "npm ERR! code ELIFECYCLE",
    "error: command '/usr/bin/nvcc' failed with exit code 1",
    "ERROR: Failed building wheel for flash-attn",
    "panic: runtime error: invalid memory address or nil pointer dereference",
    "Kernel panic - not syncing: Fatal exception",
    "F0312 10:11:12.123456 12345 trainer.cc:88] Check failed: x == y (3 vs. 4)",
    "train: op.cc:12: int main(): Assertion `n > 0' failed.",
    "error: unrecognized arguments: --use_flash_attn 1",
    "sft.py: error: argument --bf16: invalid bool value: 'yess'",
    "Error: Missing option --config",
    "error: no such option: --fsdp2",
    "[ERROR] training aborted",
    "[ERROR] Could not load checkpoint shard 3, aborting",
    "ERROR: worker 4 died unexpectedly",
    "2025-03-01 10:00:00,123 ERROR trainer: run failed",
    "CRITICAL:root:giving up after 5 retries",
    "E1201 10:00:00 launcher failed to start 3 of 8 workers",
    "FATAL: could not connect to master",
    "fatal error: out of ideas",
    "rank 5 died",
    "worker exited unexpectedly (pid 3312)",
    "lost connection to node gpu-17",
    "Connection closed by remote host; training stopped",
    "NaN or Inf found in input tensor. Exiting.",
    "Loss is nan, stopping training",
    "Loss is nan at step 1200, exiting",
    "Trainer stopped: gradient overflow",
    "AssertionError",
    "AssertionError.",
    "KeyError: 'input_ids'",
    "keyerror: 'input_ids'",
    "Killed",
    "bus error",
    "zsh: killed     python train.py",
    "bash: torchrun: command not found",
    "Segmentation fault",
    "process was killed by the kernel",
    "disk quota exceeded",
    "checkpoint is corrupt, cannot resume",
    "Gave up waiting for the other ranks",
    "训练失败",
    "训练失败：显存不足",
    "任务失败，退出码 1",
    "程序异常退出",
    "内存不足，进程被杀死",
    "训练中断：loss 变成 nan",
    "错误：找不到数据集",
    "进程已终止，返回码 -9",
    "作业 88123 状态：FAILED",
    "加载模型失败：文件不存在",
    "进程 3321 被系统 kill 了",
    "[ERROR] 加载数据失败",
)
STEPS = "step 100 loss 2.1 lr 0.1\nstep 101 loss 2.0 lr 0.1\nstep 102 loss 2.1 lr 0.1\n"
# What only general words tell, and what must not be lost behind steps that look well.
AFTER_WORK = (
    "Training interrupted",
    "exit status 1",
    "ERROR: unexpected failure, shutting down",
    "make: *** [Makefile:3: run] Error 2",
    "panic: lost quorum",
    "job 4711 FAILED",
    "loss is nan. Exiting.",
    "aborting run",
    "训练失败",
    "任务被终止",
    "worker 3 died",
    "Check failed: ok",
)
ENDED = (
    STEPS + "Training completed successfully.",
    STEPS + "training finished",
    STEPS + "Saved final model to out/model.pt",
    STEPS + "rc=0",
    STEPS + "JobState=COMPLETED ExitCode=0:0",
    STEPS + "训练完成，模型已保存到 output/",
    STEPS + "+ exit 0",
    "exit status 0",
    "微调任务已全部完成",
    "Fine-tuning completed in 3:12:44",
    "All 12 tasks completed successfully",
    "step 499/500 loss 0.2 lr 0.1\nstep 500/500 loss 0.1 lr 0.0",
    "{'train_runtime': 120.5, 'train_samples_per_second': 10.0, 'train_loss': 0.5, 'epoch': 3.0}",
    "`Trainer.fit` stopped: `max_epochs=3` reached.",
    (
        "INFO:     Shutting down\nINFO:     Application shutdown complete.\n"
        "INFO:     Finished server process [1]"
    ),
    "ERROR: upload failed, retrying\n" + STEPS + "Training complete!",
    STEPS + "训练结束\n邮件通知发送失败，忽略",
    "worker 3 died, restarting\n" + STEPS + "Run finished in 3h 12m",
    STEPS + "0 jobs failed\nTraining finished.",
)
RUNNING = (
    STEPS,
    "iter 20/1000, loss: 2.3\niter 40/1000, loss: 2.1\niter 60/1000, loss: 2.0",
    "ERROR: failed to push metrics\n" + STEPS,
    'INFO:     10.0.0.1:50 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 4,
    " 10%|#         | 50/500 [01:00<09:00, 1.2s/it]\n 20%|##        | 100/500 [02:00<08:00]",
    (
        "{'loss': 1.2, 'grad_norm': 0.4, 'learning_rate': 1e-05, 'epoch': 0.1}\n{'loss': 1.1, 'grad_norm': "
        "0.4, 'learning_rate': 1e-05, 'epoch': 0.2}"
    ),
    "Training finished.\n" + STEPS,
    "Epoch [3/10] Step [99/100] Loss: 0.6\nEpoch [3/10] Step [100/100] Loss: 0.5",
    "Epoch 1 | batch 199/200 | loss 0.9\nEpoch 1 | batch 200/200 | loss 0.8",
    "epoch 1 loss 0.9 acc 0.5\nepoch 2 loss 0.8 acc 0.6",
    # An end that is foretold, or a condition.
    "Results will be saved to: out/results.json\n" + STEPS,
    STEPS + "Plots will be automatically saved to: out/loss.png",
    "wrote 100 -> out/base.jsonl\nLoading model\nstep 100/10000 loss: 0.5\nstep 200/10000 loss: 0.4",
    "Experiment 1 complete at Mon Apr 13\nRunning experiment 2 of 8\nstep 100/200 loss: 0.5",
    STEPS + "Once training is complete, the checkpoint is uploaded",
    STEPS + "When the run has finished, see report.html",
    STEPS + "If everything succeeded you will see: Training complete!",
)
NO_OUTPUT = (
    "hello world",
    "ok",
    "你好",
    "#!/bin/bash\ntorchrun --nproc_per_node 8 train.py --lr 1e-5\nexit 0",
    "learning_rate: 1e-5\nbatch_size: 8",
    "import torch\nmodel = torch.nn.Linear(2, 2)\nprint(model)",
    "Can you help me pick a learning rate?",
    "total 12\ndrwxr-xr-x 2 a a 4096 Jan 1 10:00 out",
)
OUT_OF_MEMORY = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "OutOfMemoryError",
    "torch.OutOfMemoryError: CUDA out of memory",
    "torch.cuda.OutOfMemoryError",
    "RuntimeError: CUDA out of memory",
    "cudaErrorMemoryAllocation",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "HIP out of memory",
    "NPU out of memory",
    "hipErrorOutOfMemory",
    "ncclUnhandledCudaError: Call to CUDA function failed: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "RESOURCE_EXHAUSTED: Out of memory allocating 1234 bytes",
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB",
    "GPU out of memory",
    "显存不足",
    "显存溢出",
    "爆显存",
)
PASTED = (
    "{}",
    "{}.",
    "> {}",
    "> > {}.",
    "`{}`",
    "- {}",
    "* {}",
    "1. {}",
    "    {}",
    "**{}**",
    "[rank0]: {}",
    "> - `{}`",
    "{}!",
    "2025-01-02 10:00:00,123 ERROR {}",
)


def told(triage: Triage, texts: Iterable[str]) -> Iterator[tuple[str, Diagnosis]]:
    """Answer for each text."""
    for text in texts:
        yield text, diagnosed(triage, sources.from_text(text + "\n"), "en")


def test_no_words_of_a_failure_are_called_healthy(triage: Triage) -> None:
    """Each of many wordings in which people and programs say that a job died, alone and after steps that look
    well, is an event of its answer.
    """
    wrong = [
        (text, found.verdict)
        for text, found in told(triage, (*DEAD, *(STEPS + text for text in AFTER_WORK)))
        if not found.shows_failure
    ]
    assert not wrong


def test_a_good_end_is_established(triage: Triage) -> None:
    """What a program prints when it is done, its last step or an exit status of 0, with nothing failed behind
    it.
    """
    wrong = [
        (text, found.headline)
        for text, found in told(triage, ENDED)
        if not found.ended_well or found.action != "none"
    ]
    assert not wrong


def test_work_until_the_last_line_is_no_good_end(triage: Triage) -> None:
    """The log shows no failure, and says that its end was not seen; so does the last batch of an epoch."""
    expected = ("no-failure", "none", "collect-more")
    wrong = [
        (text, found.headline)
        for text, found in told(triage, RUNNING)
        if (found.verdict, found.standing, found.action) != expected or not found.checks
    ]
    assert not wrong


def test_what_is_no_output_of_a_job_is_unknown(triage: Triage) -> None:
    """Silence of a text that shows no job proves nothing."""
    wrong = [
        (text, found.verdict)
        for text, found in told(triage, NO_OUTPUT)
        if found.verdict != "unknown" or found.shows_failure
    ]
    assert not wrong


def test_failures_behind_a_good_end_outweigh_it(triage: Triage) -> None:
    """A script that praises itself and ends with a status that is not 0 did not end well.

    Noise of closing does not count, unless it is the last word of the log: a later stage may have died.
    """
    closing = "\nclosing the logger" * 5
    table = (
        ("Training completed.\nexit status 1", False),
        ("Saved final model to out\nmake: *** [train] Error 1", False),
        ("训练完成\n退出码 1\njob 7 FAILED", False),
        ("Training finished.\nworker 3 died", False),
        ("Training finished.\nworker 3 died" + closing, True),
        ("Training finished.\nERROR: could not upload the report" + closing, True),
    )
    wrong = [
        (text, found.verdict)
        for (text, well), (_, found) in zip(table, told(triage, [text for text, _ in table]), strict=True)
        if found.ended_well != well
    ]
    assert not wrong


@pytest.mark.long
def test_every_short_form_of_an_out_of_memory_message_is_one_however_it_is_pasted(triage: Triage) -> None:
    """Quoted, listed, stressed, indented, prefixed, ended as a sentence, in lower or upper case."""
    texts = {paste.format(form) for form in OUT_OF_MEMORY for paste in PASTED} | {
        paste.format(form.lower()) for form in OUT_OF_MEMORY for paste in PASTED[:4]
    }
    texts |= {f'"{form}"' for form in OUT_OF_MEMORY}
    texts |= {form.upper() for form in OUT_OF_MEMORY}
    wrong = [
        (text, found.cause)
        for text, found in told(triage, sorted(texts))
        if not (found.cause or "").startswith("gpu-") or found.verdict not in ("diagnosed", "ambiguous")
    ]
    assert not wrong


def test_a_message_is_read_through_the_marks_of_who_quotes_it(triage: Triage) -> None:
    """Patterns of other failures, whose expressions may be anchored, give the same cause plain and quoted."""
    forms = (
        "ModuleNotFoundError: No module named 'deepspeed'",
        "KeyError: 'input_ids'",
        "OSError: [Errno 28] No space left on device",
        "RuntimeError: Address already in use",
        "train.py: error: unrecognized arguments: --foo",
        "AssertionError: num_layers must be divisible by pipeline parallel size",
    )
    wrong = []
    for form in forms:
        plain = next(told(triage, [form]))[1]
        wrong += [
            (text, found.verdict, found.cause, plain.cause)
            for text, found in told(triage, [paste.format(form) for paste in PASTED[:-1]])
            if (found.verdict, found.cause) != (plain.verdict, plain.cause)
        ]
    assert not wrong
