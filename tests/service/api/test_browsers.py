"""Which Host and Origin headers are taken, and who counts as this machine."""

from __future__ import annotations

from service.api.browsers import OriginPolicy
from service.settings import Settings
from tests.tables import each_row

LOCAL = {"host": "127.0.0.1:8642"}


@each_row(
    ("host", "taken"),
    [
        ("127.0.0.1:8642", True),
        ("localhost:8642", True),
        ("LOCALHOST", True),
        ("[::1]:8642", True),
        ("127.9.9.9", True),
        ("triage.example.org", True),
        ("evil.example.com", False),
        ("127.0.0.1.evil.example.com", False),
        ("localhost.evil.example", False),
        ("", False),
        ("[::1", False),
        ("10.0.0.5:8642", False),
        ("169.254.169.254", False),
    ],
)
def test_that_a_loopback_server_answers_to_its_own_names_alone(host: str, taken: bool) -> None:
    """A name that somebody made to resolve to this machine is not one of them."""
    boundary = OriginPolicy(Settings(public_url="https://triage.example.org"))
    assert (boundary.refusal("GET", {"host": host}) is None) is taken


@each_row(
    ("headers", "taken"),
    [
        ({}, True),
        ({"origin": "http://127.0.0.1:8642"}, True),
        ({"origin": "https://triage.example.org"}, True),
        ({"origin": "null"}, False),
        ({"origin": "http://127.0.0.1:9999"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": ""}, False),
        ({"origin": "http://127.0.0.1:8642.evil.example"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-site"}, False),
    ],
)
def test_that_only_pages_of_the_same_origin_may_change_something(
    headers: dict[str, str], taken: bool
) -> None:
    """A program sends no Origin; a browser always does with what changes something elsewhere."""
    boundary = OriginPolicy(Settings(public_url="https://triage.example.org"))
    assert (boundary.refusal("POST", LOCAL | headers) is None) is taken
    assert boundary.refusal("GET", LOCAL | headers) is None


@each_row(
    ("bound", "peer", "headers", "local"),
    [
        ("127.0.0.1", "127.0.0.1", LOCAL, True),
        ("127.0.0.1", "::1", {"host": "localhost"}, True),
        ("::", "127.0.0.1", LOCAL, False),
        ("127.0.0.1", "10.0.0.5", LOCAL, False),
        ("127.0.0.1", "", LOCAL, False),
        ("127.0.0.1", "127.0.0.1", {"host": "triage.example.org"}, False),
        ("127.0.0.1", "127.0.0.1", LOCAL | {"x-forwarded-for": "10.0.0.5"}, False),
        ("127.0.0.1", "127.0.0.1", LOCAL | {"forwarded": "for=1.2.3.4"}, False),
    ],
)
def test_that_this_machine_is_known_by_address_and_name_and_not_through_a_proxy(
    bound: str, peer: str, headers: dict[str, str], local: bool
) -> None:
    """Who comes through a proxy is somebody else, wherever the proxy runs."""
    assert (
        OriginPolicy(Settings(host=bound, public_url="https://triage.example.org")).is_local(peer, headers)
        is local
    )
