"""Cyrillic that was written as UTF-8 and read as something else on its way into the log.

A console of Windows, or a program that redirects its output, often reads UTF-8 by its own code page and
writes what it read as UTF-8 once more: each letter stands there as two signs, the first of them one of two.
Nothing is lost by that, so it is undone.
"""

from __future__ import annotations

import re
from functools import cache

# Code pages that UTF-8 is read by: of Windows in Cyrillic and Western Europe, of consoles in both.
PAGES = ("cp1251", "cp1252", "cp866", "cp437")
# So many letters in a row that stand there in two signs each are no chance.
SURE = 3
# The bytes that begin a letter of Cyrillic in UTF-8, and those that end one.
_BEGIN, _END = (0xD0, 0xD1), range(0x80, 0xC0)


def mended(text: str) -> str:
    """Give a line with such Cyrillic as it was meant; every other line as it is."""
    if text.isascii():
        return text
    # Pages of consoles have the first signs in common: that one counts which tells the most letters.
    told = {
        page: sum(len(found[0]) for found in each.finditer(text))
        for page in PAGES
        for sure, each, _ in [_forms(page)]
        if sure.search(text)
    }
    if not told:
        return text
    _, each, signs = _forms(max(told, key=lambda page: told[page]))
    return each.sub(lambda found: _letters(found[0], signs), text)


@cache
def _forms(page: str) -> tuple[re.Pattern[str], re.Pattern[str], dict[str, int]]:
    """Give what finds several such letters, what finds any, and the byte that each of their signs was."""
    signs = {bytes([byte]).decode(page, "ignore") or chr(byte): byte for byte in (*_BEGIN, *_END)}
    begin = "".join(re.escape(sign) for sign, byte in signs.items() if byte in _BEGIN)
    end = "".join(re.escape(sign) for sign, byte in signs.items() if byte in _END)
    letter = f"[{begin}][{end}]"
    return re.compile(f"(?:{letter}){{{SURE}}}"), re.compile(f"(?:{letter})+"), signs


def _letters(found: str, signs: dict[str, int]) -> str:
    return bytes(signs[sign] for sign in found).decode("utf-8")
