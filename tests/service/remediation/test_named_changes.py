"""Changes of what the failing message names: as the job's own settings, with their very values."""

from __future__ import annotations

from dataclasses import replace

from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import Frame
from service.pipeline.triage import Triage
from service.remediation.calls_in_code import in_own_calls
from service.remediation.named_changes import as_own, own_setting, tells_value
from service.remediation.own_values import with_divisors
from service.remediation.ranking import ChangeGroup
from service.schemas.diagnosis import ProposedChange
from tests.service.factories import failed, proposal, report, setting
from tests.tables import each_row

OWN = Frame("/job/model.py", 9, "start", "raise RuntimeError(")
ENGINE = Frame("/env/lib/python3.11/site-packages/sglang/srt/server_args.py", 9, "check")
IN_FILE = replace(setting("hardware.tp_size", "4"), file="config.yaml", spelled="yaml")


def job(*frames: Frame, body: str = "tp_size=2 requires a launcher", launch: str = "") -> CrashReport:
    """Make a job with a file of settings that failed in these calls."""
    return report(
        failed(text=body, body=body, frames=frames), settings=[IN_FILE], launches=(launch,) if launch else ()
    )


@each_row(
    ("told", "key", "found"),
    [
        (job(OWN), "--tp-size", True),
        (job(ENGINE), "--tp-size", False),
        (job(OWN), "--dp-size", False),
        (job(OWN, body="no launcher"), "--tp-size", False),
    ],
)
def test_a_message_of_the_jobs_own_code_names_its_own_setting(
    told: CrashReport, key: str, found: bool
) -> None:
    """A framework may have one so called: it did not raise."""
    assert (own_setting(key, told, told.settings) is IN_FILE) is found


@each_row(
    ("launch", "framework", "key"),
    [
        ("", "python", "hardware.tp_size"),
        ("python -m sglang.launch_server --tp-size 4", "sglang", "--tp-size"),
    ],
)
def test_the_change_is_of_the_setting_that_the_job_has(launch: str, framework: str, key: str) -> None:
    """What starts the framework's own program reads its flags."""
    told = job(OWN, launch=launch)
    groups = [ChangeGroup([proposal("--tp-size", "smaller", framework="sglang", kind="flag")])]
    as_own(groups, told, told.settings)
    found = groups[0].changes[0]
    assert (found.framework, found.key) == (framework, key)


@each_row(
    ("key", "now", "said", "told"),
    [
        ("--pipeline-parallel-size", "3", "layers (80) must divide by pipeline parallel size (3).", True),
        ("--pipeline-parallel-size", "2", "layers (80) must divide by pipeline parallel size (3).", False),
        ("max_model_len", "131072", "`max_model_len` is 131072, too large", True),
        ("max_model_len", "1", "max_model_len=131072", False),
        ("size", "3", "the size (3) is wrong", False),
        ("max_model_len", None, "max_model_len=131072", False),
    ],
)
def test_a_message_tells_a_setting_with_the_jobs_value(
    key: str, now: str | None, said: str, told: bool
) -> None:
    """A single word may stand beside any number, and another value is another run's."""
    assert tells_value(key, now, said) is told


@each_row(
    ("body", "to"),
    [
        ("Total number of hidden layers (80) must be divisible by pipeline parallel size (3).", 2),
        ("Total number of hidden layers (81) must be divisible by pipeline parallel size (6).", 3),
        ("Total number of hidden layers (80) must be divisible by tensor parallel size (3).", "a divisor"),
        ("pipeline parallel size (3) is too large", "a divisor"),
    ],
)
def test_a_setting_that_must_divide_gets_the_divisor(body: str, to: int | str) -> None:
    """Only the one that the message names is reckoned."""
    change = proposal("--pipeline-parallel-size", "a divisor", framework="vllm", kind="flag")
    (group,) = with_divisors([ChangeGroup([change])], job(ENGINE, body=body))
    assert group.changes[0].to == to


def flag_of(framework: str) -> ProposedChange:
    """Propose a flag of a framework."""
    return proposal("--tensor-parallel-size", 2, framework=framework, kind="flag")


@each_row(
    ("frames", "launch", "keys"),
    [
        ("own engine", "", ["tensor_parallel_size", "--tensor-parallel-size"]),
        ("own engine", "vllm serve m", ["--tensor-parallel-size", "--tensor-parallel-size"]),
        ("own trainer engine", "", ["--tensor-parallel-size", "--tensor-parallel-size"]),
        ("engine", "", ["--tensor-parallel-size", "--tensor-parallel-size"]),
    ],
)
def test_what_the_jobs_own_code_calls_takes_keywords(
    frames: str, launch: str, keys: list[str], triage: Triage
) -> None:
    """A flag is for a program that the job starts; what a trainer calls has the trainer's options."""
    site = "/env/lib/python3.11/site-packages"
    calls = {
        "own": Frame("/job/test.py", 4, "<module>", "llm = LLM(model, tensor_parallel_size=2)"),
        "engine": Frame(f"{site}/vllm/entrypoints/llm.py", 105, "__init__"),
        "trainer": Frame(f"{site}/trl/trainer/grpo_trainer.py", 9, "__init__"),
    }
    told = job(*(calls[name] for name in frames.split()), launch=launch)
    found = in_own_calls([flag_of("vllm"), flag_of("sglang")], told, triage.library, "en")
    assert [change.key for change in found] == keys
    assert ("test.py:4" in found[0].why) is (keys[0] == "tensor_parallel_size")


@each_row(
    ("code", "below", "key"),
    [
        (
            "net = AutoModel.from_pretrained(",
            "from_pretrained",
            "from_pretrained.pretrained_model_name_or_path",
        ),
        ("Trainer(model).train()", "train", "model_name_or_path"),
    ],
)
def test_that_an_option_of_scripts_is_told_by_what_own_code_hands_over(
    code: str, below: str, key: str, triage: Triage
) -> None:
    """Only where the job's own code makes the very call, and is not seen to have the option."""
    site = "/env/lib/python3.11/site-packages/transformers"
    told = job(Frame("/job/net.py", 4, "build", code), Frame(f"{site}/auto_factory.py", 105, below))
    wanted = proposal("model_name_or_path", framework="transformers", kind="setting")
    given = wanted.model_copy(update={"from_": "ours/base"})
    found = in_own_calls([wanted, given], told, triage.library, "en")
    assert [change.key for change in found] == [key, "model_name_or_path"]
    assert ("net.py:4" in found[0].why) is (key != "model_name_or_path")
