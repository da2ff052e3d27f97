"""What `whycrash explain` prints by default: one screen, with what one acts on."""

from __future__ import annotations

import io

from rich.cells import cell_len
from rich.console import Console

from corpus.message import words
from corpus.schema import Language
from service.composition.diagnosis_view import as_written, change_view, diagnosis_view
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Alternative, Diagnosis, Evidence, ProcedureStep
from tests.service.factories import diagnosis, proposal
from tests.tables import each_row
from tests.warm import EVERY, answered
from ui.cli.answer import render, style

# A terminal of the usual size, with room for the prompt.
ROWS, COLUMNS = 30, 80


def printed(answer: Diagnosis, *, full: bool = False, terminal: bool = False) -> str:
    """Print an answer in 80 columns."""
    file = io.StringIO()
    render(answer, Console(file=file, width=COLUMNS, highlight=False, force_terminal=terminal), full=full)
    return file.getvalue()


@each_row("language", ["en", "zh"])
def test_that_an_answer_fits_a_screen_and_holds_what_one_acts_on(language: Language, triage: Triage) -> None:
    """It has the conclusion, its line, the first change or what to do, and says how to see the rest."""
    wrong = []
    for name in EVERY:
        answer = answered(triage, name, language)
        text = printed(answer)
        flat, view = "".join(text.split()), diagnosis_view(answer)
        # A terminal wraps the rows of a diff and of a command.
        rows = sum(max(1, -(-cell_len(row) // COLUMNS)) for row in text.splitlines())
        wanted = [answer.headline, words("cli.full", language)]
        wanted += [as_written(change_view(answer.changes[0], language))] if view.changes else []
        # What the patch makes is told, and not only shown.
        wanted += [as_written(change) for change in view.first_changes if answer.patch]
        wanted += [answer.root.place] if answer.root else []
        missing = [item for item in wanted if "".join(item.split()) not in flat]
        if missing or rows > ROWS:
            wrong.append((name, rows, missing))
    assert wrong == []


def test_that_the_line_is_shown_without_its_prefix_and_numbers_whole() -> None:
    """Two rows of the message itself; what is left out is marked."""
    text = (
        "(WorkerDict pid=4711, ip=10.0.0.7) ValueError: 131072 tokens do not fit into 41104, " + "so " * 200
    )
    answer = diagnosis().model_copy(
        update={"evidence": (Evidence(line=7, text=text, role="root", why="first"),)}
    )
    shown = " ".join(printed(answer).split())
    assert "L7 ValueError: 131072 tokens do not fit into 41104, so" in shown
    assert "pid=4711" not in shown
    assert "so…" in shown


@each_row(
    ("confidence", "verdict", "colour"),
    [(0.95, "diagnosed", "bold red"), (0.52, "diagnosed", "bold yellow"), (0.45, "ambiguous", "bold yellow")],
)
def test_that_a_doubtful_cause_is_amber_and_its_probability_told(
    confidence: float, verdict: str, colour: str
) -> None:
    """Below seven in ten the conclusion is amber; the other causes stand there with their share."""
    other = Alternative(cause="shm-exhausted", confidence=0.23, tell_apart="look at /dev/shm")
    answer = diagnosis().model_copy(
        update={"confidence": confidence, "verdict": verdict, "alternatives": (other,)}
    )
    assert style(diagnosis_view(answer)) == colour
    shown = printed(answer)
    assert f"about {confidence:.0%}".rstrip("%") in shown
    assert "23% shm-exhausted: look at /dev/shm" in shown


def test_that_a_long_patch_is_cut_with_a_note_and_a_short_one_is_not() -> None:
    """The note counts what is left out and names the option that writes it all."""
    rows = [f"+row {number}" for number in range(40)]
    patch = "\n".join(["--- a/run.sh", "+++ b/run.sh", "@@ -1 +1,40 @@", *rows]) + "\n"
    answer = diagnosis().model_copy(update={"patch": patch, "changes": (proposal(),)})
    shown = printed(answer)
    assert "(27 more rows; --patch FILE writes it all)" in shown
    assert set(patch.splitlines()) <= set(printed(answer, full=True).splitlines())


def test_that_a_whole_answer_on_a_terminal_ends_with_its_conclusion() -> None:
    """What stands above has scrolled away; a file keeps it once."""
    answer = diagnosis()
    assert printed(answer, full=True, terminal=True).count(answer.headline) == 2
    assert printed(answer, full=True).count(answer.headline) == 1


def test_that_what_a_long_message_names_is_not_cut() -> None:
    """Names and numbers stand at its end, too; what is said without any is left out."""
    keys = ", ".join(f"'metric_{number}'" for number in range(16))
    text = (
        f"KeyError: 'recall' is not among the metrics of this run: [{keys}]. " + "Think again about it, " * 20
    )
    answer = diagnosis().model_copy(
        update={"evidence": (Evidence(line=7, text=text, role="root", why="first"),)}
    )
    shown = " ".join(printed(answer).split())
    assert "'metric_15']." in shown
    assert "Think again" not in shown


def test_that_a_cut_text_ends_at_no_full_stop_of_code_and_with_no_empty_list() -> None:
    """A title without its rows, and a quoted name that is cut open, tell nothing."""
    long = "`self.model.forward(batch.inputs)` " * 30
    told = (
        "Raised in main at `train.py:7`: " + long,
        "It failed. " * 17 + "\n\nElsewhere in this job:\n\n- " + "word " * 90,
    )
    for text in told:
        answer = diagnosis().model_copy(update={"explanation": text})
        rows = [row.rstrip() for row in printed(answer).splitlines()]
        assert not any(row.endswith(("self.", "job:")) for row in rows)


def test_that_a_long_row_of_a_patch_shows_what_changes() -> None:
    """A whole command in one row would fill the screen; the whole patch is for `--patch` and `--full`."""
    begin, end = "run " + "--same 1 " * 60, " --other 2" * 60
    rows = ["--- a/run.sh", "+++ b/run.sh", "@@ -1 +1 @@", f"-{begin}--size 8{end}", f"+{begin}--size 4{end}"]
    answer = diagnosis().model_copy(update={"patch": "\n".join(rows) + "\n", "changes": (proposal(),)})
    shown = printed(answer)
    assert "--size 8" in shown
    assert "--size 4" in shown
    assert words("cli.cut-rows", "en") in shown
    assert max(map(len, shown.splitlines())) < 4 * COLUMNS
    assert rows[-1] in printed(answer, full=True)


def test_that_the_step_that_acts_is_shown_with_what_it_costs() -> None:
    """Also beside a change, and where many steps look before it."""
    looks = [ProcedureStep(run=f"look {number}", why=f"to see {number}") for number in range(5)]
    act = ProcedureStep(
        run="kill PID", why="only where it is yours", costs="what it holds is lost", acts=True
    )
    answer = diagnosis().model_copy(update={"steps": (*looks, act), "changes": (proposal(),)})
    shown = " ".join(printed(answer).split())
    assert "kill PID only where it is yours costs: what it holds is lost" in shown
    assert "look 4" not in shown
    assert "to see 0" not in shown
