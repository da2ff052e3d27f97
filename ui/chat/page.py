"""The page as Gradio serves it: one component of our own, three events, a few calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import gradio as gr
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from corpus.message import Message
from corpus.schema import Language
from service.app.admission import largest_upload
from service.app.triage_service import TriageService
from service.html.markup import style_sheet
from service.schemas.errors import InvalidRequestError, RequestError
from service.settings import Settings
from ui import sentences
from ui.chat import words
from ui.chat.batches import BatchController, BatchForm, BatchReference, JobReference
from ui.chat.controller import (
    ChatController,
    CrashForm,
    FeedbackForm,
    HistoryQuery,
    QuestionForm,
    State,
    TriageForm,
    TriageReference,
    broken,
    examples,
)
from ui.chat.guard import Guard, Sessions, admitted
from ui.chat.uploads import SWEEP_S, Uploads

HERE = Path(__file__).parent
_LOG = logging.getLogger("whycrash.chat")
# The triage service has its own queue and says when it is full; Gradio's is only on the way there.
MANY = 64

# One program of several files: what comes first says nothing until the last one begins.
SCRIPTS = ("batch.js", "log.js", "lost.js", "page.js")

# What the page may load and do, by the beginning of its path: nothing of another site. Gradio compiles its
# templates with `Function` and writes scripts and styles into the page; what is a log's goes in escaped.
POLICIES = {
    "/": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' "
    "'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; object-src 'none'; frame-src 'none'; worker-src 'none'; "
    "frame-ancestors 'none'; base-uri 'self'; form-action 'self'"
}

M = TypeVar("M", bound=BaseModel)


def mount(app: Any, triage_service: TriageService, settings: Settings) -> None:
    """Serve the page at `/` of a FastAPI app, beside the routes that it has already.

    Asks the triage service for everything.
    """
    uploads, sessions = Uploads(largest_upload(settings)), Sessions()
    batches = BatchController(lambda: app.state.app_state, uploads)
    blocks = build(ChatController(triage_service, settings, uploads), batches, settings, sessions)
    style = (HERE / "page.css").read_text(encoding="utf-8")
    gr.mount_gradio_app(
        app,
        blocks,
        "/",
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
        enable_monitoring=False,
        show_error=False,
        max_file_size=largest_upload(settings),
        theme=gr.themes.Base(font=["system-ui", "sans-serif"], font_mono=["monospace"]),
        head=str(style_sheet(style)),
        app_kwargs={"docs_url": None, "redoc_url": None, "openapi_url": None},
        favicon_path=str(HERE / "favicon.png"),
    )
    # Gradio knows one folder for all processes of a machine, and puts named files into it: what is uploaded
    # does not come that far.
    *beside, mounted = app.routes
    mounted.app = Guard(mounted.app, sessions, uploads, beside)
    app.router.lifespan_context = _closing(app.router.lifespan_context, uploads)


def _closing(
    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]], uploads: Uploads
) -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """Remove the uploads that nobody came for while the app runs, and all when it ends.

    A web server that was told to stop ends by the signal, and nothing else would run.
    """

    @asynccontextmanager
    async def closing(app: Any) -> AsyncIterator[Any]:
        async with lifespan(app) as state:
            sweeping = asyncio.create_task(_sweep_regularly(uploads))
            try:
                yield state
            finally:
                sweeping.cancel()
                uploads.close()

    return closing


async def _sweep_regularly(uploads: Uploads) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        try:
            await run_in_threadpool(uploads.sweep)
        except OSError as error:
            # A disk that fails now may not do so in a minute.
            _LOG.warning("what was uploaded and left cannot be dropped: %s", error.strerror)


def build(
    controller: ChatController, batches: BatchController, settings: Settings, sessions: Sessions
) -> gr.Blocks:
    """Build the page."""
    blocks: gr.Blocks
    with gr.Blocks(title="whycrash", analytics_enabled=False, fill_width=True) as blocks:
        # Gradio evaluates the template as a program, so nothing of others may stand in it: what is said comes
        # as `value`.
        page = gr.HTML(
            {},
            html_template=(HERE / "shell.html").read_text(encoding="utf-8"),
            js_on_load="\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS),
            apply_default_css=False,
            elem_id="whycrash",
            server_functions=[*calls(controller, sessions), *batch_calls(batches, sessions)],
            words=words.table(),
            model=settings.model,
            examples=examples(),
            limit=settings.max_upload_mb,
        )

        def explain(event: gr.EventData, request: gr.Request) -> Iterator[State]:
            yield from survived(
                event,
                lambda: controller.explain(
                    read(TriageForm, event._data), admitted(request, "explain", sessions)
                ),
            )

        def ask(event: gr.EventData, request: gr.Request) -> Iterator[State]:
            yield from survived(
                event,
                lambda: controller.ask(read(QuestionForm, event._data), admitted(request, "ask", sessions)),
            )

        def look(event: gr.EventData, request: gr.Request) -> Iterator[State]:
            yield from survived(
                event,
                lambda: iter(
                    [controller.open(read(TriageReference, event._data), admitted(request, "look", sessions))]
                ),
            )

        for name, work in (("explain", explain), ("ask", ask), ("look", look)):
            getattr(page, name)(
                work,
                None,
                page,
                show_progress="hidden",
                concurrency_limit=None,
                api_visibility="private",
                trigger_mode="multiple",
            )
    blocks.queue(api_open=False, max_size=None, default_concurrency_limit=MANY)
    return blocks


def survived(event: gr.EventData, work: Callable[[], Iterator[State]]) -> Iterator[State]:
    """Give the states that the work gives, and a last one where it fails.

    A page that hears nothing waits for ever.
    """
    ticket = event._data.get("ticket") if isinstance(event._data, dict) else None
    language = language_of(event._data)
    try:
        yield from work()
    except RequestError as error:
        yield broken(error, ticket, language)
    except Exception as error:  # noqa: BLE001 - whatever it is, the user is told, and the log says what
        _LOG.exception("a page's event failed")
        yield broken(
            RequestError(Message("errors.server-log-says-more", name=type(error).__name__)), ticket, language
        )


def language_of(sent: object) -> Language:
    """Give the language of the page that sent something; what it sent may be anything."""
    return "zh" if isinstance(sent, dict) and sent.get("language") == "zh" else "en"


def read(kind: type[M], sent: object) -> M:
    """Read what a browser sent; raises InvalidRequestError."""
    try:
        return kind.model_validate(sent)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidRequestError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def calls(controller: ChatController, sessions: Sessions) -> list[Callable[..., object]]:
    """Give what the browser calls beside the events; an error comes back as a sentence."""

    def past(sent: object, request: gr.Request) -> object:
        return _told(
            sent,
            lambda: {"html": controller.past(read(HistoryQuery, sent), admitted(request, "past", sessions))},
        )

    def log(sent: object, request: gr.Request) -> object:
        return _told(
            sent,
            lambda: {"html": controller.log(read(TriageReference, sent), admitted(request, "log", sessions))},
        )

    def judge(sent: object, request: gr.Request) -> object:
        return _told(
            sent, lambda: controller.judge(read(FeedbackForm, sent), admitted(request, "judge", sessions))
        )

    def note_crash(sent: object, request: gr.Request) -> object:
        return _told(
            sent,
            lambda: controller.note_crash(read(CrashForm, sent), admitted(request, "note_crash", sessions)),
        )

    def prompt(sent: object, request: gr.Request) -> object:
        return _told(
            sent,
            lambda: {
                "text": controller.prompt(read(TriageReference, sent), admitted(request, "prompt", sessions))
            },
        )

    def forget(sent: object, request: gr.Request) -> object:
        return _told(
            sent,
            lambda: controller.forget(read(TriageReference, sent), admitted(request, "forget", sessions)),
        )

    return [past, log, judge, note_crash, prompt, forget]


def batch_calls(batches: BatchController, sessions: Sessions) -> list[Callable[..., object]]:
    """Give what the browser calls to hand in, watch and open what is many jobs."""

    def begin_batch(sent: object, request: gr.Request) -> object:
        return _told(
            sent, lambda: batches.begin(read(BatchForm, sent), admitted(request, "begin_batch", sessions))
        )

    def batch(sent: object, request: gr.Request) -> object:
        return _told(
            sent, lambda: batches.show(read(BatchReference, sent), admitted(request, "batch", sessions))
        )

    def cancel_batch(sent: object, request: gr.Request) -> object:
        return _told(
            sent,
            lambda: batches.cancel(read(BatchReference, sent), admitted(request, "cancel_batch", sessions)),
        )

    def job(sent: object, request: gr.Request) -> object:
        try:
            return batches.open(read(JobReference, sent), admitted(request, "job", sessions))
        except RequestError as error:
            # A state like an answer's: the page stands open for it, and says there why there is none.
            return broken(error, sent.get("ticket") if isinstance(sent, dict) else None, language_of(sent))

    return [begin_batch, batch, cancel_batch, job]


def _told(sent: object, work: Callable[[], object]) -> object:
    try:
        made = work()
    except RequestError as error:
        return {"error": sentences.error_sentence(error, language_of(sent)), "status": error.status}
    return {"done": True} if made is None else made
