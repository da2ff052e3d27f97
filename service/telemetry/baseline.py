"""What came since a baseline: the `_new` fields, from the counters of two snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from service.telemetry.snapshot import Gpu, Nic, Reading, Snapshot, SnapshotPart, known, unavailable

P = TypeVar("P", bound=SnapshotPart)

NO_BASELINE = "there is no baseline: take one before the job with `whycrash snapshot --out FILE`, or watch it"
# A new field, the counter that it is the growth of; those without a counter come out of a range or a watch.
COUNTERS: Mapping[str, str] = {
    "ecc_uncorrected_new": "ecc_uncorrected",
    "remapped_uncorrected_new": "remapped_uncorrected",
    "pcie_replays_new": "pcie_replays",
    "nvlink_errors_new": "nvlink_errors",
    "oom_kill_new": "oom_kill",
    "max_events_new": "max_events",
    "pids_max_events_new": "pids_max_events",
    "link_downed_new": "link_downed",
    "errors_new": "errors",
    "drops_new": "drops",
}


def compare(now: Snapshot, before: Snapshot | None) -> Snapshot:
    """Give a snapshot with what came since the baseline; without one, those fields say that there is none."""
    return now.model_copy(
        update={
            "baseline_at": before.taken_at if before else None,
            "host": _lost(_grown(now.host, before.host if before else None), now, before),
            "cgroup": _grown(
                now.cgroup, before.cgroup if before and before.cgroup.path == now.cgroup.path else None
            ),
            "gpus": tuple(
                _others(_grown(gpu, other), other)
                for gpu, other in _paired(now.gpus, before.gpus if before else ())
            ),
            "nics": tuple(
                _grown(nic, other) for nic, other in _paired(now.nics, before.nics if before else ())
            ),
        }
    )


def _paired(now: Iterable[P], before: Iterable[P]) -> list[tuple[P, P | None]]:
    known_before = {_name(item): item for item in before}
    return [(item, known_before.get(_name(item))) for item in now]


def _name(item: SnapshotPart) -> tuple[str, str]:
    own = item.id if isinstance(item, Gpu) else item.name if isinstance(item, Nic) else ""
    return own, getattr(item, "node", "")


def _grown(now: P, before: P | None) -> P:
    fields = [name for name in type(now).model_fields if name in COUNTERS and not getattr(now, name).known]
    return now.model_copy(update={name: _growth(now, before, COUNTERS[name]) for name in fields})


def _growth(now: SnapshotPart, before: SnapshotPart | None, counter: str) -> Reading[Any]:
    last: Reading[Any] = getattr(now, counter)
    if last.value is None:
        return last
    if before is None:
        return unavailable(NO_BASELINE)
    first: Reading[Any] = getattr(before, counter)
    if first.value is None:
        return unavailable(f"the baseline has none: {first.unavailable}")
    # A counter that fell began anew (a reboot, a reset): all that it shows came since.
    return known(last.value - first.value if last.value >= first.value else last.value)


def _lost(host: P, now: Snapshot, before: Snapshot | None) -> P:
    count, first = now.host.gpu_count, before.host.gpu_count if before else None
    if count.value is None:
        reading: Reading[int] = unavailable(str(count.unavailable))
    elif first is None or first.value is None:
        reading = unavailable(NO_BASELINE)
    else:
        reading = known(max(0, first.value - count.value))
    return host.model_copy(update={"gpu_lost_new": reading})


def _others(now: Gpu, before: Gpu | None) -> Gpu:
    """Count what is held by processes that were there before the job was."""
    if now.others_gib.known or now.processes.value is None:
        return now
    if before is None or before.processes.value is None:
        return now.model_copy(
            update={
                "others_gib": unavailable("which processes are the job's cannot be told without a baseline")
            }
        )
    there = {process.pid for process in before.processes.value}
    return now.model_copy(update={"others_gib": carry_over(now, there)})


def carry_over(gpu: Gpu, pids: Sequence[int] | set[int] | None = None) -> Reading[float]:
    """Give what processes hold of a card, all or those named.

    What the driver does not tell cannot be summed.
    """
    if gpu.processes.value is None:
        return unavailable(str(gpu.processes.unavailable))
    chosen = [process for process in gpu.processes.value if pids is None or process.pid in pids]
    if any(process.used_gib is None for process in chosen):
        return unavailable("the driver does not tell how much each process holds")
    return known(round(sum(process.used_gib or 0.0 for process in chosen), 3))
