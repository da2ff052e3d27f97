"""How pods ended, by `pods.json` of `kubectl cluster-info dump` or `kubectl get pods -o json`.

https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/#podstatus-v1-core
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from service.schemas.diagnosis import Outcome

NAME = "pods.json"
# A pod's description is some kilobytes; a cluster of ten thousand pods stays below it.
MAX_BYTES = 256 << 20


class _Part(BaseModel):
    """A part of a pod; fields that are not used here are passed over."""

    model_config = ConfigDict(alias_generator=to_camel)


class ObjectReference(_Part):
    """The names of an object, or of the one that something is said of; `labels` only of the object itself."""

    name: str = ""
    namespace: str = "default"
    labels: dict[str, str] = {}


class _Terminated(_Part):
    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    finished_at: datetime | None = None


class _Waiting(_Part):
    reason: str | None = None
    message: str | None = None


class _State(_Part):
    terminated: _Terminated | None = None
    waiting: _Waiting | None = None


class DescribedContainer(_Part):
    """What is said of a container of a pod."""

    name: str = ""
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()

    @property
    def terminations(self) -> Iterator[_Terminated]:
        """Its ends: now, and the time before, where it was started anew."""
        for state in (self.state.terminated, self.last_state.terminated):
            if state is not None:
                yield state

    @property
    def ends(self) -> Iterator[Outcome]:
        """How it ended, now and the time before."""
        for end in self.terminations:
            yield Outcome.told(end.exit_code, end.signal or None, end.reason)


class _Status(_Part):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: datetime | None = None
    # What the API leaves out of some pods stands as null in what programs make of them.
    init_container_statuses: tuple[DescribedContainer, ...] | None = None
    container_statuses: tuple[DescribedContainer, ...] | None = None


class _Resources(_Part):
    limits: dict[str, str | int] | None = None


class _Container(_Part):
    resources: _Resources | None = None


class _Spec(_Part):
    node_name: str | None = None
    containers: tuple[_Container, ...] = ()

    def devices(self, kind: re.Pattern[str]) -> int:
        """Count the devices that its containers are given, by what ends the names of their resources."""
        limits = [found for each in self.containers if each.resources and (found := each.resources.limits)]
        told = [str(count) for each in limits for name, count in each.items() if kind.search(name)]
        return sum(int(count) for count in told if count.isdecimal())


class DescribedPod(_Part):
    """A pod as the API gives it."""

    metadata: ObjectReference
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def name(self) -> str:
        """Its name within its name space."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Its name space."""
        return self.metadata.namespace

    @property
    def containers(self) -> tuple[DescribedContainer, ...]:
        """All of its containers, in the order that they ran."""
        return (*(self.status.init_container_statuses or ()), *(self.status.container_statuses or ()))

    @property
    def is_failed(self) -> bool:
        """Tell whether it failed, or a container that was started anew did before.

        What is ended beside a job that came to its end failed of that.
        """
        outcome = self.outcome
        return self.status.phase != "Succeeded" and outcome is not None and outcome.end == "failed"

    @property
    def ended_at(self) -> tuple[datetime, ...]:
        """When its containers ended."""
        ends = (end.finished_at for each in self.containers for end in each.terminations)
        return tuple(when for when in ends if when)

    @property
    def described(self) -> Iterator[str]:
        """What is said of its end and of its containers', in the words and order of `kubectl describe`."""
        yield from _described({"Reason": self.status.reason, "Message": self.status.message})
        for each in self.containers:
            waits = each.state.waiting
            told: list[Mapping[str, object]] = []
            if waits:
                told.append({"Reason": waits.reason, "Message": waits.message})
            told += [
                {"Reason": end.reason, "Message": end.message, "Exit Code": end.exit_code}
                for end in each.terminations
                if end.exit_code
            ]
            for rows in told:
                yield f"{each.name}:"
                yield from _described(rows)

    @property
    def outcome(self) -> Outcome | None:
        """How it ended: of its containers and of what is said of the pod itself, the one that says most."""
        ends = [end for container in self.containers for end in container.ends]
        ends += [Outcome.told(None, None, word) for word in (self.status.reason, self.status.phase) if word]
        return min((end for end in ends if end.is_given), key=order, default=None)


class _Pods(_Part):
    items: tuple[DescribedPod, ...] = Field(default=())


def _described(rows: Mapping[str, object]) -> Iterator[str]:
    for title, told in rows.items():
        if told not in (None, ""):
            yield f"  {title}: {' '.join(str(told).split())}"


def order(outcome: Outcome) -> tuple[int, bool, bool]:
    """Order ends by how much they say: failures first, then those that prove a cause, then exit codes."""
    reading = next(iter(outcome.readings), None)
    return (
        ("failed", "succeeded", "unknown").index(outcome.end),
        reading is None or reading.proof != "established",
        outcome.exit_code is None,
    )


def read(home: Path) -> dict[tuple[str, str], Outcome]:
    """Give how pods ended, by namespace and name; what cannot be read tells nothing."""
    found: dict[tuple[str, str], Outcome] = {}
    for path in (home / NAME, *sorted(home.glob(f"*/{NAME}"))):
        for pod in _pods(path):
            if outcome := pod.outcome:
                found[pod.namespace, pod.name] = outcome
    return found


def _pods(path: Path) -> tuple[DescribedPod, ...]:
    try:
        # No link is followed: it may lead out of the folder.
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            return ()
        return _Pods.model_validate_json(path.read_bytes()).items
    except (OSError, ValidationError):
        return ()
