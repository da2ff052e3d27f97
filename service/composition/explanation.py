"""The headline and the explanation of an answer: which paragraphs a verdict needs, in which order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from corpus.frameworks import known_frameworks
from corpus.library import Library
from corpus.schema import Case, Cause, Language
from service.composition import phrases
from service.composition.alternatives import tell_apart
from service.composition.failure_text import FailureText, bulleted, inline_code
from service.composition.fitting_prose import fitting_prose
from service.composition.headlines import (
    announced,
    facts_in_words,
    is_specific,
    quoted,
    whereabouts,
    without_names,
)
from service.composition.job_end import JobEnd
from service.composition.message_forms import FormedMessage, formed_message
from service.composition.phrases import phrase
from service.composition.value_origins import value_rows
from service.schemas.diagnosis import UNKNOWN_CAUSE, ProposedChange, Telemetry
from service.scoring.assessment import Assessment
from service.scoring.verdict import Conclusion

_PLAIN_WORD = re.compile(r"(?P<word>[A-Z][a-z]*)(?:'s)? ")
_SECTION = re.compile(r"^### .*$", re.MULTILINE)


def _within(sentence: str) -> str:
    """Give a sentence as it goes on another one; what begins with a name keeps its capital letter."""
    first = _PLAIN_WORD.match(sentence)
    is_name = first is None or first["word"].lower() in known_frameworks().rows
    return sentence if is_name else sentence[0].lower() + sentence[1:]


@dataclass(frozen=True)
class Explanation:
    """The words of one answer. `telemetry` is what the machine says of the causes, in the same language.

    Where no setting, command or package is among the `cures`, the rows of the job's own files are named that
    made what the failing statement is given. `step` tells what the change of the job's own code leaves to do
    where it comes first, as `CodeAdvice` has it; `unhelpful` why what one would change cannot help; `since`
    that a file at hand is not as it ran, where no change says so.
    """

    assessment: Assessment
    judged: Conclusion
    end: JobEnd
    telemetry: Telemetry
    library: Library
    language: Language
    cures: tuple[ProposedChange, ...] = ()
    step: str = ""
    unhelpful: str = ""
    since: str = ""

    @property
    def headline(self) -> str:
        """The conclusion in one sentence."""
        cause, cases, language = self.judged.cause, self.judged.cases, self.language
        if cause is None:
            if self.judged.has_ended:
                return self.end.good_headline
            return self._request_headline or self.end.open_headline
        if self.judged.verdict == "unknown":
            return self.end.headline or self.end.request_headline or self._unknown_headline
        if self.judged.verdict == "ambiguous":
            first, second = (
                self.library.causes[item.cause].title.to(language) for item in self.assessment.candidates[:2]
            )
            return phrase("ambiguous-headline", language, first=_within(first), second=_within(second))
        if self.end.conclusion:
            return self.end.conclusion
        formed = self.message
        if formed is not None and (
            formed.form.beside_case == "lead" or (not cases and formed.form.beside_case != "add")
        ):
            return self._placed(formed.headline(language))
        if formed is not None and formed.form.beside_case in ("follow", "add"):
            title = without_names((cases[0] if cases else cause).title.to(language).rstrip(".。"))
            told = formed.headline(language, beside_title=True)
            return phrase("headline-case", language, title=title, told=_within(told))
        title = cases[0].title.to(language) if cases else cause.titled(language, self.assessment.holds)
        said = self._said(title)
        if not said:
            return self._placed(title)
        told = phrase("headline-case", language, title=without_names(title), told=said)
        # Marks around a quote make no name of it.
        return self._placed(told, f"{title} {said.replace('`', '')}")

    def _placed(self, headline: str, said: str = "") -> str:
        """Give a headline that names something of this job, by its rank and call where it names nothing.

        `said` is what is looked at for that in its place.
        """
        root, is_named = self.assessment.report.root, is_specific(said or headline)
        where = whereabouts(root, self.language) if root is not None and not is_named else ""
        return phrase("headline-at", self.language, told=headline, place=where) if where else headline

    @property
    def _unknown_headline(self) -> str:
        """Say that the log does not tell the cause, and what it does say."""
        if not self.assessment.report.root:
            silence = phrase(f"{self.end.silence}-headline", self.language)
            return self.end.open_headline if self._stops_amid_work else silence
        if self._breaks_off:
            return phrase("cut-calls-headline", self.language)
        told = phrase("unknown-headline", self.language)
        said = self._said(told)
        return phrase("unknown-headline-said", self.language, said=said) if said else told

    @property
    def _breaks_off(self) -> bool:
        """Tell whether all that failed in the log is calls without the line that names their exception."""
        root = self.assessment.report.root
        return root is not None and root.handler == "cut-traceback"

    @property
    def _stops_amid_work(self) -> bool:
        """Tell whether a log that a model holds to tell nothing shows at least that the job was at work."""
        report = self.assessment.report
        return report.log_end.kind == "open" and not report.limits.cut

    @property
    def _request_headline(self) -> str:
        """Say that requests failed, and what the last refusal states in numbers; empty where none did."""
        title, refusal = self.end.request_headline, self.end.refusal
        said = refusal and facts_in_words(self.assessment.report, (refusal,), self.library, self.language)
        return phrase("headline-case", self.language, title=title, told=said) if said else title

    def _said(self, title: str) -> str:
        """Say what the root states in numbers and names, else its message; empty where `title` has it."""
        report, cause = self.assessment.report, self.judged.cause
        if (root := report.root) is None or cause is None:
            return ""
        # What only reports an end says less than the root's own words.
        same = [
            event
            for event in report.standing
            if event is not root and event.cause in (cause.id, root.cause) and event.pattern_role != "wrapper"
        ]
        said = facts_in_words(report, (root, *same), self.library, self.language)
        if said:
            return "" if said in title else said
        body = announced(root, report) or root.body
        quote = quoted(body, title, is_general=not self.judged.cases)
        return f"`{quote}`" if quote else ""

    @cached_property
    def message(self) -> FormedMessage | None:
        """What the root's own message says, where its form is known and the cause is named."""
        cause = self.judged.cause
        is_named = cause is not None and self.judged.verdict == "diagnosed"
        return formed_message(self.assessment.report, cause, self.library) if cause and is_named else None

    @property
    def text(self) -> str:
        """The explanation, in Markdown paragraphs that cite lines and cases."""
        cause = self.judged.cause
        parts = self._of_no_failure() if cause is None else self._of_failure(cause)
        return "\n\n".join(part for part in parts if part)

    def _of_no_failure(self) -> list[str]:
        """Tell how a job ended in whose log nothing failed."""
        # The headline says that nothing failed: told here is what shows it.
        requests = [self.end.requests, self._failure.survived()] if self.end.requests else []
        shown = [self.end.told, self._failure.novel(), self._machine()]
        if self.judged.has_ended:
            is_closed = self.assessment.report.log_end.kind == "closed"
            ended = phrase("ended", self.language, **self.end.last_sign) if is_closed else ""
            return [ended, *requests, *shown]
        where = phrase("open-where", self.language, **self.end.last_sign)
        if (refusal := self.end.refusal) is not None and refusal.cause:
            advice = self.library.causes[refusal.cause].advice.to(self.language, self.assessment.holds)
            return [*requests, phrases.titled("do", advice, self.language), where, *shown]
        is_asked = self.assessment.report.log_end.asked > 0
        to_do = phrase("open-do-asked" if is_asked else "open-do", self.language)
        return [*requests, where, to_do, *shown]

    def _of_failure(self, cause: Cause) -> list[str]:
        root, is_unknown = self.assessment.report.root, self.judged.verdict == "unknown"
        collect = phrases.titled(
            "collect", cause.advice.to(self.language, self.assessment.holds), self.language
        )
        if is_unknown and root is None and not self.end.is_failure:
            # Say that a text tells neither of a failure nor of a good end.
            silence = f"{phrase(self.end.silence, self.language)}\n\n{self.end.last_line}".strip()
            said = self.end.requests or silence
            if self._stops_amid_work:
                where = phrase("open-where", self.language, **self.end.last_sign)
                said = f"{where}\n\n{phrase('open-do', self.language)}"
            return [said, self._failure.novel(), self._machine(), self._nearest_cases(), collect]
        told = f"{self.headline}\n{self.message.means(self.language) if self.message else ''}"
        since = self.since if is_unknown else ""
        parts = [self.end.told, self._failure.what_happened(told), since, self._failure.compared()]
        if is_unknown and root is None:
            parts += [self._failure.novel(), self.end.next]
        elif is_unknown:
            why = phrase("cut-calls" if self._breaks_off else "unknown", self.language)
            seen = [self.end.requests or why, phrase("seen", self.language)]
            parts = [*seen, *parts, self._failure.novel(), self._possibilities(), self.end.next]
        elif self.judged.cases and not (self.message and self.message.replaces_case):
            parts += self._from_case(self.judged.cases[0])
        else:
            means = self.message.means(self.language) if self.message else cause.means.to(self.language)
            look = self.message.look(self.language) if self.message else ""
            # Of a statement that is not as it ran any more, or gets its edit, nothing is to be looked at.
            is_told = self.message is not None and bool(self.message.act(self.language))
            is_edited = self.step in ("edited", "parsed") and cause.action == "fix-code" and not is_told
            if self.step == "again" or is_edited:
                look = phrase(f"code-step-{self.step}", self.language)
            # An end that is the answer tells more of what to do than the cause, which has several ends.
            advice = self._end_advice or look or cause.advice.to(self.language, self.assessment.holds)
            parts.append(phrases.titled("why", self._fitting(means), self.language))
            if not self._needs_no_package:
                parts.append(phrases.titled("do", self._with_limits(self._fitting(advice)), self.language))
                parts.append(self._values())
            parts.append(self.end.next if root is None and not self._end_advice else "")
        aftermath = self._failure.aftermath(ended_in_failure=self.end.is_failure)
        parts += [self._vote(cause), self._confirmed(), aftermath, self._machine(), self._past_crashes()]
        named_since = (
            phrases.titled("since", self.since, self.language) if self.since and not is_unknown else ""
        )
        return [*parts, named_since, collect if is_unknown else ""]

    @property
    def _end_advice(self) -> str:
        """What to do about an end of which the log tells nothing, and that says more of it than its cause."""
        return self.end.next if self.end.action else ""

    @property
    def _needs_no_package(self) -> bool:
        """Whether the first change sets the environment up, where the cause advises an installation."""
        cause = self.judged.cause
        first = {(change.kind, change.framework) for change in self.cures[:1]}
        sets_up = any(kind == "env" or (kind, owner) == ("command", "host") for kind, owner in first)
        return sets_up and cause is not None and "package-versions" in cause.turns_on

    @property
    def _failure(self) -> FailureText:
        return FailureText(self.assessment, self.library, self.language)

    def _from_case(self, case: Case) -> list[str]:
        sections = [
            part.strip()
            for part in _SECTION.split(case.told(self.language, self.assessment.holds))
            if part.strip()
        ]
        why = self._fitting(sections[1] if len(sections) > 1 else sections[0])
        if self.message is not None:
            why = f"{self.message.means(self.language)} {why}"
        rows = [phrases.titled("why", f"{why} [case:{case.id}]", self.language)]
        if len(sections) > 2 and not self._needs_no_package:
            advice = self._with_limits(self._fitting(sections[2]))
            rows.append(phrases.titled("do", f"{advice} [case:{case.id}]", self.language))
            rows.append(self._values())
        return rows

    def _with_limits(self, advice: str) -> str:
        """Say before advice what cannot cure, as the log's numbers show, where no cure is told."""
        return advice if self.cures else f"{self.unhelpful} {advice}".strip()

    def _values(self) -> str:
        """List the rows that made what the failing statement is given, where no cure is told."""
        cause = self.judged.cause
        if self.cures or self.step == "again" or cause is None or not cause.of_values:
            return ""
        told = [
            phrase(
                "value-row-handed" if row.handed else "value-row",
                self.language,
                place=row.place,
                code=inline_code(row.code),
                parameter=row.handed,
            )
            for row in value_rows(self.assessment.report)
        ]
        return phrases.titled("values", "\n".join(["", *told]), self.language) if told else ""

    def _fitting(self, text: str) -> str:
        """Give a text without what it says of things that this job has not."""
        return fitting_prose(text, self.assessment.view)

    def _vote(self, cause: Cause) -> str:
        """Say that a model's vote decided for this cause, over what, and by which lines."""
        vote, report = self.assessment.vote, self.assessment.report
        if vote is None or not vote.against or vote.choice != cause.id or cause.id == UNKNOWN_CAUSE:
            return ""
        against = self.library.causes.get(vote.against)
        held = against.title.to(self.language) if against else phrase("voted-sound", self.language)
        rows = [
            f"- [{report.place(line)}] `{inline_code(report.texts[line])}`"
            for line in vote.lines
            if line in report.texts
        ]
        said = phrase("voted", self.language, held=held)
        return "\n".join([said, "", *rows]) if rows else said

    def _confirmed(self) -> str:
        """Say what a person confirmed of the same crash, and whether that counts."""
        told = self.assessment.confirmed
        if told is None:
            return ""
        title = self.library.causes[told.cause].title.to(self.language)
        name = "confirmed-counted" if told.counted else "confirmed-stated"
        return phrase(name, self.language, on=told.on.date().isoformat(), title=title)

    def _machine(self) -> str:
        """Write what the machine says of each cause; nothing where nobody asked it."""
        return bulleted("machine", phrases.telemetry(self.telemetry, self.language), self.language)

    def _possibilities(self) -> str:
        rows: Sequence[str] = [
            f"- **{self.library.causes[item.cause].title.to(self.language)}** — "
            f"{tell_apart(None, item, self.library, self.language, self.assessment.view)}"
            for item in self.assessment.candidates[:3]
            if item.cause != UNKNOWN_CAUSE
        ]
        return bulleted("maybe", rows, self.language) or self._nearest_cases()

    def _nearest_cases(self) -> str:
        """Name the two cases that are most like the log, whatever their signatures say."""
        retrieval, cases = self.assessment.retrieval, self.library.cases
        near = [hit.owner for hit in retrieval.ranked if hit.kind == "case"][:2] if retrieval.query else []
        rows = [
            f"- {cases[owner].title.to(self.language)} [case:{owner}]" for owner in near if owner in cases
        ]
        return bulleted("nearest", rows, self.language)

    def _past_crashes(self) -> str:
        """Name past jobs that crashed in the same way."""
        rows = []
        for hit in self.assessment.retrieval.ranked:
            known = hit.document if hit.kind == "report" else None
            if known and known.heading == self.assessment.report.fingerprint:
                cause = known.cause or phrase("unnamed", self.language)
                name = "fixed-by" if known.fix else "seen-before"
                said = phrase(name, self.language, owner=hit.owner, cause=cause, fix=known.fix)
                rows.append(f"- {said}")
        return bulleted("similar", rows[:3], self.language)
