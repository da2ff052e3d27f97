"""The settings whose values a failing line tells: paths to read and to write, names, ports and addresses."""

from __future__ import annotations

from dataclasses import replace

from corpus.schema import Held
from ingest.logs.configs.launch import Setting
from ingest.logs.inputs import sources
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.held_values import held_by, paths_in
from tests.service.composition.test_message_forms import raised
from tests.service.factories import failed, report, setting
from tests.tables import each_row
from tests.warm import diagnosed

JOB = {
    "data_root": "../qa/data",
    "model_root": "../qa/model",
    "--train-file": "./corpus/train.jsonl",
    "resume": "'/job/run7/step_40/weights.pt'",
    "exp.name": "run_b",
    "exp.save_path": "/job/out/",
    "steps": "400",
    "data.text_column": "question",
    "title": "question",
    "model": "acme/tiny-7b",
    "server_port": "8123",
    "judge_url": "http://judge-3:9000/score",
    "master_addr": "10.7.0.3",
    "HOME": "/home/ada",
    "CKPT": "/job/run7/step_40/weights.pt",
    "cache_dir": "None",
    "VENV_PATH": "$HERE/.venv",
    "PYTHON": "$VENV_PATH/bin/python",
    "--source_dir": "/srv/ada/gan",
    "--result_dir": "/srv/ada/gan/plots",
}


@each_row(
    ("kind", "told", "keys"),
    [
        ("path", "No such file or directory: '../qa/model/current.pt'", ["model_root"]),
        ("path", "No such file or directory: '/job/run7/step_40/weights.pt'", ["resume"]),
        ("path", "cannot open corpus/train.jsonl", ["--train-file"]),
        ("path", "nothing is found in directory corpus/train.jsonl.", ["--train-file"]),
        ("path", "weights at /job/run7/step_40/weights.pt do not exist, look again", ["resume"]),
        # What a script writes behind a variable of its own; the one that others are built on.
        ("path", "./go.sh: line 7: /srv/ada/.venv/bin/python: No such file or directory", ["VENV_PATH"]),
        ("path", "./go.sh: line 7: /srv/ada/.venvs/bin/pip: No such file or directory", []),
        # A folder far above, a value within another word, a number, a shell's own, and where the run writes.
        ("path", "No such file or directory: '../qa/model/a/b/c/d/e.pt'", []),
        ("path", "No such file or directory: '../qa/models/current.pt'", []),
        ("path", "No such file or directory: '/data/400'", []),
        ("path", "No such file or directory: '/home/ada/x.json'", []),
        ("path", "No such file or directory: '/job/out/step_3/x.pt'", []),
        ("path", "No such file or directory: '/opt/env/lib/python3.11/site-packages/../qa/model'", []),
        # A folder for results that stands in one that is read from is meant where the path lies below it.
        ("path", "No such file or directory: '/srv/ada/gan/plots/a.h5'", ["--result_dir"]),
        ("path", "No such file or directory: '/srv/ada/gan/raw/a.h5'", ["--source_dir"]),
        ("output", "File exists: '/job/out/run_b'", ["exp.save_path"]),
        ("output", "No space left on device: '/job/out/step_3/x.pt'", ["exp.save_path"]),
        ("name", "404 Client Error for url: https://huggingface.co/api/models/acme/tiny-7b", ["model"]),
        ("name", "acme/tiny-7b is not a valid model identifier", ["model"]),
        # What a message lists as there is not what it misses.
        ("word", "KeyError: 'label'. Available columns: ['question']", []),
        ("word", "KeyError: 'question'", ["data.text_column"]),
        ("word", "KeyError: 'questions'", []),
        ("name", "acme/tiny-70b is not a valid model identifier", []),
        ("port", "failed to bind to [::]:8123 (errno: 98)", ["server_port"]),
        ("port", "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8123)", ["server_port"]),
        ("port", "took 8123 rows", []),
        ("address", "HTTPConnectionPool(host='judge-3', port=9000): Max retries exceeded", ["judge_url"]),
        ("address", "timed out while trying to connect to (10.7.0.3, 29500)", ["master_addr"]),
        ("address", "timed out while trying to connect to (10.7.0.33, 29500)", []),
    ],
)
def test_that_the_settings_are_found_by_their_values(kind: Held, told: str, keys: list[str]) -> None:
    given = [
        replace(setting(key, value), spelled="env" if key.isupper() else "flag") for key, value in JOB.items()
    ]
    found = held_by(kind, report(failed(text=told, body=told)), given)
    assert [item.key for item in found] == keys


def test_that_a_value_of_many_settings_is_nobodys() -> None:
    given = [setting(key, "/data/all") for key in ("a_path", "b_path", "c_path")]
    told = report(failed(text="x", body="No such file or directory: '/data/all'"))
    assert (held_by("path", told, given), len(held_by("path", told, given[:2]))) == ([], 2)


def test_that_paths_are_read_with_and_without_quotes() -> None:
    assert paths_in("File 'a b/c.json' and /x/y, z.yaml; 3/4 of 1.5 and `run.sh`") == [
        "a b/c.json",
        "run.sh",
        "/x/y",
        "z.yaml",
        "3/4",
    ]


SITE = "/opt/env/lib/python3.11/site-packages"
LOST = raised(
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/team/pairs/weights.bin'",
    "/job/train.py:3:main:model = load(path)",
)
TRAINED = LOST.replace("/job/train.py", f"{SITE}/transformers/trainer.py")
TAKEN = "OSError: [Errno 98] Address already in use: ('0.0.0.0', 8123)\n"
FULL = raised(
    "RuntimeError: PytorchStreamWriter failed writing file data/1: file write failed",
    "/job/train.py:3:main:torch.save(state, path)",
)


@each_row(
    ("log", "file", "change"),
    [
        (LOST, "pairs: /data/team/pairs\nepochs: 3\n", ("python", "pairs", "a path that exists")),
        (
            FULL,
            "save_folder: /job/out\nepochs: 3\n",
            ("python", "save_folder", "a folder on a disk with room"),
        ),
        (FULL, "max_checkpoints: 9\nsave_folder: /job/out\n", ("python", "max_checkpoints", 4)),
        (FULL, "max_checkpoints: 1\nsave_folder: null\n", None),  # neither can cure
        # What a framework of the job knows is its own.
        (
            TRAINED,
            "resume_from_checkpoint: /data/team/pairs/weights.bin\n",
            ("transformers", "resume_from_checkpoint", "a path that exists"),
        ),
    ],
)
def test_that_the_first_change_is_the_setting_that_holds_the_path(
    log: str, file: str, change: tuple[str, str, object] | None, triage: Triage
) -> None:
    found = diagnosed(triage, sources.from_text(log), "en", (ConfigFile("conf.yaml", file),)).changes
    settings = [
        (item.framework, item.key, item.to) for item in found if item.framework not in ("code", "host")
    ]
    assert settings[:1] == [change] * bool(change)


def test_that_a_taken_port_of_a_script_is_changed_where_it_stands(triage: Triage) -> None:
    files = (ConfigFile("serve.yaml", "server_port: 8123\nepochs: 3\n"),)
    answer = diagnosed(triage, sources.from_text(TAKEN), "en", files)
    assert [(item.key, item.to) for item in answer.changes][:1] == [("server_port", 8224)]
    assert "-server_port: 8123\n+server_port: 8224\n" in (answer.patch or "")


def test_that_a_hub_tells_below_the_exception_what_was_asked_for(triage: Triage) -> None:
    """What other programs ask for there is no part of the failure."""
    began = "+ python train.py --model_name acme/tiny-7b\n"
    refused = "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1-66)\n"
    url = "https://huggingface.co/api/models/acme/tiny-7b"
    for below, first in (
        (f"Repository Not Found for url: {url}.", "--model_name"),
        (f"GET {url}", "HF_TOKEN"),
    ):
        changes = diagnosed(triage, sources.from_text(f"{began}{refused}\n{below}\n"), "en").changes
        assert changes[0].key == first


def test_that_a_path_may_be_the_key_of_a_setting() -> None:
    """A mixture of data holds its folders as keys, with their shares as values."""
    mixture = [
        Setting("mixer./sets/one/ads", "0.5", 0, "yaml"),
        Setting("mixer./sets/two/ads", "0.5", 0, "yaml"),
    ]
    told = report(failed(body="FileNotFoundError: Directory /sets/two/ads/train not found"))
    (held,) = held_by("path", told, mixture)
    assert (held.key, held.value) == ("mixer", "/sets/two/ads")
