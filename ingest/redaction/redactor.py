"""Take secrets out of text before it is stored, sent or shown.

What a secret looks like stands in `ingest/redaction/`. Here they are masked: each becomes
`[redacted:<kind>]`, and what stands around it keeps its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ingest.redaction import search
from ingest.redaction.budget import RedactionBudget
from ingest.redaction.search import FoundSecret
from ingest.redaction.table import KINDS

# A stream is looked at in blocks of this size; its last bytes wait for the next block, longer than any secret
# is.
BLOCK = 1 << 20
HOLD = 64 << 10
# What a match may want to see of a row whose beginning was given out before.
LEAD = 256


class _Mask(NamedTuple):
    """A part of the bytes that is to go, the number of the kind that it is of, and the whole secret."""

    begin: int
    end: int
    kind: int
    secret: bytes


# How every mask begins.
MASK = "[redacted:"


class Redactor:
    """Mask secrets and count how many different ones there were."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._budget = RedactionBudget()

    @property
    def count(self) -> int:
        """Give the number of different secrets that were masked."""
        return len(self._seen)

    def clean(self, text: str) -> str:
        """Give the text with each secret replaced by `[redacted:<kind>]`."""
        data = text.encode("utf-8", "surrogatepass")
        found = search.find_secrets(data, self._budget)
        return self.masked(data, found, 0, len(data)).decode("utf-8", "surrogatepass") if found else text

    def are_clear(self, texts: Sequence[str]) -> bool:
        """Tell whether short texts are known to hold no secret, without a search."""
        return search.are_known_clear([text.encode("utf-8", "surrogatepass") for text in texts], self._budget)

    def are_of_clear_shapes(self, texts: Sequence[str]) -> bool:
        """Tell whether texts are known to hold no secret, whatever their digits are."""
        return search.are_of_clear_shapes([text.encode("utf-8", "surrogatepass") for text in texts])

    def pass_clear(self, size: int) -> None:
        """Count so many bytes of texts that are known to hold no secret as if they were searched."""
        self._budget.earn(size)

    def rows(self, texts: Sequence[str]) -> list[str]:
        """Clean rows that stand below each other: each by itself, and what goes on over several of them."""
        return self.clean("\n".join(texts)).split("\n")[: len(texts)]

    def value(self, key: str, value: str) -> str:
        """Mask a setting's value where it, or its name, tells a secret."""
        together = self.clean(f"{key}={value}")
        return together[len(key) + 1 :] if together.startswith(f"{key}=") else together

    def stream(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the bytes of a log without its secrets, with as many rows, in the memory of a few blocks.

        Bytes that are no text stay as they are.
        """
        lead = data = b""
        for block in _blocks(chunks):
            # What there is so far is read once more bytes have come: of the last of them, nothing waits.
            if len(data) > HOLD:
                whole = lead + data if lead else data
                before = self._budget.left
                found = search.find_secrets(whole, self._budget)
                cut = _sure(whole, found, len(lead))
                self._budget.charge_share(before, cut, len(whole))
                yield self.masked(whole, found, len(lead), cut)
                lead = b"" if whole[cut - 1 : cut] == b"\n" else whole[max(0, cut - LEAD) : cut]
                data = whole[cut:]
            data += block
        found = search.find_secrets(lead + data, self._budget)
        yield self.masked(lead + data, found, len(lead), len(lead + data))

    def masked(self, data: bytes, found: Sequence[FoundSecret], begin: int, end: int) -> bytes:
        """Give a part of the bytes with what was found in it masked."""
        masks = [
            _Mask(max(begin, part[0]), min(end, part[1]), item.kind, item.secret)
            for item in found
            for part in item.parts
            if part[1] > begin and part[0] < end
        ]
        parts: list[bytes] = []
        done = begin
        for mask in _joined(masks, data):
            self._seen.add(hash(mask.secret))
            # A mask over rows leaves their ends, so that what follows keeps its number.
            rows = b"\n" * data.count(b"\n", mask.begin, mask.end)
            parts += (data[done : mask.begin], f"[redacted:{KINDS[mask.kind].name}]".encode(), rows)
            done = max(done, mask.end)
        return b"".join((*parts, data[done:end]))


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks in pieces that are worth a search."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        for place in range(0, len(chunk), BLOCK):
            parts.append(chunk[place : place + BLOCK])
            size += len(parts[-1])
            if size >= BLOCK:
                yield b"".join(parts)
                parts, size = [], 0
    if parts:
        yield b"".join(parts)


def _sure(data: bytes, found: Sequence[FoundSecret], least: int) -> int:
    """Give how far the bytes can be given out.

    To the end of a row, where there is one, and of no secret's middle.
    """
    wish = max(least, len(data) - HOLD)
    cut = max(data.rfind(b"\n", least, wish) + 1, least)
    cut = wish if cut == least else cut
    for item in sorted(found, key=lambda item: item.begin, reverse=True):
        if item.begin < cut < item.end:
            cut = max(item.begin, least)
    return cut


def _joined(masks: list[_Mask], data: bytes) -> list[_Mask]:
    """Make one of masks that overlap, named by the kind that stands first in the table.

    No letter is cut in half.
    """
    joined: list[_Mask] = []
    for mask in sorted(masks):
        end = mask.end
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        mask = mask._replace(end=end)
        if not joined or mask.begin >= joined[-1].end:
            joined.append(mask)
            continue
        last = joined[-1]
        if KINDS[last.kind].yields != KINDS[mask.kind].yields:
            joined[-1] = mask if KINDS[last.kind].yields else last
        else:
            first = min(last, mask, key=lambda item: (item.kind, -len(item.secret)))
            begin, end = min(last.begin, mask.begin), max(last.end, mask.end)
            joined[-1] = _Mask(begin, end, first.kind, first.secret)
    return joined
