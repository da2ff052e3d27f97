"""Who holds a job: an engine, told by its machine, its process and when that began."""

from __future__ import annotations

import os
import secrets
import socket
from datetime import datetime
from pathlib import Path

from service.persistence.store import Store

# Jobs that are looked through for engines that are gone.
LOOKED = 5000


def new_owner() -> str:
    """Name an engine of this process."""
    return f"{socket.gethostname()}:{os.getpid()}:{_began(os.getpid())}:{secrets.token_hex(4)}"


def is_gone(owner: str) -> bool:
    """Tell whether an engine's process is known to have ended; of another machine's nothing is known."""
    host, _, rest = owner.rpartition(":")[0].partition(":")
    number, _, began = rest.partition(":")
    return host == socket.gethostname() and number.isdecimal() and _began(int(number)) != began


def end_orphaned_leases(store: Store, now: datetime) -> int:
    """End the leases of engines of this machine that were killed, so that nobody waits for them.

    Gives how many jobs.

    The try that they had begun counts: should one of these jobs be the reason that the engine died, that
    happens a few times only.
    """
    count = 0
    for batch in store.batches.running():
        held: dict[str, list[str]] = {}
        for job in store.batches.jobs(batch, state="running", limit=LOOKED)[0]:
            held.setdefault(job.owner, []).append(job.id)
        count += sum(
            len(store.batches.renew(owner, jobs, 0.0, now)) for owner, jobs in held.items() if is_gone(owner)
        )
    return count


def _began(number: int) -> str:
    """Give when a process began, in ticks since the machine did; numbers are given again, this is not."""
    try:
        text = Path("/proc", str(number), "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # After the name in parentheses, which may hold anything:
    # https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    return text.rpartition(")")[2].split()[19]
