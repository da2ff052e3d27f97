"""A message that names two sides which exclude one another leads to the job's own keys that hold them."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

SITE = "/opt/venv/lib/python3.11/site-packages"
STAGE = ConfigFile("ds.json", '{\n  "zero_optimization": {\n    "stage": 3\n  }\n}\n')
TUNE = ConfigFile("tune.yaml", "model_name_or_path: /models/Base-GPTQ\nstage: sft\ndeepspeed: ds.json\n")
LOADING = (
    "[2026-11-03 10:00:00,1] [real_accelerator.py:222:get_accelerator] Setting ds_accelerator to cuda\n"
    "[2026-11-03 10:00:01,100] [INFO] [config.py:734:__init__] Config mesh_device None world_size = 4\n"
    "[INFO|2026-11-03 10:00:00] llamafactory.data.template:143 >> Add pad token\n"
    "Traceback (most recent call last):\n"
    f'  File "{SITE}/llamafactory/model/model_utils/quantization.py", line 94, in configure_quantization\n'
    "    raise ValueError(text)\n"
    "ValueError: {text}\n"
)


@each_row(
    "text",
    [
        "DeepSpeed ZeRO-3 or FSDP is incompatible with PTQ-quantized models.",
        "DeepSpeed ZeRO stage 3 is not compatible with 4-bit weights.",
        "GPTQ checkpoints are not supported with ZeRO-3.",
    ],
)
def test_that_quantized_weights_leave_stage_three(triage: Triage, text: str) -> None:
    made = explained(triage, LOADING.replace("{text}", text), TUNE, STAGE)
    first = made.changes[0]
    assert (first.key, first.to) == ("zero_optimization.stage", 2)
    assert '+    "stage": 2' in (made.patch or "")


def test_that_stage_two_is_not_lowered(triage: Triage) -> None:
    lower = ConfigFile("ds.json", STAGE.text.replace("3", "2"))
    made = explained(
        triage, LOADING.replace("{text}", "ZeRO-3 is incompatible with PTQ models."), TUNE, lower
    )
    assert "zero_optimization.stage" not in {change.key for change in made.changes}


TWICE = (
    "[2026-11-14 09:03:21,210] [INFO] [axolotl.train.execute_training:211] [PID:22] [RANK:0] Starting...\n"
    "Traceback (most recent call last):\n"
    f'  File "{SITE}/axolotl/cli/train.py", line 124, in <module>\n'
    "    fire.Fire(do_cli)\n"
    f'  File "{SITE}/torch/autograd/graph.py", line 823, in _engine_run_backward\n'
    "    return Variable._execution_engine.run_backward(\n"
    "RuntimeError: Expected to mark a variable ready only once. This error is caused by one of these\n"
)


@each_row(
    ("config", "first"),
    [
        (
            "gradient_checkpointing_kwargs:\n  use_reentrant: true\n",
            "gradient_checkpointing_kwargs.use_reentrant",
        ),
        (
            "gradient_checkpointing_kwargs:\n  use_reentrant: false\nddp_find_unused_parameters: true\n",
            "ddp_find_unused_parameters",
        ),
    ],
)
def test_that_a_parameter_marked_twice_leads_to_the_key_that_stands(
    triage: Triage, config: str, first: str
) -> None:
    text = f"base_model: org/model\ngradient_checkpointing: true\n{config}"
    made = explained(triage, TWICE, ConfigFile("config.yaml", text))
    assert (made.changes[0].key, made.changes[0].to) == (first, False)
    assert made.patch
