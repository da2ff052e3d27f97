"""Changes of Kubernetes manifests and Compose files."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.schema import Scalar
from ingest.configfiles.errors import NotPatchableError
from service.patching.target import PatchTarget
from service.patching.yaml_file import apply, carries, holds
from tests.service.patching.applying import goes_back_and_forth, target
from tests.tables import each_row

JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: trainer   # eight cards
        image: example.org/vllm:1
        command: ["python3", "-m", "vllm.entrypoints.openai.api_server"]
        args:
        - --model=/m
        - --gpu-memory-utilization=0.92
        - --max-num-seqs
        - "64"
        - --enforce-eager
        env:
        - name: NCCL_DEBUG
          value: "WARN"
        - name: TOKEN
          valueFrom: {secretKeyRef: {name: t, key: k}}
        resources:
          limits:
            nvidia.com/gpu: 8
            memory: 256Gi
        volumeMounts:
        - {name: shm, mountPath: /dev/shm}
      - name: sidecar
        image: example.org/logs:1
      volumes:
      - name: scratch
        emptyDir: {}
      - name: shm
        emptyDir:
          medium: Memory
          sizeLimit: 1Gi
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\n"
POD = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: x\n"
COMPOSE = """services:
  redis:
    image: redis:7
  serve:
    image: vllm/vllm-openai:v0.8.5
    command: --model m --gpu-memory-utilization 0.92
    environment:
      NCCL_DEBUG: WARN  # quiet
    shm_size: 16gb
"""


def env(name: str, to: Scalar) -> PatchTarget:
    """Make a target for a variable."""
    return target(name, to, kind="env", framework="nccl", spelled="env")


def flag(name: str, to: Scalar, framework: str = "vllm") -> PatchTarget:
    """Make a target for a flag."""
    return target(name, to, kind="flag", framework=framework, spelled="flag")


def cluster(name: str, to: Scalar) -> PatchTarget:
    """Make a target for a setting of Kubernetes."""
    return target(name, to, framework="kubernetes", spelled="yaml")


SHELL = POD + '    command: ["bash", "-c", "vllm serve m --max-num-seqs 64 --seed=1"]\n'
BLOCK = POD + "    args:\n    - |\n      vllm serve m \\\n        --max-num-seqs 64\n"

# Manifest, what is replaced by what in it, target.
CHANGES: list[tuple[str, str, str, PatchTarget]] = [
    (JOB, 'value: "WARN"', 'value: "INFO"', env("NCCL_DEBUG", "INFO")),
    (JOB, "key: k}}\n", "key: k}}\n        - name: NCCL_CUMEM_ENABLE\n          value: \"0\"\n", env("NCCL_CUMEM_ENABLE", 0)),
    (POD, "    image: x\n", "    image: x\n    env: [{name: A, value: '0'}]\n", env("A", 0)),
    (JOB, "utilization=0.92", "utilization=0.8", flag("--gpu-memory-utilization", 0.8)),
    (JOB, '- "64"', '- "16"', flag("--max-num-seqs", 16)),
    (JOB, "- --enforce-eager\n", "- --enforce-eager\n        - --max-model-len=8192\n", flag("--max-model-len", 8192)),
    (JOB, "- --enforce-eager\n", "- --enforce-eager\n        - --enable-chunked-prefill\n", flag("--enable-chunked-prefill", to=True)),
    (JOB, "256Gi", "512Gi", cluster("resources.limits.memory", "512Gi")),
    (JOB, "memory: 256Gi\n", "memory: 256Gi\n            ephemeral-storage: 200Gi\n", cluster("resources.limits.ephemeral-storage", "200Gi")),
    (JOB, "1Gi\n", "64Gi\n", cluster("volumes.emptyDir.sizeLimit", "64Gi")),
    (JOB, "1Gi\n", "64Gi\n", flag("--shm-size", "64g", "docker")),
    (SERVICE + JOB, "256Gi", "512Gi", cluster("resources.limits.memory", "512Gi")),
    (SERVICE + POD, "    image: x\n", "    image: x\n    resources:\n      limits:\n        memory: 8Gi\n", cluster("resources.limits.memory", "8Gi")),
    (POD, "    image: x\n", "    image: x\n  terminationGracePeriodSeconds: 300\n", cluster("terminationGracePeriodSeconds", 300)),
    (POD, "    image: x\n", "    image: x\n  priorityClassName: high\n", cluster("priorityClassName", "high")),
    (POD, "    image: x\n", "    image: x\n  activeDeadlineSeconds: 3600\n", cluster("activeDeadlineSeconds", 3600)),
    # A Job has its time limit beside its template, not in it.
    (JOB, "sizeLimit: 1Gi\n", "sizeLimit: 1Gi\n  activeDeadlineSeconds: 3600\n", cluster("activeDeadlineSeconds", 3600)),
    (SHELL, "seqs 64", "seqs 16", flag("--max-num-seqs", 16)),
    (SHELL, "seed=1", "seed=2", flag("--seed", 2)),
    (BLOCK, "seqs 64", "seqs 16", flag("--max-num-seqs", 16)),
    (COMPOSE, "0.92", "0.8", flag("--gpu-memory-utilization", 0.8)),
    (COMPOSE, "0.92", "0.92 --max-model-len=8192", flag("--max-model-len", 8192)),
    (COMPOSE, "16gb", "64g", flag("--shm-size", "64g", "docker")),
    (COMPOSE, "16gb\n", "16gb\n    mem_limit: 900g\n", flag("--memory", "900g", "docker")),
    (COMPOSE, "16gb\n", "16gb\n    ulimits:\n      memlock: -1\n", flag("--ulimit", "memlock=-1:-1", "docker")),
    (COMPOSE, "DEBUG: WARN ", "DEBUG: INFO ", env("NCCL_DEBUG", "INFO")),
    (COMPOSE, "# quiet\n", "# quiet\n      NCCL_CUMEM_ENABLE: '0'\n", env("NCCL_CUMEM_ENABLE", 0)),
    ("services:\n  a:\n    image: x\n    environment:\n    - A=1\n", "A=1", "A=8", env("A", 8)),
    ("services:\n  a:\n    image: x\n    environment: [B=1]\n", "[B=1]", "[B=1, A=8]", env("A", 8)),
    ("services:\n  a:\n    image: x\n", "image: x\n", "image: x\n    environment:\n      A: '8'\n", env("A", 8)),
]  # fmt: skip


@each_row(("before", "old", "new", "wanted"), CHANGES)
def test_a_manifest_gets_the_value_at_its_place(
    before: str, old: str, new: str, wanted: PatchTarget, tmp_path: Path
) -> None:
    after = apply(before, wanted)
    assert after == before.replace(old, new)
    assert holds(after, wanted)
    assert carries(after, wanted)
    assert apply(after, wanted) == after
    assert goes_back_and_forth(tmp_path, before, after, "job.yaml")


CARDS = "    resources: {limits: {nvidia.com/gpu: 1}}\n"
DISK = "    volumeMounts: [{name: shm, mountPath: /d}]\n  volumes:\n  - name: shm\n    emptyDir: {sizeLimit: 5Gi}\n"


@each_row(
    ("before", "after"),
    [
        (POD, POD + "    volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
         "  volumes: [{name: shm, emptyDir: {medium: Memory}}]\n"),
        # Only what has cards gets it, and no name twice.
        (POD + "  - name: b\n" + CARDS + DISK,
         POD + "  - name: b\n" + CARDS + DISK.replace("/d}]", "/d}, {name: dshm, mountPath: /dev/shm}]")
         + "  - name: dshm\n    emptyDir:\n      medium: Memory\n"),
        # What is mounted there lies on the disk.
        (POD + DISK.replace("/d", "/dev/shm"),
         POD + DISK.replace("/d", "/dev/shm").replace("5Gi", "5Gi, medium: Memory")),
    ],
)  # fmt: skip
def test_that_a_pod_gets_a_volume_in_memory_at_dev_shm(before: str, after: str, tmp_path: Path) -> None:
    wanted = cluster("volumes.emptyDir.medium", "Memory")
    made = apply(before, wanted)
    assert made == after
    assert holds(made, wanted)
    assert goes_back_and_forth(tmp_path, before, made, "job.yaml")
    assert apply(JOB, wanted) == JOB


TWO = POD + "    env:\n    - {name: A, value: '1'}\n  - name: b\n    env:\n    - {name: A, value: '1'}\n"


def test_what_several_containers_have_alike_is_changed_in_all() -> None:
    """The ranks of a job want one value."""
    made = apply(TWO, env("A", 8))
    assert made == TWO.replace("'1'", "'8'")
    assert holds(made, env("A", 8))


@each_row(
    ("text", "wanted", "reason"),
    [
        (JOB, env("TOKEN", "x"), "line 22 gets its value from elsewhere"),
        (TWO.replace("'1'", "'2'", 1), env("A", 8), "differ in it (lines 8, 11)"),
        (TWO, env("B", 8), "open which"),
        (JOB, env("HIP_VISIBLE_DEVICES", "unset"), "by hand"),
        (JOB, flag("--enforce-eager", to=False), "switch in line 18"),
        (SHELL, flag("--max-model-len", 8192), "a line for a shell"),
        (SHELL.replace("64", "$N"), flag("--max-num-seqs", 16), "by hand"),
        (JOB, flag("--chunked-prefill-size", 16, "sglang"), "no place"),
        (JOB, cluster("nothing", 1), "no place"),
        (POD, cluster("volumes.emptyDir.sizeLimit", "64Gi"), "no place"),
        (JOB.replace("medium: Memory", "medium: HugePages"), cluster("volumes.emptyDir.sizeLimit", "64Gi"), "no place"),
        (COMPOSE, flag("--gpu-memory-utilization", 0.8, "sglang"), "no place"),
        (JOB, env("LD_LIBRARY_PATH", "/usr/local/cuda/lib64"), "by hand"),
        (JOB, flag("--ipc", "host", "docker"), "no place"),
        (JOB, target("torch", ">=2.6", kind="package"), "not changed in a manifest"),
        (POD + "    env: &e\n    - {name: A, value: '1'}\n  - name: b\n    env: *e\n", env("A", 8), "alias"),
        ("x-e: &e {A: '1'}\nservices:\n  a:\n    image: x\n    environment: *e\n", env("A", 8), "line 5 is an alias"),
        ("services:\n  a:\n    image: x\n    environment: {A: '${A:-1}'}\n", env("A", 8), "computed"),
    ],
)  # fmt: skip
def test_what_a_manifest_says_otherwise_is_refused_with_its_line(
    text: str, wanted: PatchTarget, reason: str
) -> None:
    with pytest.raises(NotPatchableError) as refused:
        apply(text, wanted)
    assert reason in str(refused.value)


def test_a_merge_key_is_overridden_in_the_services_own_environment() -> None:
    """The shared mapping stays for the others."""
    text = "x-e: &e {A: '1'}\nservices:\n  a:\n    image: x\n    environment:\n      <<: *e\n      B: '2'\n"
    assert apply(text, env("A", 8)) == text + "      A: '8'\n"
