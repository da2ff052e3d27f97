"""A batch on the page: how far it is, what died and how surely why, what to change first, and which jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpus.message import is_chinese
from corpus.schema import Language
from service.batches.page import number
from service.batches.summary import CrashGroup, JobName, Saving, Summary
from service.composition import shortening
from service.composition.diagnosis_view import DOUBTFUL, as_written, likely_words
from service.html.markup import EMPTY, Html, element, join, table
from service.schemas.diagnosis import ProposedChange
from service.schemas.records import BatchRecord
from ui import sentences
from ui.chat import prose
from ui.chat.words import counted, say

# Characters of a failing line, more where it names something further on.
_PROOF, _LONG_PROOF = 200, 320
# Crashes of one cause that are listed; the report has more.
_CRASHES = 8


def render(record: BatchRecord, summary: Summary, language: Language) -> Html:
    """Render the summary of a batch as far as it has come."""
    groups = (_cause_group(group.title, group.groups, group.crashes, language) for group in summary.causes)
    return join(
        _head(record, summary, language),
        _best(summary, language),
        *groups,
        _sound(summary, language),
        _unanswered(summary, language),
    )


def _head(record: BatchRecord, summary: Summary, language: Language) -> Html:
    over = summary.jobs - summary.states.get("queued", 0) - summary.states.get("running", 0)
    total, died = record.total, summary.died
    running = record.state == "running"
    told = [say("batch-died", language, died=number(died.jobs), jobs=number(over))]
    if died.gpu_hours is not None:
        told.append(say("batch-hours", language, hours=number(died.gpu_hours)))
    if summary.crashes:
        told.append(counted("batch-crashes", "batch-crash", summary.crashes, language))
    far = None
    if running:
        so_far = say("batch-jobs-so-far", language, over=f"{over:,}", jobs=f"{total:,}")
        stop = element(
            "button", say("batch-cancel", language), type="button", class_="small", data_do="cancel-batch"
        )
        bar = element("progress", max=total or 1, value=over, aria_label=so_far)
        far = element("div", bar, element("span", so_far, class_="hint"), stop, class_="row far")
    return element(
        "div",
        element("p", say(f"batch-{record.state}", language), class_="verdict"),
        element("h1", record.name or record.id, id="wc-batch-title", tabindex="-1"),
        element("p", " · ".join(told), class_="told"),
        far,
        None if running else element("div", *_files(record, language), class_="row files-of"),
        class_="card head batch-head",
    )


def _files(record: BatchRecord, language: Language) -> Iterator[Html]:
    """Render the ways to the report with its plots, and to the results as files."""
    at = f"v1/batches/{record.id}"
    for words, way in (
        ("batch-report", f"{at}/summary?format=html&lang={language}"),
        ("batch-csv", f"{at}/results?format=csv"),
        ("batch-jsonl", f"{at}/results?format=jsonl"),
    ):
        yield element("a", say(words, language), href=way, target="_blank", rel="noopener", class_="tag")


def _best(summary: Summary, language: Language) -> Html:
    """Render the one change that would have saved most, where that is a real share of what was lost."""
    best, died = summary.best_saving, summary.died
    if best is None:
        return EMPTY
    told = say("batch-saves", language, jobs=number(best.jobs), died=number(died.jobs))
    if best.gpu_hours and died.gpu_hours:
        told += say("batch-saves-hours", language, hours=number(best.gpu_hours))
    return element(
        "section",
        element("h2", say("batch-first", language)),
        element("p", _change(best), class_="what"),
        element("p", told),
        element("p", *prose.inline(best.why), class_="hint"),
        class_="card",
        aria_label=say("batch-first", language),
    )


def _cause_group(title: str, crashes: Sequence[CrashGroup], count: int, language: Language) -> Html:
    more = count - min(len(crashes), _CRASHES)
    left = element("p", counted("batch-more", "batch-more-one", more, language), class_="hint")
    return element(
        "section",
        element("h2", title),
        element("ol", *(_crash(crash, language) for crash in crashes[:_CRASHES]), class_="crashes"),
        left if more else None,
        class_="card",
        aria_label=title,
    )


def _crash(crash: CrashGroup, language: Language) -> Html:
    likely = likely_words(crash.confidence, crash.verdict, language)
    is_doubtful = crash.confidence is not None and crash.confidence < DOUBTFUL
    cost = [counted("batch-count", "batch-count-one", crash.jobs, language)]
    if crash.gpu_hours is not None:
        cost.append(say("batch-hour-count", language, hours=number(crash.gpu_hours)))
    told = " · ".join((*cost, likely)) if likely else " · ".join(cost)
    change = None
    if crash.change:
        change = element("p", _change(crash.change), class_="what")
    elif crash.step:
        change = element("p", *prose.inline(crash.step))
    proof = shortening.proof(crash.proof, _PROOF, _LONG_PROOF)
    # A batch is answered in one language; to readers of the other the cause's title and the proof speak.
    is_told = not proof or is_chinese(crash.headline) == (language == "zh")
    return element(
        "li",
        element("h3", *prose.inline(crash.headline)) if is_told else None,
        element("p", told, class_="doubt" if likely and is_doubtful else "by"),
        element("p", element("code", proof), class_="proof") if proof else None,
        change,
        element("p", _jobs(crash.members or (crash.representative,), crash.jobs, language), class_="jobs"),
    )


def _change(change: Saving | ProposedChange) -> Html:
    return join(
        element("code", as_written(change), class_="setting"),
        " ",
        element("span", change.framework, class_="tag"),
    )


def _jobs(named: Sequence[JobName], jobs: int, language: Language) -> Html:
    """Name jobs, each leading to its answer, and count those that are not named."""
    links: list[Html | str] = [
        element("a", job.name, href=f"?job={job.id}", data_do="open-job", data_job=job.id) for job in named
    ]
    if jobs > len(named):
        links.append(counted("batch-more-jobs", "batch-more-job", jobs - len(named), language))
    return join(*links, between="、" if language == "zh" else ", ")


def _sound(summary: Summary, language: Language) -> Html:
    """Render the jobs that ended well, and apart from them those whose end was not seen."""
    told = (
        ("well", summary.healthy, summary.healthy_jobs),
        ("open-ends", summary.open_ends, summary.open_jobs),
    )
    parts = [
        element(
            "p",
            counted(f"batch-{name}", f"batch-{name}-one", jobs, language),
            " ",
            _jobs(named, jobs, language),
        )
        for name, jobs, named in told
        if jobs
    ]
    if not parts:
        return EMPTY
    title = say("batch-sound", language)
    return element("section", element("h2", title), *parts, class_="card", aria_label=title)


def _unanswered(summary: Summary, language: Language) -> Html:
    """Render why jobs have no answer, and what was left out of the batch."""
    failures = (
        (sentences.worded("", failure.error, language), number(failure.jobs), failure.example.name)
        for failure in summary.failures
    )
    left = ((reason.replace("_", " "), str(told)) for reason, told in summary.left_out.items())
    parts = []
    if summary.failures:
        heads = [say(f"batch-{name}", language) for name in ("reason", "count-head", "example")]
        parts.append(table(say("batch-unanswered", language), heads, failures))
    if summary.left_out:
        heads = [say(f"batch-{name}", language) for name in ("reason", "what")]
        parts.append(table(say("batch-left-out", language), heads, left))
    return element("section", *parts, class_="card") if parts else EMPTY
