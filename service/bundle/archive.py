"""Write what was gathered into one archive, with a manifest of all that is in it and of what is not."""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from service.bundle.gathering import BundleEntry

MANIFEST = "manifest.json"


def write_bundle(out: Path, entries: Iterable[BundleEntry], about: dict[str, object]) -> list[BundleEntry]:
    """Write the archive, readable by its owner alone; nothing is left where it fails. Gives its entries."""
    written: list[BundleEntry] = []
    rows: list[dict[str, object]] = []
    handle, part = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    try:
        with os.fdopen(handle, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz", compresslevel=5) as tar:
            for entry in entries:
                rows.append(entry.told)
                written.append(entry)
                if entry.content is not None:
                    tar.add(entry.content, entry.name, filter=_plain)
                    entry.content.unlink()
            told = {**about, "taken_at": datetime.now(UTC).isoformat(timespec="seconds"), "entries": rows}
            data = json.dumps(told, indent=1, ensure_ascii=False).encode()
            member = tarfile.TarInfo(MANIFEST)
            member.size = len(data)
            member.mtime = datetime.now(UTC).timestamp()
            tar.addfile(_plain(member), io.BytesIO(data))
        Path(part).replace(out)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    return written


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Keep nobody's name, and no right that a reader may not have."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member
