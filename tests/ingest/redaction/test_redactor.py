"""Secrets go, settings stay."""

from __future__ import annotations

import string

import pytest

from ingest.redaction import redactor as redact
from ingest.redaction.budget import RedactionBudget
from ingest.redaction.redactor import Redactor
from ingest.redaction.table import KINDS
from tests.ingest.redaction import planted
from tests.tables import each_row

LETTERS = (string.ascii_letters + string.digits) * 4
HEX = "0123456789abcdef" * 4

# Samples are put together here, so that no scanner of repositories takes them for real ones.
SECRETS: tuple[tuple[str, str, str], ...] = (
    (
        "private-key",
        "{}",
        "-----BEGIN RSA PRIVATE " + "KEY-----MIIEow" + LETTERS[:64] + "-----END RSA PRIVATE KEY-----",
    ),
    (
        "private-key",
        "{}",
        "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n" + LETTERS[:64] + "\n-----END OPENSSH PRIVATE KEY-----",
    ),
    ("private-key", "cut off: {}", "-----BEGIN PRIVATE " + "KEY-----MIIE" + LETTERS[:30]),
    ("url-credentials", "pip --index-url https://{}@pypi.example.com/simple", "alice:s3cretword"),
    ("url-credentials", "redis://{}@10.0.0.4:6379", ":onlypassword"),
    ("aws-key", "using {} now", "AKIA" + "ABCDEFGH12345678"),
    ("github-token", "clone with {}", "ghp_" + LETTERS[:36]),
    ("github-token", "{}", "github_pat_" + LETTERS[:40]),
    ("gitlab-token", "{}", "glpat-" + LETTERS[:20]),
    ("huggingface-token", "login {}", "hf_" + LETTERS[:34]),
    ("anthropic-key", "{}", "sk-ant-api03-" + LETTERS[:40]),
    ("openai-key", "{}", "sk-proj-" + LETTERS[:40]),
    ("openai-key", "(key {})", "sk-" + LETTERS[:48]),
    ("google-key", "{}", "AIza" + LETTERS[:35]),
    ("google-key", "{}", "ya29." + LETTERS[:40]),
    ("slack-token", "{}", "xoxb-" + "1234567890-abcdefghij"),
    ("webhook", "post https://hooks.slack.com/services/{}", "T00000000/B00000000/" + LETTERS[:24]),
    ("stripe-key", "{}", "sk_live_" + LETTERS[:24]),
    ("sendgrid-key", "{}", "SG." + LETTERS[:22] + "." + LETTERS[:43]),
    ("npm-token", "{}", "npm_" + LETTERS[:36]),
    ("pypi-token", "{}", "pypi-" + "AgE" + LETTERS[:60]),
    ("databricks-token", "{}", "dapi" + HEX[:32]),
    ("azure-key", "AccountName=x;AccountKey={};EndpointSuffix=y", LETTERS[:60] + "=="),
    ("azure-sas", "https://x.blob.core.windows.net/c?sv=1&sig={}&se=2", LETTERS[:40] + "%3D"),
    ("alibaba-key", "{}", "LTAI" + LETTERS[:20]),
    ("tencent-key", "{}", "AKID" + LETTERS[:32]),
    ("telegram-token", "bot {}", "123456789:AA" + LETTERS[:33]),
    ("jwt", "got {}", "eyJhbGciOi" + LETTERS[:10] + "." + LETTERS[:30] + "." + LETTERS[:30]),
    ("aws-signature", "GET https://b.s3.amazonaws.com/k?X-Amz-Signature={}&x=1", HEX),
    ("authorization", "Authorization: Basic {}", "dXNlcjpwYXNzd29yZA=="),
    ("authorization", "{{'authorization': '{}'}}", "abcdefghijkl"),
    ("bearer", "sent Bearer {} to it", LETTERS[:30]),
    ("cookie", "Set-Cookie: {}", "session=abcdef0123456789; Path=/"),
    ("api-header", "X-Api-Key: {}", LETTERS[:24]),
    ("wandb-key", "wandb: logged in with {}", HEX[:40]),
    ("password", "password={}", "hunter22"),
    ("password", "export DB_PASSWORD='{}'", "hunter22"),
    ("secret", '{{"aws_secret_access_key": "{}"}}', LETTERS[:40]),
    ("secret", "WANDB_API_KEY={}", LETTERS[:20]),
    ("password", "mysql --password {} -u root", "hunter22"),
    ("token", "HF_TOKEN={}", LETTERS[:24]),
    ("token", "access_token: '{}'", LETTERS[:24]),
    ("token", "python x.py --token {}", LETTERS[:24]),
    ("token", "os.environ['HF_TOKEN'] = '{}'", LETTERS[:24]),
    ("token", "{{'token': b'{}'}}", LETTERS[:24]),
    ("token", "HF_TOKEN -> {}", LETTERS[:24]),
    ("wandb-key", "wandb.login(key='{}')", HEX[:40]),
    ("password", 'passphrase: "{}"', "correct horse battery"),
    ("email", "mail {} please", "jane.doe@example.com"),
    ("phone", "call phone: {} now", "138" + "0013" + "8000"),
    ("id-number", "identity {} of", "11010519491231" + "002X"),
    ("iban", "refund to IBAN {} please", "DE02" + "1203 0000 0000 2020 51"),
    ("discord-token", "improper token '{}'", "M" + LETTERS[:23] + ".Gx4abc." + LETTERS[10:48]),
    ("licence-key", "product key {} was taken", "AB3DE-4FGH5-JK6LM-7NPQ8-RS9TU"),
    (
        "seed-phrase",
        "mnemonic: {} (read)",
        "cloud spoon arrow metal piano river stone grape candle mirror wagon tunnel",
    ),
    ("encoded", "config {}", "eyJkYl9wYXNzd29yZCI6ICJLb3JtMHJhbi0yMiIsICJ4IjogMX0="),
    ("encrypted", "$ANSIBLE_VAULT;1.1;AES256\n{}\n", HEX[:60] + "\n" + HEX[:60]),
    ("secret", "azauth key: {} refused", LETTERS[:62] + "Qk8=="),
    ("password", "le mot de passe de la base est {} mais", "Libellule-8"),
    ("password", "the passphrase of the key was '{}', and", "three dull herons"),
    ("password", "mon mot: try pwd {} for it", "kingfisher#3"),
    ("authorization", "send: 'AUTH PLAIN {}'", "AGFsaWNlAEZlcm4xMjM0"),
    ("secret", "CREATE SECRET (TYPE S3, SECRET '{}')", LETTERS[:40]),
    ("secret", "error: argument --cipher_key: invalid hex: '{}'", HEX[:48] + "zz"),
    ("command-password", "\n+ echo {}\n+ passwd --stdin bob\n", "Vetch-Bean-92"),
    ("password", "\nrequirepass {}\nmaxmemory 8gb\n", "sn0wfall-Elk-9"),
    ("phone", "call me at +{} tonight", "49 171 " + "5550123"),
)


@each_row(
    ("kind", "text", "secret"), SECRETS, ids=[f"{number}-{row[0]}" for number, row in enumerate(SECRETS)]
)
def test_a_secret_is_masked_by_its_kind(kind: str, text: str, secret: str) -> None:
    """Nothing of it is left, the words around it are, and the mask says what stood there."""
    redactor = Redactor()
    cleaned = redactor.clean("before " + text.format(secret) + " after")
    assert f"[redacted:{kind}]" in cleaned
    assert not [part for part in secret.split("\n") if part in cleaned]
    assert cleaned.startswith("before ")
    # A cut key and a cookie go on to the end of their line.
    assert kind in ("private-key", "cookie", "encrypted") or cleaned.endswith(("after", "after'", '"}'))
    assert redactor.count >= 1


def test_every_kind_of_the_table_has_a_sample() -> None:
    """A new row comes with a test."""
    assert {kind.name for kind in KINDS} == {kind for kind, _, _ in SECRETS} | {
        item.kind for item in planted.secrets()
    }


@each_row(
    "text",
    [
        "max_tokens=2048 max_new_tokens=4096 num_tokens=123456789012",
        "pad_token=<|endoftext|> eos_token='</s>'",
        "pad_token_id=151643, bos_token_id: 151644",
        "- a setting: tokenizer.pad_token = tokenizer.eos_token. The tokenizer has none",
        "tokenizer=Qwen/Qwen2.5-7B-Instruct",
        "tokenizer_path=/models/Qwen2.5-7B-Instruct",
        "tokens_per_second: 12345.678901234",
        "token_level_scores=tensor([1.0])",
        "image_token=<image_placeholder_1>",
        "WANDB_API_KEY: your key",
        "--max-num-batched-tokens 8192 --max_tokens 1234567890123",
        "special_tokens_map_file=/models/special_tokens_map.json",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sha256:" + HEX,
        "id 550e8400-e29b-41d4-a716-446655440000",
        "/data/runs/model@step_100/pytorch_model.bin",
        "image@sha256:" + HEX,
        "hydra: model@actor=qwen",
        "@ray.remote",
        "pass@1: 0.4512",
        "ray://10.0.0.3:10001",
        "tcp://10.0.0.1:29500",
        "http://10.0.0.3:8265/api/jobs",
        "http://[::1]:8000/v1",
        "s3://bucket/key",
        "forward pass: 123.456 ms, backward pass: 234.567 ms",
        "password: None",
        "api_key=null",
        "HF_TOKEN=None",
        "WANDB_API_KEY=$WANDB_API_KEY",
        "KeyError: 'tokens'",
        "RuntimeError: Expected key_padding_mask",
        "query, key, value = x",
        "monkey=banana_split",
        "ask-me-anything-about-the-run",
        "wandb: Run data is saved locally in /job/wandb/run-20250302_100000-abcd1234",
        "rank=0 bypass=enabled",
        "key=actor_rollout_ref.model.path",
        "disk-usage-monitor-agent-1234567890",
        "the bearer of bad news",
        "max_position_embeddings=131072",
        "secretary: Jane",
        "passed: 1234",
        "[redacted:password] password=[redacted:password]",
        "0x7f00aabbccddeeff",
        "(WorkerDict pid=42, ip=10.0.0.3)",
        "torch==2.6.0+cu124",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    """Token counts, special tokens, hashes, ids and paths are what a diagnosis needs."""
    redactor = Redactor()
    assert (redactor.clean(text), redactor.count) == (text, 0)


def test_cleaning_twice_changes_nothing_more() -> None:
    """A mask is no secret."""
    redactor = Redactor()
    for _, text, secret in SECRETS:
        once = redactor.clean(text.format(secret))
        assert Redactor().clean(once) == once
    # In brackets behind a name that secrets have stands a list of them, or a mask.
    for mask in ("HF_TOKEN=[redacted:huggingface-token]", "api_keys: [redacted:extra]"):
        assert Redactor().clean(mask) == mask


def test_every_secret_of_a_line_counts() -> None:
    """Two secrets are two redactions."""
    redactor = Redactor()
    assert (
        redactor.clean(f"password=hunter22 and ghp_{LETTERS[:36]}")
        == "password=[redacted:password] and [redacted:github-token]"
    )
    assert redactor.count == 2


KEY = ["-----BEGIN RSA PRIVATE " + "KEY-----", *[LETTERS[:64]] * 4, "abc=", "-----END RSA PRIVATE KEY-----"]


@each_row(
    ("rows", "secret"),
    [
        (["start", *KEY, "ValueError: bad"], LETTERS[:64]),
        (["start", *KEY[:4], "ValueError: bad"], LETTERS[:64]),
        (["start", *KEY[2:], "ValueError: bad"], LETTERS[:64]),
        (["start", *[f"(W pid=1) {row}" for row in KEY[:3]], "ValueError: bad"], LETTERS[:64]),
        (["serve m \\", "  --api-key \\", f"  {LETTERS[:20]} \\", "ValueError: bad"], LETTERS[:20]),
        (["serve m \\\r", "  --hf-token \\\r", f"  {LETTERS[:20]}", "ValueError: bad"], LETTERS[:20]),
    ],
)
def test_a_secret_over_several_rows_is_masked_and_the_rows_stay(rows: list[str], secret: str) -> None:
    """A key's own rows name no secret; beside its first or last one they are known.

    What stands below keeps its place.
    """
    cleaned = Redactor().rows(rows)
    assert (len(cleaned), cleaned[-1]) == (len(rows), "ValueError: bad")
    assert secret not in "".join(cleaned)


@each_row(
    "text",
    ["password:\n  hunter22\nnext", "serve \\\n --api-key \\\n  hunter22 \\\n --port 1", "\n".join(KEY)],
)
def test_a_mask_keeps_the_number_of_rows(text: str) -> None:
    """A patch with a row too many could not be applied."""
    cleaned = Redactor().clean(text)
    assert cleaned != text
    assert cleaned.count("\n") == text.count("\n")


@each_row(
    "text",
    [
        "a" * 200_000,
        "://" + "a" * 100_000 + ":",
        "wandb " * 30_000,
        "token=" * 30_000,
        "a@" * 50_000,
        "-" * 100_000,
    ],
)
def test_a_hostile_line_costs_no_time(text: str) -> None:
    """No expression backtracks without bound; one that did would not come back here.

    What would cost too much is masked unread.
    """
    assert Redactor().clean(text)


def test_what_waits_for_the_next_block_is_paid_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log full of secrets costs a stream about what it costs as a whole.

    Else the rows of one are masked unread that the other reads.
    """
    rows = [text.format(secret) for _, text, secret in SECRETS if "PRIVATE" not in secret]
    text = "\n".join(f"step {number} loss 0.5\n{row}" for number in range(6) for row in rows)
    monkeypatch.setattr(redact, "BLOCK", 2 << 10)
    monkeypatch.setattr(redact, "HOLD", 6 << 10)
    spent: list[int] = []
    for is_stream in (False, True):
        redactor = Redactor()
        if is_stream:
            cleaned = b"".join(redactor.stream([text.encode()])).decode()
        else:
            whole = redactor.clean(text)
        spent.append(RedactionBudget().left - redactor._budget.left)
    assert cleaned == whole
    assert spent[1] < 1.5 * spent[0]
