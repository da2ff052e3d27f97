"""What other processes do to a store that a test has open."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from typing import Any

from service.persistence.outcomes import JobResult
from service.persistence.store import Store
from service.settings import Settings
from tests.service.factories import diagnosis
from tests.service.persistence.makers import NOW, batch, specs, triage
from tests.waiting import PATIENCE

SPAWN = multiprocessing.get_context("spawn")


def at_once(work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Call a function in a process for each row of arguments; gives what each gave."""
    with ProcessPoolExecutor(len(arguments), mp_context=SPAWN) as pool:
        return [future.result(PATIENCE) for future in [pool.submit(work, *row) for row in arguments]]


def open_once(settings: Settings) -> str:
    """Open and close a store; gives what its check says."""
    with Store.open(settings) as store:
        return store.check()


def work_off(settings: Settings, owner: str) -> tuple[list[str], list[bool], dict[str, str]]:
    """Work on all jobs as an engine does.

    Gives those finished, which events were seen first, and who stands for which crash.
    """
    finished: list[str] = []
    standing: dict[str, str] = {}
    with Store.open(settings) as store:
        first = [store.seen.is_first("slack", f"Ev{number}", NOW) for number in range(40)]
        while jobs := store.batches.claim(owner, 7, 600, NOW):
            results = []
            for job in jobs:
                crash = f"crash-{job.number % 10}"
                standing[crash] = store.batches.represent(job.batch, crash, job.id)
                mine = standing[crash] == job.id
                results.append(
                    JobResult(
                        job.id,
                        crash,
                        None if mine else standing[crash],
                        diagnosis=diagnosis() if mine else None,
                    )
                )
            finished += store.batches.finish_many(owner, results, NOW)
    return finished, first, standing


def hang_in_a_write(settings: Settings, ready: Any) -> None:
    """Write a triage and never end the transaction."""
    store = Store.open(settings)
    with store.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM triages")
        ready.set()
        time.sleep(600)


def hang_in_a_batch(settings: Settings, ready: Any) -> None:
    """Add a batch whose jobs never end to come."""

    def endless() -> Any:
        yield from specs(2500)
        ready.set()
        time.sleep(600)

    Store.open(settings).batches.add(batch(), endless())


def fill_up(settings: Settings, most: int) -> tuple[int, str, list[str]]:
    """Add triages until the file may grow no more.

    Gives how many stood, the error's name, and what worked afterwards.
    """
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Store.open(settings) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return fill(store)


def fill(store: Store) -> tuple[int, str, list[str]]:
    """Add triages until an error; gives how many stood, the error's name, and what is there afterwards."""
    count = 0
    try:
        for count in range(100_000):
            store.triages.add(
                triage(id=f"T{count:06}", created=NOW + timedelta(seconds=count), telemetry="x" * 20_000)
            )
    except Exception as error:  # noqa: BLE001 - the test looks at which one it is
        found = [item.id for item in store.triages.page(limit=2, now=NOW)[0]]
        return count, type(error).__name__, found
    return count, "", []


def use_quota(settings: Settings, times: int, quota: int) -> int:
    """Hand in a job so often; gives how often it was let in."""
    with Store.open(settings) as store:
        return sum(store.usage.take("team:rl", 1, quota, NOW) is None for _ in range(times))
