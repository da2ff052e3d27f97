"""What is read at a place can be changed at that place: for every file of every labelled incident, and
for the formats they lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.schema import Scalar
from eval import incidents
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.reader import edited, read
from ingest.configfiles.settings import Setting
from ingest.configfiles.shell import commands
from tests.tables import each_row

ROOT = Path(__file__).parents[3]
INCIDENTS = [path for incident in incidents.load() for path in incident.job_files]
EXAMPLES = sorted(
    path for path in (ROOT / "ui" / "chat" / "examples").glob("*/*") if path.suffix in (".sh", ".yaml")
)
MADE = {
    "job.sbatch": (
        "#!/bin/bash\r\n#SBATCH --nodes=2 -t 1:00  # two\r\nexport A='x y'\r\nLR=1e-6\r\n"
        "ARGS=(\r\n  --seq 4096\r\n  --bf16\r\n)\r\n"
        "DOCKER_ENV=1 docker run -e NCCL_DEBUG=INFO --shm-size 8g img python t.py \"${ARGS[@]}\" \\\r\n"
        "  --lr $LR +data.n=3 --out \"$PWD/x\"\r\npip install 'vllm==0.8.4' -U\r\n"
        "bash -c 'python u.py --depth 3 a.b=1'\r\n"
    ),
    "pod.yaml": (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: lark\n"
        "    command: [vllm, serve, --port=80, --seed, '7']\n"
        "    env:\n    - {name: NCCL_DEBUG, value: INFO}\n    - name: B\n      value: '8'\n"
        "    resources: {limits: {memory: 64Gi}}\n  - name: side\n    args:\n    - --port\n    - \"81\"\n"
    ),
    "script.yaml": (
        "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n"
        "      - name: lark\n"
        "        command: [bash, -c]\n        args:\n        - |\n          set -e\n\n"
        "          export NCCL_DEBUG='WARN'\n          python t.py --lr 1e-5 a.b=1  # 显存\n"
        "      - name: side\n        command: |\n          python u.py --depth 3\n"
    ),
    "compose.yml": "services:\n  a:\n    shm_size: 8g # big\n    environment:\n    - C=1\n    - D=x y\n",
    "c.yaml": (
        "# 显存\na: &x 1\nb: 'two'  # 2\nc: {d: 1e-5, e: [1, 2]}\nf: *x\ng: ${a}\nh: |\n  text\ni: yes\n"
    ),
    "ds.json": '{"a": {"b": 1, "c": [1, 2]},\n "d": "x", "e": true, "f": null, "g": 1e-5}\n',
    "requirements.txt": "# pins\nvllm==0.8.4 ; python_version > '3.8'\ntorch[x]>=2.5,<2.7  # both\n",
    "environment.yml": "name: x\ndependencies:\n- python=3.11\n- pip:\n  - vllm==0.6.0\n",
    ".env": "A=1\nexport B='x y'  # b\nC=\"2\"\n",
    "Dockerfile": "FROM a\nENV A=1 B='2 3'\nRUN pip install vllm==0.6.0\n",
    "lark.toml": 'seed = 7 # 7\n[trainer]\nname = "a b"\nfast = true\n',
    "launch.py": (
        "import x\nLR = 1e-5\nx.run('显存', lr=LR, seed=-3,\n      name='a')\n"
        "p.add_argument('--top-k', default=5, help='at most')\n"
    ),
}  # fmt: skip
# What has no place: a value with a variable in it (`$PWD`, or a path that one begins), a block list, and what
# holds further settings, which have places of their own.
UNPLACED = re.compile(r"\$|^[\[{]|\s--|/.*/")


def other(value: str) -> Scalar:
    """Give another value of the same sort."""
    if value.lower() in ("true", "false", "yes", "no"):
        return value.lower() in ("false", "no")
    try:
        return int(value) + 1
    except ValueError:
        pass
    try:
        return float(value) * 2
    except ValueError:
        pass
    if value.startswith("["):
        return "['p', 'q']"
    if value[:1] in "=<>~!" and value[1:2]:
        return "==9.9"
    return "another"


def says(setting: Setting, to: Scalar) -> bool:
    """Tell whether a setting has the value, however it is written."""
    if isinstance(to, bool):
        return setting.value.lower() in (("true", "yes", "1") if to else ("false", "no", "0"))
    if isinstance(to, int | float):
        return float(setting.value) == to
    return re.sub(r"['\"]", "", setting.value) == re.sub("'", "", str(to))


def wrong(text: str, name: str) -> Iterator[str]:
    """Change each setting of a file in turn; say what came out otherwise."""
    settings = read(text, name)
    for number, setting in enumerate(settings):
        if setting.place is None:
            continue
        to = other(setting.value)
        try:
            new = edited(text, name, setting, to)
        except NotPatchableError as error:
            yield f"{setting.key}={setting.value}: {error}"
            continue
        again = read(new, name)
        if [each.key for each in again] != [each.key for each in settings]:
            yield f"{setting.key}: other settings are read afterwards"
            continue
        if not says(again[number], to):
            yield f"{setting.key}: {again[number].value} is read for {to}"
        for before, after in zip(settings, again, strict=True):
            is_elsewhere = before.place is not None and before.place.start != setting.place.start
            if is_elsewhere and before.value != after.value and not before.spelled == after.spelled == "":
                yield f"{setting.key}: {before.key} became {after.value}"
        yield from same_bytes(text, new, setting)


def same_bytes(text: str, new: str, setting: Setting) -> Iterator[str]:
    """Say where the texts differ outside of one row's part."""
    begin = next(
        (at for at, (a, b) in enumerate(zip(text, new, strict=False)) if a != b), min(len(text), len(new))
    )
    rest = zip(reversed(text[begin:]), reversed(new[begin:]), strict=False)
    tail = next((at for at, (a, b) in enumerate(rest) if a != b), min(len(text), len(new)) - begin)
    gone = text[begin : len(text) - tail]
    if "\n" in gone or "\n" in new[begin : len(new) - tail]:
        yield f"{setting.key}: {gone!r} was rewritten"
    if text[: begin + 1].count("\n") + 1 < (setting.place.line if setting.place else 0):
        yield f"{setting.key}: line {text[:begin].count(chr(10)) + 1} was changed"


@pytest.mark.long
@each_row("path", [*INCIDENTS, *EXAMPLES], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_setting_of_a_file_can_be_changed_where_it_is_read(path: Path) -> None:
    """Edited at its place it is read back with the new value, and everything else is as it was, byte
    for byte.
    """
    assert list(wrong(path.read_bytes().decode(), path.name)) == []


@each_row(("name", "text"), MADE.items(), ids=list(MADE))
def test_each_format_is_changed_where_it_is_read(name: str, text: str) -> None:
    assert list(wrong(text, name)) == []


def test_only_what_is_computed_or_rewritten_by_hand_has_no_place() -> None:
    """Were most settings without a place, the tests above would say little."""
    files = [read(path.read_text(), path.name) for path in INCIDENTS]
    unplaced = [(each, found) for found in files for each in found if each.place is None]
    assert sum(map(len, files)) > 600
    assert len(unplaced) < sum(map(len, files)) / 12
    # The value of a variable that several settings share is changed where it is assigned.
    shared = [each for each, found in unplaced if any(one.place and one.value == each.value for one in found)]
    # A shell's own flag and an empty text have no value to change.
    valued = [each for each, _ in unplaced if each not in shared and each.value not in ("", "true")]
    assert [each for each in valued if not UNPLACED.search(each.value)] == []


def test_a_place_tells_line_column_and_whose_setting_it_is() -> None:
    """A program, a container, a part of the file."""
    found = {
        (name, each.key): (each.place.line, each.place.column, each.place.scope)
        for name, text in MADE.items()
        for each in read(text, name)
        if each.place is not None
    }
    expected = {
        ("job.sbatch", "nodes"): (2, 17, "#SBATCH"),
        ("job.sbatch", "seq"): (6, 9, "t.py"),
        ("job.sbatch", "shm-size"): (9, 55, "docker run"),
        ("job.sbatch", "data.n"): (10, 20, "t.py"),
        ("pod.yaml", "resources.limits.memory"): (11, 34, "lark"),
        ("pod.yaml", "B"): (10, 14, "lark"),
        ("script.yaml", "lr"): (14, 28, "lark"),
        ("script.yaml", "depth"): (17, 31, "side"),
        ("compose.yml", "D"): (6, 7, "a"),
        ("ds.json", "a.b"): (1, 13, ""),
        ("launch.py", "seed"): (3, 25, "x.run"),
        ("launch.py", "top-k"): (5, 35, "p.add_argument"),
    }  # fmt: skip
    assert {key: found.get(key) for key in expected} == expected


def test_the_words_of_a_command_are_the_same_in_a_log_and_in_a_script() -> None:
    """A log's row is split by rules of its own, as it is no script; a command that is one is split alike."""
    rows = {
        f"{launch} {rest}"
        for path in INCIDENTS
        if path.suffix in (".sh", ".sbatch")
        for _, row in commands.logical_lines(path.read_text())
        for launch, _, rest in [row.strip().partition(" ")]
        if launch in ("python", "python3", "torchrun", "srun", "vllm")
        and not re.search(r"[$`|&;<>]| -c |^-u ", rest)
    }
    assert len(rows) > 15
    for row in rows:
        in_log = {(each.key, each.value, each.spelled) for each in commands.of_trace(row, 1)}
        assert {(each.key, each.value, each.spelled) for each in read(row, "run.sh")} == in_log, row


def test_that_what_nobody_set_in_a_model_s_configuration_is_no_setting_of_the_run() -> None:
    """Generation's own `max_length` stands beside the trainer's arguments; one that was set is kept."""
    model = "num_beams:\n  value: 1\nmin_length:\n  value: 0\n"
    for length, expected in (("20", {"bf16"}), ("512", {"bf16", "max_length"})):
        text = f"_wandb:\n  value: {{}}\nbf16:\n  value: true\nmax_length:\n  value: {length}\n{model}"
        assert {item.key for item in read(text, "config.yaml")} == expected


def test_that_a_kept_configuration_of_wandb_tells_the_settings_of_the_run() -> None:
    """Under their own names, and with no place: a rerun does not read the file."""
    kept = (
        "_wandb:\n  value:\n    cli_version: 0.23.1\nbf16:\n  desc: null\n  value: true\n"
        "data:\n  value:\n    batch_size: 16\nfsdp:\n  desc: null\n  value:\n  - full_shard\n"
    )
    found = read(kept, "config.yaml")
    assert [(one.key, one.value) for one in found] == [
        ("bf16", "true"),
        ("data.batch_size", "16"),
        ("fsdp", "[full_shard]"),
    ]
    assert all(one.place is None for one in found)
