"""How fast Slack is asked, and how much the bot takes on."""

from __future__ import annotations

import threading
import time

from slack_sdk.http_retry import HttpRequest, HttpResponse
from slack_sdk.http_retry.state import RetryState

from tests.tables import each_row
from tests.ui.slack.workspace import eventually
from tests.waiting import PATIENCE
from ui.slack.answer_threads import AnswerThreads
from ui.slack.rate_limiter import EDIT, LONGEST, MESSAGE, ChannelRateLimiter, RetryAfterHandler

REQUEST = HttpRequest(method="POST", url="https://slack.example/api/x", headers={})


def refused(**headers: list[str]) -> HttpResponse:
    """Make Slack's answer to too many requests."""
    return HttpResponse(
        status_code=429, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def took(pace: ChannelRateLimiter, *channels: str) -> float:
    """Wait for each channel, and give how long that took."""
    began = time.monotonic()
    for channel in channels:
        pace.wait(channel)
    return time.monotonic() - began


def test_that_each_channel_has_a_pace_of_its_own() -> None:
    pace = ChannelRateLimiter()
    assert took(pace, "A", "B", "C") < MESSAGE * 0.9
    assert MESSAGE * 0.9 < took(pace, "A", "B", "C") < MESSAGE * 2.9


def test_that_messages_that_wait_together_go_one_after_the_other() -> None:
    pace, times = ChannelRateLimiter(), list[float]()

    def speak() -> None:
        pace.wait("A")
        times.append(time.monotonic())

    threads = [threading.Thread(target=speak) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert times[2] - times[0] > 2 * MESSAGE * 0.95


def test_that_edits_that_can_be_left_out_are() -> None:
    pace = ChannelRateLimiter()
    assert pace.may_edit()
    assert not pace.may_edit()
    began = time.monotonic()
    pace.wait_to_edit()
    assert time.monotonic() - began > EDIT * 0.8


def test_that_a_pause_holds_for_all() -> None:
    pace = ChannelRateLimiter()
    pace.pause(0.6)
    assert not pace.may_edit()
    assert took(pace, "A") > 0.5


@each_row(
    ("response", "again"),
    [
        (refused(Retry_After=["1"]), True),
        (refused(), True),
        (refused(retry_after=["soon"]), True),
        (refused(Retry_After=[str(LONGEST + 1)]), False),
        (HttpResponse(status_code=200, headers={}), False),
        (None, False),
    ],
)
def test_that_only_a_wait_that_makes_sense_is_waited(response: HttpResponse | None, again: bool) -> None:
    assert (
        RetryAfterHandler(ChannelRateLimiter()).can_retry(
            state=RetryState(), request=REQUEST, response=response
        )
        == again
    )


def test_that_a_crew_takes_so_much_and_no_more() -> None:
    answer_threads, hold, done = AnswerThreads(1, 1), threading.Event(), list[int]()

    def held() -> None:
        hold.wait(PATIENCE)
        done.append(1)

    assert answer_threads.take(held)
    assert answer_threads.take(lambda: done.append(2))
    assert not answer_threads.take(lambda: done.append(3))
    hold.set()
    eventually(lambda: done == [1, 2])
    assert eventually(lambda: answer_threads.take(lambda: done.append(4)))
    answer_threads.close()
    assert not answer_threads.take(lambda: done.append(5))
