"""Take a snapshot of this machine, from every source that is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ingest.redaction.redactor import Redactor
from service.settings import Settings
from service.telemetry import baseline, cgroup, dcgm, host, kernel, nvml, ray_state, scheduler
from service.telemetry.metric_collector import CollectedParts
from service.telemetry.snapshot import EngineMetrics, Kernel, Snapshot, known

PAGE_TIMEOUT_S = 5.0
MAX_PAGE = 16 << 20


@dataclass(frozen=True, slots=True)
class SnapshotSources:
    """Where a snapshot is taken from.

    `listen_s` is how long NVML's Xid events are waited for; `cards` asks NVML.
    """

    pages: tuple[str, ...] = ()
    ray_dashboard: str = ""
    job: str = ""
    listen_s: float = 0.0
    nvml_timeout_s: float = nvml.TIMEOUT_S
    cards: Callable[[float, float], nvml.GpuList] = nvml.read_gpus


def sources_of(settings: Settings) -> SnapshotSources:
    """Give the sources that the settings name, and the Slurm job that we are in."""
    return SnapshotSources(
        pages=tuple(settings.metrics_pages.replace(",", " ").split()),
        ray_dashboard=settings.ray_dashboard,
        job=os.environ.get("SLURM_JOB_ID", ""),
    )


def take_snapshot(
    sources: SnapshotSources, before: Snapshot | None = None, job_is_over: bool = False
) -> Snapshot:
    """Take one now. With a baseline, counters say what came since.

    Where the job is over, who still holds memory is not it.
    """
    cards = sources.cards(sources.listen_s, sources.nvml_timeout_s)
    machine = host.read_host()
    found, told = read_pages(sources.pages)
    cluster = (
        ray_state.read_ray_state(sources.ray_dashboard, ray_state.token())
        if sources.ray_dashboard
        else ray_state.no_ray_state("no Ray dashboard is set")
    )
    now = datetime.now(UTC)
    gpus = cards.gpus or found.gpus
    made = Snapshot(
        taken_at=now,
        sources=("host", *(("nvml",) if cards.gpu_count.known else ()), *told),
        host=(
            machine.model_copy(
                update={
                    "driver_version": cards.driver_version,
                    "driver_error": cards.driver_error,
                    "gpu_count": cards.gpu_count,
                }
            )
        ),
        cgroup=cgroup.read_cgroup(),
        disks=host.read_disks(host.folders()),
        nics=host.read_nics(),
        gpus=tuple(gpu.model_copy(update={"others_gib": baseline.carry_over(gpu)}) for gpu in gpus)
        if job_is_over
        else gpus,
        kernel=kernel.read_kernel_log(machine.boot_time.value, now.year, machine.utc_offset_s.value or 0.0),
        nodes=cluster.nodes,
        ray=cluster.state,
        serving=found.serving,
        scheduler=scheduler.read_scheduler(sources.job),
    )
    return baseline.compare(made, before)


def read_pages(addresses: Sequence[str]) -> tuple[CollectedParts, tuple[str, ...]]:
    """Read pages of metrics: a DCGM exporter's, an inference server's.

    The first that tells something is taken.
    """
    found, told, clean = CollectedParts(), list[str](), Redactor().clean
    for address in addresses:
        text, why = _page(address)
        if why:
            told.append(clean(f"{address}: {why}"))
            continue
        page = dcgm.read_metrics_page(text)
        found = replace(
            found,
            gpus=found.gpus or page.gpus,
            serving=found.serving
            if any(getattr(found.serving, name).known for name in EngineMetrics.model_fields)
            else page.serving,
        )
        told.append(clean(address))
    return found, tuple(told)


def _page(address: str) -> tuple[str, str]:
    # Imported here, as in ray_state: a sampler that asks nobody over the network should not pay for it.
    import httpx

    try:
        with httpx.stream("GET", address, timeout=PAGE_TIMEOUT_S, trust_env=False) as response:
            body = b""
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MAX_PAGE:
                    return "", f"is larger than {MAX_PAGE >> 20} MiB"
            return (
                (body.decode("utf-8", "replace"), "")
                if response.is_success
                else ("", f"answered {response.status_code}")
            )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return "", f"could not be read: {str(error) or type(error).__name__}"


def with_earlier_xids(snapshot: Snapshot, earlier: Snapshot | None) -> Snapshot:
    """Add to a watched snapshot the Xid events that earlier samples heard."""
    if earlier is None:
        return snapshot
    past = {(gpu.id, gpu.node): gpu.xids.value or () for gpu in earlier.gpus}
    gpus = list(snapshot.gpus)
    for place, gpu in enumerate(gpus):
        if xids := past.get((gpu.id, gpu.node)):
            both = tuple(dict.fromkeys([*xids, *(gpu.xids.value or ())]))
            gpus[place] = gpu.model_copy(update={"xids": known(both)})
    kernel, before = snapshot.kernel, earlier.kernel
    if kernel.events.value is None and before.events.value is not None:
        # Keep events that the kernel's ring has lost since.
        kernel = Kernel(since=before.since, events=known(before.events.value))
    return snapshot.model_copy(update={"gpus": tuple(gpus), "kernel": kernel})
