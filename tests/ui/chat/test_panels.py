"""The parts of an answer, from diagnoses of real logs."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from corpus import message
from corpus.message import Message
from corpus.schema import Language
from ingest.logs.lines import message_of
from service.app.triage_service import Page
from service.pipeline.triage import Triage
from service.schemas.diagnosis import (
    Alternative,
    CascadeEntry,
    Curve,
    Diagnosis,
    ProcedureStep,
    ProposedChange,
    TraceStep,
)
from service.schemas.events import (
    Accepted,
    CasesMatched,
    Event,
    ExplanationParagraph,
    FinalAnswer,
    FirstAnswer,
    LogLookedAt,
    LogRead,
    Progress,
    TriageFailed,
    TurnAnswered,
)
from service.schemas.records import Crash, Excerpt, LineRange, Recurrence, TriageRecord
from service.telemetry.snapshot import Series, Snapshot
from tests.parsed_html import Seen
from tests.tables import each_row
from tests.warm import HEALTHY, answered, log_lines
from ui.chat import (
    answer,
    cascade,
    conversation,
    curves,
    diff,
    evidence,
    feedback,
    history,
    privacy,
    stages,
    telemetry,
    words,
)
from ui.chat.controller import PanelCache, examples
from ui.chat.view import NOTHING, TriageView, after, of_record

NAME = "openrlhf-save-host-peak"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
READ = LogRead(
    bytes=2_500_000,
    lines=12_345,
    events=3,
    root_line=7,
    root_file=None,
    frameworks=("verl",),
    redactions=0,
    truncated=False,
    telemetry=(),
)


@pytest.fixture
def diagnosis(triage: Triage) -> Diagnosis:
    """Answer for a real log with its launch script."""
    return answered(triage, NAME)


def view(diagnosis: Diagnosis | None = None, language: Language = "en", **fields: object) -> TriageView:
    """Make a view of a whole answer."""
    return replace(TriageView(language, "job.log", triage="01A", state="done", diagnosis=diagnosis), **fields)  # type: ignore[arg-type]


def texts(html: str) -> str:
    """Give all text of some HTML."""
    return " ".join(" ".join(Seen(html).texts).split())


def test_that_the_conclusion_tells_all_in_three_lines(triage: Triage, diagnosis: Diagnosis) -> None:
    """The headline, how likely it is in words with the number and what that rests on, and the next step."""
    told = texts(answer.head(view(diagnosis), triage.library))
    assert f"about {diagnosis.confidence:.0%}".rstrip("%") + " %" in told
    assert diagnosis.headline in told
    assert words.say(f"standing-{diagnosis.standing}", "en") in told
    assert words.say(f"action-{diagnosis.action}", "en") in told
    assert f"{diagnosis.confidence:.2f}" not in told


def test_that_what_the_patch_does_comes_first(diagnosis: Diagnosis) -> None:
    """The changes that the patch makes stand above it, the others are folded below."""
    html = answer.changes(view(diagnosis))
    assert diagnosis.patch is not None
    assert html.index("adam_offload") < html.index("diff") < html.index("<details")


def test_that_what_is_to_be_checked_is_not_called_found(triage: Triage, diagnosis: Diagnosis) -> None:
    """Found and a hypothesis in one card would contradict each other."""
    for standing, said in (("hypothesis", "Probable cause"), ("established", "Cause found")):
        sure = diagnosis.model_copy(update={"standing": standing, "confidence": 0.9})
        assert said in texts(answer.head(view(sure), triage.library))
    doubtful = diagnosis.model_copy(update={"standing": "established", "confidence": 0.5})
    assert "Probable cause" in texts(answer.head(view(doubtful), triage.library))


def test_that_an_answer_tells_that_the_crash_was_here_before(triage: Triage, diagnosis: Diagnosis) -> None:
    """How often, since when and what cured it, with the way to the last one; what a person wrote is text."""
    now = datetime.now(UTC)
    before = Recurrence(times=2, first=now - timedelta(days=3), last=now - timedelta(hours=2), triage="T7")
    head = answer.head(view(diagnosis, recurrence=before), triage.library)
    assert "2 times here, first 3 d ago" in texts(head)
    assert 'data-triage="T7"' in head
    cured = before.model_copy(update={"times": 1, "fix": "<b>pin 2.4</b>"})
    head = answer.head(view(diagnosis, recurrence=cured), triage.library)
    assert "once here" in texts(head)
    assert "said to have cured it: &lt;b&gt;pin 2.4" in head
    assert "Seen before" not in answer.head(view(diagnosis), triage.library)
    assert diagnosis.cause is not None
    for judged, said in ((diagnosis.cause, "called right"), ("nccl-network", "a person said that it was")):
        told = before.model_copy(update={"judged": judged})
        assert said in texts(answer.head(view(diagnosis, recurrence=told), triage.library))


def test_that_the_page_draws_each_field_that_is_written_in(triage: Triage, diagnosis: Diagnosis) -> None:
    """It knows them by their type; one without is as invisible as the card behind it."""
    crash = Crash(
        fingerprint="f", times=2, first=NOW, last=NOW, triage="T7", cause=None, headline="", jobs=()
    )
    form = feedback.render(view(diagnosis, crash=crash), triage.library)
    fields = re.findall(r"<input[^>]*>", form)
    kinds = {kind for field in fields for kind in re.findall(r' type="(\w+)"', field)}
    css = Path(feedback.__file__).with_name("page.css").read_text(encoding="utf-8")
    assert len(fields) == 2
    assert all(" type=" in field for field in fields)
    assert all(f'.wc input[type="{kind}"]' in css for kind in kinds)


def test_that_the_failing_line_is_quoted_once(triage: Triage, diagnosis: Diagnosis) -> None:
    """The head has it; the explanation goes on from there."""
    shown = view(diagnosis)
    assert shown.answer is not None
    assert shown.answer.proof[:60] in texts(answer.head(shown, triage.library))
    assert shown.answer.proof[:60] not in texts(answer.why(shown, triage.library))


@each_row(("confidence", "is_doubtful"), [(0.69, True), (0.71, False)])
def test_that_a_cause_that_may_be_another_is_amber_with_the_others_open(
    confidence: float, is_doubtful: bool, triage: Triage, diagnosis: Diagnosis
) -> None:
    """Who reads on sees at once what else it may be, and how likely that is."""
    other = Alternative(cause="disk-full", confidence=0.24, tell_apart="look at `df`")
    shown = view(diagnosis.model_copy(update={"confidence": confidence, "alternatives": (other,)}))
    assert ("doubtful" in answer.head(shown, triage.library)) is is_doubtful
    told = answer.why(shown, triage.library)
    others = told[told.rindex("<details") :]
    assert ("open" in others.partition(">")[0]) is is_doubtful
    assert "about 24 %" in texts(others)
    assert "<code>df</code>" in others


def test_that_marks_of_code_are_rendered_in_changes_and_their_costs(diagnosis: Diagnosis) -> None:
    """No backtick is left where a reader sees it, and nothing of a text acts as markup."""
    change = ProposedChange(
        framework="user",
        kind="code",
        key="run.py:7",
        to="write `<b>x</b>` in place of `y`",
        why="`y` is **gone**",
        costs="needs `z`",
        status="verified",
    )
    step = ProcedureStep(run="ls", why="shows `w`", costs="reads `v`")
    html = answer.changes(
        view(diagnosis.model_copy(update={"changes": (change,), "patch": None, "steps": (step,)}))
    )
    assert "`" not in texts(html)
    for code in ("&lt;b&gt;x&lt;/b&gt;", "y", "z", "w", "v"):
        assert f"<code>{code}</code>" in html
    assert "<strong>gone</strong>" in html


def test_that_a_change_that_reads_the_same_for_two_frameworks_stands_once(diagnosis: Diagnosis) -> None:
    made = [
        ProposedChange(framework=name, kind="env", key="A", to=1, why="w", status="verified")
        for name in ("one", "two")
    ]
    other = made[0].model_copy(update={"to": 2, "framework": "three"})
    html = answer.changes(view(diagnosis.model_copy(update={"changes": (*made, other), "patch": None}), "zh"))
    assert html.count("A=1") == 1
    assert "one, two · 环境变量" in texts(html)
    assert "three · 环境变量" in texts(html)


@each_row(
    ("name", "title"),
    [("command-at-line-12.sh", "The command in line 12 of the log, changed"), ("run.sh", "Patch of run.sh")],
)
def test_that_a_command_of_the_log_is_not_called_a_file(name: str, title: str) -> None:
    assert title in texts(diff.render(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n", "en"))


def test_that_the_launch_command_stands_whole_on_the_page_with_a_button_that_copies_it(
    diagnosis: Diagnosis,
) -> None:
    """Text of a log is shown as text."""
    command = "A='<b>' python train.py \\\n    --lr 1"
    given = view(diagnosis.model_copy(update={"command": command}))
    html = answer.changes(given)
    assert " ".join(command.split()) in texts(html)
    assert 'data-do="copy-command"' in html
    assert "copy-command" not in answer.changes(view(diagnosis.model_copy(update={"command": None})))


@each_row(
    ("source", "told"),
    [
        ("pasted text", "粘贴的文本"),
        ("example: recovered", "虽有报错，其实正常结束"),
        ("example: none", "example: none"),
        ("a.log", "a.log"),
    ],
)
def test_that_what_is_no_file_is_named_in_the_pages_language(source: str, told: str) -> None:
    assert words.named(source, "zh") == told
    assert told in texts(stages.render(TriageView("zh", source, state="running")))


@pytest.mark.parametrize(
    ("patch", "key", "to", "expected"),
    [
        ("--- a/x\n+++ b/x\n-  batch: 2\n+  batch: 1\n", "actor.batch", 1, True),
        ("--- a/x\n+++ b/x\n+  --micro-batch 1 \\\n", "--micro_batch", 1, True),
        ("--- a/x\n+++ b/x\n-  --adam_offload \\\n", "adam_offload", False, True),
        ("--- a/x\n+++ b/x\n+  free_cache: true\n", "rollout.free_cache", True, True),
        ("--- a/x\n+++ b/x\n-run a.batch=2 b.util=0.55\n+run a.batch=1 b.util=0.55\n", "b.util", 0.5, False),
        ("--- a/x\n+++ b/x\n-run a.batch=2 b.util=0.55\n+run a.batch=1 b.util=0.55\n", "a.batch", 1, True),
        ("--- a/r.txt\n+++ b/r.txt\n-torch==2.0\n+torch>=2.1\n", "torch", ">=2.1", True),
        ("--- a/batch\n+++ b/batch\n+  other: 1\n", "actor.batch", 1, False),
        ("--- a/x\n+++ b/x\n+  batch: 4\n", "actor.batch", 1, False),
    ],
)
def test_that_a_change_is_known_in_its_patch(
    diagnosis: Diagnosis, patch: str, key: str, to: float | str, expected: bool
) -> None:
    """By its key and value in the added rows, or its key in the removed ones."""
    one = ProposedChange(framework="verl", kind="setting", key=key, to=to, why="w", status="verified")
    others = tuple(
        ProposedChange(
            framework="verl", kind="setting", key=f"zz{place}", to=place, why="w", status="verified"
        )
        for place in range(3)
    )
    html = answer.changes(view(diagnosis.model_copy(update={"patch": patch, "changes": (*others, one)})))
    assert ("3 more that can help" in html) is expected


def test_that_an_unknown_cause_says_what_to_look_at(triage: Triage) -> None:
    """Where the changes would stand, there is what to collect next."""
    unknown = answered(triage, "openrlhf-bare-actor-died")
    assert unknown.verdict == "unknown"
    told = texts(answer.changes(view(unknown)))
    assert told.startswith("What to look at next")
    assert "To confirm" not in texts(answer.why(view(unknown), triage.library))


def test_that_a_healthy_run_needs_nothing(triage: Triage) -> None:
    """No failure, no changes, no cascade, no cases."""
    healthy = answered(triage, HEALTHY)
    assert answer.changes(view(healthy)) == ""
    assert cascade.render(view(healthy)) == ""


def test_that_the_models_words_stand_below_the_rules(triage: Triage, diagnosis: Diagnosis) -> None:
    """While it writes, its part is busy; then it stands there as the model's own."""
    writing = view(diagnosis, state="running", model="openai:x", first=diagnosis, said=("It ran out. [L7]",))
    done = view(
        diagnosis.model_copy(
            update={
                "engine": diagnosis.engine.model_copy(
                    update={"name": "openai:x", "model_explanation": "It ran out. [L7]"}
                )
            }
        )
    )
    rules = str(answer.why(view(diagnosis), triage.library)).split("<p>")[1].split("<")[0]
    for shown, busy in ((writing, True), (done, False)):
        html = str(answer.why(shown, triage.library))
        assert html.index(rules) < html.index("What the model (openai:x) says") < html.index("It ran out.")
        assert ('aria-busy="true"' in html) is busy


@each_row("language", ["en", "zh"])
def test_that_every_panel_speaks_the_language(triage: Triage, language: Language) -> None:
    """No panel falls back to the other language for its own words."""
    found = answered(triage, NAME, language)
    panels = PanelCache(triage.library).paint(view(found, language))["panels"]
    titles = {
        words.say(name, language)
        for name in ("what-to-change", "why", "evidence", "cascade", "telemetry", "privacy")
    } | {message.words("diagnosis.cases", language)}
    others = {
        words.say(name, "zh" if language == "en" else "en")
        for name in ("what-to-change", "evidence", "cascade", "privacy")
    }
    headings = {Seen(f"<h2{part}").texts[0] for html in panels.values() for part in html.split("<h2")[1:]}
    assert titles <= headings
    assert not others & headings


def test_that_a_panel_is_rendered_again_only_where_it_changed(triage: Triage, diagnosis: Diagnosis) -> None:
    """A new paragraph of a model changes the explanation, and leaves the log as it is."""
    canvas = PanelCache(triage.library)
    shown = view(diagnosis, state="running", model="m", first=diagnosis, said=("One.",))
    one = canvas.paint(shown)["panels"]
    two = canvas.paint(replace(shown, said=("One.", "Two.")))["panels"]
    assert [name for name in one if one[name] != two[name]] == ["why"]
    assert two["evidence"] == one["evidence"]


# ---- the log


def whole(lines: list[str]) -> Excerpt:
    """Keep all of a log."""
    return Excerpt(stretches=(LineRange(file=None, begin=1, lines=tuple(lines)),), whole=True)


def test_that_every_marked_line_is_in_the_log(diagnosis: Diagnosis) -> None:
    """Each line that the answer names has its number, its text and its role."""
    html = evidence.render(view(diagnosis, excerpt=whole(log_lines(NAME))))
    rows = {
        int(attributes["data-line"] or 0): attributes
        for tag, attributes in Seen(html).elements
        if tag == "div" and "data-line" in attributes
    }
    assert all(rows[item.line]["data-role"] for item in diagnosis.evidence)
    assert [row for row in rows.values() if row.get("data-role") == "root"] == [
        rows[diagnosis.evidence[0].line]
    ]


def test_that_a_huge_excerpt_is_cut_around_what_matters(diagnosis: Diagnosis) -> None:
    """What is too much for a page leaves out what is far from every marked line, and says how much."""
    lines = [*log_lines(NAME), *(f"noise {number}" for number in range(30_000))]
    html = evidence.render(view(diagnosis, excerpt=whole(lines)))
    assert html.count('class="l') <= evidence.MAX_LINES
    assert all(f'data-line="{item.line}"' in html for item in diagnosis.evidence)


def test_that_without_an_excerpt_the_quoted_lines_are_shown(diagnosis: Diagnosis) -> None:
    """Each quoted line, and the gaps between them."""
    html = evidence.render(view(diagnosis, excerpt=NOTHING))
    assert "The lines that the answer rests on" in html
    assert html.count("data-role=") >= len(diagnosis.evidence)


def test_that_gaps_and_files_are_named(diagnosis: Diagnosis) -> None:
    """Lines that are not kept are counted; each file has its name above its lines."""
    parts = (
        LineRange(file="rank0.log", begin=5, lines=("a", "b")),
        LineRange(file="rank0.log", begin=1_010, lines=("c",)),
        LineRange(file="rank1.log", begin=1, lines=("d",)),
    )
    told = texts(evidence.render(view(diagnosis, excerpt=Excerpt(stretches=parts))))
    assert "rank0.log ⋯ 4 lines not kept 5 a 6 b ⋯ 1,003 lines not kept 1010 c rank1.log 1 d" in told


def test_that_a_long_line_is_cut(diagnosis: Diagnosis) -> None:
    """One line of a megabyte does not fill the page."""
    assert len(evidence.render(view(diagnosis, excerpt=whole(["x" * 1_000_000])))) < 10_000


# ---- the cascade


def entry(
    line: int,
    source: str = "",
    role: str = "collateral",
    count: int = 1,
    missing: tuple[int, ...] = (),
    time: str | None = None,
) -> CascadeEntry:
    """Make an entry of a cascade."""
    return CascadeEntry(
        line=line,
        time=time,
        source=source,
        event=f"event {line}",
        role=role,
        count=count,
        missing_ranks=missing,
        silent_ranks=missing,
    )  # type: ignore[arg-type]


SPREAD = (
    entry(10, "rank=1", "root", 3, (0, 4), "2025-01-01 10:00:01,250"),
    entry(11, "rank=2", "recovered"),
    entry(12, "", "teardown"),
    entry(13, "rank=1", time="10:00:09"),
    entry(14, "rank=3"),
)


def test_that_one_process_spreads_nothing(diagnosis: Diagnosis) -> None:
    """Where all failures are one process's, no plot and no list repeats them; a silent rank counts."""
    alone = (entry(1, "rank=1", "root"), entry(2, "rank=1"))
    assert cascade.render(view(diagnosis.model_copy(update={"cascade": alone}))) == ""
    beside = (entry(1, "rank=1", "root", missing=(4,)), entry(2, "rank=1"))
    assert "wc-cascade" in cascade.render(view(diagnosis.model_copy(update={"cascade": beside})))


def test_that_each_process_has_its_lane() -> None:
    """In the order of failing, with the silent ranks below."""
    assert [(lane.name, lane.is_silent) for lane in cascade.lanes(SPREAD, "en")] == [
        ("rank=1", False),
        ("rank=2", False),
        ("job output", False),
        ("rank=3", False),
        ("rank 0, 4: no failure", True),
    ]


def test_that_a_rank_that_failed_otherwise_is_not_silent() -> None:
    """It did not tell of this event and has told of another: no lane says that nothing came of it."""
    spread = (
        entry(1, "rank=0", "root"),
        entry(2, "rank=1", missing=(0, 2)).model_copy(update={"silent_ranks": ()}),
        entry(3, "rank=10 pid=4"),
    )
    assert not [lane for lane in cascade.lanes(spread, "en") if lane.is_silent]


def test_that_errors_that_all_were_recovered_from_did_not_spread(diagnosis: Diagnosis) -> None:
    recovered = diagnosis.model_copy(update={"cascade": (entry(1, role="recovered"),)})
    assert texts(cascade.render(view(recovered))).startswith("What it recovered from")


def test_that_each_event_has_its_dot(diagnosis: Diagnosis) -> None:
    """In its lane, larger for the root, with its count; the times of the clock are below."""
    seen = Seen(cascade.render(view(diagnosis.model_copy(update={"cascade": SPREAD}))))
    dots = [attributes for tag, attributes in seen.elements if tag == "circle"]
    assert [dot["class"] for dot in dots] == [
        "dot r-root",
        "dot r-recovered",
        "dot r-teardown",
        "dot r-collateral",
        "dot r-collateral",
    ]
    assert dots[0]["cy"] == dots[3]["cy"] != dots[1]["cy"]
    assert int(dots[0]["r"] or 0) > int(dots[1]["r"] or 0)
    assert {"×3", "10:00:01", "10:00:09"} <= set(seen.texts)


def test_that_files_are_put_in_the_order_of_the_clock() -> None:
    """Over several files by their times, a line without one after the line before it; else as they came."""
    spread = [
        entry(5, time="10:00:09").model_copy(update={"file": "a"}),
        entry(6).model_copy(update={"file": "a"}),
        entry(2, time="9:59:58.5").model_copy(update={"file": "b"}),
        entry(3, time="10:00:09,5").model_copy(update={"file": "b"}),
    ]
    assert [(one.file, one.line) for one in cascade.in_time(spread)] == [
        ("b", 2),
        ("a", 5),
        ("a", 6),
        ("b", 3),
    ]
    silent = [*spread, entry(1).model_copy(update={"file": "c"})]
    assert cascade.in_time(silent) == silent
    assert cascade.in_time(SPREAD) == SPREAD


def test_that_many_processes_stay_a_plot(diagnosis: Diagnosis) -> None:
    """Hundreds of ranks share the last lane."""
    many = tuple(
        entry(number, f"rank={number}", "root" if number == 1 else "collateral") for number in range(1, 200)
    )
    assert len(cascade.lanes(many, "en")) == cascade.MAX_LANES
    html = cascade.render(view(diagnosis.model_copy(update={"cascade": many})))
    assert html.count("<circle") == 199


# ---- the machine, privacy, stages


def test_that_a_history_is_plotted(triage: Triage, diagnosis: Diagnosis) -> None:
    """Memory comes first; many points are thinned; the ends are told in words."""
    points = tuple((1_700_000_000.0 + 10 * place, 100.0 - place / 100) for place in range(5_000))
    snapshot = Snapshot(
        taken_at=NOW,
        history=(
            Series(name="gpu.power_w", points=points),
            Series(name="host.memory_available_gib", points=points),
        ),
    )
    told = diagnosis.model_copy(
        update={"telemetry": diagnosis.telemetry.model_copy(update={"says": "agrees", "sources": ("host",)})}
    )
    html = telemetry.render(view(told, snapshot=snapshot), triage.library)
    assert html.index("host.memory_available_gib") < html.index("gpu.power_w")
    assert html.count(",", html.index("points="), html.index("vector-effect")) <= telemetry.MAX_POINTS + 1
    assert "from 100 to 50.01 over 13:53:10" in html


def test_that_the_jobs_own_numbers_are_plotted(diagnosis: Diagnosis) -> None:
    """A gap where a value is no number, a mark where it went wrong, words for those who see no plot."""
    loss = Curve(
        name="loss", points=((1, 2.0), (2, None), (3, 1.0), (4, 0.0)), finding="zero", since=4, before=1.0
    )
    html = curves.render(view(diagnosis.model_copy(update={"curves": (loss,)})))
    assert html.count("<polyline") == 2
    assert html.count('class="since"') == 1
    assert "loss: from 2 to 0, between 0.0 and 2.0" in html
    assert "The loss stays at 0 from step 4 on (before: 1)." in texts(html)
    assert curves.render(view(diagnosis)) == ""


def test_that_what_is_not_measured_is_not_fine(triage: Triage, diagnosis: Diagnosis) -> None:
    """Without telemetry the panel says so, and how to give some."""
    told = texts(telemetry.render(view(diagnosis), triage.library))
    assert "not available" in told
    assert "whycrash snapshot" in told


def test_that_secrets_of_kept_lines_count(diagnosis: Diagnosis) -> None:
    """A secret that no quote holds is masked in the kept log, and is told."""
    kept = whole(["export A=[redacted:token]", "b [redacted:email] [redacted:email]"])
    assert "3 secrets masked" in privacy.render(view(diagnosis, excerpt=kept))
    assert "No secrets were found" in privacy.render(view(diagnosis, excerpt=whole(["nothing"])))


@each_row(
    ("events", "now", "done"),
    [
        ([], "Waiting for its turn", ""),
        ([Accepted(id="01A")], "Waiting for its turn", ""),
        ([Progress(bytes=1_500_000, total=3_000_000)], "Reading 1.5 MB of 3.0 MB", ""),
        ([Progress(bytes=999, total=0)], "Reading 999 B", ""),
        ([READ], "", "Read 2.5 MB, 12,345 lines 3 failure events"),
        (
            [READ.model_copy(update={"truncated": True, "events": 1})],
            "",
            "Read 2.5 MB, 12,345 lines (part of it) 1 failure event",
        ),
        ([READ, CasesMatched(cases=())], "", "0 known cases"),
    ],
)
def test_that_the_stages_follow_the_events(events: list[Event], now: str, done: str) -> None:
    """What is being done, and what was done."""
    shown = TriageView("en")
    for event in events:
        shown = after(event, shown)
    seen = Seen(stages.render(shown))
    assert now in seen.texts or not now
    assert done in " ".join(seen.texts)


def test_that_looks_of_a_model_are_told_as_they_happen_and_kept(diagnosis: Diagnosis) -> None:
    """Each look while the model works; afterwards those that the answer keeps; in the page's language."""
    says = Message("model.looked-lines", first="L5040", last="L5090")
    for language, told in (("en", "Looked at L5040 to L5090"), ("zh", "查看了 L5040 至 L5090")):
        shown = TriageView("zh" if language == "zh" else "en", model="openai:x", state="running")
        shown = after(FirstAnswer(diagnosis=diagnosis), shown)
        shown = after(LogLookedAt(tool="read_lines", says=says), shown)
        assert told in Seen(stages.render(shown)).texts
        step = TraceStep(tool="read_lines", found=says)
        engine = diagnosis.engine.model_copy(update={"trace": (step,)})
        final = diagnosis.model_copy(update={"engine": engine})
        kept = TriageView(shown.language, state="done", diagnosis=final)
        assert told in Seen(stages.render(kept)).texts


def test_that_a_look_for_a_question_is_shown_while_it_is_answered(diagnosis: Diagnosis) -> None:
    """Beside the question, and not among the looks of the answer; with the reply it is gone."""
    says = Message("model.looked-words", words="quota", count=3)
    shown = TriageView("en", model="openai:x", state="done", diagnosis=diagnosis, asking="why?")
    shown = after(LogLookedAt(tool="search_log", says=says), shown)
    assert "Searched for “quota”: 3 lines" in Seen(conversation.render(shown)).texts
    assert shown.looks == ()
    turned = after(TurnAnswered(text="So.", diagnosis=diagnosis, engine=diagnosis.engine), shown)
    assert turned.turn_looks == ()


def test_that_an_answer_goes_from_first_to_final(diagnosis: Diagnosis) -> None:
    """The first answer stands until the final one; a turn may change it; a turn that fails leaves it."""
    shown = after(FirstAnswer(diagnosis=diagnosis), TriageView("en", model="openai:x", state="running"))
    assert shown.diagnosis is diagnosis
    assert shown.wants_model
    final = diagnosis.model_copy(update={"headline": "final"})
    shown = after(FinalAnswer(diagnosis=final), after(ExplanationParagraph(text="One."), shown))
    assert (shown.state, shown.diagnosis, shown.first, shown.said) == ("done", final, diagnosis, ("One.",))
    turned = diagnosis.model_copy(update={"changes": ()})
    asked = replace(shown, asking="why?")
    assert (
        after(
            TurnAnswered(text="So.", diagnosis=turned, engine=turned.engine),
            after(ExplanationParagraph(text="So."), asked),
        ).diagnosis
        == turned
    )
    failed = after(TriageFailed(type="Late", status=504, error="There was no answer."), asked)
    assert (failed.state, failed.diagnosis, failed.asking) == ("done", final, "")
    assert "There was no answer." in stages.render(failed)


@each_row(
    ("failed", "english", "chinese"),
    [
        (
            TriageFailed(
                type="Busy",
                status=429,
                error="9 triages are under way; try again in 7 seconds.",
                retry_after=7.4,
            ),
            "9 triages are",
            "请 7 秒后重试",
        ),
        (TriageFailed(type="BusyError", status=429, error="x", retry_after=7.4), "x", "请 7 秒后重试"),
        (
            TriageFailed(
                type="EmptyInput", status=422, error=Message("errors.empty-nothing-written-wrong", name="<b>")
            ),
            "&lt;b&gt; is empty",
            "&lt;b&gt; 是空的",
        ),
    ],
)
def test_that_a_failure_is_a_sentence_in_the_pages_language(
    failed: TriageFailed, english: str, chinese: str
) -> None:
    """As the workers name it, and as the page does."""
    assert english in stages.render(after(failed, TriageView("en")))
    assert chinese in stages.render(after(failed, TriageView("zh")))


@each_row(
    ("count", "told"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123_456, "123 kB"), (2_500_000_000, "2.5 GB")],
)
def test_that_sizes_are_short(count: int, told: str) -> None:
    """Three digits or so."""
    assert stages.size(count) == told


# ---- the past


def record(**fields: object) -> TriageRecord:
    """Make a record of a triage."""
    return TriageRecord(
        **{
            "id": "01A",
            "state": "done",
            "origin": "chat",
            "caller": "local",
            "source": "a.log",
            "created": NOW,
            "deadline": NOW,
        }
        | fields
    )  # type: ignore[arg-type]


@each_row(
    ("ago", "told"),
    [
        (timedelta(seconds=20), "just now"),
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(hours=3), "3 h ago"),
        (timedelta(days=2), "2 d ago"),
        (timedelta(days=60), "2025-12-02"),
    ],
)
def test_that_the_past_tells_when(ago: timedelta, told: str) -> None:
    """In the largest unit, after a month the date."""
    assert history.ago(NOW - ago, NOW, "en") == told


def test_that_the_past_lists_what_is_kept(triage: Triage, diagnosis: Diagnosis) -> None:
    """Headline and source; what runs or failed says so; the next page has its button."""
    page = Page(
        (
            record(diagnosis=diagnosis),
            record(id="01B", state="running"),
            record(id="01C", state="failed", source="<b>.log"),
        ),
        "01C",
    )
    told = texts(history.render(page, {}, triage.library, "en", NOW))
    assert all(part in told for part in (diagnosis.headline, "running", "failed", "<b>.log", "More"))


def test_that_the_past_speaks_the_readers_language(triage: Triage, diagnosis: Diagnosis) -> None:
    """Of an answer in the other language the cause's title and the proof stand, without one its verdict."""
    assert diagnosis.root is not None
    own, other = (history.conclusion(diagnosis, triage.library, language) for language in ("en", "zh"))
    cause = triage.library.causes[diagnosis.cause or ""]
    assert own == diagnosis.headline
    assert other.startswith(cause.title.zh)
    assert other.endswith(message_of(diagnosis.root.text)[-20:])
    nothing = diagnosis.model_copy(update={"verdict": "unknown", "cause": None, "evidence": ()})
    assert history.conclusion(nothing, triage.library, "zh") == "日志未显示原因"


def test_that_a_record_of_a_stopped_server_says_so(triage: Triage, diagnosis: Diagnosis) -> None:
    """What runs elsewhere is shown with its first answer and a note."""
    shown = of_record(record(state="running", diagnosis=diagnosis), "en", "")
    assert shown.is_elsewhere
    assert "its server was stopped" in answer.head(shown, triage.library)


# ---- the words


def test_that_all_words_are_in_both_languages() -> None:
    """Each has an English and a Chinese text with the same places to fill in."""
    for name, (english, chinese) in words.table().items():
        assert english
        assert chinese
        assert sorted(re.findall(r"\{(\w+)\}", english)) == sorted(re.findall(r"\{(\w+)\}", chinese)), name


def test_that_each_example_has_a_name() -> None:
    """In both languages."""
    assert len(examples()) == 4
    assert all(f"example-{name}" in words.table() for name in examples())
