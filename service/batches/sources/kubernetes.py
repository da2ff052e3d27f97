"""Jobs from pods' logs: a node's /var/log/pods, `kubectl cluster-info dump`, or `kubectl logs` output.

No cluster is asked (`kubernetes_api` does that); how pods ended is read from a `pods.json` beside their logs,
as the dump writes it and as `kubectl get pods -o json` gives it. A pod's containers and their restarts are
one job's; so are the pods that an operator makes for one job (`NAME-master-0`, `NAME-worker-3`,
`NAME-launcher-x2x9z`). Kubernetes' own pods are left out.
https://kubernetes.io/docs/concepts/cluster-administration/logging/
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from corpus.message import Message
from ingest.logs.inputs.archives import Contents
from service.batches.sources import folder, pod_ends
from service.batches.sources.found import FoundJobs, check_limits, clean_spec, shown_path
from service.batches.sources.grouping import parse_stem
from service.schemas.diagnosis import Outcome
from service.schemas.errors import InvalidRequestError
from service.schemas.records import JobPlace, JobSpec
from service.settings import Settings

# NAMESPACE_POD_UID/CONTAINER/RESTART.log, rotated ones with a time behind; names hold no underscore.
_POD_LOG = re.compile(
    r"(?:^|/)(?P<folder>(?P<namespace>[a-z0-9.-]+)_(?P<pod>[a-z0-9.-]+)_[0-9A-Za-z-]+)/"
    r"(?P<container>[a-z0-9.-]+)/\d+\.log(?:\.[\w.-]+)?$"
)
_DUMP_LOG = re.compile(r"(?:^|/)(?P<folder>(?P<namespace>[a-z0-9.-]+)/(?P<pod>[a-z0-9.-]+))/logs\.txt$")
# What operators put behind a job's name for each of its pods: Kubeflow's, MPI's, KubeRay's, JobSet's. An
# index or random letters follow; of those, names made by Kubernetes have no vowels.
_TAIL = r"(?:-(?:\d+|[bcdfghjklmnpqrstvwxz2456789]{5,10}))*$"
_HEAD = re.compile(rf"-(?:master|launcher|chief|head|leader|driver){_TAIL}")
_ROLE = re.compile(rf"-(?:master|workers?|launcher|chief|evaluator|ps|head|leader|driver|executor){_TAIL}")
# By which the operators say whose pod it is, a job of jobs before its parts.
JOB_LABELS = (
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
    "volcano.sh/job-name",
    "ray.io/cluster",
    "batch.kubernetes.io/job-name",
    "job-name",
)
_OWN = re.compile(r"^(?:kube-.*|calico-.*|cilium.*|gatekeeper-.*)$")


class Pod(NamedTuple):
    """A pod by its names, and the folder that its logs are in."""

    namespace: str
    name: str
    folder: str

    @property
    def job(self) -> str:
        """The job whose pod this is."""
        return f"{self.namespace}/{_ROLE.sub('', self.name)}"


def find_jobs(home: Path, settings: Settings) -> FoundJobs:
    """Find the jobs of a folder of pods' logs; raises InvalidRequestError, TooLargeError."""
    real = Path(os.path.realpath(home))
    if not real.is_dir():
        raise InvalidRequestError(Message("errors.no-folder", folder=home))
    listed = folder.list_folder(real, settings)
    pods = _pods(listed)
    places = group_pods(pods) if pods else _of_dumps(listed)
    check_limits(len(places), str(home), settings, listed.skipped.omitted)
    ends = _ends(pods, places, pod_ends.read(real))
    return FoundJobs(lambda: _specs(places, real, ends), len(places), clean_spec(listed.skipped.omitted))


def is_own(namespace: str) -> bool:
    """Tell a name space of Kubernetes' own pods from those of jobs."""
    return _OWN.match(namespace) is not None


def _ends(
    pods: Sequence[Pod], places: Mapping[str, list[str]], known: Mapping[tuple[str, str], Outcome]
) -> dict[str, Outcome]:
    """Give how each job ended: of several pods the one that says most; a launcher ends the others."""
    by_folder = {pod.folder: end for pod in pods if (end := known.get((pod.namespace, pod.name)))}
    found = {job: [by_folder[path] for path in paths if path in by_folder] for job, paths in places.items()}
    return {job: min(ends, key=pod_ends.order) for job, ends in found.items() if ends}


def _pods(listed: Contents) -> list[Pod]:
    found: dict[str, Pod] = {}
    left_out: set[str] = set()
    for log in listed.logs:
        match = _POD_LOG.search(log.name) or _DUMP_LOG.search(log.name)
        if match and is_own(match["namespace"]):
            left_out.add(f"{match['namespace']}/{match['pod']}")
        elif match:
            path = log.name[: match.end("folder")]
            found[path] = Pod(match["namespace"], match["pod"], path)
    for name in sorted(left_out):
        listed.skipped.add("of_kubernetes_itself", name)
    return list(found.values())


def group_pods(pods: Sequence[Pod]) -> dict[str, list[str]]:
    """Give the folders of each job's pods, by their names."""
    heads = {pod.job for pod in pods if _HEAD.search(pod.name)}
    places: dict[str, list[str]] = defaultdict(list)
    for pod in sorted(pods):
        home = pod.job
        if _ROLE.search(pod.name):
            # KubeRay names a worker after its cluster and its group: the cluster's name is a beginning.
            while home and home not in heads:
                home = home.rpartition("-")[0]
        places[home or pod.job].append(pod.folder)
    return places


def _of_dumps(listed: Contents) -> dict[str, list[str]]:
    """Group output of `kubectl logs`, a file for each pod; an earlier run's has `previous` in its name."""
    places: dict[str, list[str]] = defaultdict(list)
    for log in sorted(listed.logs, key=lambda member: member.name):
        parent, _, _ = log.name.rpartition("/")
        found = parse_stem(log.name)
        # A pod's `-worker-0` is a rank to the rule for files, too, and leaves the job's name.
        unranked = found.key or "job"
        name = _ROLE.sub("", unranked)
        places[f"{parent}/{name}" if parent else name].append(log.name)
    return places


def _specs(places: Mapping[str, list[str]], home: Path, ends: Mapping[str, Outcome]) -> Iterator[JobSpec]:
    for name, paths in sorted(places.items()):
        yield JobSpec(
            name=shown_path(name),
            place=JobPlace(paths=tuple(str(home / path) for path in paths)),
            outcome=ends.get(name),
        )
