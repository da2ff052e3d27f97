"""How jobs end: names of signals in any spelling, exit codes that stand for one, states by their words."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus import library, outcomes
from corpus.errors import InvalidCorpusError
from tests.factories import whole_corpus

ROW = {"names": ["FAILED"], "end": "failed", "says": {"en": "a", "zh": "b"}, "source": "https://example.org"}


def test_every_row_names_causes_that_there_are_and_a_proof_with_its_cause() -> None:
    """A row with a cause says how firmly it stands; `may_be` stands only where nothing is proved.

    Both name known causes.
    """
    known = whole_corpus().causes
    table = outcomes.load()
    wrong = [
        row.names
        for part in (table.states, table.signals, table.exit_codes)
        for row in part.values()
        if (row.cause is None) != (row.proof is None)
        or (row.cause and row.may_be)
        or {row.cause or "unknown", *row.may_be} - {*known, "unknown"}
        or (row.end == "failed" and row.next is None)
    ]
    assert not wrong


def test_a_signal_is_known_by_name_or_number_in_any_spelling() -> None:
    """Names with and without SIG, in either case, and numbers lead to one name."""
    told = {
        "SIGKILL": "SIGKILL",
        "kill": "SIGKILL",
        " 9 ": "SIGKILL",
        "term": "SIGTERM",
        "SIGIOT": "SIGABRT",
        "35": "SIGRTMIN+1",
        "SIGRTMIN+3": "SIGRTMIN+3",
        "Hangup": "SIGHUP",
        "Segmentation fault": "SIGSEGV",
        "User defined signal 1": "SIGUSR1",
    }
    assert {given: outcomes.signal_name(given) for given in told} == told
    for wrong in ("", "0", "999", "SIGNOTHING", "9; rm", "SIGRT"):
        with pytest.raises(ValueError, match="there is no signal"):
            outcomes.signal_name(wrong)


def test_an_exit_code_tells_the_signal_that_a_shell_or_python_wrote_into_it() -> None:
    """128 and the number, or the number below zero; others are a program's own."""
    told = {
        137: "SIGKILL",
        143: "SIGTERM",
        139: "SIGSEGV",
        134: "SIGABRT",
        -9: "SIGKILL",
        -11: "SIGSEGV",
        0: None,
        1: None,
        128: None,
        255: None,
        -64: None,
        None: None,
    }
    assert {code: outcomes.signal_of(code) for code in told} == told


def test_the_fact_of_a_line_tells_a_signal_by_its_name_its_number_or_an_exit_code() -> None:
    """Launchers, shells and Slurm write it each in their own way; an exit code of a program's own is none."""
    told: list[tuple[dict[str, object], str | None]] = [
        ({"signal": "SIGHUP", "code": 1}, "SIGHUP"),
        ({"signal_n": 1}, "SIGHUP"),
        ({"signal": 15.0}, "SIGTERM"),
        ({"signal": "Hangup"}, "SIGHUP"),
        ({"code": -6}, "SIGABRT"),
        ({"code": 132}, "SIGILL"),
        ({"code": 135}, "SIGBUS"),
        ({"code": 129}, "SIGHUP"),
        ({"code": 1}, None),
        ({"signal": "the odd one"}, None),
        ({"pid": 9}, None),
    ]
    assert [(fields, outcomes.told_signal(fields)) for fields, _ in told] == told


def test_slurms_pair_of_exit_code_and_signal_is_one_exit_code() -> None:
    """A signal counts as a shell writes it; 125 is Slurm's own mark for memory, and no signal."""
    told = {"1:0": 1, "0:9": 137, "9:0": 9, "0:125": 0, "0:0": 0, "": None, "None": None}
    assert {pair: outcomes.slurm_exit_code(pair) for pair in told} == told


def test_only_signals_that_no_launcher_passes_on_come_from_outside() -> None:
    """What torchrun, srun or a server send to their own processes may follow a failure of one of them."""
    table = outcomes.load()
    outside = {name for name, row in table.signals.items() if row.outside}
    assert outside == {"sighup", "sigint", "sigxcpu", "sigxfsz"}


def test_a_state_is_known_by_its_words_whatever_their_case_and_signs() -> None:
    """Slurm's, Kubernetes' and Ray's spellings of one state are one row; what nobody knows is none."""
    table = outcomes.load()
    rows = {
        name: table.of_state(name)
        for name in (
            "OUT_OF_MEMORY",
            "out of memory",
            "OutOfMemory",
            "OOMKilled",
            "CANCELLED by 1001",
            "CANCELLED+",
            "Blorp",
        )
    }
    assert {name: row.names[0] if row else None for name, row in rows.items()} == {
        "OUT_OF_MEMORY": "OUT_OF_MEMORY",
        "out of memory": "OUT_OF_MEMORY",
        "OutOfMemory": "OUT_OF_MEMORY",
        "OOMKilled": "OUT_OF_MEMORY",
        "CANCELLED by 1001": "CANCELLED",
        "CANCELLED+": "CANCELLED",
        "Blorp": None,
    }


def test_a_word_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """Two rows for one word would leave the choice to chance."""
    file = tmp_path / "outcomes.yaml"
    twice = {
        "states": [ROW, {**ROW, "names": ["Failed"]}],
        "signals": [{**ROW, "names": ["other"]}],
        "exit_codes": [{**ROW, "names": ["other"]}],
    }
    file.write_text(library.dump_yaml(twice), encoding="utf-8")
    with pytest.raises(InvalidCorpusError, match="failed stands twice"):
        outcomes.load(file)
