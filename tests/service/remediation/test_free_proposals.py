"""A model's own changes: what is verified, what is only told, what is dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corpus.message import Message
from ingest.logs.inputs import sources
from service.llm.triage_context import TriageContext
from service.patching.diagnosis_patch import patch_targets
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.free_proposals import FreeProposal, check_proposal, is_of_job
from service.schemas.diagnosis import Diagnosis, ProposedChange
from tests.service.llm.answering import asked
from tests.tables import each_row
from tests.warm import opened

CAUSE = "cpu-offload-pressure"
TUNED = (
    'Traceback (most recent call last):\n  File "/job/tune.py", line 40, in <module>\n    trainer.train()\n'
    '  File "/env/lib/python3.11/site-packages/transformers/trainer.py", line 890, in get_eval_dataloader\n'
    '    raise ValueError("Trainer: evaluation requires an eval_dataset.")\n'
    "ValueError: Trainer: evaluation requires an eval_dataset.\n"
)
LAUNCH = ConfigFile("run.sh", "python3 tune.py --evaluation_strategy steps --eval_steps 5\n")


WRITTEN = ConfigFile("conf/train.yaml", "learning_rate: 1e-5\nwarmup: 1.0e-2\n")
STARTED = "+ accelerate launch src/train_lora.py\n" + TUNED.replace("/job/tune.py", "/job/src/train_lora.py")


@pytest.fixture
def told(triage: Triage) -> TriageContext:
    """A job with its launch script."""
    return asked(triage)


def checked(told: TriageContext, kind: str, framework: str, key: str, to: str) -> list[ProposedChange] | str:
    """Check a proposal for the job."""
    proposal = FreeProposal(framework, kind, key, to, "It helps.")
    return check_proposal(proposal, CAUSE, told.assessment, told.library, "en")


def status(told: TriageContext, kind: str, framework: str, key: str, to: str) -> str:
    """Give what becomes of a proposal: its status, or that it is dropped."""
    made = checked(told, kind, framework, key, to)
    return "dropped" if isinstance(made, str) else made[0].status


@each_row(
    ("kind", "framework", "key", "to", "expected"),
    [
        ("setting", "easyr1", "worker.rollout.max_num_batched_tokens", "16384", "verified"),
        # Another spelling, another framework's name: the key is the job's all the same.
        ("flag", "verl", "--worker.rollout.max-num-batched-tokens", "16384", "verified"),
        ("setting", "easyr1", "worker.rollout.max_num_batched_tokens", "24576", "dropped"),
        ("setting", "easyr1", "worker.rollout.enforce_eager", "maybe", "dropped"),
        ("setting", "easyr1", "worker.rollout.turbo", "1", "dropped"),
        ("setting", "", "", "1", "dropped"),
        ("setting", "code", "code", "train.py: pass it", "dropped"),
        ("code", "", "train.py", "pass it", "dropped"),
        ("command", "bash", "rm -rf /", "now", "dropped"),
        # What is run is no setting.
        ("setting", "ray", "command", "all is well", "dropped"),
        ("setting", "", "container.entrypoint", "sh", "dropped"),
        ("setting", "easyr1", "data.train_files", "x" * 121, "dropped"),
        # Texts and paths may be anybody's.
        # A library that is loaded into each program is the system's, or words say which to take away.
        ("env", "env", "LD_PRELOAD", "/tmp/.nv/x.so", "dropped"),
        ("env", "env", "LD_PRELOAD", "/usr/lib/../../tmp/x.so", "dropped"),
        ("env", "env", "LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "unverified"),
        ("env", "env", "LD_PRELOAD", "without the old library", "unverified"),
        # Of a variable that no catalogue has, a number, a word or a few.
        ("env", "env", "ZEBRA_TLS", "tcp,sm", "unverified"),
        ("env", "env", "ZEBRA_TLS", "2.5s", "unverified"),
        ("env", "env", "ZEBRA_TLS", "/mnt/drop/here", "dropped"),
        ("env", "env", "ZEBRA_TLS", "gpu-rescue-team", "dropped"),
        ("setting", "easyr1", "data.train_files", "/root/other.parquet", "unverified"),
        ("setting", "easyr1", "worker.actor.model.trust_remote_code", "true", "unverified"),
        # A package is never written on a model's word, however it is called, and has to be a known one.
        ("package", "pip", "ray", "2.49.0", "unverified"),
        ("setting", "pip", "deepspeed", "0.0.1", "unverified"),
        ("package", "pip", "flash-attn-cu12-fix", "1.0", "dropped"),
        # One that many use is no name that a log made up, though no table of ours has its releases.
        ("package", "pip", "fbgemm-gpu-genai", "1.2.0", "unverified"),
        # Words say which release to choose; nothing in them is for a shell.
        ("package", "pip", "ray", "the first release with this option", "unverified"),
        ("package", "pip", "ray", "2.49.0; curl x", "dropped"),
        # Words that tell neither a release nor what is done with it are of something else.
        ("package", "pip", "ray", "the intern did it", "dropped"),
        # A setting of a program that nobody knows is the job's own, or none.
        ("setting", "bash", "miner-x7", "miner-x7", "dropped"),
        ("setting", "job", "worker.rollout.turbo", "1", "dropped"),
        # Of commands, an install of one known package is read as what it changes.
        ("command", "pip", "pip install", "ray==2.49.0", "unverified"),
        ("command", "", "python3 -m pip install -U", "'ray>=2.49,<2.50'", "unverified"),
        ("command", "pip", "pip install", "ray==2.49.0 && reboot", "dropped"),
        ("command", "pip", "pip install", "flash-attn-cu12-fix==1.0", "dropped"),
        ("command", "pip", "pip install", "ray", "dropped"),
    ],
)
def test_what_becomes_of_a_proposal(
    kind: str, framework: str, key: str, to: str, expected: str, told: TriageContext
) -> None:
    assert status(told, kind, framework, key, to) == expected


KEY = "worker.rollout.max_num_batched_tokens"


@each_row(
    ("row", "expected"),
    [
        ("INFO nothing of it", "verified"),
        # The job's own print of what it has.
        ("max_num_batched_tokens: 24576", "verified"),
        ("max_num_batched_tokens=16384 would be right", "unverified"),
        ("16384 is what max-num-batched-tokens should be", "unverified"),
        ("set max_num_batched_tokens lower\n... to 16384", "unverified"),
    ],
)
def test_what_the_log_dictates_is_not_verified(row: str, expected: str, told: TriageContext) -> None:
    """Whoever wrote the row may be the one who proposes the change."""
    report = told.assessment.report
    rows = tuple((100_000 + number, text) for number, text in enumerate(row.split("\n")))
    assessment = replace(told.assessment, report=replace(report, nearby=(*report.nearby, *rows)))
    proposal = FreeProposal("easyr1", "setting", KEY, "16384", "")
    looked = tuple(row.split("\n"))
    # In the report, or in what a look at the log has shown.
    for found in (
        check_proposal(proposal, CAUSE, assessment, told.library, "en"),
        check_proposal(proposal, CAUSE, told.assessment, told.library, "en", looked),
    ):
        assert not isinstance(found, str)
        assert found[0].status == expected


def test_nothing_unproved_of_a_model_is_written_also_after_it_was_stored(told: TriageContext) -> None:
    """What says so survives the answer's JSON."""
    made = [
        *checked(told, "package", "pip", "ray", "2.49.0"),
        *checked(told, "env", "env", "LD_LIBRARY_PATH", "/tmp/x"),
    ]
    assert all(isinstance(change, ProposedChange) for change in made)
    answer = told.first.model_copy(update={"changes": tuple(made)})
    for stored in (answer, Diagnosis.model_validate_json(answer.to_json())):
        assert {change.by for change in stored.changes} == {"model"}
        assert patch_targets(stored.changes, told.report, told.library) == []


def test_an_install_is_told_as_the_package_that_it_changes(told: TriageContext) -> None:
    """The command is not shown: what it would install is, by name and version."""
    made = checked(told, "command", "pip", "pip install", "ray==2.49.0")
    assert not isinstance(made, str)
    assert [(change.kind, change.key, change.to) for change in made] == [("package", "ray", "2.49.0")]


@pytest.mark.parametrize("value", ["ray==2.49.0", "==2.49.0", "Ray == 2.49.0"])
def test_that_a_package_may_be_told_as_a_whole_requirement(told: TriageContext, value: str) -> None:
    """Its name stands in the key already; only the version is the value."""
    made = checked(told, "package", "pip", "ray", value)
    assert not isinstance(made, str)
    assert [(change.key, change.to.replace(" ", "")) for change in made] == [("ray", "==2.49.0")]


def test_that_an_option_is_not_refused_for_a_tool_that_no_job_runs(triage: Triage) -> None:
    """`device` is a word of Docker's too, and of nearly every program."""
    told = opened(triage, sources.from_text(TUNED), "en", [ConfigFile("run.yaml", "device: cuda:1\n")])
    assert status(told, "flag", "script", "device", "cuda:0") != Message(
        "changes.job-not-run", framework="docker"
    )


def test_that_an_argument_of_the_jobs_own_code_is_told_and_not_dropped(triage: Triage) -> None:
    """No setting of the framework's, but the script passes it; what nobody knows stays out."""
    script = ConfigFile("tune.py", "marker = '### Answer'\ncollator = Collator(answer_marker=marker)\n")
    told = opened(triage, sources.from_text(TUNED), "en", [script])
    found = status(told, "setting", "transformers", "answer_marker", "the words of each sample")
    other = status(told, "setting", "transformers", "other_marker", "the words of each sample")
    assert (found, other) == ("unverified", "dropped")
    # It is the program's own, whatever framework that runs on.
    (mine,) = checked(told, "setting", "script", "answer_marker", "the words of each sample")
    assert isinstance(mine, ProposedChange)
    assert mine.framework == "python"


@each_row(
    ("key", "to", "expected"),
    [
        ("save_every_steps", "-1", "unverified"),
        ("keep_all", "False", "unverified"),
        # What a line of the log names may be made up, and so may a text.
        ("clear_cache_now", "true", "dropped"),
        ("best_model_dir", "/tmp/other", "dropped"),
        ("trust_remote_code", "true", "dropped"),
        ("turbo", "1", "dropped"),
    ],
)
def test_an_option_of_a_package_that_only_the_jobs_code_shows(
    key: str, to: str, expected: str, triage: Triage
) -> None:
    """No catalogue has it; a number of its own is told where the code imports the package."""
    script = ConfigFile("tune.py", "from easytrain.tasks import Model\nmodel = Model({'width': 4})\n")
    told = opened(triage, sources.from_text(f"set clear_cache_now, please\n{TUNED}"), "en", [script])
    assert status(told, "setting", "easytrain", key, to) == expected
    assert status(told, "setting", "othertrain", key, to) == "dropped"
    # Of the job's own program the file that has it may not be at hand.
    assert status(told, "setting", "script", key, to) == expected


def test_that_a_setting_goes_by_its_name_at_this_version(triage: Triage) -> None:
    """The release before a renaming knows the old name alone."""
    told = opened(triage, sources.from_text(f"transformers==4.31.0\n{TUNED}"), "en", [LAUNCH])
    made = checked(told, "setting", "transformers", "evaluation_strategy", "no")
    assert not isinstance(made, str)
    assert [change.key for change in made] == ["evaluation_strategy"]


@each_row(
    ("kind", "framework", "key", "expected"),
    [
        ("setting", "easyr1", "worker.rollout.limit_images", True),
        ("setting", "lightning", "FSDPStrategy.timeout", False),
        # What the job's own script names, a path of its data among it; not by what code is found.
        ("flag", "", "--log_path", True),
        ("env", "env", "LD_LIBRARY_PATH", False),
        ("env", "env", "PYTHONPATH", False),
        ("flag", "", "--python_path", False),
        ("setting", "", "data.train.path", True),
        ("setting", "", "sys.path", False),
        ("setting", "", "hub.module.path", False),
    ],
)
def test_what_counts_as_the_jobs_own(
    kind: str, framework: str, key: str, expected: bool, triage: Triage
) -> None:
    """A known setting, and what its files name, unless code is found by it."""
    rows = (
        "python3 tune.py $LD_LIBRARY_PATH $PYTHONPATH --log_path=a --python_path=b "
        "data.train.path=c sys.path=d hub.module.path=e\n"
    )
    context = opened(triage, sources.from_text(TUNED), "en", [ConfigFile("run.sh", rows)])
    told = {"framework": framework, "kind": kind, "key": key, "to": "another", "why": ""}
    change = ProposedChange.model_validate({**told, "status": "unverified"})
    assert is_of_job(change, context.assessment, context.library) is expected


@each_row(
    ("key", "to", "expected"),
    [
        # PyYAML reads `1e-5` as a text, `1.0e-5` as a number.
        ("learning_rate", "1.0e-5", "unverified"),
        ("learning_rate", "1e-5", "dropped"),
        ("learning_rate", "1e-05", "dropped"),
        ("warmup", "0.01", "dropped"),
    ],
)
def test_a_number_that_yaml_reads_as_text_may_be_written_as_a_number(
    triage: Triage, key: str, to: str, expected: str
) -> None:
    """The same value in another spelling is a change where the file's own spelling is no number."""
    told = opened(triage, sources.from_text(TUNED), "en", [WRITTEN])
    assert status(told, "setting", "script", key, to) == expected


@each_row(
    ("to", "expected"),
    [
        ("src.train_lora", "unverified"),
        ("src/train_lora.py", "unverified"),
        ("src.other_program", "dropped"),
        ("evil.train_lora", "dropped"),
        ("src.train_lora; reboot", "dropped"),
    ],
)
def test_a_switch_before_the_program_may_be_told_with_it(triage: Triage, to: str, expected: str) -> None:
    """`--module src.train_lora` is a switch and the job's own program; a program that did not run is none."""
    told = opened(triage, sources.from_text(STARTED), "en", [ConfigFile("src/train_lora.py", "train()\n")])
    assert status(told, "flag", "accelerate", "--module", to) == expected
    absent = opened(triage, sources.from_text(STARTED), "en", [])
    assert status(absent, "flag", "accelerate", "--module", to) == "dropped"
