"""Settings that are read from shell lines, prints and files hold no secret: secrets go before quotes do."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.logs.configs import launch
from ingest.logs.configs.launch import ConfigLine, LaunchReader
from ingest.logs.lines import parse_line
from ingest.redaction.redactor import Redactor
from tests.ingest.redaction import planted
from tests.ingest.redaction.planted import Planted
from tests.tables import each_row

QUOTES: dict[str, Callable[[str], str]] = {
    "bare": lambda piece: piece,
    "single": lambda piece: f"'{piece}'",
    "double": lambda piece: f'"{piece}"',
    "dollar": lambda piece: f"$'{piece}'",
}
COMMANDS = (
    "DB_PASSWORD={} python train.py",
    "export HF_TOKEN={}",
    "export WANDB_API_KEY={}; torchrun train.py",
    "python train.py --password {} --lr 1",
    "python train.py --password={}",
    "python -m vllm.entrypoints.openai.api_server --api-key {} --port 8000",
    "python train.py +trainer.api_key={} lr=1",
    "docker run -e DB_PASSWORD={} image",
    "srun --export=ALL,DB_PASSWORD={} python t.py",
    "+ python train.py --hf-token={}",
    "python train.py ++logger.password={}",
    'ray job submit --runtime-env-json \'{{"env_vars": {{"DB_PASSWORD": "{}"}}}}\' -- python t.py',
)
WHOLE = [item for item in planted.secrets() if item.form in ("whole", "beside") and "\n" not in item.text]


def told(item: Planted, found: list[launch.Setting]) -> list[str]:
    """Give the settings that still show a part of a secret."""
    return [text for setting in found for text in (setting.key, setting.value) if planted.remains(item, text)]


@given(
    st.sampled_from(COMMANDS),
    st.integers(0, 999),
    st.lists(st.tuples(st.sampled_from(sorted(QUOTES)), st.integers(1, 30)), min_size=1, max_size=4),
    st.booleans(),
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_a_secret_goes_before_and_behind_the_quotes(
    command: str, seed: int, pieces: list[tuple[str, int]], nested: bool
) -> None:
    """However a shell word is put together, neither its line nor the setting that is read from it tells the
    secret.
    """
    secret = planted.Chance(f"quotes {seed}").text(planted.ALNUM, 34)
    word, rest = "", secret
    if "env_vars" in command:
        pieces = [("bare", 34)]
    for number, (quote, size) in enumerate(pieces):
        piece, rest = (rest, "") if number == len(pieces) - 1 else (rest[:size], rest[size:])
        word += QUOTES[quote](piece) if piece else ""
    text = command.format(word)
    text = f"bash -c {shlex.quote(text)}" if nested else text
    item = Planted("password", "quoted", text, secret)
    assert not planted.remains(item, Redactor().clean(text))
    assert not told(item, launch.from_command(text, 1))
    assert not told(item, LaunchReader().command([ConfigLine(1, text)])[1])


@each_row(
    "written",
    [
        lambda text: f"python train.py --note {shlex.quote(text)} --lr 1",
        lambda text: f"export NOTE={json.dumps(text)}; python train.py",
        lambda text: f"+ python3 -m verl.trainer.main_ppo +note='{text}'",
    ],
)
def test_a_planted_secret_in_a_word_of_a_command_is_not_read(written: Callable[[str], str]) -> None:
    """A login('name', '...') whose quotes the shell takes away is a secret as well."""
    for item in WHOLE:
        assert not told(item, launch.from_command(written(item.text), 1)), item


@each_row(
    ("name", "written"),
    [
        ("run.sh", "python train.py --lr 1 # §\nexport NOTE='§'\n"),
        ("c.yaml", "lr: 1\nnote: '§'\n"),
        ("c.json", '{"lr": 1, "note": "§"}'),
        ("c.toml", 'lr = 1\nnote = "§"\n'),
        ("job.env", "LR=1\nNOTE=§\n"),
    ],
)
def test_a_planted_secret_in_a_file_is_not_read(name: str, written: str) -> None:
    """A file's settings are read from its text without secrets."""
    for item in WHOLE:
        text = json.dumps(item.text, ensure_ascii=False)[1:-1] if name in ("c.json", "c.toml") else item.text
        assert not told(item, launch.from_file(written.replace("§", text), name)), item


@each_row(
    ("text", "name", "kept"),
    [
        ("password: hunter22x\nlr: 1e-5\n", "c.yaml", ("lr", "1e-5")),
        ("api_key: abcd1234efgh\nlr: 1e-5\n", "c.yaml", ("lr", "1e-5")),
        ('{"password": "hunter22x", "lr": 2}', "c.json", ("lr", "2")),
        ("export DB_PASSWORD='hunter22x'\npython t.py --lr 2\n", "run.sh", ("lr", "2")),
        ("DB_PASSWORD=hunter22x\nLR=2\n", "job.env", ("LR", "2")),
    ],
)
def test_what_stands_beside_a_secret_is_read(text: str, name: str, kept: tuple[str, str]) -> None:
    """A mask stands where the secret stood, and leaves the file's form."""
    found = launch.from_file(text, name)
    assert kept in [(item.key, item.value) for item in found]
    assert not [item for item in found if "hunter22" in item.value or "abcd1234" in item.value]


def test_a_secret_below_its_name_goes_before_the_rows_are_joined() -> None:
    """A command's value in the row below, and a print's, are masked as their rows stand."""
    secret = planted.Chance("below").text(planted.ALNUM, 30)
    item = Planted("secret", "below", "", secret)
    rows = [
        ConfigLine(1, "python -m vllm.entrypoints.openai.api_server \\"),
        ConfigLine(2, "  --api-key \\"),
        ConfigLine(3, f"  {secret} \\"),
        ConfigLine(4, "  --port 8000"),
    ]
    found = LaunchReader().command(rows)[1]
    assert not told(item, found)
    assert ("port", "8000") in [(each.key, each.value) for each in found]
    printed = [ConfigLine(2, f"          'token': '{secret}',"), ConfigLine(3, "          'lr': 1e-05}")]
    assert not told(item, launch.from_dump("args: {'api_key': 'x',", 1, printed))


def test_a_secret_of_a_command_counts_where_the_reader_shares_its_redactor() -> None:
    """The report tells how many secrets there were, those that only a setting held among them."""
    redactor = Redactor()
    LaunchReader(redactor).command([ConfigLine(1, "python train.py --password hunter22x --lr 1")])
    assert redactor.count == 1


@each_row(
    ("above", "read"),
    [
        ("kind: Secret\nmetadata:\n  name: db\n", False),
        ("kind: ConfigMap\nmetadata:\n  name: db\n", True),
        ("kind: Secret\ndata: {}\n---\n", True),
    ],
)
def test_the_manifest_of_a_secret_configures_no_job(above: str, read: bool) -> None:
    """What tells that its values are secrets stands above them, in rows that no print holds."""
    data = f"{above}data:\n  conn: abcd\n".encode()
    line = parse_line(b"data:", above.count("\n") + 1)
    assert bool(list(launch.rows_below(data, len(above), line))) is read
