"""Secrets as logs of training jobs show them go in every form and however a row is cut.

What only looks like them stays.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ingest.redaction import entropy, search
from ingest.redaction.redactor import Redactor
from tests.ingest.redaction import planted, planted_jobs
from tests.ingest.redaction.planted import Planted
from tests.tables import each_row

SECRETS = planted_jobs.secrets()
FORMS = sorted({item.form for item in SECRETS})
# What stands before each row of a log, and what ends a row that goes on.
MARKS = (
    ("", ""),
    ("(WorkerDict pid=4242) ", ""),
    ("    ", ""),
    ("[rank3]: ", ""),
    ("2026-03-01T10:00:00.123Z ", ""),
    ("12: ", ""),
    ("", "\\"),
)
STEP = 29
WIDE = "2026-03-01 10:00:00 INFO trainer.py:10 a row that is as wide as the terminal"


def _left(item: Planted, cleaned: str) -> str:
    """Give what is left of a secret.

    One that is shorter than what tells something must be gone as a whole.
    """
    short = len(item.secret) < planted.SHOWN and item.secret in cleaned
    return item.secret if short else planted.remains(item, cleaned)


def test_the_sets_are_large_enough() -> None:
    """At least 200 secrets, and as many texts that are none; each made the same every time."""
    assert len(planted_jobs.SECRETS) >= 200
    assert len(set(planted_jobs.lookalikes())) >= 200
    planted_jobs.secrets.cache_clear()
    assert planted_jobs.secrets() == SECRETS


@each_row("form", FORMS)
def test_nothing_of_a_job_s_secret_is_left(form: str) -> None:
    """In a line of any logger, in JSON, in a URL, in colours.

    And the prefilter loses nothing of what the table finds.
    """
    for item in SECRETS:
        if item.form == form:
            cleaned = Redactor().clean(item.text)
            assert not _left(item, cleaned), (item, cleaned)
            assert cleaned.count("\n") == item.text.count("\n")


def test_what_a_job_s_log_tells_stays() -> None:
    """Ids, digests, token counts, special tokens, keys of state dicts and prompts are what a diagnosis
    needs.
    """
    assert not [text for text in planted_jobs.lookalikes() if Redactor().clean(text) != text]


def test_a_job_s_masked_line_stays_as_it_is() -> None:
    """The words within a mask name secrets, and begin none."""
    for item in SECRETS[:: len(FORMS)]:
        once = Redactor().clean(item.text)
        assert Redactor().clean(once) == once


def test_the_prefilter_loses_nothing_of_a_job_s_secrets() -> None:
    """What the expressions find at any row they find behind the prefilter too."""
    for item in SECRETS[::7]:
        data = item.text.encode()
        assert (
            Redactor().clean(item.text)
            == Redactor().masked(data, search.search_all(data), 0, len(data)).decode()
        )


def _wraps(number: int, sample: planted.Sample) -> Iterator[tuple[str, str]]:
    """Yield a sample's row cut at all widths that fall into the secret or its name, with all marks.

    And the secret.
    """
    lead, _, tail = sample.shown.replace("{{", "{").replace("}}", "}").partition("{}")
    for variant, before in enumerate(("", planted.english("", number), "[2026-03-01 10:00:00] 训练失败：")):
        if before and sample.kind in planted.ALONE:
            continue
        secret = sample.make(planted.Chance(f"w {number} {variant}"))
        line, start = before + lead + secret + tail, len(before + lead)
        for mark, end in MARKS:
            for width in range(max(planted.NARROW, start - 12), min(start + len(secret) + 1, start + 140)):
                rows = [mark + line[place : place + width] for place in range(0, len(line), width)]
                yield f"{end}\n".join(rows), secret


def _shown(text: str, secret: str) -> bool:
    """Tell whether a text shows a part of a secret, also where its rows are put together."""
    joined = text
    for mark, end in sorted(MARKS, reverse=True):
        joined = joined.replace(f"{end}\n{mark}", "")
    runs = [secret[place : place + planted.SHOWN] for place in range(len(secret) - planted.SHOWN + 1)]
    return any(run in text or run in joined for run in runs)


@pytest.mark.long
@each_row("part", range(3))
def test_a_row_may_be_cut_anywhere(part: int) -> None:
    """Within the secret, at its begin, within its name or its command: every 87th of 112,000 ways, in three
    parts.
    """
    ways = [way for number, sample in enumerate(planted.SAMPLES) for way in _wraps(number, sample)]
    assert len(ways) > 100_000
    assert not [
        text for text, secret in ways[part * STEP :: 3 * STEP] if _shown(Redactor().clean(text), secret)
    ]


@each_row(
    "text",
    [
        "WIDE serve --au\nth-token {} --port 1",
        "WIDE wand\nb login {} done",
        "WIDE mysql -u ro\not -p{} runs",
        "WIDE docker run -e AZURE_OPENAI\n_KEY={} image",
        "WIDE headers={{'authorization'\n: '{}'}}",
        "WIDE post https://discord.com/api/webhooks/1234567\n89012345678/{} ok",
        "WIDE openssl rsa -passin \npass:{} -out k",
        'WIDE {{"\nauth": "{}"}}',
        "WIDE redis://:{}\n@10.0.0.4:6379/0 refused",
        # Broken at a blank, where the row below may be the wider one.
        "['python', 'train.py', '--api-key',\n '{}', '--lr', '1']",
        "training failed: mysql --password\n{} runs",
        "the token is\n  HF_TOKEN:\n  {} and so on",
    ],
)
def test_a_name_may_be_cut_from_its_secret(text: str) -> None:
    """What tells a secret stands in the row above it, or in both."""
    secret = planted.Chance("cut name").text(planted.HEX, 40)
    assert not planted.remains(
        Planted("", "", "", secret), Redactor().clean(text.format(secret).replace("WIDE", WIDE))
    )


@each_row(
    ("text", "secret"),
    [
        ("HF_TOKEN=\x00{}", "token"),
        ("HF_TOKEN=x\b{}", "token"),
        ("P\bPA\bAS\bSS\bSW\bWO\bOR\bRD\bD={}", "password"),
        ("PATH=/usr/bin\x00DB_PASSWORD={}\x00HOME=/root", "password"),
        ("HF_TOKEN={}\x07", "token"),
        ("HF_TOKEN=\x85{}", "token"),
        ("HF_TOKEN=\U000e0041{}", "token"),
        ("\x01HF_\x02TOKEN={}", "token"),
    ],
)
def test_what_a_terminal_does_not_show_hides_no_secret(text: str, secret: str) -> None:
    """Controls are taken out when a text is shown, and a backspace takes a letter away.

    What they parted is whole then.
    """
    value = planted.Chance(text).text(planted.ALNUM, 34)
    assert f"[redacted:{secret}]" in (cleaned := Redactor().clean(text.format(value)))
    assert not planted.remains(Planted("", "", "", value), cleaned)


@each_row(
    ("text", "shown"),
    [
        ("DB_PASSWORD=hunter22xyz\nLEARNING=2", "DB_PASSWORD=[redacted:password]\nLEARNING=2"),
        (
            "export DB_PASSWORD=hunter22xyz\nTraceback (most recent",
            "export DB_PASSWORD=[redacted:password]\nTraceback (most recent",
        ),
        (
            "please enter the password:\nRuntimeError: CUDA error",
            "please enter the password:\nRuntimeError: CUDA error",
        ),
        (
            "using the tokenizer of a token\ntokenizer=Qwen/Qwen2",
            "using the tokenizer of a token\ntokenizer=Qwen/Qwen2",
        ),
    ],
)
def test_the_row_below_a_name_or_a_value_stays(text: str, shown: str) -> None:
    """Words, and a name with a value of its own, are no more of what stands above them."""
    assert Redactor().clean(text) == shown


@each_row(
    ("digits", "valid"),
    [("11010519491231002X", True), ("110105194912310021", False), ("440524188001010014", True)],
)
def test_an_identity_card_s_number_is_told_by_its_check_digit(digits: str, valid: bool) -> None:
    """The examples of the standard hold; another last digit does not."""
    assert entropy.is_identity(digits.encode()) is valid
