"""Secrets that a word before them, a column's name above them or their own shape tells.

Words, values and what stands between are drawn, so that the rule is tried and not its examples.
"""

from __future__ import annotations

import pytest

from ingest.redaction import entropy
from ingest.redaction.redactor import Redactor
from tests.ingest.redaction.planted import ALNUM, DIGITS, LOWER, UPPER, Chance
from tests.tables import each_row

_WORDS = ("harbor", "velvet", "quartz", "lantern", "meadow", "pepper", "saddle", "tundra")
# How people and programs put a key into a sentence; the key stands at the end, or before a full stop.
_KEY_SENTENCES = (
    "could not refresh with the access token we were given, {}",
    "the api key of the staging box, in case somebody needs it: {}",
    "old secret was {} and is gone",
    "service account key number four is now {}.",
    "bearer credential handed out yesterday {}",
    "unseal key for the vault -> {}",
    "私钥已经换成了 {}",
    "co = vendor.Client('{}')",
)
_PASSWORD_SENTENCES = (
    "the passphrase of the backup disk changed, it's now {}",
    "creds for the dashboard: admin / {}",
    "log in as svc with {}",
    "sudo on node 7 wants {} today",
    "数据库密码从昨天起改成 {}",
    "Zugang: Benutzer ops, Kennwort {}",
    "retried 'X7' and {} as the root password",
)
_TABLES = (
    "name,{column},age\nfirst,{value},3\n",
    '"name";"{column}"\n"first";"{value}"\n',
    "name\t{column}\nfirst\t{value}\n",
    "| name | {column} |\n|---|---|\n| first | {value} |\n",
    " name | {column} \n------+-----\n first | {value}\n(1 row)\n",
    "NAME   {column}        AGE\nfirst  {value}   3d\n",
    "│ name │ {column} │\n├──────┼──────┤\n│ first │ {value} │\n",
    "INSERT INTO users (name, {column}) VALUES ('first', '{value}');\n",
    "insert into users (name, {column}) values (%s, %s)\n[parameters: ('first', '{value}')]\n",
)


def _password(chance: Chance) -> str:
    one, other = _WORDS[chance.number(8)], _WORDS[chance.number(8)]
    return f"{one.title()}{10 + chance.number(90)}{'!#$%&*?'[chance.number(7)]}{other}"


@each_row("sentence", _KEY_SENTENCES)
def test_what_chance_has_drawn_goes_behind_a_word_for_a_key(sentence: str) -> None:
    """Whatever words stand between."""
    for number in range(20):
        key = Chance(f"{sentence} {number}").text(ALNUM, 24 + number)
        assert key not in Redactor().clean(sentence.format(key))


@each_row("sentence", _PASSWORD_SENTENCES)
def test_words_with_digits_and_signs_go_behind_a_word_for_a_password(sentence: str) -> None:
    """People make passwords so, and nothing else."""
    for number in range(20):
        password = _password(Chance(f"{sentence} {number}"))
        assert password not in Redactor().clean(sentence.format(password)), password


@each_row("table", _TABLES)
def test_the_cells_below_a_secrets_name_go(table: str) -> None:
    """A name that stands over a value tells it as one that stands before it does."""
    for column in ("password", "api_key", "TOKEN", "client_secret"):
        value = Chance(f"{table} {column}").text(ALNUM, 32)
        text = table.format(column=column, value=value)
        cleaned = Redactor().clean(text)
        assert value not in cleaned, (text, cleaned)
        assert "first" in cleaned
        assert cleaned.count("\n") == text.count("\n")


@each_row(
    "text",
    [
        "cache key is {hex}",
        "token {hex} of commit {hex}",
        "the key of layer model.layers.11.mlp.down_proj is missing",
        "secret hf-token-v3 of namespace train is mounted",
        "request id req_{drawn} was refused for the api key",
        "tokens,id,score\nhello,15043,0.91\nworld2,11526,0.42",
        "name,max_tokens\nllama,4096",
        "storage_key = checkpoints/run-0042/layer.11.bin",
        "Set-Cookie: theme=dark; lang=en",
        "--- PASS: TestTokenRefresh2 (0.02s)",
        "TLS_PSK_WITH_AES_128_GCM_SHA256 is no cipher of ours",
        "pass@1 0.4512, forward pass#2 took 1.2s",
    ],
)
def test_what_a_word_for_a_secret_stands_beside_stays(text: str) -> None:
    """Digests, ids, names and counts are what a diagnosis needs."""
    chance = Chance(text)
    text = text.format(hex=chance.text("0123456789abcdef", 20), drawn=chance.text(ALNUM, 22))
    assert Redactor().clean(text) == text


def test_chance_is_told_from_words() -> None:
    """Of runs that are drawn nearly all are taken for drawn, of names of programs none."""
    chance = Chance("runs")
    drawn = [chance.text(letters, 24).encode() for letters in (ALNUM, LOWER + DIGITS, UPPER + DIGITS) * 100]
    names = (
        b"Qwen2TokenizerFastForConditionalGeneration ConvertLinalgToLoopsPass2 transformer_engine_torch "
        b"TensorParallelColumnLinear128 gradient_accumulation_steps16 InstanceMetadataProviderV2 "
        b"ApplicationMasterContainerLauncher20 vectorizedElementwiseKernel4 getOrCreateExecutionContext3"
    ).split()
    assert sum(map(entropy.is_chance, drawn)) >= 0.97 * len(drawn)
    assert [name for name in names if entropy.is_chance(name)] == []


@pytest.mark.parametrize("rows", [20, 2000])
def test_a_table_below_a_name_takes_linear_time_and_ends(rows: int) -> None:
    """Cells are masked as far as the table is read, and no row is lost."""
    text = "name,password\n" + "".join(f"user{number},Meadow{number}!pepper\n" for number in range(rows))
    cleaned = Redactor().clean(text)
    assert cleaned.count("\n") == text.count("\n")
    assert "Meadow0!" not in cleaned
