"""The documentation's curl lines and its Python client, run against a real server."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.service.api.conftest import Serve
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "api.md"
_BLOCK = re.compile(r"<!-- test: curl -->\n```console\n(?P<body>.*?)```", re.DOTALL)
_CLIENT = re.compile(r"<!-- test: client -->\n```python\n(?P<body>.*?)```", re.DOTALL)
_WRITTEN = "http://127.0.0.1:8642"


def script(text: str, url: str, folder: Path) -> str:
    """Make a shell script of the block: one that stops at the first error, asks `url`, and writes into
    `folder` alone.
    """
    block = _BLOCK.search(text)
    assert block, "the page has no block of curl lines"
    rows = [row.removeprefix("$ ") for row in block["body"].splitlines() if row.startswith("$ ")]
    assert len([row for row in rows if "curl " in row]) >= 12
    body = "\n".join(rows).replace(_WRITTEN, url).replace("/tmp/", f"{folder}/")
    return (
        f'set -euo pipefail\ncurl() {{ command curl --silent --show-error --fail-with-body --noproxy "*" '
        f'"$@"; }}\n{body}\n'
    )


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_that_the_documented_curl_lines_run(serve: Serve, tmp_path: Path) -> None:
    """In their order, each without an error."""
    with serve() as address:
        done = subprocess.run(
            ["bash", "-c", script(PAGE.read_text(encoding="utf-8"), address.url, tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "event: final" in done.stdout
    assert (tmp_path / "summary.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype")


@pytest.mark.long
def test_that_the_documented_client_runs(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a program of a user's own would run it."""
    block = _CLIENT.search(PAGE.read_text(encoding="utf-8"))
    assert block, "the page has no block of the client"
    monkeypatch.chdir(ROOT)
    with serve() as address:
        exec(compile(block["body"].replace(_WRITTEN, address.url), "documentation", "exec"), {})  # noqa: S102 - the documentation's own code
    assert "log.txt cpu-offload-pressure" in capsys.readouterr().out
