"""What a framework says in words of its own that anybody would say so: the cause without a pattern for it."""

from __future__ import annotations

from tests.factories import ReadLog
from tests.tables import each_row

# By an exception of a package that nobody knows, and by one of Python's own that a framework raises.
RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/workspace/{0}/train.py", line 30, in main\n    trainer.fit()\n'
    '  File "/workspace/{0}/{0}/trainer/loop.py", line 55, in step\n    check(batch)\n'
    "{1}: {2}\n"
)


@each_row(
    ("message", "cause"),
    [
        ("Visible GPUs 7 are fewer than the 8 that the mesh wants", "resources-insufficient"),
        ("Available nodes (3) is less than desired nodes 4", "resources-insufficient"),
        ("free memory on card 0 (11.3 GiB) is lower than what is required (67 GiB)", "gpu-memory-occupied"),
        ("Some cards may be occupied by other processes: 53 of 80 GiB", "gpu-memory-occupied"),
        ("Image features and image tokens do not match: 1004 and 1326", "multimodal-mismatch"),
        ("the number of videos does not match the number of <video> placeholders", "multimodal-mismatch"),
        ("Asking for batches, but the tokenizer does not have a padding token", "tokenizer-template"),
        ("pad_token is not set", "tokenizer-template"),
        ("No columns in the dataset match what forward takes", "dataset-schema"),
        ("the file had unknown keys (['tensor_size'])", "config-key-invalid"),
        ("config values that mismatch the arguments", "config-key-invalid"),
        ("loss scale already at minimum, leaving", "nan-or-inf"),
        ("fused kernels require compute capability 9.0", "cuda-arch-unsupported"),
        ("no kernel image is available for this card", "cuda-arch-unsupported"),
        ("invalid device ordinal 9", "gpu-not-visible"),
        ("initial prompt length 3556 already exceeded max_prompt_length 2048", "sequence-too-long"),
        ("input tokens (9000) exceed the context window of 8192", "sequence-too-long"),
        # Words beside these, which say something else or nothing.
        ("the image of the moon is in the wrong house", None),
        ("the token of the moon does not match", None),
        ("free memory of the past", None),
        ("loss scale 2.0 of the moon", None),
        ("sequence of lengths: the moon", None),
        ("the prompt is over", None),
    ],
)
def test_that_plain_words_of_a_refusal_tell_its_cause(read: ReadLog, message: str, cause: str | None) -> None:
    for raiser in ("quux.errors.OddTrouble", "RuntimeError"):
        root = read(RAISED.format("slime", raiser, message)).root
        assert root is not None
        assert (root.cause if cause else root.cause in (None, "user-code-error")) == (cause or True), raiser
