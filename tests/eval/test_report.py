"""The report: what it shows is what was measured, and a log's text stays text."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from eval.answers import Answer
from eval.figures import MetricRow, counted, goal_mark, number, table
from eval.incidents import Incident, Label
from eval.metrics import METRICS, Mean, Score
from eval.report import Run, page, terminal
from eval.vote_effects import vote_effects, worsened
from eval.wrong_answers import WIDEST, excerpt
from tests.tables import each_row

HOSTILE = (
    "<script>alert(1)</script> ]]> \x1b[31mred\x1b[0m \x00\x07 \u202eevil <img src=http://evil.example/x> "
    "显存不足"
)
CAUSES = {"gpu-oom-training": "gpu-memory", "disk-full": "storage", "host-oom-kill": "host-memory"}
NOTHING = Mean(math.nan, math.nan, math.nan, 0)


def incident(folder: Path, name: str, log: Sequence[str], **fields: Any) -> Incident:
    """Write an incident's log and label it; fields override."""
    made: dict[str, Any] = {
        "causes": ("gpu-oom-training",),
        "verdict": "diagnosed",
        "root_lines": (5,),
        "kind": "paste",
        "mechanism": name,
        "split": "test",
        "origin": {"kind": "written"},
    }
    (folder / name).mkdir()
    (folder / name / "log.txt").write_text("\n".join(log), encoding="utf-8")
    return Incident(Label(id=name, **{**made, **fields}), folder / name)


def scored(name: str, **fields: Any) -> Score:
    """Score an answer that is right in its cause and unscored in all else; fields override."""
    made: dict[str, Any] = dict.fromkeys(Score.__dataclass_fields__)
    return Score(
        **{
            **made,
            "incident": name,
            "cause_top1": 1.0,
            "right": 1.0,
            "confidence": 0.9,
            "answered": 1.0,
            **fields,
        }
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Invent a run: one right answer, one wrong over a hostile log, one false alarm."""
    rows = [f"step {number}" for number in range(1, 31)]
    rows[4] = HOSTILE
    rows[5] = "x" * 900
    rows[19] = "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
    traps = {"traps": ("<b>bold</b>",), "changes": ({"framework": "verl", "key": "bf16", "to": True},)}
    incidents = (
        incident(tmp_path, "good", ["boom"], root_lines=(1,)),
        incident(tmp_path, "bad", rows, **traps),
        incident(
            tmp_path,
            "calm",
            ["step 1"],
            causes=(),
            verdict="no-failure",
            root_lines=(),
            split="fit",
            language="zh",
        ),
    )
    answers = (
        Answer("good", "diagnosed", ("gpu-oom-training",), 0.9, (1,), seconds=0.5),
        Answer(
            "bad",
            "diagnosed",
            ("disk-full", "host-oom-kill"),
            0.7,
            (20,),
            (("ray", "a<b", "1"),),
            headline="磁盘已满 <script>",
        ),
        Answer("calm", "diagnosed", ("disk-full",), 0.4, (1,), tokens=7),
    )
    scores = (
        scored("good"),
        scored("bad", cause_top1=0.0, right=0.0),
        scored("calm", cause_top1=None, right=0.0, healthy=0.0),
    )
    others = tuple(scored(item.id, cause_top1=None, confidence=None) for item in incidents)
    return Run(
        incidents,
        {"composer": answers, "last error": answers},
        {"last error": others, "composer": scores},
        {"dense": {"recall@1": Mean(0.25, 0.125, 0.5, 4), "MRR": Mean(0.75, 0.5, 1.0, 4)}},
        CAUSES,
        "2025-03-02T10:00:00+00:00",
        1.5,
        {"python": "3.11"},
    )


def printed(run: Run, width: int = 200) -> str:
    """Print to a file that is no terminal."""
    file = io.StringIO()
    terminal(run, Console(file=file, width=width))
    return file.getvalue()


class Reader(HTMLParser):
    """Reads a page as a browser does: elements with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_report_says_what_votes_did(run: Run) -> None:
    """Agreement, what was made right and wrong by name, and the medians; without a model nothing is told."""
    assert vote_effects(run) == []
    good, bad, calm = run.answers["composer"]
    voted = (
        replace(
            good,
            tokens=7000,
            vote="host-oom-kill",
            calls=4,
            seconds=3.0,
            lines=(41,),
            note="The vote decides.",
        ),
        replace(bad, tokens=5000, vote="gpu-oom-training", calls=2, seconds=1.0),
        replace(calm, tokens=6000, vote="disk-full", calls=None, seconds=2.0),
    )
    scores = (scored("good", right=0.0), scored("bad", right=1.0), scored("calm", right=0.0))
    with_model = replace(
        run, answers={**run.answers, "with x": voted}, scores={**run.scores, "with x": scores}
    )
    (effect,) = vote_effects(with_model)
    assert (effect.system, effect.asked, effect.voted, effect.agreed) == ("with x", 3, 3, 1)
    assert (effect.better, effect.worse) == (("bad",), ("good",))
    assert (effect.tokens, effect.looked, effect.calls, effect.seconds) == (6000, 2, 3, 2.0)
    assert effect.row[1:3] == ("3", "1 of 3")
    for text in (printed(with_model), " ".join(Reader(page(with_model)).words)):
        assert "1: bad" in text
        assert "1: good" in text
    (wrong,) = worsened(with_model)
    assert (wrong.incident, wrong.vote, wrong.quoted) == ("good", "host-oom-kill", "L41")
    assert wrong.note == "The vote decides."
    assert wrong.rules.startswith(good.causes[0])


def test_the_page_loads_nothing(run: Run) -> None:
    """The page names no address to load from, runs nothing, and forbids itself both."""
    elements = Reader(page(run)).elements
    assert not {"script", "link", "img", "iframe", "object", "form", "image", "use"} & {
        tag for tag, _ in elements
    }
    links = [
        value
        for _, found in elements
        for key, value in found.items()
        if key in ("src", "href", "srcset", "xlink:href")
    ]
    assert links
    assert all(link and link.startswith("#") for link in links)
    assert not re.search(r"url\(|@import", page(run))
    assert any("default-src 'none'" in (found.get("content") or "") for _, found in elements)


def test_links_within_the_page_lead_somewhere(run: Run) -> None:
    """Each anchor has its place."""
    elements = Reader(page(run)).elements
    places = {f"#{found['id']}" for _, found in elements if "id" in found}
    assert {found["href"] for tag, found in elements if tag == "a"} <= places


def test_every_element_is_closed(run: Run) -> None:
    """What is opened is closed, in order."""
    assert Reader(page(run)).open == []


def test_hostile_text_is_inert(run: Run) -> None:
    """A log's markup is shown as letters; control and direction characters are not shown at all."""
    made = page(run)
    reader = Reader(made)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; ]]&gt; red" in made
    assert not any(key.startswith("on") for _, found in reader.elements for key in found)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", made)
    assert "<b>bold</b>" in "".join(reader.words)


def test_chinese_survives(run: Run) -> None:
    """Chinese text of logs and headlines is shown as it is."""
    assert "显存不足" in page(run)
    assert "磁盘已满" in page(run)


def test_a_secret_in_a_log_is_not_shown(run: Run) -> None:
    """The excerpt is redacted."""
    assert "hf_abcdef" not in page(run)
    assert "[redacted:" in page(run)


def test_wrong_answers_are_shown_and_right_ones_are_not(run: Run) -> None:
    """Each wrong answer stands under its label's category, with what was labelled and what was said."""
    words = "\n".join(Reader(page(run)).words)
    listed = words[words.index("2 of 3 answers") :]
    for told in (
        "bad",
        "calm",
        "gpu-memory",
        "no-failure",
        "disk-full",
        "host-oom-kill",
        "0.70",
        "bf16=True",
        "a<b=1",
    ):
        assert f"\n{told}\n" in listed
    assert "Labelled root: line 5; pointed at: line 20" in listed
    assert "\ngood\n" not in listed


def test_an_excerpt_has_three_lines_either_side() -> None:
    """The lines around both places are given once, by number, marked and cut."""
    rows = ["short", *(["y" * 1000] * 29)]
    found = excerpt(rows, (2, 9), (6,))
    assert [row.number for row in found] == [*range(1, 10)]
    assert [row.number for row in found if row.labelled] == [2, 9]
    assert [row.number for row in found if row.named] == [6]
    assert max(len(row.text) for row in found) == WIDEST


def test_an_excerpt_leaves_out_lines_that_are_not_there() -> None:
    """A line past the end, and a label or answer without lines, are no error."""
    assert [row.number for row in excerpt(["a", "b"], (), (5,))] == [2]
    assert excerpt(["a"], (), ()) == []


@pytest.mark.parametrize("split", ["fit", "test"])
def test_both_renderings_show_the_metrics(run: Run, split: Any) -> None:
    """Every figure of the tables is on the terminal and on the page."""
    words = "".join(Reader(page(run)).words)
    for row in table(run, split):
        told = counted(row.means["composer"], row.goal)
        assert re.search(rf"{re.escape(row.words)}\s+({aim_of(row)}\s+)?{re.escape(told)}", printed(run)), (
            row.words
        )
        assert f"{row.words}{aim_of(row)}{told}" in words


def aim_of(row: MetricRow) -> str:
    """Write a row's goal as it is expected on the terminal and the page."""
    return "" if row.goal is None else f"{'≤' if row.lower else '≥'} {row.goal:.2f}"


def test_the_terminal_prints_every_metric_of_both_splits(run: Run) -> None:
    """Each split's table names all metrics and the calibration error."""
    for words in (*(words for _, words, _ in METRICS), "calibration error (ECE)"):
        assert printed(run).count(f" {words} ") == 2, words


def test_the_figures_are_those_of_the_scores(run: Run) -> None:
    """One of two right is 0.50; a system that gives no confidence has no calibration."""
    rows = {row.words: row for row in table(run, "test")}
    assert counted(rows["cause, top 1"].means["composer"]) == "0.50 [0.00, 1.00] n=2"
    assert rows["calibration error (ECE)"].means["composer"].value == pytest.approx(0.4)
    assert rows["calibration error (ECE)"].means["last error"].count == 0


def test_retrievers_and_cost_are_shown(run: Run) -> None:
    """Recall, MRR, seconds and tokens are in both renderings."""
    for text in (printed(run), "\n".join(Reader(page(run)).words)):
        for told in (
            "dense",
            "recall@1",
            "0.25 [0.12, 0.50] n=4",
            "MRR",
            "0.75 [0.50, 1.00] n=4",
            "last error",
            "0.450",
            "7",
        ):
            assert told in text


def test_a_narrow_terminal_loses_no_figure(run: Run) -> None:
    """Where columns are too narrow words are broken, not cut off."""
    assert "…" not in printed(run, 80)


@each_row(
    ("value", "goal", "lower", "word"),
    [
        (0.9, 0.9, False, "reached"),
        (0.89, 0.9, False, "not reached"),
        (0.05, 0.05, True, "reached"),
        (0.06, 0.05, True, "not reached"),
        (0.06, None, True, ""),
        (None, 0.9, False, ""),
    ],
)
def test_a_goal_is_reached_from_its_side(
    value: float | None, goal: float | None, lower: bool, word: str
) -> None:
    """More is better but where less is; without a goal or a score nothing is said."""
    found = NOTHING if value is None else Mean(value, value, value, 9)
    assert goal_mark(MetricRow("x", goal, lower, {"composer": found})) == word


@each_row(
    ("value", "goal", "told"),
    [
        (0.874, 0.9, "0.87"),
        (0.8962, 0.9, "0.896"),
        (0.9, 0.9, "0.90"),
        (0.024, 0.02, "0.024"),
        (math.nan, 0.9, "-"),
        (1, None, "1.00"),
    ],
)
def test_rounding_hides_no_distance_to_the_goal(value: float, goal: float | None, told: str) -> None:
    """A figure that is not the goal is not written like it; what is unscored is a dash."""
    assert number(value, goal) == told


def test_unscored_is_a_dash() -> None:
    """Nothing scored is neither 0 nor an interval."""
    assert counted(NOTHING) == "-"


def test_a_run_without_incidents_is_a_page() -> None:
    """Nothing evaluated is said, not raised."""
    empty = Run((), {}, {}, {}, {}, "2025-03-02T10:00:00+00:00", 0.0, {})
    assert "No incidents" in page(empty)
    assert "cost" in printed(empty)
