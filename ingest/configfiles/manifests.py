"""The containers of Kubernetes manifests and Compose files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from corpus.frameworks import known_frameworks
from ingest.configfiles.tree import TreeNode
from ingest.configfiles.yaml_document import YamlFile


@dataclass(frozen=True, slots=True)
class ManifestContainer:
    """A container, a pod or a service, and whether it has GPUs."""

    node: TreeNode
    gpu: bool
    compose: bool


def is_manifest(document: YamlFile) -> bool:
    """Tell whether a file starts containers."""
    return any(is_kubernetes(root) or _is_compose(root) for root in document.roots)


def is_kubernetes(root: TreeNode) -> bool:
    """Tell whether a document is an object of a cluster."""
    return root.kind == "mapping" and root.entry("apiVersion") is not None and root.entry("kind") is not None


def _is_compose(root: TreeNode) -> bool:
    services = root.child("services")
    known = ("image", "build", "command", "environment")
    return services is not None and any(entry.node.child(key) for entry in services.entries for key in known)


def containers(document: YamlFile) -> Iterator[ManifestContainer]:
    """Give the services of Compose, and the containers of pods."""
    for root in document.roots:
        if _is_compose(root):
            services = root.child("services")
            yield from (_service(entry.node) for entry in (services.entries if services else ()))
    for pod in pods(document):
        listed = pod.node.child("containers")
        yield from (
            ManifestContainer(item, _asks_gpus(item), compose=False)
            for item in (listed.items if listed else ())
        )


def pods(document: YamlFile) -> Iterator[ManifestContainer]:
    """Give what holds a list of containers."""
    for node in chain.from_iterable(root.walk() for root in document.roots if is_kubernetes(root)):
        listed = node.child("containers")
        if listed is not None and listed.kind == "sequence":
            yield ManifestContainer(node, any(_asks_gpus(item) for item in listed.items), compose=False)


def option_holders(document: YamlFile, key: str) -> Iterator[ManifestContainer]:
    """Give what holds the options of a start command under a key, beside the template of its containers."""
    for node in chain.from_iterable(root.walk() for root in document.roots if is_kubernetes(root)):
        template, options = node.child("template"), node.child(key)
        if template is not None and options is not None and options.kind == "mapping":
            listed = template.child("spec", "containers")
            is_gpu = any(_asks_gpus(item) for item in (listed.items if listed is not None else ()))
            yield ManifestContainer(node, is_gpu, compose=False)


def _asks_gpus(container: TreeNode) -> bool:
    limits = container.child("resources", "limits")
    return limits is not None and any("gpu" in entry.key for entry in limits.entries)


def _service(node: TreeNode) -> ManifestContainer:
    runtime, image = node.child("runtime"), node.child("image")
    devices = node.child("deploy", "resources", "reservations", "devices") or node.child("gpus")
    named = (runtime is not None and runtime.value == "nvidia") or (
        image is not None and known_frameworks().gpu_images.search(image.value) is not None
    )
    return ManifestContainer(node, devices is not None or named, compose=True)
