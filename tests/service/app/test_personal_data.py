"""Deletion of all that is kept of a caller, and what the audit tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.app import personal_data
from service.batches.batches import BatchService, open_store
from service.persistence.store import Store
from service.schemas.errors import StoreError
from service.schemas.records import JobPlace, JobSpec
from service.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", embedding_model="hash")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with open_store(settings) as opened:
        yield opened


def _batch(batches: BatchService, caller: str) -> str:
    spec = JobSpec(name="job", place=JobPlace(paths=("/logs/1",)))
    return batches.accept("night", "folder", [spec], caller=caller).id


def test_the_machines_own_user_is_forgotten_with_the_batches_of_commands(
    settings: Settings, store: Store
) -> None:
    """Each command's batch has a name of its own; those of keys and teams stay."""
    batches = BatchService(settings, store)
    for caller in ("cli:0a1b", "cli:2c3d", "local"):
        _batch(batches, caller)
    others = {_batch(batches, caller) for caller in ("key-1", "team:cli", "client")}
    assert personal_data.delete(settings, store, batches, "local", "cli:local").batches == 3
    assert {record.id for record in store.batches.page()[0]} == others
    assert {path.name for path in (settings.home / "batches").iterdir() if path.is_dir()} == others


def test_a_key_is_forgotten_without_the_batches_of_commands(settings: Settings, store: Store) -> None:
    batches = BatchService(settings, store)
    kept = _batch(batches, "cli:0a1b")
    _batch(batches, "key-1")
    assert personal_data.delete(settings, store, batches, "key-1", "api:key-1").batches == 1
    assert [record.id for record in store.batches.page()[0]] == [kept]


def test_a_deletion_that_is_broken_off_stands_in_the_audit(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who began it, and of whom; the row of its end is missing."""
    batches = BatchService(settings, store)
    _batch(batches, "key-1")

    def broken(*_given: object) -> tuple[int, int, int]:
        raise StoreError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(store.retention, "forget_caller", broken)
        with pytest.raises(StoreError):
            personal_data.delete(settings, store, batches, "key-1", "api:key-1")
    assert [(row.actor, row.action, row.target) for row in store.audit.entries()] == [
        ("api:key-1", "delete data: begun", "key-1")
    ]
    personal_data.delete(settings, store, batches, "key-1", "api:key-1")
    assert [row.action for row in store.audit.entries()] == ["delete data: begun"] * 2 + ["delete data"]
