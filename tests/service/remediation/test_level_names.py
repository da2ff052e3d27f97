"""A level of a configuration that a program refuses by its name: it is a name like any other's."""

from __future__ import annotations

import json

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

LOG = (
    "[2026-11-02 10:00:00,100] [INFO] [comm.py:652:init_distributed] cdb=None\n"
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "/env/lib/python3.11/site-packages/deepspeed/runtime/zero/config.py", line 85, in '
    "get_zero_config\n[rank0]:     return DeepSpeedZeroConfig(**zero_config_dict)\n"
    '[rank0]:   File "/env/lib/python3.11/site-packages/pydantic/main.py", line 214, in __init__\n'
    "[rank0]:     validated_self = self.__pydantic_validator__.validate_python(data, self_instance=self)\n"
    "[rank0]: pydantic_core._pydantic_core.ValidationError: 1 validation error for DeepSpeedZeroConfig\n"
    "[rank0]: {name}\n"
    "[rank0]:   Extra inputs are not permitted [type=extra_forbidden, input_value={{'device': 'cpu'}}, "
    "input_type=dict]\n"
)
YAML = "zero_optimization:\n  stage: 3\n  # to the host\n  {name}:\n    device: cpu\n    pin_memory: true\n"


def written(name: str) -> str:
    """Write DeepSpeed's configuration with a group of settings under a name."""
    held = {"device": "cpu", "pin_memory": True}
    return json.dumps({"zero_optimization": {"stage": 3, name: held}}, indent=2) + "\n"


@each_row(
    ("wrong", "right", "file"),
    [
        ("offload_optimiser", "offload_optimizer", "ds.json"),
        ("offload_params", "offload_param", "ds.json"),
        ("offload_optimiser", "offload_optimizer", "ds.yaml"),
    ],
)
def test_that_a_misspelt_level_is_renamed_with_what_it_holds(
    triage: Triage, wrong: str, right: str, file: str
) -> None:
    """What the level holds is the job's own choice: to take it out would switch that off."""
    text = written(wrong) if file.endswith("json") else YAML.format(name=wrong)
    made = explained(triage, LOG.format(name=wrong), ConfigFile(file, text))
    assert (made.changes[0].key, made.changes[0].replaces) == (
        f"zero_optimization.{right}",
        f"zero_optimization.{wrong}",
    )
    rows = (made.patch or "").split("\n")
    changed = [row[1:] for row in rows if row[:1] in ("+", "-") and row[:3] not in ("+++", "---")]
    assert len(changed) == 2
    assert changed[0].replace(wrong, right) == changed[1]


def test_that_a_level_like_nothing_known_is_set_by_the_file(triage: Triage) -> None:
    """Where nothing is alike it goes out, and is not said to be in none of the files."""
    made = explained(triage, LOG.format(name="moon_phase"), ConfigFile("ds.json", written("moon_phase")))
    assert made.changes[0].removes
    assert "None of the files" not in made.changes[0].why
    assert '-    "moon_phase": {' in (made.patch or "")
