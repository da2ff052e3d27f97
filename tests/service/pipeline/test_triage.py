"""Triage, end to end: the labelled incidents, patches, past crashes, languages, secrets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ingest import pipeline
from ingest.embedder import export_folder
from service.patching.patches import ConfigFile
from service.pipeline.triage import MAX_CONFIG_BYTES, Triage, read_config
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import Diagnosis
from service.settings import Settings
from tests.factories import silent
from tests.service.patching.applying import applied, git, is_bash
from tests.tables import each_row
from tests.warm import BARE, EVERY, HEALTHY, INCIDENTS, WRITE_UPS, answered, explained, label, script

KILLED = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
OFFLOAD = (INCIDENTS / "w-easyr1-offload-host-ram" / "log.txt").read_text(encoding="utf-8")
# Put together here, so that no scanner takes the test for a leak.
SECRETS = {
    "huggingface": "hf_" + "Ab" * 17,
    "openai": "sk-proj-" + "Cd3" * 10,
    "aws": "AKIA" + "ABCDEFGH12345678",
    "github": "ghp_" + "e5F6" * 9,
    "url": "alice:s3cretpass",
    "password": "correct-horse-9",
}
LEAKS = (
    f"token {SECRETS['huggingface']} key {SECRETS['openai']} aws {SECRETS['aws']} {SECRETS['github']} "
    f"https://{SECRETS['url']}@example.org/x password={SECRETS['password']}"
)
WALL = f"password={SECRETS['password']} " * 100


def leaked(text: str) -> list[str]:
    """Name the secrets that stand in a text."""
    return [name for name, secret in SECRETS.items() if secret in text]


def copied(warm: Path, folder: Path) -> Triage:
    """Open a triage over a copy of the ready home, for tests that add to its index."""
    shutil.copytree(warm, folder / "home")
    return Triage(Settings(home=folder / "home", embedding_model="hash"))


def taught(triage: Triage, folder: Path, triage_of_reader: Triage) -> pipeline.IngestOutcome:
    """Ingest a folder of past crashes."""
    home = triage.index.folder.parent.parent
    return pipeline.ingest(
        home, triage.embedder, silent, notes=[], logs=[folder], reader=triage_of_reader.reader
    )


@each_row("name", EVERY)
def test_the_verdict_is_the_labels(name: str, triage: Triage) -> None:
    """Each labelled incident gets its verdict, and where it is diagnosed one of its causes."""
    answer = answered(triage, name)
    assert answer.verdict == label(name)["verdict"]
    assert answer.cause in (label(name)["causes"] or [None])


@each_row("name", WRITE_UPS)
def test_a_labelled_change_is_proposed(name: str, triage: Triage) -> None:
    """At least one of the changes that are known to help is among the proposed ones, with the right value."""
    wanted = {(item["framework"], item["key"], str(item["to"])) for item in label(name)["changes"]}
    assert wanted & {(item.framework, item.key, str(item.to)) for item in answered(triage, name).changes}


@each_row("name", WRITE_UPS)
def test_a_root_line_is_among_the_first_five(name: str, triage: Triage) -> None:
    """The evidence begins with a line that people marked as the root."""
    assert set(label(name)["root_lines"]) & {item.line for item in answered(triage, name).evidence[:5]}


def test_a_bare_actor_death_is_not_guessed_at(triage: Triage) -> None:
    """Ray's stock text names SIGKILL and OOM as possibilities; that is no evidence of either."""
    answer = answered(triage, BARE)
    assert (answer.cause, answer.action, answer.standing, answer.patch) == (
        "insufficient-evidence",
        "collect-more",
        "none",
        None,
    )


def test_noise_of_a_healthy_run_is_no_failure(triage: Triage) -> None:
    """Retries that succeeded, warnings and teardown are not accused."""
    assert [item for item in answered(triage, HEALTHY).cascade if item.role == "root"] == []


@each_row("name", WRITE_UPS)
def test_the_patch_of_a_real_script_applies_parses_and_goes_back(
    name: str, triage: Triage, tmp_path: Path
) -> None:
    """A patch applies with git, leaves a script that bash parses, and its reverse restores every byte."""
    before, diff = script(name).read_text(encoding="utf-8"), answered(triage, name).patch
    assert diff is not None
    after = applied(tmp_path, before, diff)
    assert after != before
    assert is_bash(after)
    assert git(tmp_path, "apply", "-R", "-", given=diff)
    assert (tmp_path / "run.sh").read_bytes() == script(name).read_bytes()


@each_row("name", WRITE_UPS)
def test_guidance_is_never_written_into_a_file(name: str, triage: Triage) -> None:
    """What says in words how to choose a value is shown beside the patch, not in it."""
    answer = answered(triage, name)
    assert not [
        item for item in answer.changes if is_guidance(item.to) and str(item.to) in (answer.patch or "")
    ]
    assert not [item for item in answer.changes if is_guidance(item.to) and item.status == "verified"]


@each_row(
    ("name", "text"),
    [("train.py", "rollout_batch_size = 256\n"), ("job.toml", "[data]\nrollout_batch_size = 256\n")],
)
def test_a_file_that_cannot_be_patched_is_told(name: str, text: str, triage: Triage) -> None:
    """A configuration of another kind is left alone, with the reason among what was dropped."""
    answer = explained(triage, OFFLOAD, ConfigFile(name, text))
    assert answer.patch is None
    assert [item.why for item in answer.engine.dropped if name in item.what]


def test_what_the_run_printed_outranks_a_file_that_says_otherwise(triage: Triage) -> None:
    """Such a file is another run's, or edited since: no change goes from its values."""
    own = ConfigFile(
        "run.sh", "python3 -m verl.trainer.main data.rollout_batch_size=128 data.max_prompt_length=9000\n"
    )
    alone, beside = explained(triage, OFFLOAD), explained(triage, OFFLOAD, own)
    assert {item.key: item.from_ for item in beside.changes} == {
        item.key: item.from_ for item in alone.changes
    }
    assert "9000" not in {item.from_ for item in beside.changes}


def test_what_the_run_does_not_print_is_taken_from_the_jobs_file(triage: Triage) -> None:
    """A value that is right already in it is no change."""
    own = ConfigFile("run.sh", "python3 -m verl.trainer.main worker.actor.offload.offload_optimizer=false\n")
    answer = explained(triage, OFFLOAD.replace("offload_optimizer", "offload_other"), own)
    assert "worker.actor.offload.offload_optimizer" not in [item.key for item in answer.changes]


@each_row("encoding", ["utf-8", "gb18030"])
def test_a_patch_either_applies_to_the_bytes_or_is_not_given(
    encoding: str, triage: Triage, tmp_path: Path
) -> None:
    """A script in another encoding is no reason for a patch that does not fit it."""
    raw = "# 训练脚本：长文档\npython3 -m verl.trainer.main data.rollout_batch_size=256\n".encode(encoding)
    (tmp_path / "run.sh").write_bytes(raw)
    answer = explained(triage, OFFLOAD, read_config(tmp_path / "run.sh"))
    assert git(tmp_path, "init", "-q")
    assert answer.patch is None or git(tmp_path, "apply", "--check", "-", given=answer.patch)
    assert answer.patch or answer.engine.dropped


def test_a_huge_configuration_file_is_read_to_a_bound(tmp_path: Path) -> None:
    """A wrong file given by mistake does not fill the memory."""
    (tmp_path / "run.sh").write_bytes(b"#" * (MAX_CONFIG_BYTES + 100))
    assert len(read_config(tmp_path / "run.sh").text) == MAX_CONFIG_BYTES


@each_row(
    ("log", "asked", "chinese"),
    [
        (KILLED, "", False),
        (KILLED, "zh", True),
        ("训练任务启动，加载模型完成，开始训练\n" * 4 + KILLED, "", True),
        ("训练任务启动，加载模型完成，开始训练\n" * 4 + KILLED, "en", False),
    ],
)
def test_the_language_is_the_askers_or_else_the_logs(
    log: str, asked: str, chinese: bool, triage: Triage
) -> None:
    """A Chinese log is answered in Chinese unless asked otherwise."""
    answer = explained(triage, log + "\n", language=asked)
    assert any("一" <= char <= "鿿" for char in answer.headline) is chinese


@each_row(
    "log",
    [
        f"{LEAKS}\n{KILLED} {LEAKS}\n{LEAKS}\n",
        (
            f"Traceback (most recent call last):\n  File \"/a.py\", line 3, in f\n    g('{LEAKS}')\n"
            f"ValueError: bad {LEAKS}\n"
        ),
        f"+ python3 -m verl.trainer.main_ppo --wandb_token {SECRETS['openai']} {LEAKS}\n{KILLED}\n",
        f"\x1b[31m{KILLED} {LEAKS}\x1b[0m\n",
        f"10%|# | 1/10 {LEAKS}\r20%|## | 2/10\r{KILLED} {LEAKS}\n",
        # A line so long that it is cut: the cut must not take a secret's beginning and leave its rest.
        *(WALL + "x" * shift + " " + KILLED + "\n" for shift in range(0, 26, 6)),
    ],
)
def test_no_secret_of_the_log_is_in_the_answer(log: str, triage: Triage) -> None:
    """Tokens, keys, passwords and URL credentials are masked in every field, and counted."""
    answer = explained(triage, log)
    assert answer.verdict != "no-failure"
    assert leaked(answer.to_json()) == []
    assert answer.redactions > 0


def test_each_secret_is_counted_once(triage: Triage) -> None:
    """`redactions` is how many secrets were masked, not in how many places an answer would have shown
    them.
    """
    assert explained(triage, f"{KILLED} password={SECRETS['password']}\n").redactions == 1


def secret_script() -> ConfigFile:
    """Write a launch script with secrets beside, and inside, what is to be changed."""
    return ConfigFile(
        "run.sh",
        (
            f"export HF_TOKEN={SECRETS['huggingface']}\n# {LEAKS}\npython3 -m verl.trainer.main \\\n"
            f"  data.rollout_batch_size=256 \\\n  data.max_prompt_length=$(cat/{SECRETS['github']}) \\\n"
            f"  worker.actor.offload.offload_params=https://{SECRETS['url']}@example.org/x \\\n  "
            f"api_key={SECRETS['openai']}\n"
        ),
    )


def test_no_secret_of_the_jobs_files_is_in_the_answer(triage: Triage) -> None:
    """The patch's context, values that changes go from, and reasons for leaving a setting alone are masked
    too.
    """
    answer = explained(triage, OFFLOAD, secret_script())
    assert answer.patch
    assert leaked(answer.to_json()) == []


@each_row(
    "text",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "\x9b31m",
        "\u202egnp.exe",
        "a\x00b\x08c",
        "\x1b]8;;https://evil.example\x1b\\here",
    ],
)
def test_no_control_character_of_the_log_is_in_the_answer(text: str, triage: Triage) -> None:
    """What a terminal or a page would obey is taken out of every string."""
    answer = explained(triage, f"{text}\n{KILLED} {text}\n{text}\n")
    assert answer.verdict == "diagnosed"
    assert [char for char in _strings(answer) if not char.isprintable() and char not in "\n\t"] == []


def _strings(answer: Diagnosis) -> str:
    parts = [answer.headline, answer.explanation, *(item.text for item in answer.evidence), *answer.checks]
    return "".join([*parts, *(item.event + item.source + (item.time or "") for item in answer.cascade)])


@pytest.mark.long
def test_a_past_crash_of_the_same_kind_is_named(triage: Triage, warm: Path, tmp_path: Path) -> None:
    """A past job with the same fingerprint is told with its fix; one that crashed otherwise is not."""
    own, folder = copied(warm, tmp_path), tmp_path / "march"
    folder.mkdir()
    for job, log in (
        ("4711", "ValueError: shard 17 of /data/a is cursed"),
        ("4712", "KeyError: 'nothing like it'"),
    ):
        (folder / f"{job}.log").write_text(_crash(log), encoding="utf-8")
        (folder / f"{job}.yaml").write_text(
            f"cause: dataset-unreadable\nfix: rewrite the shard of {job}\njob: job-{job}\n", encoding="utf-8"
        )
    assert taught(own, folder, triage).added == 2
    fresh = Triage(Settings(home=tmp_path / "home", embedding_model="hash"))
    answer = explained(fresh, _crash("ValueError: shard 99 of /data/b is cursed"), language="en")
    assert "job/job-4711" in answer.explanation
    assert "rewrite the shard of 4711" in answer.explanation
    assert "4712" not in answer.explanation
    assert [item.fix for item in answer.cases if item.id == "job/job-4711"] == ["rewrite the shard of 4711"]


@pytest.mark.long
def test_what_is_kept_of_past_crashes_holds_no_secret(triage: Triage, warm: Path, tmp_path: Path) -> None:
    """Neither the log's secrets nor those that people wrote into its label reach the index."""
    own, folder = copied(warm, tmp_path), tmp_path / "march"
    folder.mkdir()
    (folder / "a.log").write_text(_crash(f"ValueError: refused {LEAKS}"), encoding="utf-8")
    (folder / "a.yaml").write_text(
        f"cause: user-code-error\nfix: 'log in again with {LEAKS}'\n", encoding="utf-8"
    )
    index = taught(own, folder, triage).index
    kept = b"".join(path.read_bytes() for path in index.folder.rglob("*") if path.is_file())
    assert b"refused" in kept
    assert leaked(kept.decode("utf-8", "replace")) == []


def _crash(last: str) -> str:
    return (
        f'Traceback (most recent call last):\n  File "/job/train.py", line 30, in main\n    fit()\n{last}\n'
    )


def test_an_index_that_is_current_is_not_built_again(triage: Triage, warm: Path) -> None:
    """A second triage over the same home opens what is there."""
    stages: list[tuple[str, int, int]] = []
    again = Triage(Settings(home=warm, embedding_model="hash"), lambda *told: stages.append(told))
    assert again.index.folder == triage.index.folder
    assert stages == []


def test_that_a_broken_model_that_is_opened_ahead_fails_who_asks_for_it(tmp_path: Path) -> None:
    """What goes wrong beside the reading of a log is not lost: it comes up where the model is needed."""
    folder = export_folder("", tmp_path)
    folder.mkdir(parents=True)
    (folder / "export.json").write_text("{}", encoding="utf-8")
    triage = Triage(Settings(home=tmp_path))
    triage.open_embedder_ahead()
    with pytest.raises(KeyError, match="inputs"):
        _ = triage.embedder


def test_that_a_model_that_is_not_exported_is_left_to_who_asks_for_it(tmp_path: Path) -> None:
    """An export takes seconds and shows its progress; nothing is begun ahead of it."""
    triage = Triage(Settings(home=tmp_path, embedding_model="hash"))
    triage.open_embedder_ahead()
    assert list(tmp_path.iterdir()) == []
    assert triage.embedder.embed(["a text"]).shape[0] == 1
