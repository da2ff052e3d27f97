"""Build the wheel that is published: `python -m eval.release DIR`.

Beside the packages it holds what a checkout takes from elsewhere or makes itself (`ingest.shipped`), so that
it needs neither PyTorch nor minutes before its first answer.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from itertools import chain
from pathlib import Path

from ingest import default_model, shipped
from ingest.logs.inputs import sources
from ingest.redaction.prefilter import load_prefilter
from service.pipeline.triage import Triage
from service.settings import load_settings

ROOT = Path(__file__).parent.parent
PACKAGES = ("corpus", "ingest", "service", "eval", "ui", "whycrash")
SAMPLE = ROOT / "eval" / "incidents" / "teak-avocet" / "log.txt"
BESIDE = ("pyproject.toml", "README.md", "LICENSE")
# What stays in a checkout: who scores has one; these logs would be a thirtieth of an installation.
LEFT = (
    ROOT / "eval" / "incidents",
    ROOT / "eval" / "fresh" / "rounds",
    ROOT / "ingest" / shipped.FOLDER.name,
)


def build(target: Path) -> Path:
    """Build the wheel into a folder, and give its path."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_sources(tree)
        pack(tree / "ingest" / shipped.FOLDER.name, tree / "home")
        command = [sys.executable, "-m", "uv", "build", "--wheel", "--no-build-isolation", "--quiet"]
        command += ["--python", sys.executable, "--out-dir", str(tree / "dist"), str(tree)]
        subprocess.run(command, check=True)  # noqa: S603 - our own
        (made,) = (tree / "dist").glob("*.whl")
        target.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy2(made, target))


def copy_sources(tree: Path) -> None:
    """Copy what a wheel is made of into a folder."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name, ignore=_left)
    for name in BESIDE:
        shutil.copy2(ROOT / name, tree)


def _left(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name == "__pycache__" or Path(folder, name) in LEFT}


def pack(folder: Path, home: Path) -> None:
    """Write into a folder what the wheel brings along; it is made below `home`."""
    default_model.pack(folder)
    settings = load_settings({"WHYCRASH_HOME": str(home)}, own=home / "none.toml", folder=home)
    triage = Triage(settings)
    shipped.save_vectors(
        folder,
        {
            document.digest: vector
            for document, vector in zip(triage.index.documents, triage.index.vectors, strict=True)
        },
    )
    # One answer compiles all patterns.
    with closing(sources.from_text(SAMPLE.read_text(encoding="utf-8"))) as source:
        triage.diagnose(triage.read(source))
    # These are compiled where much is redacted.
    load_prefilter().compile_all()
    for made in chain(*map((home / "cache").glob, shipped.COMPILED)):
        shutil.copy2(made, folder)


if __name__ == "__main__":
    sys.stdout.write(f"{build(Path(sys.argv[1]))}\n")
