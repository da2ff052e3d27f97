"""What the page's events do: whose triages are listed, which files are read, how errors come back."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from corpus.message import Message
from service.app.admission import SCOPES, Caller, Principal
from service.app.triage_service import TriageService
from service.persistence.spool import Spool
from service.persistence.store import Store
from service.schemas.errors import BusyError, InvalidRequestError, NotFoundError, WorkerLostError
from service.schemas.records import Scope, TriageRecord
from service.settings import Settings
from tests.service.factories import diagnosis
from tests.tables import each_row
from ui.chat import uploads
from ui.chat.controller import (
    RETELLING_S,
    ChatController,
    FeedbackForm,
    HistoryQuery,
    QuestionForm,
    TriageForm,
    TriageReference,
    example,
    examples,
    submission_name,
)
from ui.chat.guard import Sessions
from ui.chat.uploads import GoneError, Uploaded, Uploads
from ui.chat.words import named

NOW = datetime.now(UTC)
SNAPSHOT = '{"schema": "whycrash.snapshot/1", "taken_at": "2025-01-01T00:00:00Z"}'


@pytest.fixture(scope="module")
def page() -> ModuleType:
    """Import what the browser calls: it takes gradio along, which takes seconds and no other test needs."""
    from ui.chat import page

    return page


@pytest.fixture
def incoming() -> Iterator[Uploads]:
    """Open a folder for uploads."""
    made = Uploads()
    yield made
    made.close()


@pytest.fixture
def controller(make_settings: Callable[..., Settings], incoming: Uploads) -> Iterator[ChatController]:
    """Open a controller over a store with two people's triages; its triage service has no workers."""
    settings = make_settings()
    triage_service = TriageService(settings)
    triage_service.store = Store.open(settings)
    for place, caller in enumerate(("local", "anna", "boss")):
        triage_service.store.triages.add(
            TriageRecord(
                id=f"01{place}",
                state="running",
                origin="chat",
                caller=caller,
                source=f"of-{caller}.log",
                created=NOW,
                deadline=NOW + timedelta(hours=1),
            )
        )
    yield ChatController(triage_service, settings, incoming)
    triage_service.store.close()


def principal(name: str, *scopes: Scope) -> Principal:
    """Make who asks."""
    return Principal(Caller("api", name), scopes)


LOCAL, ANNA, BOSS = principal("local", *SCOPES), principal("anna", "triage"), principal("boss", "admin")


def uploaded(incoming: Uploads, name: str, text: str = "a line", owner: str = "local") -> Uploaded:
    """Keep a file as the server keeps uploads."""
    file = Spool().add(name)
    file.write(text.encode())
    file.rewind()
    [place] = incoming.keep([file], owner)
    return Uploaded(place=place, name=name)


@pytest.mark.parametrize(
    ("who", "sees"),
    [
        (LOCAL, {"local", "anna", "boss"}),
        (BOSS, {"local", "anna", "boss"}),
        (ANNA, {"anna"}),
        (principal("ben", "triage"), set()),
    ],
)
def test_that_people_list_their_own(controller: ChatController, who: Principal, sees: set[str]) -> None:
    """Without keys all, else one's own; an administrator's key lists all."""
    html = controller.past(HistoryQuery(), who)
    assert {name for name in ("local", "anna", "boss") if f"of-{name}.log" in html} == sees


def test_that_only_ones_own_are_deleted(controller: ChatController) -> None:
    """Another's triage stays; an administrator may."""
    with pytest.raises(NotFoundError):
        controller.forget(TriageReference(triage="010"), ANNA)
    controller.forget(TriageReference(triage="011"), ANNA)
    controller.forget(TriageReference(triage="010"), BOSS)
    assert "of-boss.log" in controller.past(HistoryQuery(), BOSS)
    assert "of-local.log" not in controller.past(HistoryQuery(), BOSS)


def test_that_the_servers_own_machine_is_read_for_admin_alone(controller: ChatController) -> None:
    """As in the API: the state says why not, and nothing is begun."""
    *_, last = controller.explain(TriageForm(text="x", live=True), ANNA)
    assert (last["state"], last["triage"]) == ("failed", "")
    assert "scope admin" in last["panels"]["stages"]


def test_that_an_address_opens_what_is_ones_own(controller: ChatController) -> None:
    """Another's is told in the words of one that is not there."""
    told, missing = (
        controller.open(TriageReference(triage=name), ANNA)["panels"]["stages"] for name in ("010", "099")
    )
    assert told.replace("010", "099") == missing
    state = controller.open(TriageReference(triage="010", ticket=7), LOCAL)
    assert (state["triage"], state["state"], state["elsewhere"], state["ticket"]) == (
        "010",
        "running",
        True,
        7,
    )


def test_that_an_address_of_nothing_is_told(controller: ChatController) -> None:
    """There is a state that says so."""
    state = controller.open(TriageReference(triage="099", language="zh"), LOCAL)
    assert state["state"] == "failed"
    assert "没有这次分析" in state["panels"]["stages"]


def test_that_an_opinion_needs_a_real_cause(controller: ChatController) -> None:
    """A cause that is none of ours is refused in words."""
    with pytest.raises(InvalidRequestError, match="no cause"):
        controller.judge(FeedbackForm(triage="010", right=False, cause="gremlins"), LOCAL)
    with pytest.raises(NotFoundError):
        controller.judge(FeedbackForm(triage="099", right=True), LOCAL)


def test_that_a_question_too_early_is_told(controller: ChatController) -> None:
    """While nothing is answered, there is nothing to ask about."""
    *_, last = controller.ask(QuestionForm(triage="010", question="why?", ticket=3), LOCAL)
    assert "still under way" in last["panels"]["stages"]
    assert last["ticket"] == 3


@each_row(
    "sent",
    [
        {"text": "x", "more": 1},
        {"files": [{"path": "/etc/passwd", "name": "x"}]},
        {"language": "xx"},
        {"example": "../../secrets"},
        None,
        "text",
        {"files": [{"place": "/x", "name": "n" * 500}]},
    ],
)
def test_that_strange_events_are_refused(page: ModuleType, sent: object) -> None:
    """What a page of ours does not send is answered with a sentence."""
    with pytest.raises(InvalidRequestError):
        page.read(TriageForm, sent)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InvalidRequestError("It is <wrong>."), "It is &lt;wrong&gt;."),
        (ZeroDivisionError("secret"), "ZeroDivisionError; the server"),
    ],
)
def test_that_a_page_hears_of_every_failure(
    page: ModuleType, error: Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The last state says what went wrong, without what an unexpected error holds."""

    class Event:
        _data = {"ticket": 5}  # noqa: RUF012 - as Gradio's own

    def work() -> Iterator[dict[str, object]]:
        yield {"state": "running"}
        raise error

    *_, last = page.survived(Event(), work)  # type: ignore[arg-type]
    assert (last["state"], last["ticket"]) == ("failed", 5)
    assert told in last["panels"]["stages"]
    assert "secret" not in last["panels"]["stages"]


# ---- uploads


def test_that_uploads_are_sorted_by_what_they_are(incoming: Uploads) -> None:
    """Logs, the job's own files, and a snapshot of the machine; names are the user's."""
    files = [
        uploaded(incoming, "a.log"),
        uploaded(incoming, "run.sh"),
        uploaded(incoming, "snap.json", SNAPSHOT),
        uploaded(incoming, "b.txt"),
    ]
    with incoming.claimed(files, "local") as claimed:
        assert [name for name, _ in claimed.logs] == ["a.log", "b.txt"]
        assert [config.name for config in claimed.configs] == ["run.sh"]
        assert claimed.telemetry is not None


def test_that_a_pasted_text_goes_with_files(incoming: Uploads) -> None:
    """Beside logs it is one more of them; beside nothing but configuration it is the log."""
    with incoming.claimed([uploaded(incoming, "a.log")], "local", "pasted") as claimed:
        assert [path.read_text() for _, path in claimed.logs] == ["a line", "pasted"]
    with incoming.claimed([uploaded(incoming, "c.yaml")], "local", "pasted") as claimed:
        assert (claimed.logs, [config.name for config in claimed.configs]) == ((), ["c.yaml"])
    with incoming.claimed([uploaded(incoming, "d.yaml")], "local") as claimed:
        assert [name for name, _ in claimed.logs] == ["d.yaml"]


def test_that_an_upload_has_no_name_on_the_disk(
    incoming: Uploads, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither while it waits nor while it is read: so it is gone with the server, killed or not."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = [uploaded(incoming, name) for name in ("waits.log", "asked.log", "run.sh")]
    with incoming.claimed(files[1:], "local", "pasted beside") as claimed:
        assert [path.readlink().parent for _, path in claimed.logs] == [tmp_path] * 2
        assert list(tmp_path.iterdir()) == []


def test_that_nothing_is_left_of_uploads(incoming: Uploads) -> None:
    """Not after the answer, and not after an error: no file is open any more."""
    open_files = Path("/proc/self/fd")
    before = len(list(open_files.iterdir()))
    with incoming.claimed([uploaded(incoming, "a.log")], "local", "pasted"):
        pass
    wrong = uploaded(incoming, "x.json", SNAPSHOT.replace("taken_at", "x"))
    with pytest.raises(InvalidRequestError), incoming.claimed([uploaded(incoming, "b.log"), wrong], "local"):
        pass
    assert len(list(open_files.iterdir())) == before


def test_that_an_upload_is_claimed_once(incoming: Uploads) -> None:
    """A second claim is told that it is gone."""
    file = uploaded(incoming, "a.log")
    with incoming.claimed([file], "local"), pytest.raises(GoneError), incoming.claimed([file], "local"):
        pass


def test_that_an_upload_is_its_senders(incoming: Uploads) -> None:
    """To another key it is not there, whatever it knows of its name; and it stays for who sent it."""
    file = uploaded(incoming, "a.log", owner="anna")
    with pytest.raises(GoneError), incoming.claimed([file], "ben"):
        pass
    with incoming.claimed([file], "anna") as claimed:
        assert [path.read_text() for _, path in claimed.logs] == ["a line"]


@pytest.mark.parametrize(
    "place", ["/etc/passwd", "/proc/self/fd/0", "upload-" + "0" * 32, "upload-../x", "", "relative"]
)
def test_that_no_other_file_is_claimed(incoming: Uploads, place: str) -> None:
    """Only what was uploaded: no path of the server, no open file, nothing that was made up."""
    with pytest.raises(InvalidRequestError), incoming.claimed([Uploaded(place=place, name="x.log")], "local"):
        pass


def test_that_abandoned_uploads_are_swept(incoming: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who uploads and leaves has nothing kept a quarter of an hour later; what is fresh stays."""
    old = uploaded(incoming, "old.log")
    now = time.monotonic() + uploads.ABANDONED_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: now)
    fresh = uploaded(incoming, "fresh.log")
    incoming.sweep()
    with pytest.raises(GoneError), incoming.claimed([old], "local"):
        pass
    with incoming.claimed([fresh], "local") as claimed:
        assert len(claimed.logs) == 1


def test_that_uploads_have_room_for_some_of_the_largest_and_no_more() -> None:
    """What is kept counts, what comes in, and a file without content; what was claimed frees its room."""
    made = Uploads(largest=100_000)
    try:
        first = uploaded(made, "first.log", "x" * 150_000)
        for number in range(10):
            uploaded(made, f"{number}.log", "")
        with made.room(150_000), pytest.raises(BusyError, match="take all the room"), made.room(60_000):
            pass
        with made.room(200_000):
            pass
        with pytest.raises(BusyError), made.room(210_000):
            pass
        with made.claimed([first], "local"), pytest.raises(BusyError), made.room(210_000):
            pass
        with made.room(350_000):
            pass
    finally:
        made.close()


def test_that_many_small_files_have_an_end(incoming: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is open as long as it is kept, and a process has only so many."""
    monkeypatch.setattr(uploads, "FILES_AT_ONCE", 3)
    for number in range(3):
        with incoming.room(1):
            uploaded(incoming, f"{number}.log")
    with pytest.raises(BusyError), incoming.room(1):
        pass


def test_that_what_somebody_works_on_is_not_swept(incoming: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes."""
    file = uploaded(incoming, "a.log")
    with incoming.claimed([file], "local") as files:
        monkeypatch.setattr(uploads, "ABANDONED_S", -1.0)
        incoming.sweep()
        assert [path.read_text() for _, path in files.logs] == ["a line"]


def test_that_examples_come_with_their_files() -> None:
    """Each has a log and the job's own script or configuration."""
    for name in examples():
        text, configs = example(name)
        assert len(text) > 1000
        assert configs
    assert example("none-such") == ("", ())


def test_that_an_error_is_told_in_the_pages_language(page: ModuleType, controller: ChatController) -> None:
    """Of an event as of a call; what a page sends may be anything."""

    def work() -> Iterator[dict[str, object]]:
        raise NotFoundError(Message("errors.no-batch-deleted", batch=7))
        yield {}

    for sent, said in (
        ({"language": "zh", "ticket": 3}, "没有批次 7；"),
        ({"ticket": 3}, "There is no batch 7;"),
        ("none", "There is no batch 7;"),
    ):
        event = SimpleNamespace(_data=sent)
        (state,) = page.survived(event, work)  # type: ignore[arg-type]  # only its data is looked at
        assert said in state["panels"]["stages"]
    prompt = next(call for call in page.calls(controller, Sessions()) if call.__name__ == "prompt")
    # No gate has asked who it is.
    assert "登录" in str(prompt({"triage": "0", "language": "zh"}, SimpleNamespace(scope={})))


@each_row(
    ("names", "text", "expected"),
    [
        (("config.yaml", "log.txt"), "", "log.txt (+1)"),
        (("run.sh",), "", "run.sh"),
        (("a.log", "b.log", "c.log"), "", "a.log (+2)"),
        ((), "OSError: x", "pasted text"),
        (("run.sh", "config.yaml"), "OSError: x", "pasted text (+2)"),
        (("a.log",), "OSError: x", "a.log"),
    ],
)
def test_that_a_job_is_called_by_its_log(names: tuple[str, ...], text: str, expected: str) -> None:
    """Files come in the order of their names, and a configuration is often first or stands beside a paste."""
    files = [Uploaded(place="/x", name=name) for name in names]
    assert submission_name(TriageForm(files=files, text=text)) == expected


def test_that_a_paste_is_called_so_in_a_pages_language() -> None:
    """A file's name stays as it is."""
    assert named("pasted text (+1)", "en") == "pasted text (+1)"
    assert named("pasted text (+1)", "zh") == "粘贴的文本 (+1)"
    assert named("pasted text.log (+1)", "zh") == "pasted text.log (+1)"


def test_that_an_answer_is_shown_as_it_is_kept_where_it_cannot_be_told_anew(
    controller: ChatController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever becomes of the worker, and soon: the answer is there."""
    asked: list[float] = []

    def lost(_task: object, seconds: float) -> Iterator[object]:
        asked.append(seconds)
        raise WorkerLostError(Message("errors.no-answer"))

    service = controller._triage_service
    monkeypatch.setattr(service, "pool", SimpleNamespace(submit=lost), raising=False)
    record = service.store.triages.get("010").model_copy(
        update={"diagnosis": diagnosis(headline="The disk is full"), "state": "done"}
    )
    monkeypatch.setattr(service, "_kept_triage", lambda *_: None)
    assert controller._retold(record, "zh") == record
    assert asked == [RETELLING_S]
