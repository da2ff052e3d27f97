"""Epochs that a log numbers, k of n: whether the last of all was told as fully as those before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

# So few lines may stand behind the last epoch's own where the job ends with it.
FAREWELL = 12
# So many ways to tell of epochs are told apart.
MOST = 64


class EpochCount(NamedTuple):
    """An epoch as one kind of line tells it: how often so far, and how often each one before it was told.

    `each` is 0 before a second epoch, and -1 where they were not told alike. `is_cut` tells that lines of
    this epoch may not have been read.
    """

    line: int
    epoch: int
    of: int
    times: int = 1
    each: int = 0
    is_cut: bool = False

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
class Epochs:
    """The epochs of one file."""

    _told: dict[str, EpochCount] = field(default_factory=dict)
    _from_zero: set[str] = field(default_factory=set)

    def tell(self, series: str, told: EpochCount, *, is_through: bool | None) -> None:
        """Note a line; `is_through` tells whether its count of batches is at its end, None without one."""
        before = self._told.get(series)
        if before is None and len(self._told) >= MOST:
            return
        if is_through is not None:
            told = told._replace(each=1 if is_through else -1)
        elif before is not None:
            told = before.followed_by(told)
        self._told[series] = told
        if told.epoch == 0:
            self._from_zero.add(series)

    @property
    def is_short(self) -> bool:
        """Tell whether the epoch that was told last is not the last one; numbers may begin with 0."""
        last = max(self._told.values(), key=lambda told: told.line, default=None)
        return last is not None and last.epoch < last.of - 1

    @property
    def is_at_last(self) -> bool:
        """Tell whether the epoch that was told last is the last of all; one less where they begin with 0."""
        series, last = max(self._told.items(), key=lambda item: item[1].line, default=("", None))
        return last is not None and last.epoch + (series in self._from_zero) >= last.of > 1

    def begun_behind(self, line: int) -> bool:
        """Tell whether epochs were told behind a line, of which the last one is not the last of all."""
        return self.is_short and any(told.line > line for told in self._told.values())

    def reached(self, last_line: int) -> EpochCount | None:
        """Give the last of all epochs if the text ends with it, told as often as each one before."""
        last = max(self._told.values(), key=lambda told: told.line, default=None)
        if last is None or last.epoch < last.of or last.times != last.each:
            return None
        return last if 0 <= last_line - last.line <= FAREWELL else None
