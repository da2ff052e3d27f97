"""A document that is handed in beside a log tells nothing that the job had."""

from __future__ import annotations

from ingest.logs.configs.launch import from_file
from tests.tables import each_row

EXAMPLE = (
    "## Training\n\n```bash\ntorchrun --nproc_per_node 4 train.py \\\n  --lr 1e-4 --output_dir runs/a\n```\n"
)


@each_row(
    ("name", "sets"),
    [("README.md", False), ("docs/training.rst", False), ("notes.markdown", False), ("launch.sh", True)],
)
def test_that_the_examples_of_a_document_are_no_settings_of_the_job(name: str, *, sets: bool) -> None:
    """What a page shows as an example another job may have been started by, or none."""
    assert any(setting.key == "output_dir" for setting in from_file(EXAMPLE, name)) is sets
