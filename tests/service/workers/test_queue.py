"""The line before the workers: in order, and left from any place."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.workers.queue import TaskQueue
from tests.tables import each_row
from tests.waiting import PATIENCE


def line_of(*items: str) -> TaskQueue[str]:
    """Let some stand in line."""
    made: TaskQueue[str] = TaskQueue()
    for item in items:
        made.push(item)
    return made


def test_that_who_came_first_is_first() -> None:
    line = line_of("a", "b", "c")
    assert [line.pop(1) for _ in range(3)] == ["a", "b", "c"]


@each_row(("leaver", "rest"), [("a", ["b", "c"]), ("b", ["a", "c"]), ("c", ["a", "b"])])
def test_that_who_leaves_holds_up_nobody(leaver: str, rest: list[str]) -> None:
    line = line_of("a", "b", "c")
    assert line.discard(leaver.__eq__) == leaver
    assert line.discard(leaver.__eq__) is None
    assert [line.pop(1) for _ in range(2)] == rest
    with pytest.raises(queue.Empty):
        line.pop(0.01)


def test_that_closing_gives_those_who_wait_and_frees_those_who_serve() -> None:
    line: TaskQueue[str] = TaskQueue()
    with ThreadPoolExecutor(2) as threads:
        serving = [threads.submit(line.pop) for _ in range(2)]
        time.sleep(0.05)
        assert line.close() == []
        assert [one.result(PATIENCE) for one in serving] == [None, None]
    other = line_of("a", "b")
    assert other.close() == ["a", "b"]
    assert other.pop() is None


def test_that_each_is_served_or_left_once() -> None:
    line: TaskQueue[str] = TaskQueue()
    names = [str(number) for number in range(2000)]
    served: list[str] = []
    left: list[str] = []

    def serve() -> None:
        while (item := line.pop()) is not None:
            served.append(item)

    def leave() -> None:
        left.extend(name for name in names[::3] if line.discard(name.__eq__) is not None)

    threads = [threading.Thread(target=work) for work in (serve, serve, leave)]
    for thread in threads:
        thread.start()
    for name in names:
        line.push(name)
    threads[-1].join()
    while len(served) + len(left) < len(names):
        time.sleep(0.01)
    line.close()
    for thread in threads:
        thread.join()
    assert sorted(served + left) == sorted(names)
