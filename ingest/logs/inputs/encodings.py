"""Tell by its first bytes what a file is.

Text and in which encoding, or what kind of thing that is no log.
"""

from __future__ import annotations

import codecs
import re

from corpus.message import Message
from ingest.errors import BinaryInputError

# The mark of UTF-32 begins with that of UTF-16, so it is looked for first.
_MARKED = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
MARKS = (*(mark for mark, _ in _MARKED), codecs.BOM_UTF8)
# How much of the head is looked at.
SAMPLE = 1 << 16
# And for what encoding it may be in, where it holds NULs.
_GUESSED = 1 << 14
# So many NUL bytes in a row are a hole; fewer may be a program's stray ones.
HOLE = 16

MAGIC = {
    b"\x7fELF": "files.compiled-program",
    b"\x89PNG": "files.image",
    b"\xff\xd8\xff": "files.image",
    b"GIF87a": "files.image",
    b"GIF89a": "files.image",
    b"PK\x03\x04": "files.zip-archive-pytorch-checkpoint",
    b"PK\x05\x06": "files.empty-zip-archive",
    b"\x28\xb5\x2f\xfd": "files.zstd-archive",
    b"\xfd7zXZ": "files.xz-archive",
    b"BZh": "files.bzip2-archive",
    b"7z\xbc\xaf\x27\x1c": "files.7z-archive",
    b"\x04\x22\x4d\x18": "files.lz4-archive",
    b"SQLite format 3": "files.database",
    b"\x89HDF": "files.hdf5-file",
    b"\x93NUMPY": "files.numpy-array",
    b"PAR1": "files.parquet-file",
    b"ARROW1\0\0": "files.arrow-file",
    # With its version, since a line of text may begin with the name.
    **{b"GGUF" + bytes((version, 0, 0, 0)): "files.model-weights" for version in (1, 2, 3)},
    b"\x80\x02": "files.pickle",
    b"\x80\x03": "files.pickle",
    b"\x80\x04": "files.pickle",
    b"\x80\x05": "files.pickle",
    b"%PDF": "files.pdf",
}
# Safetensors begins with the length of its JSON header, in eight bytes.
_SAFETENSORS = re.compile(rb"[\s\S]{4}\x00{4}\{\"")
# The part of GB 18030 that texts are written in: GB 2312's characters and punctuation.
_GB2312 = re.compile(rb"[\xa1-\xa9\xb0-\xf7][\xa1-\xfe]")
_HIGH = re.compile(rb"[\x80-\xff]")
# Windows-1251: its letters, the small ones, and words of them.
_CYRILLIC, _SMALL = re.compile(rb"[\xa8\xb8\xc0-\xff]"), re.compile(rb"[\xb8\xe0-\xff]")
_WORDS = re.compile(rb"[\xa8\xb8\xc0-\xff]{3,}")
_STRANGE = bytes((0, 1, 2, 3, 4, 5, 6, 14, 15, 16))
_HOLES = re.compile(rb"\0{%d,}" % HOLE)
# Encodings of two or four bytes a character, as they are tried where no mark tells.
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
# Of a log's characters at least so many are ASCII (digits, blanks, names of modules), and nearly all are
# printable.
_ASCII_SHARE, _STRANGE_SHARE = 0.25, 0.02


def refuse_binary(name: str, head: bytes) -> None:
    """Raise BinaryInputError if `head`, the first bytes, is not text.

    A few stray NULs are, and a hole of them between lines.
    """
    for magic, what in MAGIC.items():
        if head.startswith(magic):
            raise BinaryInputError(Message("errors.not-text-log", name=name, what=Message(what)))
    if _SAFETENSORS.match(head):
        raise BinaryInputError(Message("errors.model-weights-not-text", name=name))
    if _wide(head):
        return
    sample = _between_holes(head[:SAMPLE])
    if head and not sample:
        raise BinaryInputError(Message("errors.not-text-begins-nul", name=name, head=len(head)))
    if (
        not sample.isascii()
        and sample.decode("utf-8", "replace").count("\ufffd") > len(sample) // 5
        and not (_is_cyrillic(sample) or _is_chinese(sample) or _decodes(sample, "gb18030"))
    ):
        raise BinaryInputError(Message("errors.not-text-most-bytes", name=name))
    strange = len(sample) - len(sample.translate(None, _STRANGE))
    if strange > len(sample) // 10:
        raise BinaryInputError(
            Message("errors.not-text-first-bytes", name=name, value=100 * strange // len(sample))
        )


def encoding_of(head: bytes) -> str | None:
    """Name the encoding to decode from, or None where the bytes stand as they are (UTF-8, or nearly)."""
    if wide := _wide(head):
        return wide
    sample = head[:SAMPLE]
    # Its letters make pairs of GB 2312 too, so it is looked for first.
    return "cp1251" if _is_cyrillic(sample) else "gb18030" if _is_chinese(sample) else None


def _wide(head: bytes) -> str | None:
    """Name the encoding of text of two or four bytes a character, by its mark or by what it would say."""
    marked = next((encoding for mark, encoding in _MARKED if head.startswith(mark)), None)
    sample = head[:_GUESSED]
    if marked or 0 not in sample:
        return marked
    return next((encoding for encoding in _WIDE if _reads_as(encoding, sample)), None)


def _reads_as(encoding: str, sample: bytes) -> bool:
    """Tell whether bytes make lines of a log in an encoding.

    Numbers of a binary file make characters of any script.
    """
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    text = text.replace("\0" * (HOLE // 4), "")
    plain = sum(char.isascii() and (char.isprintable() or char in "\t\n\r\x1b") for char in text)
    strange = sum(
        not (char.isprintable() or char.isspace() or char == "\x1b") or char == "\ufffd" for char in text
    )
    return plain > _ASCII_SHARE * len(text) and strange <= _STRANGE_SHARE * len(text)


def _between_holes(sample: bytes) -> bytes:
    """Give what stands around a log's holes.

    A binary file, which has more of them than lines, stays as it is.
    """
    text, count = _HOLES.subn(b"", sample)
    return text if not text or count <= text.count(b"\n") else sample


def _is_chinese(sample: bytes) -> bool:
    """Tell whether the bytes are GB 18030, as older Chinese tools write, and not UTF-8 or European.

    Any pair of high bytes decodes as GB 18030; Chinese text has nearly all of its own in pairs of GB 2312.
    """
    text = "" if sample.isascii() else sample.decode("utf-8", "replace")
    if "\ufffd" not in text or text.count("\ufffd") <= sum(char > "\x7f" for char in text) // 2:
        return False
    high = len(_HIGH.findall(sample))
    return 2 * len(_GB2312.findall(sample)) >= high * 0.8


def _is_cyrillic(sample: bytes) -> bool:
    """Tell whether the bytes are Windows-1251, as Russian consoles and older tools write, and not UTF-8.

    Nearly all of its high bytes are letters, most of them small ones (0xE0 and up), and they stand in words;
    of Chinese and Korean pairs few bytes are so high, and an accent of Latin-1 stands alone.
    """
    text = "" if sample.isascii() else sample.decode("utf-8", "replace")
    if "\ufffd" not in text or text.count("\ufffd") <= sum(char > "\x7f" for char in text) // 2:
        return False
    high, letters, small = (len(form.findall(sample)) for form in (_HIGH, _CYRILLIC, _SMALL))
    in_words = sum(map(len, _WORDS.findall(sample)))
    return letters >= high * 0.9 and small >= high * 0.6 and in_words >= high * 0.7


def _decodes(sample: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return False
    return True
