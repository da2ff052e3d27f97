"""How a job ended, in words: for an end that its log is silent of, and for a log in which nothing failed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from corpus.library import Library
from corpus.outcomes import Ending
from corpus.schema import Action, Language
from ingest.logs.events import Event
from ingest.logs.facts import Fact
from ingest.logs.lines import message_of
from ingest.logs.report import CrashReport
from service.composition.failure_text import bulleted, inline_code
from service.composition.phrases import phrase, place
from service.composition.shortening import shortened
from service.schemas.diagnosis import Outcome

# The fact that a server's access log tells, and the statuses of HTTP that are failures (RFC 9110).
REQUEST, FAILED_FROM = "http", 400
# Characters of the last line of a log that is quoted for its end.
_QUOTED = 160
# A progress bar's count and length.
_DRAWN = re.compile(r"%\|[^|\n]{0,400}\| {0,3}(?P<step>\d{1,12})/(?P<total>\d{1,12}) \[")


@dataclass(frozen=True)
class JobEnd:
    """The end of one job, as its outcome and its log tell it."""

    outcome: Outcome
    report: CrashReport
    library: Library
    language: Language

    @property
    def is_failure(self) -> bool:
        """Tell whether the outcome is known and is a failure."""
        return self.outcome.end == "failed"

    @property
    def _answering(self) -> Ending | None:
        """The row that says most, where the end is the answer: the log has none, and the end has a cause."""
        row = self.outcome.reading
        return row if row is not None and row.cause is not None and self.report.root is None else None

    @property
    def headline(self) -> str:
        """Say how it ended, and that the log does not tell why; empty where no failed end is known."""
        return phrase("ended-unknown", self.language, end=self._says) if self.is_failure else ""

    @property
    def conclusion(self) -> str:
        """Say how it ended, where that is the answer; empty where the log has one."""
        return self._says if self._answering else ""

    @property
    def action(self) -> Action | None:
        """Give what to do next, where the end is the answer and says more of it than its cause."""
        return self._answering.action if self._answering else None

    @property
    def good_headline(self) -> str:
        """Say that nothing failed, and what shows the good end: how the job ended, or its log."""
        if self.outcome.end == "succeeded" and self.report.log_end.kind != "closed":
            return phrase("healthy-told-headline", self.language, end=self._says)
        return phrase("healthy-headline", self.language)

    @property
    def told(self) -> str:
        """Say how it ended, and how far the log goes along with that; empty where nothing is known of it."""
        report, language = self.report, self.language
        if self.outcome.end == "succeeded":
            return phrase(
                "ended-well" if report.root is None else "ended-well-though", language, end=self._says
            )
        if self.outcome.end == "unknown":
            return ""
        rows = [f"{self._says}{self._signs}{phrase('stop', language)}"]
        if report.root is None:
            rows.append(phrase("silent" if report.limits.lines else "printed-nothing", language))
            if report.finished:
                rows.append(
                    phrase("said-done", language, line=place(report.place(report.finished), language))
                )
            step = report.last_step or 0
            if step > 0:
                rows.append(phrase("last-step", language, step=f"{step:g}"))
        return (" " if language == "en" else "").join(rows)

    @property
    def next(self) -> str:
        """Say what would tell more of such an end; empty where nothing is known of it."""
        row = self.outcome.reading
        if row is None or row.next is None:
            return ""
        rows = [f"- **{self.library.causes[cause].title.to(self.language)}**" for cause in row.may_be]
        parts = (row.next.to(self.language), bulleted("maybe", rows, self.language))
        return "\n\n".join(part for part in parts if part)

    @property
    def _says(self) -> str:
        row = self.outcome.reading
        told = {"state": self.outcome.state, "signal": self.outcome.killed_by, "code": self.outcome.exit_code}
        return row.says.to(self.language).format(**told) if row else ""

    @property
    def _signs(self) -> str:
        """Name what else is known of the end, for who wants to look it up."""
        named = (("exit-code", self.outcome.exit_code), ("state", self.outcome.state))
        told = [
            phrase(name, self.language, value=value)
            for name, value in named
            if value is not None and str(value) not in self._says
        ]
        return phrase("signs", self.language, signs=phrase("and", self.language).join(told)) if told else ""

    @property
    def open_headline(self) -> str:
        """Say that the log stops amid work, with the step where it counts one, or was told to end."""
        end = self.report.log_end
        if end.asked:
            line = place(self.report.place(end.asked), self.language)
            return phrase("open-headline-asked", self.language, line=line)
        if end.step is None or end.step < 0:
            drawn = _DRAWN.search(self.report.texts.get(end.line, ""))
            if drawn is None or int(drawn["step"]) >= int(drawn["total"]):
                return phrase("open-headline-uncounted", self.language)
            return phrase("open-headline-bar", self.language, step=drawn["step"], total=drawn["total"])
        of = phrase("of-steps", self.language, total=f"{end.total:g}") if end.total else ""
        return phrase("open-headline", self.language, step=f"{end.step:g}", of=of)

    @property
    def last_sign(self) -> Mapping[str, str]:
        """Name the last line that shows the job at work or at its end, and quote it where it is at hand."""
        line = self.report.log_end.line
        return {"line": f"[{self.report.place(line)}]", "quote": self._quoted(line)}

    @property
    def last_line(self) -> str:
        """Quote the last line of a log that shows neither a failure nor an end; empty where none is known."""
        line = next((line for line, text in reversed(self.report.tail) if text.strip()), 0)
        if not line:
            return ""
        return phrase(
            "last-line", self.language, line=f"[{self.report.place(line)}]", quote=self._quoted(line)
        )

    def _quoted(self, line: int) -> str:
        """Quote a line behind a colon, or give a full stop where it is not at hand."""
        text = self.report.texts.get(line, "")
        # What a bar is about stands in the bar itself.
        said = inline_code(shortened(text.strip() if _DRAWN.search(text) else message_of(text), _QUOTED))
        quote = phrase("call-code", self.language, code=said) if said else ""
        return f"{quote}{phrase('stop', self.language)}"

    @property
    def _failed_requests(self) -> dict[int, Fact]:
        """Give the first request of each status that says that it failed."""
        found: dict[int, Fact] = {}
        for fact in self.report.facts:
            status = fact.fields.get("status") if fact.kind == REQUEST else None
            if isinstance(status, int | float) and status >= FAILED_FROM:
                found.setdefault(int(status), fact)
        return dict(sorted(found.items()))

    @property
    def request_headline(self) -> str:
        """Say that requests failed and not the server that they were for.

        Empty where none did, or another line tells of a failure.
        """
        found, root = self._failed_requests, self.report.root
        if not found or (root is not None and root.line not in {fact.line for fact in found.values()}):
            return ""
        name = "requests-only-headline" if root else "requests-headline"
        return phrase(name, self.language, statuses=phrase("and", self.language).join(map(str, found)))

    @property
    def refusal(self) -> Event | None:
        """Give the last error that a server went on after and that tells why a request of it failed."""
        told = (
            event
            for event in reversed(self.report.events)
            if event.role in ("recovered", "teardown") and event.cause and not event.usual
        )
        return next(told, None) if self.request_headline else None

    @property
    def requests(self) -> str:
        """List the requests that failed, where they are all that did."""
        rows = [
            f"- [{self.report.place(fact.line)}] "
            + phrase(
                "request", self.language, status=status, url=inline_code(str(fact.fields.get("url")), 120)
            )
            for status, fact in self._failed_requests.items()
        ]
        return bulleted("requests", rows, self.language) if self.request_headline else ""

    @property
    def silence(self) -> str:
        """Name what a text without any failure is that shows no end either: the id of its sentence."""
        if self.report.limits.cut:
            return "cut"
        if self._is_script:
            return "script"
        is_job = self.report.marks or self.report.frameworks or self.report.events
        return "no-sign" if is_job else "unrecognised"

    @property
    def _is_script(self) -> bool:
        """Tell whether a short text is a script, or a command and nothing besides."""
        rows = [(number, text) for number, text in self.report.nearby if text.strip()]
        if not rows or self.report.marks or self.report.events:
            return False
        (first, text), (begin, command) = rows[0], self.report.command
        return text.startswith("#!") or (first == begin and len(rows) <= command.count("\n"))
