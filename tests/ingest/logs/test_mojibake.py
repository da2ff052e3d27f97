"""Cyrillic that a code page garbled on its way is read as it was meant, and nothing else is touched."""

from __future__ import annotations

from ingest.logs.line_ranges import mask_lines
from ingest.logs.lines import parse_line
from ingest.logs.mojibake import PAGES, mended
from tests.tables import each_row

SAID = "OSError: [WinError 3] Системе не удается найти указанный путь: 'D:/веса'"


def garbled(text: str, page: str) -> str:
    """Write UTF-8 as who reads it by a code page does; bytes that the page lacks stay control characters."""
    return "".join(bytes([byte]).decode(page, "ignore") or chr(byte) for byte in text.encode())


@each_row("page", PAGES)
def test_utf8_that_was_read_by_a_code_page_is_read_right(page: str) -> None:
    """In a line as it is parsed and as it is shown, the ASCII around it as it stands."""
    raw = garbled(SAID, page).encode()
    assert parse_line(raw, 1).text == SAID
    assert mask_lines({7: raw}) == {7: SAID}


@each_row(
    "text",
    [
        SAID,
        "РСФСР и США: Россия, Рим, Севилья",
        "Größe für Übung: naïve façade, Ñandú, Ð and þ",
        "内存不足，训练停止",
        "loss │ ████████░░░ │ 12 % ╨ ╤",
        "plain ASCII",
    ],
)
def test_what_is_not_garbled_stays(text: str) -> None:
    """Russian, accents, Chinese and bars of a console are no letters in two signs."""
    assert mended(text) == text
