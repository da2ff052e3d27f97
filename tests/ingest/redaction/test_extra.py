"""What users hold for secret themselves is masked like what is known to all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import process_time

import pytest

from ingest.errors import RedactionPatternError
from ingest.redaction import budget, extra
from ingest.redaction.redactor import Redactor
from ingest.workers.process import Tell, WorkerProgram
from tests.tables import each_row

EXTRA = r"""acme pin, crewBadge, 工号
/\bACME-[0-9A-F]{8,40}\b/, /(?i)reel\/[a-z]+/"""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = extra.extra_text()
    yield
    extra.use_extra(before)


MASKED = (
    ("ACME_PIN=1234 next=5", "1234"),
    ("prod.acme-pin: 7301", "7301"),
    ("launch --acme-pin 9931 --steps 4", "9931"),
    ("launch --acme-pin=tide", "tide"),
    ('{"acmePin": "open sesame"}', "open sesame"),
    (json.dumps({"args": json.dumps({"acme_pin": "open sesame"})}), "open sesame"),
    ("\x1b[1macme_pin\x1b[0m=tide", "tide"),
    ("| acme_pin | 88 12 |", "88 12"),
    ("<acmePin>8812</acmePin>", "8812"),
    ("setenv ACME_PIN 8812", "8812"),
    ("- name: ACME_PIN\n  value: 'x 8812'\n", "8812"),
    ("https://host.example/?acme_pin=4471&step=1", "4471"),
    ("&quot;acme_pin&quot;: &quot;7744&quot;", "7744"),
    ("%22acme_pin%22%3A%227744%22", "7744"),
    ("acme_pin =\n  'long tide'\n", "long tide"),
    ("crew_badge=13 steps=4", "13"),
    ("工号：88123", "88123"),
    (json.dumps({"工号": "88123"}), "88123"),
    ("loading ACME-00FFAA1122 now", "ACME-00FFAA1122"),
    ("seen on Reel/tide", "Reel/tide"),
    (f"{'x' * 70_000} ACME-00FFAA1122", "ACME-00FFAA1122"),
)


@each_row(("text", "secret"), MASKED)
def test_what_users_hold_for_secret_is_masked(text: str, secret: str) -> None:
    """By its name in every form that a log writes names in, or by its own look; what is around it stays."""
    extra.use_extra(EXTRA)
    cleaned = Redactor().clean(text)
    assert secret not in cleaned
    assert "[redacted:extra]" in cleaned
    assert cleaned.count("\n") == text.count("\n")
    assert Redactor().clean(cleaned) == cleaned
    assert b"".join(Redactor().stream([text.encode()])).decode() == cleaned


@each_row(("text", "secret"), MASKED)
def test_without_being_told_nobody_knows_of_it(text: str, secret: str) -> None:
    """What the test above finds masked is masked for no other reason."""
    extra.use_extra("")
    assert secret in Redactor().clean(text)


@each_row(
    "text",
    [
        "scamacme_pin=3",
        "acme_pins=3",
        "acme_pin=",
        "acme_pin=None",
        "acme_pin=$PIN",
        "acme_pin=os.environ.get",
        "acme pinned 4 pages",
        "ACME-00FF",
        "xACME-00FFAA1122",
    ],
)
def test_what_only_looks_alike_is_left(text: str) -> None:
    """A longer name is another one, and a variable is no value."""
    extra.use_extra(EXTRA)
    assert Redactor().clean(text) == text


def test_what_is_secret_to_all_stays_so() -> None:
    """The user's own patterns stand beside the shipped ones, and go when they are no longer set."""
    token = "hf_" + "QwErTyUiOpAsDfGh" * 2
    extra.use_extra(EXTRA)
    assert (
        Redactor().clean(f"{token} ACME_PIN=tide") == "[redacted:huggingface-token] ACME_PIN=[redacted:extra]"
    )
    extra.use_extra("")
    assert Redactor().clean(f"{token} ACME_PIN=tide") == "[redacted:huggingface-token] ACME_PIN=tide"


@each_row(
    ("text", "told"),
    [
        ("acme pin, x", "`x` is neither a name"),
        ("acme pin, a=b", "`a=b` is neither"),
        ("/unclosed, acme", "is neither a name"),
        ("/two//three/", "is neither"),
        (r"/(a)\1/", "Back-references are unsupported"),
        ("/a(?=b)/", "Zero-width assertions"),
        ("/a*/", "matches empty buffer"),
        ("/[a/", "character class"),
        ("/.{1,30000}x/", "too large"),
        ("/工号[0-9]/", "ASCII"),
        (f"/{'a' * 401}/", "400 at most"),
        (",".join(f"name{number}" for number in range(101)), "one too many; 100"),
    ],
)
def test_what_cannot_be_used_is_told(text: str, told: str) -> None:
    """The sentence names the variable, the entry and why; nothing is taken over."""
    before = extra.extra_text()
    with pytest.raises(RedactionPatternError) as raised:
        extra.use_extra(text)
    assert told in str(raised.value)
    assert str(raised.value).startswith("WHYCRASH_REDACT_EXTRA: ")
    assert extra.extra_text() == before


def _seconds(data: bytes) -> float:
    began = process_time()
    assert sum(map(len, Redactor().stream([data])))
    return process_time() - began


@pytest.mark.long
@each_row(
    ("expression", "row"),
    [
        ("(a+)+$", b"a" * 200 + b"b "),
        ("(a|aa)+c", b"a" * 200 + b"b "),
        ("(.*)(.*)(.*)z", b"x" * 120 + b"\n"),
        ("[a-z]+[0-9]", b"ab" * 60 + b" "),
    ],
)
def test_an_expression_takes_linear_time_whatever_it_is(
    expression: str, row: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These take a backtracking matcher time that is exponential or a high power of the text's length."""
    monkeypatch.setattr(budget, "FLOOR", 0)
    extra.use_extra(f"/{expression}/")
    _seconds(row)
    few, many = (min(_seconds(row * count) for _ in range(3)) for count in (200, 1600))
    assert many < 40 * max(few, 0.001), (few, many)


class Cleaner:
    """A worker that redacts."""

    def load(self) -> str:
        """Load nothing."""
        return ""

    def handle(self, task: str, tell: Tell) -> str:
        """Redact a text."""
        del tell
        return Redactor().clean(task)


def test_workers_mask_what_the_process_that_starts_them_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on another machine, where neither the variable nor the user's file is."""
    extra.use_extra(EXTRA)
    monkeypatch.setattr("ingest.workers.process.SINGLE", ())
    program = WorkerProgram(Cleaner)
    extra.use_extra("")
    handler, _ = program.opened()
    assert handler.handle("ACME_PIN=tide", lambda _: None) == "ACME_PIN=[redacted:extra]"
