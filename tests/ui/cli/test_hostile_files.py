"""Files made to break their reader: each ends with a sentence, in bounded memory and work.

None of them hides the failure that stands in it.

The bounds are what an ordinary log of five lines takes in the same surroundings, many times over or a few
megabytes beside: a bomb, a flood or a nest takes a thousand times as much where nothing holds it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from eval.attack.hostile_files import FAILURE, FILES, RAN, HostileFile, written
from tests.tables import each_row
from tests.ui import fork_server
from tests.ui.shell import EXPLAINED, UNKNOWN, Ended, said, whycrash

# How much more memory than an ordinary log, and how many times its work, a hostile file of some megabytes may
# take.
# The usual log takes 0.31 s of CPU since the model's weights are mapped, a hostile one up to 4.
MORE_KIB, TIMES = 64 << 10, 15.0
# What a terminal would obey, and what turns the direction of its rows.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def usual(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, float]:
    """Give the memory in KiB and the seconds of a core that an ordinary log takes."""
    folder = tmp_path_factory.mktemp("usual")
    (folder / "train.log").write_text(FAILURE, encoding="utf-8")
    used = []
    for _ in range(2):
        assert explained(warm, folder, "train.log").code == EXPLAINED
        used.append((fork_server.server().peak_kib, fork_server.server().cpu_s))
    return max(kib for kib, _ in used), max(seconds for _, seconds in used)


def explained(home: Path, folder: Path, name: str) -> Ended:
    """Run `explain` on a file or folder."""
    return whycrash(home, "explain", "--json", "--", name, folder=folder)


def check(hostile: HostileFile, ended: Ended) -> None:
    """Raise AssertionError where a file did not end as it is to end."""
    assert not _OBEYED.search(ended.out + ended.err), ended
    if hostile.ends == "refused":
        assert hostile.told in said(ended)
        return
    assert ended.code == (EXPLAINED if hostile.ends == "failure" else UNKNOWN), ended
    answer = json.loads(ended.out)
    assert hostile.told in str(answer["limits"]["omitted"]), ended
    proof = "".join(line["text"] for line in answer["evidence"])
    assert ("Tried to allocate 2.00 GiB" in proof) is (hostile.ends == "failure"), ended


@each_row("hostile", FILES, ids=[each.name for each in FILES], quick=10)
def test_a_hostile_file_ends_with_a_sentence_in_bounded_memory_and_work(
    warm: Path, usual: tuple[int, float], tmp_path: Path, hostile: HostileFile
) -> None:
    """It is read or refused, what it lacks is said, and nothing in it is obeyed, run or lost."""
    written(tmp_path, hostile)
    ended = explained(warm, tmp_path, hostile.name)
    kib, seconds = fork_server.server().peak_kib, fork_server.server().cpu_s
    check(hostile, ended)
    assert kib < usual[0] + MORE_KIB
    assert seconds < TIMES * usual[1]
    assert [path.name for path in tmp_path.iterdir()] == [hostile.name]


def test_a_file_whose_name_is_an_option_is_taken_for_none(warm: Path, tmp_path: Path) -> None:
    """Without `--` before it, it is told as an option that nobody knows."""
    (tmp_path / "-rf.log").write_text(FAILURE, encoding="utf-8")
    ended = whycrash(warm, "explain", "-rf.log", folder=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "No such option: -r" in ended.err


@pytest.mark.long
def test_all_of_them_together_hide_no_failure(warm: Path, tmp_path: Path) -> None:
    """A folder of them is one job, and its failure is found."""
    for hostile in FILES:
        written(tmp_path, hostile)
    ended = explained(warm, tmp_path, ".")
    assert "Tried to allocate 2.00 GiB" in ended.out, ended
    assert not (tmp_path / RAN).exists()
