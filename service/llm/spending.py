"""What models may cost in a day and in a batch: counted in one file that all processes of a home share.

A request is held against the budgets by an estimate before it is sent, and by what the provider counted
afterwards, so that processes that ask at the same time do not spend the same rest twice.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from corpus.message import Message
from service.schemas.errors import ModelBudgetError, ModelSetupError
from service.settings import Settings

FILE = "model-spending.sqlite"
# Tokens that a price is for.
PER = 1_000_000
# Seconds to wait for another process that counts.
_LOCK_TIMEOUT = 10.0
_TABLE = (
    "CREATE TABLE IF NOT EXISTS spent (scope TEXT PRIMARY KEY, tokens INTEGER NOT NULL, cost REAL NOT NULL)"
)
_ADD = (
    "INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT (scope) "
    "DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost"
)

Span = Literal["day", "batch"]


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in the currency that the user counts in."""

    sent: float
    received: float

    def of(self, sent: int, received: int) -> float:
        """Give what a request costs."""
        return (sent * self.sent + received * self.received) / PER


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be spent in a span; 0 is no bound."""

    span: Span
    tokens: int
    cost: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent, or is about to be."""

    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class Spending:
    """Counts requests against the budgets: `scopes` are the names under which, each with its budget."""

    file: Path
    scopes: Mapping[str, Budget]
    prices: Mapping[str, Price]

    def reserve(self, model: str, sent: int) -> Spent:
        """Hold so many tokens against each budget; raises ModelBudgetError where one has no room for them."""
        price = self.prices.get(model)
        if price is None and any(budget.cost for budget in self.scopes.values()):
            raise ModelBudgetError(Message("model.budget-without-price", model=model))
        asked = Spent(sent, price.of(sent, 0) if price else 0.0)
        with self._opened() as base:
            for scope, budget in self.scopes.items():
                row = base.execute("SELECT tokens, cost FROM spent WHERE scope = ?", (scope,)).fetchone()
                _check(budget, Spent(*row) if row else Spent(), asked)
            self._add(base, asked)
        return asked

    def settle(self, model: str, reserved: Spent, sent: int, received: int) -> None:
        """Count what a request has taken in the place of what was held for it; raises ModelBudgetError."""
        price = self.prices.get(model)
        cost = price.of(sent, received) if price else 0.0
        with self._opened() as base:
            self._add(base, Spent(sent + received - reserved.tokens, cost - reserved.cost))

    def spent(self) -> dict[str, Spent]:
        """Give what each scope has spent; raises ModelBudgetError."""
        with self._opened() as base:
            rows = base.execute("SELECT scope, tokens, cost FROM spent").fetchall()
        return {scope: Spent(tokens, cost) for scope, tokens, cost in rows if scope in self.scopes}

    def _add(self, base: sqlite3.Connection, spent: Spent) -> None:
        base.executemany(_ADD, [(scope, spent.tokens, spent.cost) for scope in self.scopes])

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction that no other process interleaves."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            base = sqlite3.connect(self.file, timeout=_LOCK_TIMEOUT, isolation_level=None)
            try:
                base.execute("BEGIN IMMEDIATE")
                base.execute(_TABLE)
                yield base
                base.execute("COMMIT")
            finally:
                base.close()
        except (sqlite3.Error, OSError) as error:
            # What cannot be counted is not spent.
            raise ModelBudgetError(Message("model.budget-not-counted", file=self.file, said=error)) from error


def _check(budget: Budget, before: Spent, asked: Spent) -> None:
    if budget.tokens and before.tokens + asked.tokens > budget.tokens:
        raise ModelBudgetError(
            Message("model.budget-tokens", span=_span(budget), used=before.tokens, most=budget.tokens)
        )
    # A model that costs nothing may be asked also where the money is spent.
    if budget.cost and asked.cost and before.cost + asked.cost > budget.cost:
        raise ModelBudgetError(
            Message(
                "model.budget-cost", span=_span(budget), used=f"{before.cost:.2f}", most=f"{budget.cost:g}"
            )
        )


def _span(budget: Budget) -> Message:
    return Message("model.span-day") if budget.span == "day" else Message("model.span-batch")


def open_spending(settings: Settings, batch: str = "") -> Spending | None:
    """Open the count for an answer, of a batch where one is named; None where nothing bounds it.

    Raises ModelSetupError where the prices cannot be read.
    """
    today = datetime.now(UTC).date()
    scopes = {f"day {today}": Budget("day", settings.model_day_tokens, settings.model_day_cost)}
    if batch:
        scopes[f"batch {batch}"] = Budget("batch", settings.model_batch_tokens, settings.model_batch_cost)
    bounded = {scope: budget for scope, budget in scopes.items() if budget.tokens or budget.cost}
    prices = read_prices(settings.model_prices)
    return Spending(settings.home / FILE, bounded, prices) if bounded else None


def read_prices(text: str) -> dict[str, Price]:
    """Read prices, such as `openai:a=1.25/10, anthropic:b=3/15`; raises ModelSetupError."""
    found = {}
    for row in filter(str.strip, text.split(",")):
        name, _, price = row.rpartition("=")
        sent, _, received = price.partition("/")
        try:
            found[name.strip()] = Price(float(sent), float(received))
        except ValueError as error:
            raise ModelSetupError(Message("model.price-unreadable", row=row.strip())) from error
        if not name.strip() or not all(0 <= float(part) < math.inf for part in (sent, received)):
            raise ModelSetupError(Message("model.price-unreadable", row=row.strip()))
    return found
