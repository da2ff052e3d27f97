"""Rate limits of Slack: a message a second in each channel, edits beside that, and a pause on request.

The limits are those of https://docs.slack.dev/apis/web-api/rate-limits.
"""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from slack_sdk.http_retry import ConnectionErrorRetryHandler, HttpRequest, HttpResponse, RetryHandler
from slack_sdk.http_retry.builtin_handlers import ServerErrorRetryHandler
from slack_sdk.http_retry.state import RetryState

# Seconds between two messages in a channel, and between two edits anywhere (Slack allows some 50 in a
# minute).
MESSAGE, EDIT = 1.0, 1.3
# Seconds after which waiting for Slack is given up.
LONGEST = 90.0
_CHANNELS = 2000


@dataclass
class ChannelRateLimiter:
    """The time of the next message to each channel; safe to use from many threads."""

    _next: OrderedDict[str, float] = field(default_factory=OrderedDict)
    _edit: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _paused: float = 0.0

    def wait(self, channel: str) -> None:
        """Wait until a message may go to a channel."""
        _sleep_until(self._take(channel))

    def _take(self, channel: str) -> float:
        with self._lock:
            at = max(time.monotonic(), self._next.pop(channel, 0.0), self._paused)
            self._next[channel] = at + MESSAGE
            if len(self._next) > _CHANNELS:
                self._next.popitem(last=False)
            return at

    def may_edit(self) -> bool:
        """Tell whether an edit that can be left out may go now, and count it."""
        with self._lock:
            now = time.monotonic()
            if now < max(self._edit, self._paused):
                return False
            self._edit = now + EDIT
            return True

    def wait_to_edit(self) -> None:
        """Wait until an edit that cannot be left out may go."""
        with self._lock:
            at = max(time.monotonic(), self._edit, self._paused)
            self._edit = at + EDIT
        _sleep_until(at)

    def pause(self, seconds: float) -> None:
        """Let nothing go for so many seconds: Slack asked for it."""
        with self._lock:
            self._paused = max(self._paused, time.monotonic() + seconds)


def _sleep_until(at: float) -> None:
    if (left := at - time.monotonic()) > 0:
        time.sleep(left)


class RetryAfterHandler(RetryHandler):
    """Wait as long as Slack asks after too many requests, all of us, and try again."""

    def __init__(self, pace: ChannelRateLimiter) -> None:
        super().__init__(max_retry_count=3)
        self._pace = pace

    def _can_retry(
        self,
        *,
        state: RetryState,  # noqa: ARG002 - the SDK's signature, as in the next method
        request: HttpRequest,  # noqa: ARG002
        response: HttpResponse | None = None,
        error: Exception | None = None,  # noqa: ARG002
    ) -> bool:
        return response is not None and response.status_code == 429 and _asked_to_wait(response) <= LONGEST

    def prepare_for_next_attempt(
        self,
        *,
        state: RetryState,
        request: HttpRequest,  # noqa: ARG002
        response: HttpResponse | None = None,
        error: Exception | None = None,  # noqa: ARG002
    ) -> None:
        """Wait, and keep others from asking meanwhile."""
        state.next_attempt_requested = True
        seconds = _asked_to_wait(response) if response is not None else 1.0
        self._pace.pause(seconds)
        # Those that were refused together do not come back together.
        time.sleep(seconds + random.random() / 2)  # noqa: S311 - no secret
        state.increment_current_attempt()


def _asked_to_wait(response: HttpResponse) -> float:
    told = next((value for name, value in response.headers.items() if name.lower() == "retry-after"), None)
    text = told[0] if isinstance(told, list) and told else told
    try:
        return max(0.0, float(str(text)))
    except ValueError:
        return 1.0


def retries(pace: ChannelRateLimiter) -> list[RetryHandler]:
    """Give what a client does where Slack is busy, fails, or cuts the connection."""
    return [
        ConnectionErrorRetryHandler(max_retry_count=2),
        ServerErrorRetryHandler(max_retry_count=2),
        RetryAfterHandler(pace),
    ]
