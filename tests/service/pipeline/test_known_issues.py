"""A crash that fits a known bug is answered with it: it is named, and what mends it comes first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corpus.known_issues import KnownIssue
from corpus.library import KNOWN_ISSUES, pages, read_yaml
from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from service.scoring.retrieval import signature_applies
from tests.tables import each_row
from tests.warm import explained, opened

ENV = "/opt/env/lib/python3.11/site-packages"


def failed(message: str, *calls: str) -> str:
    """Make the traceback of a job that fails in a library; a call is `file:function`."""
    rows = [
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 30, in <module>',
        "    main()",
    ]
    for call in calls:
        file, _, function = call.partition(":")
        rows += [f'  File "{ENV}/{file}", line 60, in {function}', "    return call(*arguments)"]
    return "\n".join([*rows, message, ""])


NAME_TAKEN = failed(
    "ValueError: 'aimv2' is already used by a Transformers config, pick another name.",
    "vllm/transformers_utils/configs/ovis.py:<module>",
    "transformers/models/auto/configuration_auto.py:register",
)
UNWRAP = failed(
    "TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'",
    "transformers/trainer.py:_wrap_model",
)
LIST = failed(
    "ValueError: Feature type 'List' not found. Available feature types: ['Value', 'ClassLabel']",
    "datasets/features/features.py:generate_from_dict",
)
SAMPLER = failed(
    "TypeError: GRPOTrainer._get_train_sampler() takes 1 positional argument but 2 were given",
    "transformers/trainer.py:get_train_dataloader",
)
STYLES = failed(
    "TypeError: argument of type 'NoneType' is not iterable", "transformers/modeling_utils.py:post_init"
)
OTHER = failed("TypeError: argument of type 'NoneType' is not iterable", "made_up/loader.py:run")
CLICK = failed(
    "ValueError: <object object at 0x7f2a54f0d6e0> is not a valid Sentinel", "ray/scripts/scripts.py:<module>"
)


@each_row(
    "log, case, change",
    [
        (NAME_TAKEN, "vllm/config-name-taken", "vllm>=0.10.0"),
        (UNWRAP, "accelerate/unwrap-keeps-compiled", "accelerate>=1.3.0"),
        (LIST, "datasets/list-feature-unknown", "datasets>=4.0.0"),
        (SAMPLER, "trl/sampler-without-dataset", "trl>=0.18.2"),
        (f"torch==2.4.1\n{STYLES}", "transformers/parallel-styles-need-torch", "torch>=2.5"),
        (CLICK, "ray/command-line-options-copied", "click<8.3"),
    ],
)
def test_that_a_known_bug_is_named_and_its_version_comes_first(
    triage: Triage, log: str, case: str, change: str
) -> None:
    """What the failing line says finds the bug; where versions are not shown, nothing speaks against it."""
    answer = explained(triage, log)
    assert f"{answer.changes[0].key}{answer.changes[0].to}" == change
    assert case in {change.from_case for change in answer.changes}


@each_row(
    "log, change",
    [
        # A trainer's own stack, or none at all.
        (failed("ImportError: cannot import name '_get_socket_with_port' from 'torch.distributed.elastic"
                ".agent.server.api' (/opt/torch/api.py)", "trl/trainer/rloo_trainer.py:<module>"),
         "deepspeed>=0.14.4"),
        (failed("ImportError: cannot import name 'GRPOTrainer' from 'trl'", "swift/module.py:run"),
         "trl>=0.14.0"),
        ("AttributeError: 'SGD' object has no attribute 'eval'\n", "accelerate>=0.34.0"),
    ],
)  # fmt: skip
def test_that_a_known_bug_of_what_a_trainer_runs_is_named_in_its_jobs(
    triage: Triage, log: str, change: str
) -> None:
    """That another trainer shows is no reason to doubt what the failing line says word for word."""
    found = explained(triage, log).changes[0]
    assert f"{found.key}{found.to}" == change


@each_row(
    "log, case",
    [
        # The job's own class, called as an optimizer or not, in its own code.
        ("AttributeError: 'Policy' object has no attribute 'eval'\n", "accelerate/optimizer-without-train"),
        (
            failed("AttributeError: 'SGD' object has no attribute 'eval'"),
            "accelerate/optimizer-without-train",
        ),
        (f"INFO Initializing a V1 LLM engine (v0.10.1) with config\n{NAME_TAKEN}", "vllm/config-name-taken"),
        (f"TRL version: 0.19.1\n{SAMPLER}", "trl/sampler-without-dataset"),
        # The same words from another call.
        (OTHER, "transformers/parallel-styles-need-torch"),
        (
            failed("AttributeError: 'DataFrame' object has no attribute 'append'", "polars/frame.py:run"),
            "python/frame-append-removed",
        ),
        (failed("ValueError: Unsupported file format: /data/train.jsonl"), "verl/lines-of-json-refused"),
        (
            failed(
                "AttributeError: 'CustomModel' object has no attribute 'prepare_inputs_for_generation'",
                "verl/workers/fsdp_workers.py:_build_model_optimizer",
                "peft/peft_model.py:__init__",
            ),
            "verl/critic-adapter-task",
        ),
        (
            failed("OverflowError: cannot convert float infinity to integer", "lightning/trainer.py:fit"),
            "lightning/resume-iterable-overflow",
        ),
        # A module that came with a later release than its package.
        (failed("ModuleNotFoundError: No module named 'torch._inductor.runtime'"), "pytorch/names-of-2-0"),
    ],
)
def test_that_a_version_which_has_it_no_longer_speaks_against_it(triage: Triage, log: str, case: str) -> None:
    """A bug is not named where the log shows a version without it, or other calls."""
    assert case not in {change.from_case for change in explained(triage, log).changes}


def known_issues() -> Iterator[KnownIssue]:
    """Read the rows that ship."""
    for page in pages(f"{KNOWN_ISSUES}/*.yaml"):
        table = read_yaml(page)
        yield from (
            KnownIssue.model_validate({"framework": table["framework"], **row}) for row in table["issues"]
        )


@pytest.mark.long
def test_that_each_known_bug_is_found_by_its_own_example_alone(triage: Triage) -> None:
    """An example below the calls of its row is answered with that row alone, and with what mends it."""
    rows = {f"{row.framework}/{row.id}": row for row in known_issues()}
    wrong: dict[str, object] = {}
    for name, row in rows.items():
        for example in row.examples if row.calls else ():
            context = opened(triage, sources.from_text(failed(example, *row.calls)))
            view, case = context.assessment.report.view(), triage.library.cases[name]
            others = rows.keys() - set(case.refines)
            applying = [other for other in others if signature_applies(triage.library.cases[other], view)]
            told = [(change.key, change.to, change.from_case) for change in context.first.changes[:1]]
            asked = [(change.key, change.to, name) for change in case.changes[:1]]
            if (applying, context.first.cause, told) != ([name], case.cause, asked):
                wrong[f"{name}: {example}"] = applying, context.first.cause, told
    assert sum(bool(row.calls) for row in rows.values()) > 100
    assert wrong == {}
