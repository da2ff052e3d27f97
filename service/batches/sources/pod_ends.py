"""How pods ended, by `pods.json` of `kubectl cluster-info dump` or `kubectl get pods -o json`.

https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/#podstatus-v1-core
"""

from __future__ import annotations

from collections.abc import Iterator
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


class _Terminated(_Part):
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None


class _State(_Part):
    terminated: _Terminated | None = None


class _Container(_Part):
    state: _State = _State()
    last_state: _State = _State()

    @property
    def ends(self) -> Iterator[Outcome]:
        """How it ended, now and the time before, where it was started anew."""
        for state in (self.state.terminated, self.last_state.terminated):
            if state is not None:
                yield Outcome.told(state.exit_code, state.signal or None, state.reason)


class _Status(_Part):
    phase: str | None = None
    reason: str | None = None
    init_container_statuses: tuple[_Container, ...] = ()
    container_statuses: tuple[_Container, ...] = ()


class _Names(_Part):
    name: str
    namespace: str = "default"


class _Pod(_Part):
    metadata: _Names
    status: _Status = _Status()

    @property
    def outcome(self) -> Outcome | None:
        """How it ended: of its containers and of what is said of the pod itself, the one that says most."""
        containers = (*self.status.init_container_statuses, *self.status.container_statuses)
        ends = [end for container in containers for end in container.ends]
        ends += [Outcome.told(None, None, word) for word in (self.status.reason, self.status.phase) if word]
        return min((end for end in ends if end.is_given), key=order, default=None)


class _Pods(_Part):
    items: tuple[_Pod, ...] = Field(default=())


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
                found[pod.metadata.namespace, pod.metadata.name] = outcome
    return found


def _pods(path: Path) -> tuple[_Pod, ...]:
    try:
        # No link is followed: it may lead out of the folder.
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            return ()
        return _Pods.model_validate_json(path.read_bytes()).items
    except (OSError, ValidationError):
        return ()
