"""A dead job's answer tells from which checkpoint it can go on, what is lost, and how."""

from __future__ import annotations

from dataclasses import replace

from corpus.frameworks import known_frameworks
from ingest.logs.checkpoints import Checkpoint
from ingest.logs.frameworks import Framework
from service.composition.diagnosis_view import diagnosis_view
from service.composition.resumption import resumption_of
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Resumption
from tests.service.factories import diagnosis, failed, report
from tests.tables import each_row
from tests.warm import explained


@each_row(
    ("seen", "writes", "path", "framework", "how"),
    [
        # The most special framework of the job that takes up what the line's framework writes.
        (
            ["verl", "ray"],
            ["verl", "easyr1"],
            "c/global_step_20",
            "verl",
            "trainer.resume_mode=resume_path trainer.resume_from_path=c/global_step_20",
        ),
        (["openrlhf", "deepspeed"], ["deepspeed"], "global_step30", "openrlhf", "--load_checkpoint"),
        (
            ["llamafactory"],
            ["transformers"],
            "o/checkpoint-5",
            "llamafactory",
            "resume_from_checkpoint: o/checkpoint-5",
        ),
        # Where the job shows none of them, the one that alone writes such a line.
        (
            [],
            ["transformers"],
            "o/checkpoint-5",
            "transformers",
            'trainer.train(resume_from_checkpoint="o/checkpoint-5")',
        ),
        ([], ["diffusers"], "o/checkpoint-5/", "diffusers", "--resume_from_checkpoint checkpoint-5"),
        ([], ["verl", "easyr1"], "c/global_step_20", "", ""),
        (["ray"], ["python"], "a.pt", "", ""),
        # Without its path nothing is to be written.
        ([], ["megatron"], "", "megatron", ""),
    ],
)
def test_how_a_framework_goes_on(
    seen: list[str], writes: list[str], path: str, framework: str, how: str
) -> None:
    told = replace(
        report(failed()),
        frameworks=tuple(Framework(name, "", 1) for name in seen),
        checkpoint=Checkpoint(2, path, 20, is_done=True, frameworks=tuple(writes)),
        last_step=33.0,
    )
    found = resumption_of(told)
    assert found is not None
    assert (found.framework, found.how, found.lost) == (framework, how, 13)


def test_that_every_way_to_go_on_names_nothing_but_the_checkpoint() -> None:
    """A blank that nobody fills would stand in a command."""
    rows = [row for row in known_frameworks().rows.values() if row.resume]
    assert len(rows) > 10
    assert [row.id for row in rows if "{" in row.resume.format(path="p", name="n")] == []


def test_that_a_dead_job_tells_where_to_go_on_and_a_sound_one_does_not(triage: Triage) -> None:
    steps = "".join(
        f"  {step // 10}%|##      | {step}/1000 [00:10<01:00, 10.00it/s]\n" for step in (400, 500)
    )
    saved = (
        "[INFO|trainer.py:3801] 2025-01-28 15:34:47,572 >> Saving model checkpoint to /out/checkpoint-500\n"
    )
    after = "  51%|##      | 510/1000 [00:10<01:00, 10.00it/s]\n"
    died = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    found = explained(triage, steps + saved + after + died, language="en")
    assert found.resumption is not None
    assert (found.resumption.checkpoint, found.resumption.step) == ("/out/checkpoint-500", 500)
    assert found.outcome.last_checkpoint == 500
    assert (
        explained(triage, steps + saved + after + "Training completed.\nexit status 0\n").resumption is None
    )


def test_that_it_is_told_in_both_languages() -> None:
    whole = Resumption(checkpoint="/out/c-5", line=7, step=5, lost=3, framework="x", how="--load /out/c-5")
    answers = [
        diagnosis(headline=headline).model_copy(update={"resumption": whole})
        for headline in ("The disk is full", "磁盘已满")
    ]
    english, chinese = (diagnosis_view(answer) for answer in answers)
    assert english.resume == "Last whole checkpoint: `/out/c-5` (L7); 3 steps were made after it"
    assert chinese.resume == "最近的完整检查点：`/out/c-5`（L7）；此后又运行了 3 步"
    assert english.resumes_with == chinese.resumes_with == "--load /out/c-5"
