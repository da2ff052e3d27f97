"""Attacks by what is handed in: archives, rows that are slow to look through, secrets."""

from __future__ import annotations

import gzip
import io
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir

import httpx

from eval.attack.target import LOG, Attack, Target

# Seconds within which even a hostile upload is to be answered, the deadline of a request and a little more.
_ANSWERED_WITHIN = 150.0
# Made up, in the forms of their makers; none of them may be kept or told anywhere.
_SECRETS = (
    "ghp_" + "a1B2c3D4e5F6" * 3,
    "hf_" + "QwErTyUiOpAsDfGh" * 2 + "Zx",
    "sk-ant-api03-" + "k9J8h7G6" * 8,
    "AKIA" + "J5WQ2KXN7RTM4ZPL",
    "wandb-hunter-2-horse-battery",
    "xoxb-" + "123456789012-" * 2 + "AbCdEfGhIjKlMnOpQrStUvWx",
)


def _members() -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    content = LOG.encode()
    # A folder where it would be found below: what an attacker names need not be there.
    around = Path(gettempdir()).as_posix()
    for name in ("../../escaped.log", f"{around}/escaped.log", "a/../../../escaped.log", "nul\n.log"):
        member = tarfile.TarInfo(name)
        member.size = len(content)
        yield member, content
    for kind, name in ((tarfile.SYMTYPE, "link.log"), (tarfile.LNKTYPE, "hard.log")):
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        yield member, b""
    for kind, name in ((tarfile.CHRTYPE, "device.log"), (tarfile.FIFOTYPE, "pipe.log")):
        member = tarfile.TarInfo(name)
        member.type, member.devmajor, member.devminor = kind, 1, 5
        yield member, b""


def _names_that_lead_out(target: Target) -> str:
    """Hand in an archive whose names lead out of it, with links and devices."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for member, content in _members():
            archive.addfile(member, io.BytesIO(content))
    with target.client("triage") as client:
        files = {"log": ("../../../a.tar.gz", packed.getvalue())}
        answer = client.post("/v1/triage", files=files, data={"model": "false"})
    fell = [] if answer.status_code in (200, 422) else [f"status {answer.status_code}"]
    fell += ["/etc/passwd was read"] if "root:" in answer.text else []
    around = (target.folder, target.folder.parent, Path(gettempdir()))
    fell += [f"{path}" for folder in around for path in folder.glob("escaped*")]
    return ", ".join(fell)


def _bombs(target: Target) -> str:
    """Hand in files of some hundred kilobytes that unpack to gigabytes."""
    zeros = gzip.compress(b"\0" * (1 << 30), 1)
    nested = io.BytesIO()
    with zipfile.ZipFile(nested, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(f"{number}.log.gz", zeros)
    rows = gzip.compress(b"cookie: \n" * (4 << 20), 6)
    fell = []
    for name, raw in (("zeros.log.gz", zeros), ("many.zip", nested.getvalue()), ("rows.log.gz", rows)):
        began = time.monotonic()
        told = 0
        with target.client("triage") as client, suppress(httpx.HTTPError):
            sent, fields = {"log": (name, raw)}, {"model": "false"}
            answer = client.post("/v1/triage", files=sent, data=fields, timeout=_ANSWERED_WITHIN + 20)
            told = answer.status_code
        if told not in (200, 413, 422, 504) or time.monotonic() - began > _ANSWERED_WITHIN:
            fell.append(f"{name}: {told} after {time.monotonic() - began:.0f} s")
    with target.client("triage") as client:
        began = time.monotonic()
        after = client.post("/v1/triage", json={"text": LOG, "model": False}).status_code
    late = time.monotonic() - began > 30
    return ", ".join(fell + ([f"the next request: {after}"] if after != 200 or late else []))


def _secrets_kept(target: Target) -> str:
    """Hand in secrets, and look for them in the answer, the excerpt, the log and every file of the home."""
    names = (
        "GITHUB_TOKEN",
        "HF_TOKEN",
        "ANTHROPIC_API_KEY",
        "AWS_ACCESS_KEY_ID",
        "PASSWORD",
        "SLACK_BOT_TOKEN",
    )
    planted = dict(zip(names, _SECRETS, strict=True))
    rows = "".join(f"{name}={value}\n{{'{name.lower()}': '{value}'}}\n" for name, value in planted.items())
    text = rows + LOG + "".join(f"RuntimeError: {name}={value}\n" for name, value in planted.items())
    with target.client("triage") as client:
        answer = client.post("/v1/triage", json={"text": text, "model": False, "name": f"run {_SECRETS[0]}"})
        made = f"/v1/triages/{answer.json()['id']}"
        client.post(f"{made}/messages", json={"text": f"Is PASSWORD={_SECRETS[4]} wrong?"})
        client.get(f"/v1/triages/{_SECRETS[2]}")
        told = [client.get(made + part).text for part in ("", "/excerpt", "/messages")]
    shown = {"the answer": answer.text, "what is kept": "".join(told), "the server's log": target.log()}
    fell = [
        f"{_SECRETS.index(one)} in {where}"
        for where, text in shown.items()
        for one in _SECRETS
        if one in text
    ]
    for path in (file for file in target.home.rglob("*") if file.is_file()):
        with suppress(OSError):
            raw = path.read_bytes()
            fell += [f"{_SECRETS.index(one)} in {path.name}" for one in _SECRETS if one.encode() in raw]
    return ", ".join(fell)


ATTACKS = (
    Attack("Names, links and devices in an archive", _names_that_lead_out),
    Attack("Files that unpack to gigabytes, slow rows", _bombs),
    Attack("Secrets looked for wherever they may lie", _secrets_kept),
)
