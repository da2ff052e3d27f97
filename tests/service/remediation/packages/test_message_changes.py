"""The first change for failures of packages, drivers and cards whose message stands alone or has one call."""

from __future__ import annotations

from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from tests.service.remediation.test_made_up_jobs import answer, stack

SITE = "/opt/env/lib/python3.11/site-packages"
SYMBOL = "undefined symbol: _ZNK3c105Error4whatEv"


def raised(error: str, *files: str) -> str:
    """Write a traceback through files of installed packages."""
    return stack("/job/main.py:main", *(f"{SITE}/{file}:call" for file in files), error=error)


# What the message says, whose code raised it if that tells, and the change that comes first.
ROWS = {
    # Who wrote the file is newer than who reads it.
    "Exception: data did not match any variant of untagged enum ModelWrapper at line 7 column 3": (
        "transformers"
    ),
    "ValueError: Tokenizer class Moss9Tokenizer does not exist or is not currently imported.": "transformers",
    "ValueError: Couldn't instantiate the backend tokenizer from one of: (1) a file": "sentencepiece",
    "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'no_release_has_it'": "peft",
    # A name that another package has no longer, or not yet.
    raised(
        "ModuleNotFoundError: No module named 'triton.ops'", "bitsandbytes/triton/matmul.py"
    ): "bitsandbytes",
    raised("AttributeError: module 'pyarrow.lib' has no attribute 'Nil'", "datasets/features.py"): "pyarrow",
    raised(
        "ImportError: cannot import name 'Nil' from 'collections' (/usr/lib/x.py)", "attrdict/m.py"
    ): "attrdict",
    "AttributeError: module 'triton.language' has no attribute 'constexpr_function'": "triton",
    "pkg_resources.VersionConflict: (datasets 1.2.0 (/env), Requirement.parse('datasets>=2.14'))": "datasets",
    "pkg_resources.DistributionNotFound: The 'tokenizers<0.20' distribution was not found and is": (
        "tokenizers"
    ),
    "TypeError: Descriptors cannot not be created directly.": "protobuf",
    "TypeError: load() missing 1 required positional argument: 'Loader'": "PyYAML",
    "AssertionError: The installed `transformers` version doesn't support ulysses patch. Please install a "
    "version between 4.45.0 and 4.47.1 to use this ulysses feature.": "transformers",
    "ValueError: Unsupported torch version detected: torch 2.9.x with Conv3D.": "torch",
    "AssertionError: no_sync context manager is incompatible with gradient partitioning logic of ZeRO "
    "stage 3": "deepspeed",
    "[TensorRT-LLM][ERROR] 6: The engine plan file is not compatible with this version of TensorRT, "
    "expecting library version 10.1.0.2 got 10.2.0.1, please rebuild.": "trtllm-build",
    # Compiled for something else.
    "RuntimeError: operator torchvision::nms does not exist": "torchvision",
    "RuntimeError: Couldn't load custom C++ ops. This can happen if your PyTorch and torchvision versions "
    "are incompatible, or if you had errors while compiling": "torchvision",
    f"OSError: {SITE}/torchaudio/lib/libtorchaudio.so: {SYMBOL}": "torchaudio",
    f"ImportError: /job/ops/_ext.cpython-310-x86_64-linux-gnu.so: {SYMBOL}": (
        "pip install --no-build-isolation --force-reinstall --no-deps ."
    ),
    f"ImportError: {SITE}/torch/lib/libtorch_cuda.so: undefined symbol: cudnnGetVersion, version "
    "libcudnn_graph.so.9": "LD_LIBRARY_PATH",
    "AttributeError: _ARRAY_API not found": "numpy",
    raised(
        "ImportError: libcudart.so.12: cannot open shared object file: No such file", "lmdeploy/t.py"
    ): "lmdeploy",
    "RuntimeError: PyTorch version mismatch! DeepSpeed ops were compiled and installed with a different "
    "version than what is being used at runtime.": "deepspeed",
    "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'": "vllm",
    # An argument that the job's own call gives to a constructor which the message does not name.
    'Traceback (most recent call last):\n  File "/job/main.py", line 9, in main\n'
    "    model = AutoModel.from_pretrained(name, load_in_4bit=True)\n"
    f'  File "{SITE}/transformers/modeling_utils.py", line 20, in from_pretrained\n'
    "TypeError: __init__() got an unexpected keyword argument 'load_in_4bit'\n": "transformers",
    # Not there.
    "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory": "libnuma1",
    "ImportError: libGL.so.1: cannot open shared object file: No such file or directory": "libgl1",
    "run.sh: line 12: torchrun: command not found": "torch",
    "bash: deepspeed: command not found": "deepspeed",
    "RuntimeError: launcher 'pdsh' not installed.": "pdsh",
    "RuntimeError: numactl is required for NUMA binding but is not installed or not available on PATH.": (
        "numactl"
    ),
    "ValueError: VLLM_ATTENTION_BACKEND is set to FLASHINFER, but flashinfer module was not found.": (
        "VLLM_ATTENTION_BACKEND"
    ),
    # Cards and drivers.
    "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 "
    "GPU has compute capability 7.5.": "--dtype",
    raised(
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "flash_attn/a.py",
    ): ("flash-attn"),
    "Error no kernel image is available for execution on the device at line 89 in file /src/csrc/ops.cu": (
        "bitsandbytes"
    ),
    "RuntimeError: Unable to load inference_core_ops op due to no compute capabilities remaining after "
    "filtering": "TORCH_CUDA_ARCH_LIST",
    "nvrtc: error: invalid value for --gpu-architecture (-arch)": "torch",
    "RuntimeError: FlashAttention only supports Ampere GPUs or newer.": "flash-attn",
    "RuntimeError: No available kernel. Aborting execution.": "torch.nn.attention.sdpa_kernel",
    "Failed to initialize NVML: Driver/library version mismatch": "reboot",
    "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown": (
        "reboot"
    ),
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.": "nvidia-driver",
    "RuntimeError: No CUDA GPUs are available": "CUDA_VISIBLE_DEVICES",
    "RuntimeError: CUDA error: invalid device ordinal": "CUDA_VISIBLE_DEVICES",
    "docker: Error response from daemon: unknown or invalid runtime name: nvidia.": (
        "nvidia-ctk runtime configure --runtime=docker"
    ),
    "/usr/bin/ld: cannot find -lcuda: No such file or directory": "LIBRARY_PATH",
}


def test_that_a_message_says_which_package_or_machine_to_change(triage: Triage) -> None:
    found = {log: answer(triage, f"{log}\n")[1] for log in ROWS}
    assert {log: changes[0][1] if changes else None for log, changes in found.items()} == ROWS


def test_that_a_listed_version_tells_the_one_that_fits(triage: Triage) -> None:
    """`pip list` writes a row, `pip show` two; a table of another program is none."""
    failure = raised("RuntimeError: operator torchvision::nms does not exist", "torchvision/_meta.py")
    rows = {
        "torch                 2.4.0\ntorchvision           0.20.1\n": ["==0.19.0", "==2.5.1"],
        "Name: torch\nVersion: 2.4.0+cu121\nName: torchvision\nVersion: 0.20.1+cu124\n": [
            "==0.19.0",
            "==2.5.1",
        ],
        "epochs                2.4.0\nbatch                 0.20.1\n": [
            "the release that belongs to the installed torch, from the same index"
        ],
    }
    assert {log: _values(triage, f"{log}{failure}") for log in rows} == rows


def _values(triage: Triage, log: str) -> list[object]:
    found = triage.diagnose(triage.read(sources.from_text(log)))
    return [change.to for change in found.first.changes]
