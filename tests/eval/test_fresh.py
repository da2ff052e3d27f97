"""Rounds of public logs: fetched by pointer, scored once at first sight, forgotten."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from eval import seat
from eval.answers import Answer
from eval.errors import EvalError, FetchError, InvalidRoundError
from eval.fresh import __main__ as command
from eval.fresh import curve, rounds, texts
from eval.fresh.rounds import Figure, FirstSight, FreshLog, Pointer, Round
from eval.fresh.scoring import ScoredLog, figures, fresh_score, laid_out
from eval.incidents import Incident
from tests.factories import whole_corpus
from tests.loopback import folder_server
from tests.tables import each_row

ROOT = Path(__file__).parent.parent.parent
COMMIT = "0123456789" * 4
KILLED = """\
epoch 1 step 10 loss 2.31
epoch 1 step 20 loss 2.27
slurmstepd: error: *** JOB 811 ON gpu07 CANCELLED AT 2026-03-02T09:11:40 DUE TO TIME LIMIT ***
"""
TRAINED = """\
{'loss': 1.92, 'learning_rate': 4e-05, 'epoch': 0.5}
{'loss': 1.71, 'learning_rate': 0.0, 'epoch': 1.0}
{'train_runtime': 611.2, 'train_samples_per_second': 3.1, 'train_loss': 1.81, 'epoch': 1.0}
"""
WELL: dict[str, Any] = {"verdict": "no-failure", "causes": ()}
SCRIPT = "#!/bin/bash\n#SBATCH --time=00:10:00\nsrun python train.py\n"


def sha256(text: str) -> str:
    """Name a text as a pointer does."""
    return hashlib.sha256(text.encode()).hexdigest()


def killed(**changes: Any) -> dict[str, Any]:
    """Give the label of a job that ran out of time."""
    fields = {
        "id": "r7-01",
        "repository": "someone/jobs",
        "commit": COMMIT,
        "log": {"path": "logs/a job.out", "sha256": sha256(KILLED)},
        "files": [{"path": "jobs/train.sbatch", "sha256": sha256(SCRIPT)}],
        "verdict": "diagnosed",
        "causes": ["scheduler-terminated"],
        "root_lines": [3],
        "changes": [{"framework": "slurm", "key": "time"}],
    }
    return fields | changes


def trained() -> dict[str, Any]:
    """Give the label of a run that ended well."""
    return {
        "id": "r7-02",
        "repository": "someone/else",
        "commit": COMMIT,
        "log": {"path": "train.log", "sha256": sha256(TRAINED)},
        "verdict": "no-failure",
    }


# A log that only stops, by a reader's label.
CUT = trained() | {"verdict": "unknown"}


def a_round(folder: Path, *logs: dict[str, Any]) -> Path:
    """Write round 7 and the texts it points to; gives the folder of rounds."""
    known = folder / "texts"
    known.mkdir()
    for text in (KILLED, TRAINED, SCRIPT):
        (known / sha256(text)).write_text(text, encoding="utf-8")
    data = {"round": 7, "labelled": "2026-03-03", "logs": list(logs) or [killed(), trained()]}
    (folder / "7.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    return folder


@pytest.fixture
def scratch(warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder where texts lie while they are answered; the program is ready."""
    monkeypatch.setenv("WHYCRASH_HOME", str(warm))
    monkeypatch.setenv("WHYCRASH_EMBEDDING_MODEL", "hash")
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def run(folder: Path, *words: str) -> int:
    """Score round 7 of a folder with the texts that lie there."""
    return command.main(["7", "--rounds", str(folder), "--from", str(folder / "texts"), *words])


def test_that_a_round_is_laid_out_log_by_log_and_leaves_nothing(scratch: Path, tmp_path: Path) -> None:
    """A fit reads spent rounds as it reads incidents: the log, its label and the job's files."""
    folder = a_round(tmp_path)
    seen = [
        (log.label.causes, log.log.read_text(), [path.name for path in log.job_files])
        for log in laid_out(rounds.load(7, folder), texts.from_folder(folder / "texts"))
    ]
    assert seen == [(("scheduler-terminated",), KILLED, ["train.sbatch"]), ((), TRAINED, [])]
    assert list(scratch.iterdir()) == []


def test_a_round_is_scored_and_its_texts_are_gone(
    scratch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Figures are printed, with the misses; nothing of a text stays on the disk."""
    assert run(a_round(tmp_path)) == 0
    told = capsys.readouterr().out
    assert "cause, top 1: 1.00 [1.00, 1.00] of 1" in told
    assert "healthy runs recognised: 1.00" in told
    assert "failed jobs called healthy: 0.00" in told
    assert list(scratch.iterdir()) == []


def test_a_reader_in_the_seat_sees_a_job_of_a_round_with_its_files_and_is_scored(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the reader says of a log and its script is what `--words` scores."""
    folder, words = a_round(tmp_path), tmp_path / "words"
    named = ["--round", "7", "--rounds", str(folder), "--from", str(folder / "texts"), "--words", str(words)]
    assert seat.main([*named, "--list"]) == 0
    assert capsys.readouterr().out.split() == [seat.seat_name("r7-01")]
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert seat.main([seat.seat_name("r7-01"), *named]) == 0
    assert "#SBATCH --time=00:10:00" in capsys.readouterr().out
    change = {
        "framework": "slurm",
        "key": "time",
        "to": "00:20:00",
        "kind": "setting",
        "why": "It ends in time.",
    }
    quote = {"line": "L3", "text": "DUE TO TIME LIMIT"}
    said = {"cause": "scheduler-terminated", "certainty": "high", "quotes": [quote], "cases": []}
    line = json.dumps({**said, "changes": [change], "explanation": "The time ended [L3]."})
    monkeypatch.setattr("sys.stdin", io.StringIO(line + "\n"))
    assert seat.main([seat.seat_name("r7-01"), *named]) == 0
    assert "the answer is kept" in capsys.readouterr().out
    assert run(folder, "--words", str(words)) == 0
    assert "first change right: 1.00" in capsys.readouterr().out
    assert run(folder, "--words", str(words), "--record") == 2
    assert "leave out --words" in capsys.readouterr().err
    assert list(scratch.iterdir()) == []


@pytest.mark.long
def test_first_sight_is_recorded_once_and_without_text(
    scratch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second record is refused, as the logs are no longer new; the first names what was answered."""
    folder = a_round(tmp_path)
    assert run(folder, "--record") == 0
    path = folder / "7.first-sight.json"
    kept = path.read_text(encoding="utf-8")
    assert run(folder, "--record") == 2
    assert "no longer new" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == kept
    (score,) = rounds.recorded(folder)
    assert score.figures["cause_top1"].value == 1.0
    assert [answer["id"] for answer in score.answers] == ["r7-01", "r7-02"]
    assert score.answers[0]["causes"][0] == "scheduler-terminated"
    assert len(score.program) >= 7
    assert not [row for row in (KILLED + TRAINED).splitlines() if row in kept]


def test_a_text_that_is_not_the_labelled_one_is_not_scored(
    scratch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told apart from a wrong answer, and a round with a gap is not recorded."""
    folder = a_round(tmp_path)
    (folder / "texts" / sha256(KILLED)).write_text("changed since\n", encoding="utf-8")
    assert run(folder) == 1
    told = capsys.readouterr().out
    assert "not scored: r7-01" in told
    assert "is not what was labelled" in told
    assert "cause, top 1" not in told
    assert run(folder, "--record") == 2
    assert "is not recorded" in capsys.readouterr().err
    assert rounds.recorded(folder) == []


def test_texts_come_from_the_public_host_by_pointer(tmp_path: Path) -> None:
    """The address is made of repository, commit and path; what is missing or changed there is refused."""
    log = FreshLog.model_validate(killed())
    place = tmp_path / log.repository / COMMIT / "logs"
    place.mkdir(parents=True)
    (place / "a job.out").write_text(KILLED, encoding="utf-8")
    with folder_server(tmp_path) as address, httpx.Client(trust_env=False) as client:
        source = texts.from_host(client, f"{address}/{{repository}}/{{commit}}/{{path}}")
        assert source(log, log.log) == KILLED.encode()
        with pytest.raises(FetchError, match=r"r7-01: .*train\.sbatch cannot be fetched"):
            source(log, log.files[0])
        (place / "a job.out").write_text(KILLED + "more\n", encoding="utf-8")
        with pytest.raises(FetchError, match="is not what was labelled"):
            source(log, log.log)


def test_only_the_named_lines_are_shown() -> None:
    """First and last line are shown; a carriage return ends no line."""
    pointer = Pointer(path="a", sha256="0" * 64, lines=(2, 3))
    assert texts.shown(b"one\n10%\r20%\rtwo\nthree\nfour\n", pointer) == b"10%\r20%\rtwo\nthree"
    log = FreshLog.model_validate(killed(log={"path": "a", "sha256": "0" * 64, "lines": [2, 9]}))
    assert log.label().root_lines == (2,)


@each_row(
    ("logs", "said"),
    [
        ([killed(), killed()], "two logs have one id: r7-01"),
        ([killed(), killed(id="r7-02")], "two logs have one text"),
        ([killed(root_lines=[])], "has a cause and a root line"),
        ([killed(verdict="no-failure")], "any other has neither"),
        (
            [killed(log={"path": "a", "sha256": "0" * 64, "lines": [4, 9]})],
            "outside the lines that are shown",
        ),
        ([killed(commit="main")], "commit"),
        ([killed(cause="disk-full")], "cause"),
    ],
)
def test_an_invalid_round_is_told(tmp_path_factory: pytest.TempPathFactory, logs: Any, said: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(InvalidRoundError, match=said):
        rounds.load(7, a_round(tmp_path_factory.mktemp("round"), *logs))


def test_an_unknown_round_is_told(tmp_path: Path) -> None:
    """The message lists those that exist."""
    with pytest.raises(InvalidRoundError, match=r"no round 8: there are \[7\]"):
        rounds.load(8, a_round(tmp_path))


TIME, REQUEUE, OTHER = ("slurm", "time", "1:0"), ("slurm", "requeue", "on"), ("slurm", "mem", "2G")


@each_row(
    ("label", "said", "expected"),
    [
        ({}, {"changes": (TIME, OTHER)}, {"setting": 1.0, "first_change": 1.0, "forbidden": 0.0}),
        ({}, {"changes": (OTHER, TIME)}, {"setting": 1.0, "first_change": 0.0}),
        ({}, {"changes": ()}, {"setting": 0.0, "first_change": 0.0}),
        ({}, {"changes": (TIME, REQUEUE)}, {"forbidden": 1.0}),
        ({"forbidden": []}, {"changes": (REQUEUE,)}, {"forbidden": None}),
        ({"changes": []}, {"changes": (TIME,)}, {"setting": None, "first_change": None}),
        ({}, {"verdict": "no-failure", "causes": ()}, {"failed_called_healthy": 1.0, "cause_top1": 0.0}),
        (trained(), {"verdict": "no-failure", "causes": ()}, {"failed_called_healthy": None, "healthy": 1.0}),
        ({}, {"causes": ("disk-full",), "confidence": 0.95}, {"sure_and_wrong": 1.0, "cause_top1": 0.0}),
        ({}, WELL | {"standing": "none"}, {"left_open": None}),
        (CUT, WELL | {"standing": "none"}, {"abstained": 0.0, "left_open": 1.0, "failed_told_green": 0.0}),
        (CUT, WELL | {"standing": "established"}, {"left_open": 0.0, "failed_told_green": 1.0}),
        (CUT, WELL, {"left_open": 0.0}),
        (CUT, {"verdict": "unknown", "causes": ()}, {"abstained": 1.0, "left_open": 1.0}),
        (CUT, {}, {"left_open": 0.0}),
    ],
)
def test_scores(tmp_path: Path, label: Any, said: Any, expected: Any) -> None:
    """A figure is scored only where the label and the answer have something to score."""
    forbidden = [{"framework": "slurm", "key": "requeue"}]
    log = FreshLog.model_validate(label if "id" in label else killed(forbidden=forbidden) | label)
    (tmp_path / "log.txt").write_text(KILLED, encoding="utf-8")
    fields: dict[str, Any] = {
        "incident": log.id,
        "verdict": "diagnosed",
        "causes": ("scheduler-terminated",),
        "confidence": 0.7,
        "lines": (3,),
        "changes": (),
    }
    answer = Answer(**(fields | said))
    found = fresh_score(Incident(log.label(), tmp_path), log, answer, whole_corpus())
    assert {name: getattr(found, name) for name in expected} == expected


def test_what_was_not_scored_has_no_figure(tmp_path: Path) -> None:
    """An empty mean is no number, in the record as in the table."""
    log = FreshLog.model_validate(trained())
    (tmp_path / "log.txt").write_text(TRAINED, encoding="utf-8")
    answer = Answer(log.id, "no-failure", (), None, lines=(), changes=())
    score = fresh_score(Incident(log.label(), tmp_path), log, answer, whole_corpus())
    found = figures([ScoredLog(log, answer, score)])
    assert found["cause_top1"] == Figure(value=None, low=None, high=None, count=0)
    assert found["healthy"].value == 1.0
    kept = FirstSight.model_validate(
        {"round": 1, "scored": "2026-03-03", "program": "abc", "figures": found, "answers": []}
    )
    assert "| 1 (0 logs, 2026-03-03) | - | - | - | - | - |" in curve.tables([kept])
    assert "| 1 (0 logs, 2026-03-03) | 1.00 [1.00, 1.00] of 1 | - | - | - | - |" in curve.tables([kept])


def test_the_latest_rounds_are_pooled_log_by_log() -> None:
    """A round of many logs weighs more than one of few; older rounds than are needed stay out."""

    def score(number: int, *right: float) -> FirstSight:
        answers = [{"score": {"cause_top1": value}} for value in right]
        data = {"round": number, "scored": "2026-03-03", "program": "abc", "figures": {}, "answers": answers}
        return FirstSight.model_validate(data)

    scores = [score(1, *[0.0] * 99), score(2, *[1.0] * 60), score(3, *[1.0] * 20, *[0.0] * 20)]
    told = curve.tables(scores)
    assert "| **last 100** (2 to 3) | 0.80 [" in told
    # All rounds together hold fewer than the next row asks for.
    assert told.count("**last") == 2


@each_row(
    ("value", "told"), [(None, "-"), (0.0, "0.00 [0.00, 0.02] of 300"), (0.003, "0.003 [0.00, 0.02] of 300")]
)
def test_a_cell_tells_what_is_next_to_nothing_from_nothing(value: float | None, told: str) -> None:
    """One job of three hundred that was told green is not none."""
    low, high = (None, None) if value is None else (0.0, 0.02)
    assert curve.cell(Figure(value=value, low=low, high=high, count=300)) == told


def test_the_curve_has_a_point_for_each_scored_round() -> None:
    """A figure that a round does not have leaves a gap, and the words of the drawing tell all values."""

    def score(number: int, **values: float) -> FirstSight:
        known = {name: Figure(value=value, low=value, high=value, count=9) for name, value in values.items()}
        return FirstSight.model_validate(
            {"round": number, "scored": "2026-03-03", "program": "abc", "figures": known, "answers": []}
        )

    drawn = curve.plot([score(1, cause_top1=0.5, healthy=0.9), score(2, cause_top1=0.75)])
    assert "cause, top 1: 0.50 in round 1, 0.75 in round 2" in drawn
    assert "healthy runs recognised: 0.90 in round 1;" in drawn or "0.90 in round 1<" in drawn
    # Three points, and one dot for each of the five keys.
    assert drawn.count("<circle") == 3 + 5
    assert drawn.startswith("<svg")
    assert "http://www.w3.org/2000/svg" in drawn


def test_a_page_without_a_place_for_the_table_is_told() -> None:
    """Nothing is written into a page that does not ask for it."""
    with pytest.raises(EvalError, match="the page has no"):
        curve.written("# A page\n", [])


def test_our_rounds_are_valid_and_new() -> None:
    """Causes are known; no text and no repository stands in two rounds; a score is of its round's logs."""
    known = set(whole_corpus().causes)
    found: list[Round] = [rounds.load(number) for number in rounds.numbers()]
    assert found
    seen: dict[str, int] = {}
    for item in found:
        assert not {cause for log in item.logs for cause in log.causes} - known
        for name in {log.repository for log in item.logs} | {log.log.sha256 for log in item.logs}:
            assert seen.setdefault(name, item.round) == item.round, name
    by_number = {item.round: item for item in found}
    for score in rounds.recorded():
        assert [answer["id"] for answer in score.answers] == [log.id for log in by_number[score.round].logs]


def test_the_documented_curve_is_of_the_recorded_scores() -> None:
    """The table and the plot are what `python -m eval.fresh --page` writes."""
    scores = rounds.recorded()
    page = (ROOT / curve.PAGE).read_text(encoding="utf-8")
    assert curve.written(page, scores) == page
    assert (ROOT / curve.PLOT).read_text(encoding="utf-8") == curve.plot(scores)
