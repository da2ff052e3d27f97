"""What the page may hand in at once, and how long that is waited for: as in the API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from threading import Event

import pytest
from starlette.testclient import TestClient

from service.api.app_state import AppState
from service.app.admission import SCOPES, Caller, Principal
from service.persistence.spool import Spool
from service.schemas.errors import BusyError, StoppingError
from tests.service.api.conftest import api_home, client, triage_service
from ui.chat.batches import BatchController, BatchForm
from ui.chat.uploads import Uploaded, Uploads

__all__ = ["api_home", "client", "triage_service"]

LOCAL = Principal(Caller("api", "local"), SCOPES)


@pytest.fixture
def incoming() -> Iterator[Uploads]:
    """Open a folder for uploads."""
    made = Uploads()
    yield made
    made.close()


def form(incoming: Uploads) -> BatchForm:
    """Keep a log as the server keeps uploads, and hand it in."""
    file = Spool().add("a.log")
    file.write(b"step 1\n")
    file.rewind()
    [place] = incoming.keep([file], "local")
    return BatchForm(files=[Uploaded(place=place, name="a.log")])


def test_that_the_page_has_no_more_places_than_the_api(client: TestClient, incoming: Uploads) -> None:
    """One caller's places are taken by either."""
    shared: AppState = client.app.state.app_state  # type: ignore[attr-defined]  # the app is FastAPI's
    controller, slots = BatchController(lambda: shared, incoming), shared.admission.uploads
    with ExitStack() as held:
        for _ in range((slots.most + 1) // 2):
            held.enter_context(slots.slot("local"))
        with pytest.raises(BusyError):
            controller.begin(form(incoming), LOCAL)
    assert controller.begin(form(incoming), LOCAL)["batch"]
    assert not slots.taken


def test_that_the_page_waits_no_longer_than_the_api(client: TestClient, incoming: Uploads) -> None:
    """A server that stops reads no more of what was handed in, and keeps nothing of it."""
    shared: AppState = client.app.state.app_state  # type: ignore[attr-defined]  # the app is FastAPI's
    stopping = Event()
    stopping.set()
    with pytest.raises(StoppingError):
        BatchController(lambda: replace(shared, stopping=stopping), incoming).begin(form(incoming), LOCAL)
