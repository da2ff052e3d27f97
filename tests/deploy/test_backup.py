"""A backup of a server whose database is in PostgreSQL, as docs/operations.md says it, and brought back."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from service.api import keys
from service.persistence.store import Store
from service.schemas.records import TriageRecord
from service.settings import Settings
from tests.service.factories import diagnosis
from tests.service.persistence.cluster import Cluster, programs
from tests.warm import ROOT

pytestmark = pytest.mark.long
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\$ (pg_dump .*|createdb .*|pg_restore .*)$", PAGE, re.MULTILINE)


@pytest.mark.skipif(
    programs() is None or shutil.which("pg_dump") is None, reason="PostgreSQL is not installed"
)
def test_that_a_documented_dump_brings_keys_and_answers_back(tmp_path: Path) -> None:
    """Into a new database, with a copy of the home: the key lets in, and the answer is the one that was."""
    cluster = Cluster(programs() or Path())
    cluster.start()
    try:
        url = cluster.database()
        settings = Settings(home=tmp_path / "home", database=SecretStr(url))
        now = datetime.now(UTC)
        record, _ = keys.make_key("kept", ["triage"], now, "rl")
        made = TriageRecord(
            id="01ARZ3NDEKTSV4RRFFQ69G5FAV",
            state="done",
            origin="api",
            caller="team:rl",
            source="night.log",
            created=now,
            deadline=now + timedelta(hours=1),
            diagnosis=diagnosis(headline="what it was"),
        )
        with Store.open(settings) as store:
            store.keys.add(record)
            store.triages.add(made)
        assert len(ROWS) == 3
        libpq = url.replace("postgresql+psycopg://", "postgresql://")
        surroundings = os.environ | {
            "WHYCRASH_PG": libpq,
            "WHYCRASH_PG_NEW": libpq.replace("/test1", "/restored"),
            "PGHOST": str(cluster.folder),
            "PGUSER": "postgres",
            "PATH": f"{programs()}:{os.environ['PATH']}",
        }
        script = "\n".join(ROWS)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=surroundings,
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        shutil.copytree(tmp_path / "home", tmp_path / "copy")
        restored = SecretStr(url.replace("/test1", "/restored"))
        with Store.open(Settings(home=tmp_path / "copy", database=restored)) as store:
            assert [key.id for key in store.keys.all()] == [record.id]
            assert store.triages.get(made.id).diagnosis == made.diagnosis
            assert store.check() == ""
    finally:
        cluster.remove()
