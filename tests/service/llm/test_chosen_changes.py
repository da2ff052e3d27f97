"""Which change stands first once a model has chosen."""

from __future__ import annotations

from ingest.logs.inputs import sources
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.service.factories import proposal
from tests.warm import opened

COMMAND = "python3 -m verl.trainer.main_ppo data.train_batch_size=64"
FAILED = (
    f"+ {COMMAND}\nTraceback (most recent call last):\n"
    '  File "/env/lib/python3.11/site-packages/verl/trainer/main_ppo.py", line 4, in <module>\n'
    "    main()\nValueError: no\n"
)


def test_the_change_that_a_model_chose_stays_first_where_another_could_be_written(triage: Triage) -> None:
    """Rules put what a patch can write first among equals; a choice is no such rank."""
    told = opened(triage, sources.from_text(FAILED), "en", [ConfigFile("run.sh", f"{COMMAND}\n")])
    words = proposal("data.max_prompt_length", "a length that fits", status="unverified")
    changes = (words, proposal("data.train_batch_size", 32))
    answer = told.first.model_copy(update={"changes": changes})
    assert told.repatch(answer, is_chosen=True).changes == changes
    assert told.repatch(answer).changes == changes[::-1]
