"""The buttons under an answer: feedback, the patch, the rest; and the modal that asks for the real cause."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from corpus.message import Message, words
from corpus.schema import Cause, Language
from service.app.admission import Principal
from service.app.triage_service import TriageService
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import NotFoundError, RequestError
from service.schemas.records import Feedback
from service.settings import Settings
from ui import sentences
from ui.slack.answer import whole
from ui.slack.client import SlackClient
from ui.slack.mrkdwn import Block, clip, escape, plain
from ui.slack.request_parser import Payload
from ui.slack.wording import say

MODAL = "whycrash_cause"
_CAUSE, _FIX, _COMMENT = "cause", "fix", "comment"
# Of an option's text in a menu, and of what is typed into a field.
_OPTION, _FIELD = 75, 2000


class FeedbackHandler:
    """Stores feedback on answers, and posts patches and whole answers."""

    def __init__(self, triage_service: TriageService, slack_client: SlackClient, settings: Settings) -> None:
        self._triage_service = triage_service
        self._slack_client = slack_client
        self._settings = settings

    def right(self, body: Payload) -> None:
        """Note that an answer was right, and thank who said so."""
        self._done(ButtonClick(body), self._right)

    def wrong(self, body: Payload) -> None:
        """Ask for the real cause; Slack opens a modal for three seconds after the click alone."""
        causes = self._triage_service.library.causes
        self._done(
            ButtonClick(body),
            lambda where, diagnosis: self._slack_client.show(
                where.trigger, modal(causes, where, diagnosis.language)
            ),
        )

    def patch(self, body: Payload) -> None:
        """Put the patch into the thread as a file."""
        self._done(ButtonClick(body), self._patch)

    def more(self, body: Payload) -> None:
        """Put the whole answer into the thread."""
        self._done(
            ButtonClick(body),
            lambda where, diagnosis: self._slack_client.post(
                where.channel, whole(diagnosis, self._settings), where.thread
            ),
        )

    def _done(self, where: ButtonClick, work: Callable[[ButtonClick, Diagnosis], object]) -> None:
        """Do what a click asks for with the answer that it stands under.

        What goes wrong is told to who clicked.
        """
        language: Language = "en"
        try:
            found = self._triage_service.record(where.triage).diagnosis
            if found is None:
                # Told below as the store's own.
                raise NotFoundError(Message("errors.triage-no-answer", triage=where.triage))  # noqa: TRY301
            language = found.language
            work(where, found)
        except NotFoundError:
            where.post_ephemeral(self._slack_client, say("forgotten", language))
        except RequestError as error:
            where.post_ephemeral(
                self._slack_client,
                say("failed", language, error=escape(sentences.error_sentence(error, language))),
            )

    def _right(self, where: ButtonClick, diagnosis: Diagnosis) -> None:
        self._keep(where.triage, Feedback(right=True), where.principal)
        where.post_ephemeral(self._slack_client, say("thanks", diagnosis.language))

    def _keep(self, triage: str, feedback: Feedback, principal: Principal) -> None:
        admission = self._triage_service.admission
        self._triage_service.feedback(triage, feedback, admission.admit(principal, "triage").caller)

    def _patch(self, where: ButtonClick, diagnosis: Diagnosis) -> None:
        language = diagnosis.language
        if diagnosis.patch:
            self._slack_client.give(
                where.channel,
                where.thread,
                f"whycrash-{diagnosis.id}.patch",
                words("diagnosis.patch", language),
                diagnosis.patch,
            )
        else:
            where.post_ephemeral(self._slack_client, say("no-patch", language))

    def submitted(self, body: Payload) -> dict[str, str]:
        """Keep what the modal says; gives what is wrong with it, by field."""
        view = body.get("view") or {}
        kept = json.loads(str(view.get("private_metadata") or "{}"))
        language: Language = "zh" if kept.get("language") == "zh" else "en"
        state = (view.get("state") or {}).get("values") or {}
        given = {name: (state.get(name) or {}).get(name) or {} for name in (_CAUSE, _FIX, _COMMENT)}
        chosen = given[_CAUSE].get("selected_option") or {}
        texts = {name: str(given[name].get("value") or "").strip() for name in (_FIX, _COMMENT)}
        values = {_CAUSE: str(chosen.get("value") or ""), **texts}
        if not any(values.values()):
            return {_CAUSE: say("unnamed-cause", language)}
        feedback = Feedback(
            right=False,
            cause=values[_CAUSE] or None,
            fix=values[_FIX][:_FIELD],
            comment=values[_COMMENT][:_FIELD],
        )
        try:
            self._keep(str(kept.get("triage", "")), feedback, _principal(body))
        except RequestError as error:
            return {_CAUSE: sentences.error_sentence(error, language)[:_OPTION]}
        return {}

    def thank(self, body: Payload) -> None:
        """Thank for the real cause, in the thread that it was about."""
        kept = json.loads(str((body.get("view") or {}).get("private_metadata") or "{}"))
        language: Language = "zh" if kept.get("language") == "zh" else "en"
        user = str((body.get("user") or {}).get("id", ""))
        if kept.get("channel") and user:
            self._slack_client.post_ephemeral(
                str(kept["channel"]), user, say("noted", language), kept.get("thread")
            )


class ButtonClick:
    """A click on a button: whose answer it stands under, where, and who clicked."""

    def __init__(self, body: Payload) -> None:
        action: Mapping[str, Any] = (body.get("actions") or [{}])[0]
        message: Mapping[str, Any] = body.get("message") or {}
        container: Mapping[str, Any] = body.get("container") or {}
        self.triage = str(action.get("value", ""))
        self.channel = str((body.get("channel") or {}).get("id") or container.get("channel_id") or "")
        self.thread: str | None = (
            str(message.get("thread_ts") or container.get("thread_ts") or message.get("ts") or "") or None
        )
        self.trigger = str(body.get("trigger_id", ""))
        self.user = str((body.get("user") or {}).get("id", ""))
        self.principal = _principal(body)

    def post_ephemeral(self, slack_client: SlackClient, text: str) -> None:
        """Tell who clicked, and nobody else."""
        slack_client.post_ephemeral(self.channel, self.user, text, self.thread)


def modal(causes: Mapping[str, Cause], where: ButtonClick, language: Language) -> Block:
    """Give the modal that asks for the real cause."""
    kept = {"triage": where.triage, "channel": where.channel, "thread": where.thread, "language": language}
    groups: dict[str, list[Block]] = {}
    for cause in causes.values():
        option = {"text": plain(clip(cause.title.to(language), _OPTION)), "value": cause.id}
        groups.setdefault(cause.category, []).append(option)
    menu = {
        "type": "static_select",
        "action_id": _CAUSE,
        "placeholder": plain(say("modal-choose", language)),
        "option_groups": [
            {"label": plain(category), "options": options} for category, options in groups.items()
        ],
    }
    return {
        "type": "modal",
        "callback_id": MODAL,
        "private_metadata": json.dumps(kept),
        "title": plain(say("modal", language)),
        "submit": plain(say("send", language)),
        "close": plain(say("cancel", language)),
        "blocks": [
            {
                "type": "input",
                "block_id": _CAUSE,
                "optional": True,
                "label": plain(say("modal-cause", language)),
                "element": menu,
            },
            _field(_FIX, say("modal-fix", language)),
            _field(_COMMENT, say("modal-comment", language)),
        ],
    }


def _field(name: str, label: str) -> Block:
    element = {"type": "plain_text_input", "action_id": name, "multiline": True, "max_length": _FIELD}
    return {"type": "input", "block_id": name, "optional": True, "label": plain(label), "element": element}


def _principal(body: Payload) -> Principal:
    return Principal.in_slack(
        f"{(body.get('team') or {}).get('id', '')}:{(body.get('user') or {}).get('id', '')}"
    )
