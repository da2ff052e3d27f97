"""One deadline for everything that a model is asked, kept whatever its client does."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator

from corpus.message import Message
from service.llm.models import AnswerPiece
from service.schemas.errors import ModelError, ModelLateError, ModelUnavailableError

# Where another model stands by, the one before it has this part of the time.
FIRST_SHARE = 2 / 3
_End = None | Exception


class Deadline:
    """A point in time that work must not run past."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock() + seconds

    @property
    def left(self) -> float:
        """Give the seconds that are left; never negative."""
        return max(0.0, self._end - self._clock())

    def late(self) -> ModelLateError:
        """Make the error of what ran past it."""
        return ModelLateError(Message("model.model-not-answer-within", seconds=f"{self._seconds:g}"))


def within(deadline: Deadline, stream: Callable[[], Iterator[AnswerPiece]]) -> Iterator[AnswerPiece]:
    """Yield what a stream yields.

    Raises ModelLateError at the deadline, even from a server that has gone silent.

    The stream runs in a thread of its own: a client's time-out counts from byte to byte, and a server that
    drips keeps it alive for ever.
    """
    pieces: queue.Queue[AnswerPiece | _End] = queue.Queue()
    stop = threading.Event()

    def run() -> None:
        try:
            for piece in stream():
                pieces.put(piece)
                if stop.is_set():
                    break
        except ModelError as error:
            pieces.put(error)
        except Exception as error:  # noqa: BLE001 - any error must end the wait of the other thread
            pieces.put(ModelUnavailableError(Message("model.model-client-failed", name=type(error).__name__)))
        else:
            pieces.put(None)

    threading.Thread(target=run, name="whycrash-model", daemon=True).start()
    try:
        yield from _received_pieces(pieces, deadline)
    finally:
        stop.set()


def _received_pieces(pieces: queue.Queue[AnswerPiece | _End], deadline: Deadline) -> Iterator[AnswerPiece]:
    while True:
        try:
            item = pieces.get(timeout=max(deadline.left, 1e-3))
        except queue.Empty:
            raise deadline.late() from None
        if item is None:
            return
        if isinstance(item, Exception):
            raise item
        if not deadline.left:
            raise deadline.late()
        yield item
