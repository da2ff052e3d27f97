"""A finder of expressions that take long to make of others: they are made once, and stored beside it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from ingest import digit_blind, expression_tree, shipped
from ingest.logs.scanner import Finder


class MadeFinder:
    """What `make` makes of some expressions, compiled when somebody first asks."""

    def __init__(
        self, sources: Sequence[str], make: Callable[[Sequence[str]], list[str]], cache: Path | None
    ) -> None:
        """Take the expressions; nothing is made yet."""
        self._sources, self._make, self._cache = sources, make, cache

    @cached_property
    def is_at_hand(self) -> bool:
        """Tell whether the expressions were made and stored before, or came with the wheel."""
        return any(place.exists() for place in self._places)

    @cached_property
    def finder(self) -> Finder:
        """The finder; raises InvalidExpressionError where an expression cannot be made, or compiled."""
        for place in self._places:
            with contextlib.suppress(OSError, ValueError):
                return Finder(json.loads(place.read_bytes()), self._cache)
        expressions = self._make(self._sources)
        if self._cache is not None:
            with contextlib.suppress(OSError):  # a folder that cannot be written costs time at the next start
                stored = self._places[0]
                stored.parent.mkdir(parents=True, exist_ok=True)
                part = stored.with_suffix(".part")
                part.write_text(json.dumps(expressions))
                part.replace(stored)
        return Finder(expressions, self._cache)

    @cached_property
    def _places(self) -> list[Path]:
        """Where the expressions may be stored, the one first that they are written to."""
        # Whoever changes how they are made makes others.
        makers = [Path(str(module.__file__)).read_bytes() for module in (digit_blind, expression_tree)]
        told = repr((self._make.__name__, self._sources, makers)).encode()
        name = f"expressions-{hashlib.sha256(told).hexdigest()[:16]}.json"
        return [folder / name for folder in (self._cache, shipped.FOLDER) if folder is not None]
