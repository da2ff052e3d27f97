"""The last gate: no secret, and nothing that a database refuses, gets through any field."""

from __future__ import annotations

from sqlalchemy import select

from service.persistence import sanitizer
from service.persistence.outcomes import JobResult
from service.persistence.schema import METADATA
from service.persistence.store import Store
from service.schemas.diagnosis import Evidence, ReadLimits
from service.schemas.records import (
    AuditRecord,
    Excerpt,
    FeedbackRecord,
    JobPlace,
    JobSpec,
    KeyRecord,
    LineRange,
    MessageRecord,
)
from tests.service.factories import diagnosis
from tests.service.persistence.makers import NOW, batch, triage
from tests.tables import each_row

TOKEN = "hf_" + "aBcDeFgHiJ" * 3 + "kLmN"
DIRTY = f"before {TOKEN} after \x00 \ud800 end"
CLEAN = "before [redacted:huggingface-token] after \ufffd \ufffd end"


def fill(store: Store) -> None:
    """Put the dirty text into every field that takes free text."""
    answer = diagnosis(
        source=DIRTY,
        headline=DIRTY,
        explanation=DIRTY,
        patch=DIRTY,
        checks=(DIRTY,),
        limits=ReadLimits(bytes=1, lines=1, omitted={DIRTY: DIRTY}),
        evidence=(Evidence(line=1, text=DIRTY, role="root", why=DIRTY, file=DIRTY),),
    )
    store.triages.add(
        triage(
            caller=DIRTY,
            source=DIRTY,
            error=DIRTY,
            telemetry=DIRTY,
            configs=((DIRTY, DIRTY),),
            diagnosis=answer,
        )
    )
    excerpt = Excerpt(stretches=(LineRange(file=DIRTY, begin=1, lines=(DIRTY, "x")),))
    store.triages.answer(
        "T1",
        answer,
        final=True,
        now=NOW,
        excerpt=excerpt,
        error=DIRTY,
        configs=[(DIRTY, DIRTY)],
        telemetry=DIRTY,
    )
    store.triages.add_messages("T1", MessageRecord(role="user", text=DIRTY, created=NOW))
    store.triages.add_feedback(
        FeedbackRecord(
            triage="T1", caller=DIRTY, created=NOW, right=False, cause=DIRTY, fix=TOKEN, comment=TOKEN
        )
    )
    spec = JobSpec(name=DIRTY, place=JobPlace(paths=("a.log",)), node_names=(DIRTY,))
    keys = store.batches.add(batch(name=DIRTY, caller=DIRTY, left_out={DIRTY: DIRTY}), [spec] * 3)
    store.batches.claim("me", 3, 60, NOW)
    store.batches.finish_many(
        "me", [JobResult(keys[0], root_file=DIRTY, root_text=DIRTY, diagnosis=answer)], NOW
    )
    store.batches.fail(keys[1], "me", DIRTY, None, NOW)
    store.batches.fail(keys[2], "me", DIRTY, NOW, NOW)
    store.keys.add(KeyRecord(id="k1", name=DIRTY, hash="ab", scopes=(), created=NOW))
    store.audit.add(AuditRecord(at=NOW, actor=DIRTY, action=DIRTY, target=DIRTY, detail=DIRTY))


def test_that_no_secret_reaches_any_table(store: Store) -> None:
    fill(store)
    held = []
    with store.database.read() as connection:
        for table in METADATA.sorted_tables:
            held += [
                repr(value)
                for row in connection.execute(select(table))
                for value in row
                if not isinstance(value, bytes)
            ]
    held += [store.triages.get("T1").model_dump_json(), store.triages.excerpt("T1").model_dump_json()]
    held += [job.model_dump_json() for job in store.batches.jobs("B1")[0]]
    assert [text for text in held if TOKEN in text or TOKEN[3:] in text] == []
    assert sum("redacted:huggingface-token" in text for text in held) > 20


def test_that_what_surrounds_a_secret_stays(store: Store) -> None:
    fill(store)
    found = store.triages.get("T1")
    assert found.diagnosis is not None
    assert (found.source, found.diagnosis.headline, found.diagnosis.evidence[0].text) == (CLEAN, CLEAN, CLEAN)
    assert found.configs == ((CLEAN, CLEAN),)
    assert [job.name for job in store.batches.jobs("B1")[0]] == [CLEAN] * 3


def test_that_a_secret_over_several_lines_of_an_excerpt_is_masked() -> None:
    lines = ("-----BEGIN RSA PRIVATE KEY-----", "A" * 64, "B" * 64, "-----END RSA PRIVATE KEY-----", "step 4")
    kept = sanitizer.unpack_excerpt(
        sanitizer.pack_excerpt(Excerpt(stretches=(LineRange(file=None, begin=5, lines=lines),)))
    )
    assert len(kept.stretches[0].lines) == 5
    assert kept.stretches[0].lines[4] == "step 4"
    assert "AAAA" not in "".join(kept.stretches[0].lines)


@each_row("text", ["", "x" * 5000, "plain", "日志 — ok", "step 3: tokens=4096"])
def test_that_harmless_text_is_kept_as_it_is(text: str) -> None:
    assert sanitizer.clean_text(text) == text


def test_that_an_answer_is_given_as_it_was_kept() -> None:
    answer = diagnosis(timings_ms={"scan": 1.25}, confidence=1.0, headline="Größe \u2028 內存")
    assert sanitizer.unpack(sanitizer.pack(answer)) == answer
