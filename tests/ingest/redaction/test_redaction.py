"""The planted set is masked in all of its forms, what only looks like a secret stays, and a stream is no
exception.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.redaction import entropy, prefilter, search, views
from ingest.redaction import redactor as redact
from ingest.redaction.redactor import Redactor
from ingest.redaction.table import KINDS
from tests.ingest import planted_names
from tests.ingest.redaction import planted, planted_jobs, test_redaction_recall, test_redactor
from tests.ingest.redaction.planted import Planted
from tests.tables import each_row

SECRETS = planted.secrets()
HARMLESS = planted.lookalikes()
FORMS = sorted({item.form for item in SECRETS})
# A row's end may take the words away that tell kinds of one shape apart.
CUT = ("wrapped", "wrapped-by-rank")
NOISE = (
    "step 12 loss 0.123",
    "",
    "Traceback (most recent call last):",
    "(WorkerDict pid=7) ",
    "\x1b[32mINFO\x1b[0m ok",
    "token usage: 0.5",
    '\\n\\"',
    "%20%3D",
    "a" * 80,
    "键: 值",
    "\r",
    "--",
    "'",
    "{",
    "password:",
    "key =",
    "@",
    "-----",
    "\x1b]0;title\x07",
    "AKIA",
    "gh",
    "-p",
    "\\",
    "\udcff",
)


def whole_table(text: str) -> str:
    """Mask a text by every expression at every row, without the prefilter."""
    data = text.encode("utf-8", "surrogatepass")
    return Redactor().masked(data, search.search_all(data), 0, len(data)).decode("utf-8", "surrogatepass")


def test_the_planted_set_is_large_enough() -> None:
    """At least two hundred secrets of thirty kinds, and five hundred texts that are none.

    Each made the same every time.
    """
    assert len(SECRETS) >= 200
    assert len({item.kind for item in SECRETS}) >= 30
    assert len(set(HARMLESS)) >= 500
    planted.secrets.cache_clear()
    assert planted.secrets() == SECRETS


@each_row("form", FORMS)
def test_nothing_of_a_planted_secret_is_left(form: str) -> None:
    """No run of eight characters of it can be read, whatever the form.

    The mask tells the kind, and rows keep their number.
    """
    for item in SECRETS:
        if item.form == form:
            cleaned = Redactor().clean(item.text)
            assert not planted.remains(item, cleaned), (item, cleaned)
            assert cleaned.count("\n") == item.text.count("\n")
            assert f"[redacted:{item.kind}]" in cleaned or (form in CUT and "[redacted:" in cleaned), (
                item,
                cleaned,
            )


def test_no_more_than_one_of_a_hundred_lookalikes_is_masked() -> None:
    """Hashes, ids, paths and settings are what a diagnosis needs."""
    masked = [text for text in HARMLESS if Redactor().clean(text) != text]
    assert len(masked) <= len(HARMLESS) / 100, masked


def test_what_is_masked_once_stays_as_it_is() -> None:
    """A mask is no secret, and neither is a piece of one."""
    for item in SECRETS:
        once = Redactor().clean(item.text)
        assert Redactor().clean(once) == once


def test_a_secret_in_several_forms_of_a_line_counts_once() -> None:
    """The number is of secrets, not of the expressions that find them or the rows that they go over."""
    for item in SECRETS:
        if item.form in ("whole", "ansi", *CUT) and item.kind not in ("baidu-key", "email"):
            redactor = Redactor()
            redactor.clean(item.text)
            assert redactor.count == 1, item


@given(
    st.lists(
        st.one_of(
            st.sampled_from(SECRETS).map(lambda item: item.text),
            st.sampled_from(NOISE),
            st.sampled_from(HARMLESS),
        ),
        max_size=6,
    ),
    st.sampled_from(["\n", " ", "", "\r\n"]),
    st.integers(0, 400),
)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_the_prefilter_loses_nothing(parts: list[str], between: str, cut: int) -> None:
    """What the expressions find at any row they find behind the prefilter too."""
    text = between.join(parts)[cut:]
    assert Redactor().clean(text) == whole_table(text)


@given(st.text(st.sampled_from("ab1A_-/=:@.\"' \n\\%u03dsk{}token"), max_size=200))
@settings(derandomize=True, deadline=None, max_examples=150)
def test_any_text_keeps_its_rows(text: str) -> None:
    """Whatever a text is made of, as many rows come out, and a second cleaning finds nothing."""
    once = Redactor().clean(text)
    assert once.count("\n") == text.count("\n")
    assert once == whole_table(text)


def _chunks(data: bytes, seed: int) -> Iterator[bytes]:
    sizes, place = planted.Chance(f"chunks {seed}"), 0
    while place < len(data):
        step = (1, 7, 100, 3000)[sizes.number(4)]
        yield data[place : place + step]
        place += step


@pytest.mark.long
@each_row("seed", range(4))
def test_a_stream_gives_what_the_whole_text_gives(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the bytes are cut, and wherever the blocks end, the same is masked."""
    monkeypatch.setattr(redact, "BLOCK", 8 << 10)
    monkeypatch.setattr(redact, "HOLD", 24 << 10)
    order = planted.Chance(f"order {seed}")
    drawn = (
        (
            SECRETS[order.number(len(SECRETS))].text,
            HARMLESS[order.number(len(HARMLESS))],
            NOISE[order.number(5)],
        )
        for _ in range(150)
    )
    text = "\n".join(part for parts in drawn for part in parts)
    whole, stream = Redactor(), Redactor()
    assert b"".join(stream.stream(_chunks(text.encode(), seed))).decode() == whole.clean(text)
    assert stream.count == whole.count


def test_a_stream_keeps_bytes_that_are_no_text() -> None:
    """Only what is a secret changes; the rows stay as many."""
    data = b"\xff\xfe\x00 \x80 password=hunter22\xe5\xaf\r\n\xc3(\n" * 3 + b"end without newline \xe5"
    assert b"".join(Redactor().stream([data])) == data.replace(b"hunter22", b"[redacted:password]")


def test_a_line_without_end_needs_no_more_memory_than_some_blocks() -> None:
    """A gigabyte without a newline would else be held as a whole."""
    size, secret = 12 << 20, b" HF_TOKEN=" + planted.Chance("stream").text(planted.ALNUM, 34).encode() + b" "
    piece = b"x" * (1 << 19) + secret

    def endless() -> Iterator[bytes]:
        for _ in range(size // len(piece)):
            yield piece

    b"".join(Redactor().stream([piece]))
    tracemalloc.start()
    masked = sum(part.count(b"[redacted:token]") for part in Redactor().stream(endless()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert masked == size // len(piece)
    assert peak < 9 << 20


def test_rows_are_cleaned_together() -> None:
    """A secret that goes on in the row below is seen only so; each row comes back."""
    for item in SECRETS:
        if item.form in CUT:
            cleaned = Redactor().rows(item.text.split("\n"))
            assert len(cleaned) == item.text.count("\n") + 1
            assert not planted.remains(item, "\n".join(cleaned))


@each_row(
    ("text", "shown"),
    [
        (
            "login ghp_{0}\nTraceback (most recent call last):",
            "login [redacted:github-token]\nTraceback (most recent call last):",
        ),
        (
            "the token is token={0}\nRuntimeError: CUDA error",
            "the token is token=[redacted:token]\nRuntimeError: CUDA error",
        ),
        (
            "Set-Cookie: session={0}\nTraceback (most recent call last):",
            "Set-Cookie: [redacted:cookie]\nTraceback (most recent call last):",
        ),
        (
            "the api key is api_key={0}\n2026-03-01 10:00:00 INFO",
            "the api key is api_key=[redacted:secret]\n2026-03-01 10:00:00 INFO",
        ),
    ],
)
def test_the_row_below_a_secret_stays(text: str, shown: str) -> None:
    """A row that begins with words is no more of the secret above it."""
    assert Redactor().clean(text.format(planted.Chance(text).text(planted.ALNUM, 36))) == shown


@each_row(
    ("value", "is_word"),
    [
        ("Traceback", True),
        ("RuntimeError", True),
        ("step-12", True),
        ("worker_3.log", True),
        ("2026-03-01", True),
        ("aB3dE5fG7h", False),
        ("x9q", False),
        ("QzRtPwLk", False),
    ],
)
def test_words_are_told_from_chance(value: str, is_word: bool) -> None:
    """Names, numbers and words joined by dashes read as words."""
    assert entropy.is_word(value.encode()) is is_word


@each_row(
    ("text", "plain"),
    [
        ("\x1b[31mab\x1b[0mc", "abc"),
        (r"a\"b\/c\u0040d\n", 'a"b/c@d\n'),
        (r"\\\"x\\\"", '"x"'),
        ("a%3Ab%2540c", "a:b@c"),
        ("a&quot;b&#39;c", "a\"b'c"),
        (r"\u5bc6\u7801", "密码"),
        (r"\u001b[31mab\u001b[0mc", "abc"),
    ],
)
def test_a_view_is_what_a_reader_sees(text: str, plain: str) -> None:
    """The last view of a text has no colours and no escapes, and each of its characters knows where it comes
    from.
    """
    view = views.view_of(text.encode())[-1]
    assert view.text.decode() == plain
    begin, end = view.origin(len(view.text) - 1, len(view.text))
    assert 0 <= begin < end <= len(text.encode())


@pytest.mark.long
@each_row("number", range(len(KINDS)), ids=[f"{number}-{kind.name}" for number, kind in enumerate(KINDS)])
def test_every_row_of_the_table_finds_something(number: int) -> None:
    """A row that finds nothing in the planted set or in the samples of its own is dead."""
    kind = KINDS[number].compiled()
    assert any(kind.search(text) for text in planted_views())


@cache
def planted_views() -> list[bytes]:
    """Give the planted set and the samples in all views, which take long to make."""
    texts = (
        [item.text for item in SECRETS if item.form not in CUT]
        + [item.text for item in (*planted_jobs.secrets(), *planted_names.secrets())]
        + [row.format(secret) for _, row, secret in test_redactor.SECRETS]
        + [item.text for name in test_redaction_recall.LEAST for item in test_redaction_recall.texts(name)]
        + list(_OWN)
    )
    return [view.text for text in texts for view in views.view_of(text.encode())]


_OWN = ("AGE-SECRET-KEY-1" + "Q" * 58,)


@pytest.mark.long
def test_the_prefilter_is_kept_and_loaded(tmp_path: Path) -> None:
    """What was compiled once is read from its folder the next time, and finds the same."""
    data = "\n".join(item.text for item in SECRETS[:60]).encode()
    first = prefilter.Prefilter(tmp_path).spots(data)
    assert len(list(tmp_path.glob("*.hsdb"))) == 3
    assert prefilter.Prefilter(tmp_path).spots(data) == first


def test_a_planted_secret_tells_its_remains() -> None:
    """The search for remains finds a secret that is cut by colours or rows, too."""
    item = Planted("x", "x", "", "abcdefghij")
    assert [
        planted.remains(item, text) for text in ("abcdefgh", "abc\x1b[0mdefgh", "abcd\nefghi", "abcdefg")
    ] == ["abcdefgh"] * 3 + [""]
