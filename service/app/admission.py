"""The one place where it is decided what is let in: how often, with which scope, how much at once.

Each way in finds out who asks (a key, this machine, a Slack user) and asks here before it does anything for
them: the API with its uploads and batches, the pages beside it, Slack. The commands and MCP are no way in of
this kind: they run in a process of their user's own, with that user's rights, and do one thing at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import get_args

from corpus.message import Message
from service.app.rate_limiter import RateLimiter
from service.schemas.errors import BusyError, ForbiddenError
from service.schemas.records import TEAM, Origin, Scope
from service.settings import Settings
from service.workers.pool import ProcessPool

SCOPES: tuple[Scope, ...] = get_args(Scope)
MIB = 1 << 20


@dataclass(frozen=True)
class Caller:
    """Who asks: through which interface, by which name (a key's id, a Slack user, `local`), of which team."""

    origin: Origin
    name: str = "local"
    team: str = ""

    @property
    def owner(self) -> str:
        """Whose their work is, as it is kept: their team's where they have one, else their own."""
        return f"{TEAM}{self.team}" if self.team else self.name

    @property
    def on_page(self) -> Caller:
        """Themselves, asking through the chat page."""
        return replace(self, origin="chat")


@dataclass(frozen=True)
class Principal:
    """Who asks, and what they may do; `counted` is what their requests are counted by."""

    caller: Caller
    scopes: tuple[Scope, ...]
    counted: str = ""

    @property
    def reads_all(self) -> bool:
        """Tell whether they may see what others asked."""
        return "admin" in self.scopes

    @property
    def only(self) -> str | None:
        """Name whose work they may list: None is everybody's."""
        return None if self.reads_all else self.caller.owner

    @classmethod
    def in_slack(cls, name: str) -> Principal:
        """Make the principal of a Slack user, who is counted by their name there."""
        return cls(Caller("slack", name), ("triage",), f"slack {name}")

    def may_read(self, caller: str) -> bool:
        """Tell whether they may see what `caller` asked, as it is kept."""
        return self.reads_all or caller == self.caller.owner

    def may(self, scope: Scope) -> bool:
        """Tell whether their scopes cover one; `admin` covers all."""
        return scope in self.scopes or self.reads_all


class CostlyRequestSlots:
    """So many requests at once may do what is costly, such as sending a large body; one more is refused.

    One caller gets half of them at most: who sends slowly must not keep all others out. Safe to use from many
    threads.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken: Counter[str] = Counter()
        self._turn = Lock()

    @contextmanager
    def slot(self, caller: str) -> Iterator[None]:
        """Hold a place; raises BusyError where there is none."""
        with self._turn:
            if self.taken.total() >= self.most or self.taken[caller] >= (self.most + 1) // 2:
                raise BusyError(Message("errors.more-handed-places"), 1.0)
            self.taken[caller] += 1
        try:
            yield
        finally:
            with self._turn:
                self.taken[caller] -= 1
                self.taken += Counter()  # Lets go of those who have none.


class Admission:
    """Lets requests in by the limits of the settings; safe to use from many threads."""

    def __init__(self, settings: Settings, pool: ProcessPool) -> None:
        self._rates = RateLimiter(settings.rate_limit)
        self._pool = pool
        self.uploads = CostlyRequestSlots(pool.size + settings.queue)

    def count(self, counted: str) -> None:
        """Count one thing that is asked for; raises BusyError where that is too often."""
        if wait := self._rates.acquire(counted):
            raise BusyError(Message("errors.key-address-asked-often"), wait)

    def admit(self, principal: Principal, scope: Scope | None) -> Principal:
        """Let one thing be done that takes a scope, or any key where it is None.

        Raises BusyError, ForbiddenError.
        """
        self.count(principal.counted)
        if scope is not None:
            require_scope(principal, scope)
        return principal

    def check_room(self) -> None:
        """Raise BusyError where one more triage would be too many, before anything of it is read."""
        self._pool.check_capacity()


def require_scope(principal: Principal, scope: Scope) -> None:
    """Raise ForbiddenError where a principal may not do what takes a scope."""
    if not principal.may(scope):
        raise ForbiddenError(
            Message("errors.key-scopes-takes", scopes=", ".join(principal.scopes), scope=scope)
        )


def largest_upload(settings: Settings) -> int:
    """Give how many bytes one request may bring, whatever way it comes."""
    return settings.max_upload_mb * MIB


def demand_live(principal: Principal) -> None:
    """Raise ForbiddenError where a principal may not have the server's own machine read."""
    if not principal.may("admin"):
        raise ForbiddenError(Message("errors.reading-server-own-machine"))
