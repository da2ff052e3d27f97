"""The machine as tests find it: nobody was there before them, and nothing that lies in a user's home
counts.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ingest.workers import ray_folders

# Where programs look for settings and caches before they look below HOME, or for a cluster of somebody else.
_POINTERS = (
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "TRANSFORMERS_CACHE",
    "SENTENCE_TRANSFORMERS_HOME",
    "TORCH_HOME",
    "RAY_ADDRESS",
)
# What of ours stands where a user has it, were a test to forget that it has a home of its own.
_OURS = (".local/share/whycrash", ".cache/whycrash", ".config/whycrash")


def short_folder(prefix: str) -> Path:
    """Make a folder whose path leaves room for the names of sockets in it; pytest's own are too long."""
    return Path(ray_folders.new_folder(prefix))


def move_in() -> Path:
    """Give this process and all that it starts an empty home, whatever the user's own holds."""
    folder = short_folder("wh-")
    for name in [*_POINTERS, *(name for name in os.environ if name.startswith("WHYCRASH_"))]:
        os.environ.pop(name, None)
    (
        folder / "ray"
    ).mkdir()  # Ray writes there which cluster runs, and does not make the folder for a cluster of tests
    # Programs of the tests' own are found also after a part of the service has forbidden Python to look where
    # it stands.
    os.environ |= {
        "HOME": str(folder),
        "RAY_TMPDIR": str(folder),
        "PYTHONPATH": str(Path(__file__).parent.parent),
        # As the program's own workers have it: beside other workers, a small product waits for BLAS's threads
        # far longer than it takes.
        "OPENBLAS_NUM_THREADS": "1",
    }
    return folder


def left_behind(folder: Path) -> list[str]:
    """Name what tests left in the home that they were given, although each has its own."""
    return [name for name in _OURS if (folder / name).exists()]


def move_out(folder: Path) -> None:
    """Delete the home."""
    shutil.rmtree(folder, ignore_errors=True)
