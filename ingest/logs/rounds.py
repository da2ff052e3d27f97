"""Epochs or runs that a log numbers, k of n: whether the last of all was told as fully as those before it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

# So few lines may stand behind the last epoch's own where the job ends with it.
FAREWELL = 12
# So many ways to tell of epochs are told apart.
MOST = 64
# What rows of results have in common, whatever their numbers and units.
_WORD = re.compile(r"[A-Za-z_]{3,40}")


class EpochCount(NamedTuple):
    """An epoch as one kind of line tells it: how often so far, and how often each one before it was told.

    `of` is 0 where the line does not say how many there are. `each` is 0 before a second epoch, and -1
    where they were not told alike. `is_cut` tells that lines of this epoch may not have been read.
    """

    line: int
    epoch: int
    of: int
    times: int = 1
    each: int = 0
    is_cut: bool = False
    series: str = ""

    def followed_by(self, later: EpochCount) -> EpochCount:
        """Give what is known when one more line tells an epoch.

        Of a long log only parts are read: behind a gap the first epoch may have been told more often.
        """
        if (later.epoch, later.of) == (self.epoch, self.of):
            return self._replace(line=later.line, times=self.times + 1)
        if later.epoch > self.epoch + 1 and later.of == self.of:
            return later._replace(each=self.each, is_cut=True)
        if self.is_cut and later.epoch == self.epoch + 1 and later.of == self.of:
            return later._replace(each=self.each)
        is_next = later.epoch == self.epoch + 1 and later.of == self.of
        is_alike = is_next and self.each in (0, self.times)
        return later._replace(each=self.times if is_alike else -1)


@dataclass
class Closings:
    """The results that close each round: the last round has come to its end where it has those of all before.

    `is_strict` asks for as many of them as any round before had.
    """

    is_strict: bool = False
    _number: int = -1
    _ahead: set[frozenset[str]] = field(default_factory=set)
    _last: frozenset[str] = frozenset()
    _shared: frozenset[str] | None = None
    _count: int = 0
    _most: int = 0
    at: int = 0
    amid: int = 0

    def turn(self, number: int) -> None:
        """Begin a round, unless it is the one that goes on."""
        if number == self._number:
            return
        if self._last and self._number >= 0:
            self._shared = self._last if self._shared is None else self._shared & self._last
            self._most = max(self._most, self._count)
        self._number, self._last, self._count, self.at, self.amid = number, frozenset(), 0, 0, 0

    def see(self, line: int, body: str, *, is_round: bool = False) -> None:
        """Note a row of results, or the one that tells of the round itself.

        Those that are printed before the first round is told of belong above their round's row.
        """
        words = frozenset(word.lower() for word in _WORD.findall(body))
        if self._number < 0 and len(self._ahead) < MOST:
            self._ahead.add(words)
        if not words or (words in self._ahead and not is_round):
            return
        self._last = words
        self._count += 1
        is_enough = self._count >= self._most or not self.is_strict
        if is_enough and words >= (self._shared or frozenset()):
            self.at = line

    def see_batch(self, line: int, body: str, *, is_through: bool) -> None:
        """Note a bar of the batches of a round, which is its result once it is full."""
        if is_through:
            self.see(line, body)
        self.amid = 0 if is_through else line

    @property
    def is_whole(self) -> bool:
        """Tell whether the last round has all results that each one before has."""
        return self.at > self.amid and (self._shared is not None or not self.is_strict)


@dataclass
class Epochs:
    """The epochs of one file, or its runs.

    `announced` are the numbers of them that the file tells before the first one, `from_batch_zero` the kinds
    of lines that count an epoch's batches from 0 on.
    """

    closings: Closings = field(default_factory=Closings)
    announced: set[int] = field(default_factory=set)
    from_batch_zero: set[str] = field(default_factory=set)
    _told: dict[str, EpochCount] = field(default_factory=dict)
    _from_zero: set[str] = field(default_factory=set)

    def announce(self, count: int) -> None:
        """Note how many epochs the run says that it will take."""
        if count and not self._told and len(self.announced) < MOST:
            self.announced.add(count)

    def tell(self, series: str, told: EpochCount, *, is_through: bool | None) -> None:
        """Note a line; `is_through` tells whether its count of batches is at its end, None without one."""
        self.closings.turn(told.epoch)
        before = self._told.get(series)
        if before is None and len(self._told) >= MOST:
            return
        if is_through is not None:
            told = told._replace(each=1 if is_through else -1)
        elif before is not None:
            told = before.followed_by(told)
        told = told._replace(series=series)
        self._told[series] = told
        if told.epoch == 0:
            self._from_zero.add(series)

    @property
    def _last(self) -> EpochCount | None:
        """The epoch that was told last, with how many there are, wherever that is told."""
        last = max(self._told.values(), key=lambda told: told.line, default=None)
        of = max((told.of for told in self._told.values()), default=0)
        return last._replace(of=last.of or of) if last is not None else None

    @property
    def is_short(self) -> bool:
        """Tell whether the epoch that was told last is not the last one; numbers may begin with 0."""
        last = self._last
        return last is not None and last.epoch < (last.of or min(self.announced, default=0)) - 1

    @property
    def is_first(self) -> bool:
        """Tell whether no epoch but the first of several has been told."""
        last = self._last
        return last is not None and last.each == 0 and last.of != 1

    @property
    def is_at_last(self) -> bool:
        """Tell whether the epoch that was told last is the last of all; one less where they begin with 0."""
        last = self._last
        return last is not None and self._is_last(last)

    def _is_last(self, last: EpochCount) -> bool:
        counted = last.epoch + (last.series in self._from_zero)
        # Of several numbers that were announced one may be of something else: the greatest is met exactly.
        if not last.of:
            return counted == max(self.announced, default=0) > 1
        return counted >= last.of > 1

    def begun_behind(self, line: int) -> bool:
        """Tell whether epochs were told behind a line, of which the last one is not the last of all."""
        return self.is_short and any(told.line > line for told in self._told.values())

    def told_behind(self, line: int) -> bool:
        """Tell whether an epoch was told behind a line."""
        return any(told.line > line for told in self._told.values())

    def reached(self, last_line: int) -> EpochCount | None:
        """Give the last of all epochs if the text ends with it, told as fully as each one before.

        That is as often, and with the same results.
        """
        last = self._last
        if last is None or last.times != last.each or not self.closings.is_whole:
            return None
        is_last = self._is_last(last) or (last.of == 1 and last.epoch >= 1)
        return last if is_last and 0 <= last_line - max(last.line, self.closings.at) <= FAREWELL else None
