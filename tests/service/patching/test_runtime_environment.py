"""A part of a submitted job's environment goes into the JSON text of its command."""

from __future__ import annotations

from pathlib import Path

from service.patching.patch import patch
from tests.service.patching.applying import goes_back_and_forth, is_bash, target
from tests.tables import each_row

LEFT_OUT = target("runtime_env.excludes", '["data/", "*.pt"]', framework="ray")
SUBMIT = "ray job submit {option} -- python train.py\n"
ROWS = """--runtime-env-json='{
    "working_dir": "'${CODE}'",
    "env_vars": {"A": "1"}
  }'"""


@each_row(
    ("option", "after"),
    [
        (ROWS, ROWS.replace('"working', '"excludes": ["data/", "*.pt"],\n    "working')),
        (
            """--runtime-env-json '{"working_dir": "."}'""",
            """--runtime-env-json '{"excludes": ["data/", "*.pt"],"working_dir": "."}'""",
        ),
        (
            '--runtime-env-json="{\\"working_dir\\": \\"$PWD\\"}"',
            '--runtime-env-json="{\\"excludes\\": [\\"data/\\", \\"*.pt\\"],\\"working_dir\\": \\"$PWD\\"}"',
        ),
        # A list that stands there keeps what it holds.
        (
            """--runtime-env-json='{"excludes": ["logs", "*.pt"], "pip": []}'""",
            """--runtime-env-json='{"excludes": ["logs", "*.pt", "data/"], "pip": []}'""",
        ),
        (
            """--runtime-env-json='{"excludes": []}'""",
            """--runtime-env-json='{"excludes": ["data/", "*.pt"]}'""",
        ),
        # It stands there, in another way or not; the text is none, or empty; the environment is a file.
        ("""--runtime-env-json='{"excludes": ["data/", "*.pt"]}'""", ""),
        ("""--runtime-env-json='{"excludes": "data"}'""", ""),
        ('--runtime-env-json="$ENVIRONMENT"', ""),
        ("--runtime-env-json='{}'", ""),
        ("--runtime-env env.yaml", ""),
    ],
)
def test_that_a_part_is_added_to_the_json_text(option: str, after: str, tmp_path: Path) -> None:
    before = f"CODE=/w\n{SUBMIT.format(option=option)}"
    made = patch("run.sh", before, [LEFT_OUT])
    assert made.text == before.replace(option, after or option)
    assert is_bash(made.text)
    assert not after or goes_back_and_forth(tmp_path, before, made.text, "run.sh")
