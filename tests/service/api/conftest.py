"""A triage service that is open, apps over it, and a real server; one worker serves all tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from service.api import keys
from service.api.app import create_app
from service.api.intake import BodyRateLimits
from service.app.triage_service import TriageService
from service.schemas.records import Scope
from service.settings import Settings
from tests.service.api.serving import Address, served
from tests.warm import triage, warm

__all__ = ["triage", "warm"]

Open = Callable[..., AbstractContextManager[TestClient]]
Serve = Callable[..., AbstractContextManager[Address]]


def settings_at(home: Path, **fields: Any) -> Settings:
    """Make settings of a service with one worker and no limit of requests."""
    return Settings(home=home, **{"embedding_model": "hash", "workers": 1, "rate_limit": 0, **fields})


@contextmanager
def opened(app: FastAPI, peer: str = "127.0.0.1") -> Iterator[TestClient]:
    """Talk to an app as a program on this machine does."""
    with TestClient(
        app, base_url="http://127.0.0.1", client=(peer, 50000), raise_server_exceptions=False
    ) as client:
        yield client


@pytest.fixture(scope="session")
def api_home(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an index of its own, to be written to."""
    return shutil.copytree(warm, tmp_path_factory.mktemp("api") / "home")


@pytest.fixture(scope="session")
def triage_service(api_home: Path) -> Iterator[TriageService]:
    """An open triage service."""
    with TriageService(settings_at(api_home)) as made:
        yield made


@pytest.fixture
def open_app(triage_service: TriageService, api_home: Path) -> Open:
    """Open an app over the triage service with settings of a test's own."""
    return lambda pace=None, **fields: opened(
        create_app(settings_at(api_home, **fields), triage_service, pace=pace)
    )


@pytest.fixture(scope="session")
def client(triage_service: TriageService, api_home: Path) -> Iterator[TestClient]:
    """The API as this machine itself may use it: no keys are there."""
    with opened(create_app(settings_at(api_home), triage_service)) as made:
        yield made


@pytest.fixture
def serve(triage_service: TriageService, api_home: Path) -> Serve:
    """Serve the triage service by a real web server on loopback."""

    def start(pace: BodyRateLimits | None = None, **fields: Any) -> AbstractContextManager[Address]:
        settings = settings_at(api_home, port=0, **fields)
        return served(create_app(settings, triage_service, pace=pace), settings)

    return start


@pytest.fixture(scope="session")
def guarded(
    warm: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TestClient, Mapping[str, str], TriageService]]:
    """An API with keys, one for each scope and a second one for `triage`: the client, the tokens, the triage
    service.
    """
    home = shutil.copytree(warm, tmp_path_factory.mktemp("guarded") / "home")
    settings = settings_at(home)
    with TriageService(settings) as made:
        scopes: Mapping[str, Scope] = {
            "triage": "triage",
            "other": "triage",
            "batch": "batch",
            "admin": "admin",
        }
        tokens = {name: _key(made, name, scope) for name, scope in scopes.items()}
        with opened(create_app(settings, made)) as client:
            yield client, tokens, made


def _key(triage_service: TriageService, name: str, scope: Scope) -> str:
    record, token = keys.make_key(name, [scope], datetime.now(UTC))
    triage_service.store.keys.add(record)
    return token


def bearer(token: str) -> dict[str, str]:
    """Give the header of a key."""
    return {"authorization": f"Bearer {token}"}
