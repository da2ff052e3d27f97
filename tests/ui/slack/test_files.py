"""Attached files: where the bot's token goes, and what becomes of a file that cannot be fetched."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import replace
from typing import Any

import pytest

from service.app.triage_service import TriageService
from service.settings import Settings
from tests.factories import OOM, traceback
from tests.tables import each_row
from tests.ui.slack.conftest import Opener
from tests.ui.slack.standin import BOT_TOKEN
from tests.ui.slack.workspace import Workspace, eventually, shown
from ui.slack.answer import text_message
from ui.slack.client import open_client
from ui.slack.downloader import ORIGIN, DownloadedFiles, Downloader, losses, origin
from ui.slack.request_parser import SlackFile

LOG = traceback(OOM).encode()


def archive() -> bytes:
    """Pack a log into a tar."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        entry = tarfile.TarInfo("job/train.log")
        entry.size = len(LOG)
        tar.addfile(entry, io.BytesIO(LOG))
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "data"), [("train.log.gz", gzip.compress(LOG)), ("job.tar.gz", archive()), ("Untitled", LOG)]
)
def test_that_a_packed_file_and_a_snippet_are_read(work: Workspace, name: str, data: bytes) -> None:
    answer = work.answer(work.mention("why?", (work.slack.put(name, data),))["ts"])
    assert "CUDA out of memory" in shown(answer)
    assert {token for _, token in work.slack.asked_files} == {f"Bearer {BOT_TOKEN}"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"status": 404}, "does not know it"),
        ({"status": 403}, "does not give it"),
        ({"status": 500}, "does not give it"),
        ({"kind": "text/html; charset=utf-8"}, "does not give it"),
        ({"cut": 20}, "broke off"),
        ({"status": 302, "location": "https://elsewhere.example/login"}, "does not give it"),
    ],
)
def test_that_a_download_that_fails_is_said_and_ends_the_answer(
    work: Workspace, wrong: dict[str, Any], words: str
) -> None:
    event = work.mention("why?", (work.slack.put("train.log", LOG, **wrong),))
    told = shown(work.answer(event["ts"], "train.log"))
    assert words in told
    assert "None of the files" in told
    assert len(work.slack.asked_files) == 1


def test_that_an_answer_of_the_other_files_says_which_is_missing(work: Workspace) -> None:
    files = (
        work.slack.put("rank0.log", LOG),
        work.slack.put("rank1.log", LOG, status=404),
        work.slack.put("loss.png", b"\x89PNG"),
    )
    told = shown(work.answer(work.mention("why?", files)["ts"]))
    assert "CUDA out of memory" in told
    assert "`rank1.log` is left out" in told
    assert "`loss.png` is left out: it is neither" in told


@pytest.mark.parametrize(
    "url",
    [
        "https://files.slack.com.evil.example/f",
        "http://127.0.0.1:9/f",
        "https://evil.example/files.slack.com",
        "file:///etc/passwd",
        "http://[::1",
        "//files.slack.com/f",
        "https://files.slack.com@evil.example/f",
    ],
)
def test_that_the_token_goes_to_slack_alone(work: Workspace, url: str) -> None:
    file = work.slack.put("train.log", LOG) | {"url_private_download": url}
    told = shown(work.answer(work.mention("why?", (file,))["ts"], "train.log"))
    assert "does not lie at Slack" in told
    assert work.slack.asked_files == []


@each_row(
    ("url", "is_slacks"),
    [
        ("https://files.slack.com/files-pri/T1-F1/download/a.log", True),
        ("https://files.slack.com:443/x", True),
        ("http://files.slack.com/x", False),
        ("https://files.slack.com:8443/x", False),
        ("https://slack.com/x", False),
        ("https://files.slack.com.evil.example/x", False),
        ("https://user@files.slack.com/x", True),
    ],
)
def test_that_slacks_files_lie_at_one_place(url: str, is_slacks: bool) -> None:
    assert (origin(url) == ORIGIN) == is_slacks


def test_that_a_bot_of_the_real_slack_asks_no_other_host(settings: Settings) -> None:
    fetched = DownloadedFiles()
    Downloader(open_client(settings), settings).fetch(
        (SlackFile("F1", "a.log", 3, "http://127.0.0.1:9/a.log"),), fetched
    )
    assert fetched.lost == [("a.log", "file-place")]


def test_that_a_file_of_another_workspace_is_looked_up(work: Workspace) -> None:
    file = work.slack.put("train.log", LOG)
    work.slack.facts[file["id"]] = file
    hidden = {"id": file["id"], "file_access": "check_file_info"}
    assert "CUDA out of memory" in shown(work.answer(work.mention("why?", (hidden,))["ts"]))


def test_that_a_file_that_slack_does_not_know_is_said_to_be_lost(work: Workspace) -> None:
    work.slack.refuse("files.info", "file_not_found")
    event = work.mention("why?", ({"id": "F9", "file_access": "check_file_info"},))
    assert "does not know it" in shown(work.answer(event["ts"], "file"))


@pytest.mark.parametrize("size", [5 << 20, 0])
def test_that_a_file_that_is_too_large_is_not_read(
    triage_service: TriageService, settings: Settings, open_bot: Opener, size: int
) -> None:
    work = open_bot(triage_service, replace(settings, max_upload_mb=1))
    # One that says how large it is, and one that does not.
    file = work.slack.put("train.log", b"x" * (5 << 20)) | {"size": size}
    told = shown(work.answer(work.mention("why?", (file,))["ts"], "train.log"))
    assert "larger than 1 MB" in told


def test_that_so_many_files_are_fetched_and_no_more(work: Workspace) -> None:
    files = tuple(work.slack.put(f"rank{number}.log", LOG) for number in range(23))
    told = shown(work.answer(work.mention("why?", files)["ts"]))
    assert "no more than 20 files" in told
    assert len(work.slack.asked_files) == 20


def test_that_files_and_their_names_leave_no_trace_on_the_disk(
    work: Workspace, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    event = work.mention("why?", (work.slack.put("a.log", LOG), work.slack.put("b.log", LOG)))
    work.answer(event["ts"])
    eventually(lambda: not list(tmp_path.rglob("*")))


def test_that_a_lost_file_s_name_is_escaped_once() -> None:
    fetched = DownloadedFiles(lost=[("a&b`<!here>.png", "file-kind")])
    said = str(text_message("\n".join(losses(fetched, Settings(), "en"))).blocks)
    assert "`a&amp;b'&lt;!here&gt;.png`" in said


@pytest.mark.parametrize(
    ("words", "said"), [("why?", "train.log is empty"), ("为什么?", "没有得到答案：train.log 是空的")]
)
def test_that_a_log_that_cannot_be_read_is_told_in_the_askers_language(
    work: Workspace, words: str, said: str
) -> None:
    event = work.mention(words, (work.slack.put("train.log", b""),))
    assert said in shown(work.answer(event["ts"], "train.log"))
