"""What is known of frameworks stands in rows of data, and in no code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from corpus.errors import InvalidCorpusError
from corpus.frameworks import cued_frameworks, known_frameworks, load_frameworks
from corpus.library import KNOWLEDGE
from ingest.logs.frameworks import dated_versions
from tests.factories import whole_corpus
from tests.syntax import modules
from tests.tables import each_row

KNOWN = known_frameworks()
# Ids that are also words of other vocabularies, so that a literal of that spelling is no framework's id: how
# a setting is spelled (`env`, `hydra`, `python`), a language of stacks (`python`), a part of a snapshot
# (`host`, `ray`).
HOMONYMS = frozenset({"env", "hydra", "python", "host"})
# Where a literal means another thing than the framework of a job, by file.
NAMED: dict[str, tuple[set[str], str]] = {
    "corpus/frameworks.py": ({"kubernetes"}, "a format of manifests"),
    "service/bundle/job_processes.py": ({"slurm"}, "whose number of a job `--job` gives"),
    "service/patching/manifest.py": ({"kubernetes"}, "a format of manifests"),
    "service/patching/directives.py": ({"mpi"}, "an option of Slurm"),
    "corpus/extract/messages/archives.py": ({"pip"}, "the program that downloads packages"),
    "corpus/known_issues.py": ({"pip"}, "whose settings are packages"),
    "corpus/extract/releases/reading.py": ({"pip"}, "the program that is asked what a release requires"),
    "ingest/configfiles/shell/launches.py": ({"pip"}, "a program that starts no job"),
    "ingest/configfiles/requirements.py": ({"pip"}, "a key of a conda environment"),
    "ingest/bulk_ingest.py": ({"ray"}, "the package that our own ingestion runs on"),
    "ingest/configfiles/shell/document.py": ({"pip"}, "the program that installs packages"),
    "ingest/redaction/kinds.py": ({"wandb"}, "a word that stands beside its key"),
    "service/llm/replies.py": ({"nccl"}, "a word of a question"),
    "service/api/batches.py": ({"slurm", "ray", "kubernetes"}, "sources of a batch"),
    "service/api/bodies.py": ({"slurm", "ray", "kubernetes"}, "sources of a batch"),
    "service/api/knowledge.py": ({"ray"}, "an example of the API's page"),
    "service/batches/engine.py": ({"ray"}, "what our own batches run on"),
    "service/batches/executor_slots.py": ({"ray"}, "what our own batches run on"),
    "service/monitoring/ended_jobs.py": ({"slurm"}, "a source of ended jobs"),
    "service/schemas/records.py": ({"slurm", "ray", "kubernetes"}, "sources of a batch"),
    "service/telemetry": ({"slurm", "ray", "kubernetes"}, "parts of a snapshot, kinds of scheduler"),
    "ui/cli/batch_sources.py": ({"slurm", "ray", "kubernetes"}, "sources of a batch"),
    "ui/cli/doctor.py": ({"ray"}, "our own optional package"),
    "ui/cli/watch.py": ({"slurm", "ray", "kubernetes"}, "sources of ended jobs"),
}


def test_that_no_id_of_a_framework_stands_in_code() -> None:
    """Only where the same word means another thing: those places are named, each with what it means."""
    found = {
        f"{module.name}:{line}: {text}"
        for module in modules("corpus", "ingest", "service", "ui")
        for line, text in module.texts
        if text in KNOWN.rows and text not in HOMONYMS and not _is_named(module.name, text)
    }
    assert found == set()


def test_that_every_named_place_has_its_literal() -> None:
    """A reason whose literal is gone would let the next one in."""
    idle = [
        name
        for name, (ids, _) in NAMED.items()
        if ids
        and not any(
            text in ids
            for module in modules()
            if module.name == name or module.name.startswith(f"{name}/")
            for _, text in module.texts
        )
    ]
    assert idle == []


def _is_named(name: str, text: str) -> bool:
    return any(name.startswith(place) and text in ids for place, (ids, _) in NAMED.items())


def test_that_every_program_is_told_by_its_examples_and_not_by_what_is_near() -> None:
    wrong = [
        (row.expression, text)
        for row in KNOWN.programs
        for texts, is_told in ((row.examples, True), (row.near, False))
        for text in texts
        if (re.search(row.expression, text) is not None) is not is_told
    ]
    assert wrong == []


def test_that_every_sign_of_a_version_is_told_by_its_examples() -> None:
    """What it leaves open is a range of versions, with the groups of the expression filled in."""
    signs = [sign for row in KNOWN.rows.values() for sign in row.dated_by]
    found = {text: re.search(sign.says, text) for sign in signs for text in sign.examples}
    assert [text for text, match in found.items() if match is None] == []
    ranges = [dated_versions(sign.examples) for sign in signs]
    assert all(SpecifierSet(versions) for dated in ranges for versions in dated.values())
    assert {"transformers": "<4.46"} in ranges
    assert {"pytorch": "<2.1"} in ranges


def test_that_the_catalogue_names_commands_that_rows_tell() -> None:
    """The names of commands that an expression gives are those that settings are bound to."""
    bound = {(item.framework, name) for item in whole_corpus().specs.values() for name in item.commands}
    told = {
        (row.framework, found.groupdict().get("command") or row.command)
        for row in KNOWN.programs
        for text in row.examples
        if (found := re.search(row.expression, text))
    }
    assert {framework for framework, _ in bound} <= {framework for framework, _ in told}
    assert bound & told


def test_that_settings_belong_to_frameworks_that_have_a_row() -> None:
    assert {framework for framework, _ in whole_corpus().specs} <= KNOWN.rows.keys()


def test_what_paths_and_commands_say_of_frameworks() -> None:
    rows = {
        "/opt/EasyR1/verl/workers/fsdp_workers.py": ("easyr1", "verl"),
        "/data/TinyZero/verl/trainer/main_ppo.py": ("tinyzero", "verl"),
        "python -m verl.trainer.main_ppo actor_rollout_ref.actor.lr=1e-6": ("verl",),
        "/venv/lib/python3.11/site-packages/vllm/v1/engine/core.py": ("vllm",),
        "accelerate launch train.py": ("accelerate",),
        "/home/me/train.py": (),
        # An environment or a folder is called after anything.
        "/opt/envs/verl/lib/python3.12/site-packages/vllm/v1/engine/core.py": ("vllm",),
        "/opt/envs/llamafactory/lib/python3.10/multiprocessing/process.py": (),
        "/opt/envs/llamafactory/bin/accelerate launch train.py": ("accelerate",),
        "/home/me/verl/eval/run.py": (),
        "/home/me/verl/verl/utils/dataset/rl_dataset.py": ("verl",),
        "--model /data/LLaMA-Factory/saves/m": (),
        "/data/LLaMA-Factory/src/llamafactory/train/tuner.py": ("llamafactory",),
    }
    assert {text: cued_frameworks(text) for text in rows} == rows


@each_row(
    "row, wrong",
    [
        ("- {id: toy, layer: trainer, drives: [nobody]}", "there is no framework nobody"),
        ("- {id: toy, layer: trainer, cue: '('}", "cue"),
        ("- {id: verl, layer: trainer}", "two frameworks are called 'verl'"),
        ("- {id: toy, layer: sandwich}", "layer"),
        ("- {id: toy, colour: red}", "colour"),
    ],
)
def test_that_a_row_that_says_nothing_sensible_is_refused(
    row: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the row and the field."""
    (tmp_path / "frameworks.yaml").write_text(row, encoding="utf-8")
    monkeypatch.setenv(KNOWLEDGE, str(tmp_path))
    with pytest.raises(InvalidCorpusError, match=re.escape(wrong)):
        load_frameworks()


def test_that_a_folder_of_knowledge_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KNOWLEDGE, "/nowhere/knowledge")
    with pytest.raises(
        InvalidCorpusError, match=r"WHYCRASH_KNOWLEDGE: there is no folder /nowhere/knowledge"
    ):
        load_frameworks()


@each_row("unit", ["[", "a", "a/", "a.", "worker.actor.a", "LLaMA-Factory"])
def test_a_file_of_one_word_names_nothing_and_is_read_once(unit: str) -> None:
    """A word of some hundred kilobytes is tried from its begin alone: this test would not end otherwise."""
    assert cued_frameworks("x: " + unit * (300_000 // len(unit))) in ((), ("llamafactory",))
