"""What keeps a page of somebody else's in the user's browser from using a server on the user's machine.

Two ways lead there: a name that is made to resolve to 127.0.0.1 (DNS rebinding; the Host header tells), and a
form or script of another page that posts (CSRF; the Origin header tells).
https://fetch.spec.whatwg.org/#origin-header
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from corpus.message import Message
from service.schemas.errors import ForbiddenError, MisdirectedError, RequestError
from service.settings import Settings

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


def is_loopback(host: str) -> bool:
    """Tell whether an address or name is this machine to itself."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def host_of(netloc: str) -> str:
    """Give the host of `host:port`, in lower case; empty where it is none."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


class OriginPolicy:
    """Which Host and Origin headers a server takes."""

    def __init__(self, settings: Settings) -> None:
        self._loopback = is_loopback(settings.host)
        self._public = urlsplit(settings.public_url).netloc.lower()

    def refusal(self, method: str, headers: Mapping[str, str]) -> RequestError | None:
        """Give why a request is refused; None where it is not."""
        host = headers.get("host", "").lower()
        is_ours = is_loopback(host_of(host)) or (bool(self._public) and host == self._public)
        if self._loopback and not is_ours:
            return MisdirectedError(Message("errors.host-header-names-another"))
        if method not in SAFE and not self._same_origin(host, headers):
            return ForbiddenError(Message("errors.page-another-origin-not"))
        return None

    def is_local(self, peer: str, headers: Mapping[str, str]) -> bool:
        """Tell whether a request comes from this machine to its loopback address, with no proxy between."""
        if not self._loopback or any(name in headers for name in _FORWARDED):
            return False
        return is_loopback(peer) and is_loopback(host_of(headers.get("host", "")))

    def _same_origin(self, host: str, headers: Mapping[str, str]) -> bool:
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        netloc = urlsplit(origin).netloc.lower() if "://" in origin else ""
        return bool(netloc) and netloc in (host, self._public)
