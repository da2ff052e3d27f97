"""Files attached to a message: fetched from Slack with the bot's token, bounded, into unnamed files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from corpus.schema import Language
from ingest.logs.inputs.members import CONFIG, kind_of
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor
from service.app.admission import largest_upload
from service.patching.patches import ConfigFile
from service.persistence.spool import Spool, SpooledUpload
from service.pipeline.triage import MAX_CONFIG_BYTES
from service.settings import Settings
from ui.slack.client import SlackClient
from ui.slack.errors import DownloadError, SlackError
from ui.slack.request_parser import SlackFile
from ui.slack.wording import say

# Where files of Slack's lie; the bot's token goes to no other place.
ORIGIN = ("https", "files.slack.com", 443)
MOST_FILES = 20
_PORTS = {"http": 80, "https": 443}
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
# What no log is, and no archive of logs either.
_NO_LOG = frozenset({"image", "checkpoint", "code", "not_a_log"})


@dataclass
class DownloadedFiles:
    """What came of a message's files: logs as paths, configurations, and what was left out and why."""

    spool: Spool = field(default_factory=Spool)
    configs: list[ConfigFile] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, text: str) -> None:
        """Add a log that is at hand."""
        spooled = self.spool.add(name)
        spooled.write(text.encode("utf-8", "replace"))
        spooled.rewind()


class Downloader:
    """Fetches files, so many bytes for one question."""

    def __init__(self, slack_client: SlackClient, settings: Settings) -> None:
        self._slack_client = slack_client
        self._token = settings.slack_bot_token.get_secret_value()
        self._most = largest_upload(settings)
        self._seconds = settings.request_deadline
        # A test's stand-in for Slack gives out its own files; Slack's API lies elsewhere than its files.
        is_slack = slack_client.client.base_url == slack_client.client.BASE_URL
        self._origin = ORIGIN if is_slack else origin(slack_client.client.base_url)

    def fetch(self, files: tuple[SlackFile, ...], fetched: DownloadedFiles) -> None:
        """Fetch files into `fetched`, which its owner closes; one that fails is noted there."""
        until = time.monotonic() + self._seconds
        with httpx.Client(timeout=_TIMEOUT, follow_redirects=False, trust_env=True) as client:
            left = self._most
            for file in files[:MOST_FILES]:
                try:
                    left -= self._one(client, file, fetched, left, until)
                except DownloadError as error:
                    fetched.lost.append((file.name, str(error)))
        fetched.lost += [(file.name, "file-many") for file in files[MOST_FILES:]]

    def _one(
        self, client: httpx.Client, file: SlackFile, fetched: DownloadedFiles, left: int, until: float
    ) -> int:
        if kind_of(file.name) in _NO_LOG:
            raise DownloadError("file-kind")
        file = self._located(file)
        if file.size > left:
            raise DownloadError("file-large")
        spooled = fetched.spool.add(file.name)
        try:
            for chunk in self._chunks(client, file, left, until):
                spooled.write(chunk)
            spooled.rewind()
        except DownloadError:
            _drop(fetched.spool, spooled)
            raise
        if kind_of(file.name) == CONFIG:
            raw = spooled.file.read(MAX_CONFIG_BYTES)
            text = raw.decode("utf-8", "replace")
            fetched.configs.append(ConfigFile.of(spooled.name, text, exact=text.encode() == raw))
            _drop(fetched.spool, spooled)
        return spooled.size

    def _located(self, file: SlackFile) -> SlackFile:
        if not file.url:
            try:
                file = self._slack_client.file(file)
            except SlackError as error:
                raise DownloadError("file-unknown") from error
        if origin(file.url) != self._origin:
            raise DownloadError("file-place")
        return file

    def _chunks(self, client: httpx.Client, file: SlackFile, left: int, until: float) -> Iterator[bytes]:
        # Raw: what is packed is unpacked later, within limits.
        headers = {"Authorization": f"Bearer {self._token}", "Accept-Encoding": "identity"}
        got = 0
        try:
            with client.stream("GET", file.url, headers=headers) as response:
                _check(response, file)
                for chunk in response.iter_raw():
                    got += len(chunk)
                    if got > left:
                        raise DownloadError("file-large")
                    if time.monotonic() > until:
                        raise DownloadError("file-slow")
                    yield chunk
        except httpx.TimeoutException as error:
            raise DownloadError("file-slow") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise DownloadError("file-short") from error
        if got < file.size:
            raise DownloadError("file-short")


def _check(response: httpx.Response, file: SlackFile) -> None:
    if response.status_code == httpx.codes.NOT_FOUND:
        raise DownloadError("file-unknown")
    # Without the right to a file, Slack sends its page to sign in, or to there.
    is_page = response.headers.get("content-type", "").startswith(
        "text/html"
    ) and not file.name.lower().endswith((".html", ".htm"))
    if response.status_code != httpx.codes.OK or is_page:
        raise DownloadError("file-refused")


def _drop(spool: Spool, spooled: SpooledUpload) -> None:
    spool.files.remove(spooled)
    spooled.file.close()


def origin(url: str) -> tuple[str, str, int]:
    """Give an address's scheme, host and port; of one that is none, nothing that would be allowed."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", "", 0


def losses(fetched: DownloadedFiles, settings: Settings, language: Language) -> list[str]:
    """Say which files are left out and why."""
    limits = {"file-large": settings.max_upload_mb, "file-many": MOST_FILES}
    # In a line of Markdown, which is escaped as a whole; a backtick would end the code that a name is.
    names = (printable(Redactor().clean(name))[:120].replace("`", "'") or "file" for name, _ in fetched.lost)
    return [
        say("lost-file", language, file=f"`{name}`", why=say(why, language, limit=limits.get(why, "")))
        for name, (_, why) in zip(names, fetched.lost, strict=True)
    ]
