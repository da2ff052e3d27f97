"""Attacks on who may do what: with no key, a wrong one, one of another scope or another owner."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from eval.attack.target import CANARY, LOG, RATE, Attack, Target

# Routes that tell everybody the same.
_OPEN = ("/healthz", "/readyz")
# What the page's framework brings beside what the page needs.
_BROUGHT = (
    "/gradio_api/file=/etc/passwd",
    "/file=/etc/passwd",
    "/gradio_api/proxy=http://127.0.0.1:1/",
    "/gradio_api/stream/x/y/z/playlist.m3u8",
    "/gradio_api/info",
    "/gradio_api/call/explain",
    "/gradio_api/mcp/",
    "/gradio_api/monitoring",
    "/monitoring",
    "/login",
    "/redoc",
    "/gradio_api/upload_progress?upload_id=x",
    "/gradio_api/dev/reload",
)


def _without_key(target: Target) -> str:
    """Ask every route of the API by each of its methods, with what is no key."""
    token = target.tokens["admin"]
    headers: Sequence[Mapping[str, str]] = (
        {},
        target.sent("revoked"),
        {"authorization": f"Bearer {token[:-1]}"},
        {"authorization": f"Bearer {token[:-1]}{'B' if token.endswith('A') else 'A'}"},
        {"authorization": token},
        {"authorization": "Bearer"},
        {"x-forwarded-for": "127.0.0.1"},
        {"cookie": f"authorization=Bearer {token}"},
    )
    fell = []
    with target.client() as client:
        paths = client.get("/openapi.json").json()["paths"]
        for path in paths:
            asked = path.replace("{triage_id}", "x").replace("{batch_id}", "x").replace("{case_id}", "a/b")
            for method in () if path in _OPEN else paths[path]:
                fell += [
                    f"{method} {path} {answer.status_code}"
                    for header in headers
                    if (answer := client.request(method, asked, headers=header)).status_code != 401
                ]
    return ", ".join(fell[:3])


def _page_without_key(target: Target) -> str:
    """Load the page, join its queue, and call what stands beside its events."""
    asked = (
        ("GET", "/"),
        ("GET", "/config"),
        ("POST", "/gradio_api/queue/join"),
        ("POST", "/gradio_api/component_server/"),
        ("POST", "/gradio_api/upload"),
    )
    with target.client() as client:
        fell = [
            f"{path} {answer.status_code}"
            for method, path in asked
            if (answer := client.request(method, path)).status_code != 401
        ]
    return ", ".join(fell)


def _anothers_triage(target: Target) -> str:
    """Read, ask on, rate and delete a triage by its id, with each key that is not its owner's."""
    made = f"/v1/triages/{target.triage()}"
    asked: Sequence[tuple[str, str, Any]] = (
        ("GET", made, None),
        ("GET", f"{made}/excerpt", None),
        ("GET", f"{made}/messages", None),
        ("GET", "/v1/triages?q=pasted", None),
        ("POST", f"{made}/messages", {"text": "why?"}),
        ("POST", f"{made}/feedback", {"right": True}),
        ("DELETE", made, None),
    )
    fell = []
    for key in ("other", "batch"):
        with target.client(key) as client:
            for method, path, body in asked:
                answer = client.request(method, path, json=body)
                own_list = "?q" in path and key == "other"
                if CANARY in answer.text or (answer.status_code not in (403, 404) and not own_list):
                    fell.append(f"{key}: {method} {path} {answer.status_code}")
    with target.client("triage") as client:
        if client.get(made).status_code != 200:
            fell.append("the owner's triage is gone")
    return ", ".join(fell)


def _by_the_page(target: Target, key: str, name: str, data: Mapping[str, Any]) -> str:
    """Give what an event or a call of the page answers."""
    with target.client("admin") as client:
        config = client.get("/config").json()
    component = next(item["id"] for item in config["components"] if item["type"] == "html")
    events = {item["targets"][0][1]: item["id"] for item in config["dependencies"]}
    session = secrets.token_hex(8)
    body: dict[str, Any] = {"session_hash": session}
    with target.client(key) as client:
        if name not in events:
            body |= {"component_id": component, "fn_name": name, "data": data}
            answer = client.post("/gradio_api/component_server/", json=body)
            return f"{answer.status_code} {answer.text}"
        body |= {"data": [], "event_data": data, "fn_index": events[name], "trigger_id": component}
        client.post("/gradio_api/queue/join", json=body)
        return client.get("/gradio_api/queue/data", params={"session_hash": session}).text


def _page_as_a_back_door(target: Target) -> str:
    """Go round scope and owner by the page's events, by another key's triage."""
    made = target.triage()
    data = {"triage": made, "question": "why?", "right": True, "text": LOG, "model": False}
    fell = []
    for name in ("ask", "look", "log", "judge", "prompt", "forget"):
        sent = {field: data[field] for field in _FIELDS[name]}
        fell += [
            f"{name} by {key}"
            for key in ("other", "batch")
            if _is_served(told := _by_the_page(target, key, name, sent)) or CANARY in told
        ]
    if _is_served(_by_the_page(target, "batch", "explain", {"text": LOG, "model": False})):
        fell.append("explain by batch")
    with target.client("triage") as client:
        record = client.get(f"/v1/triages/{made}")
        if record.status_code != 200 or client.get(f"/v1/triages/{made}/messages").json()["items"]:
            fell.append("the owner's triage was changed")
    # Were the page to refuse everybody, all of the above would say nothing.
    if CANARY not in _by_the_page(target, "triage", "log", {"triage": made}):
        fell.append("the owner is refused too")
    return ", ".join(fell)


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "ask": ("triage", "question"),
    "look": ("triage",),
    "log": ("triage",),
    "judge": ("triage", "right"),
    "prompt": ("triage",),
    "forget": ("triage",),
}


def _is_served(told: str) -> bool:
    refused = ("There is no triage", "scopes are", "scope admin", "urn:whycrash:error", "asks too often")
    return not any(words in told for words in refused)


def _servers_own_machine(target: Target) -> str:
    """Have the server's own machine read, with a key that may only triage."""
    body = {"text": LOG, "model": False, "telemetry": "live"}
    with target.client("triage") as client:
        by_api = client.post("/v1/triage", json=body).status_code
    by_page = _by_the_page(target, "triage", "explain", {"text": LOG, "model": False, "live": True})
    fell = [f"API {by_api}"] if by_api != 403 else []
    return ", ".join(fell + (["page"] if _is_served(by_page) else []))


def _places_of_the_server(target: Target) -> str:
    """Make a batch of a folder of the server, or of an address that only the server reaches."""
    asked = [
        {"source": "folder", "where": "/etc"},
        {"source": "folder", "where": f"{target.home}/../../etc"},
        {"source": "kubernetes", "where": "/var/log"},
        {"source": "ray", "where": "http://169.254.169.254/latest/"},
        {"source": "ray", "where": f"{target.url}/"},
        {"source": "ray", "where": "file:///etc/passwd"},
    ]
    with target.client("admin") as client:
        fell = [
            f"{body['where']} {answer.status_code}"
            for body in asked
            if (answer := client.post("/v1/batches", json=body)).status_code not in (403, 422)
        ]
    return ", ".join(fell)


def _brought_routes(target: Target) -> str:
    """Use what the page's framework offers beside the page, with the strongest key."""
    with target.client("admin") as client:
        fell = [
            f"{method} {path} {answer.status_code}"
            for path in _BROUGHT
            for method in ("GET", "POST")
            if (answer := client.request(method, path)).status_code not in (404, 405)
        ]
    return ", ".join(fell)


def _switches(target: Target) -> str:
    """Turn something on by a word that is no truth value, and a path by a method it does not take."""
    fell = []
    with target.client("triage") as client:
        for value in ("yes", "true", 1, "on", None):
            answer = client.post("/v1/triage", json={"text": LOG, "model": value})
            fell += [f"model={value!r}"] if answer.status_code != 422 else []
        for method in ("TRACE", "OPTIONS", "PUT", "PATCH"):
            told = client.request(method, "/v1/triage")
            fell += [f"{method} {told.status_code}"] if told.status_code != 405 else []
        twice = client.post("/v1/triage", content=b"{", headers={"content-type": "application/json"})
        fell += [f"broken JSON {twice.status_code}"] if twice.status_code != 422 else []
    return ", ".join(fell)


def _keys_guessed(target: Target) -> str:
    """Try keys as fast as they go; the address is to be told to wait, and a right key still let in."""
    token = f"whycrash_{secrets.token_hex(6)}_{secrets.token_urlsafe(32)}"
    with target.client() as client:
        told, count, seconds = _guesses(client, token)
    with target.client("admin") as client:
        own = client.get("/v1/status").status_code
    if told == 429 and own == 200:
        return ""
    return json.dumps({"guesses": told, "count": count, "seconds": round(seconds), "a right key": own})


def _guesses(client: httpx.Client, token: str) -> tuple[int, int, float]:
    """Guess until another answer comes, or clearly too often; what goes by fills the bucket again."""
    began, count, told = time.monotonic(), 0, 401
    while told == 401 and count < RATE + 100 + RATE / 60 * (time.monotonic() - began) and count < 10 * RATE:
        told = client.get("/v1/triages", headers={"authorization": f"Bearer {token}"}).status_code
        count += 1
    return told, count, time.monotonic() - began


ATTACKS = (
    Attack("API without a key, or with what is none", _without_key),
    Attack("Page without a key", _page_without_key),
    Attack("Another key's triage by its id", _anothers_triage),
    Attack("Page as a way round scope and owner", _page_as_a_back_door),
    Attack("Server's own machine read with a small key", _servers_own_machine),
    Attack("Folders and addresses of the server", _places_of_the_server),
    Attack("Routes that the page's framework brings", _brought_routes),
    Attack("Lax truth values, odd methods, broken JSON", _switches),
)
# What spends the rate of this address comes after all that needs it.
LAST = (Attack("Keys guessed as fast as they go", _keys_guessed),)
