"""Which of a job's files its first remedy is written into."""

from __future__ import annotations

from ingest.logs.report import CrashReport
from service.patching.diagnosis_patch import patch_first_step
from service.patching.patches import ConfigFile
from service.schemas.diagnosis import ProposedChange
from tests.factories import whole_corpus
from tests.service.factories import failed, proposal, report
from tests.tables import each_row

TORCH = proposal("torch", ">=2.3.0", kind="package", framework="pip")
NUMPY = proposal("numpy", "<2", kind="package", framework="pip")


@each_row(
    ("listed", "changes", "is_patched"),
    [
        ("dependencies:\n- pip:\n  - torch==2.0.1\n  - numpy==2.1.3\n", [TORCH, NUMPY], True),
        # The run had an older release than this list has: it was not installed from it.
        ("dependencies:\n- pip:\n  - torch==2.6.0\n  - numpy==2.1.3\n", [TORCH, NUMPY], False),
        ("dependencies:\n- pip:\n  - torch==2.6.0\n  - numpy==2.1.3\n", [NUMPY, TORCH], False),
    ],
)
def test_that_no_list_is_patched_which_the_environment_was_not_made_from(
    listed: str, changes: list[ProposedChange], *, is_patched: bool
) -> None:
    told: CrashReport = report(failed())
    made = patch_first_step(changes, [ConfigFile("environment.yml", listed)], told, whole_corpus())
    assert bool(made.edits) is is_patched
