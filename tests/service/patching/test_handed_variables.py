"""A value that a script has from a variable of another file is changed in that file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from service.patching.handed_variables import handed
from service.patching.patches import ConfigFile, patch_files
from tests.service.patching.applying import goes_back_and_forth, target
from tests.tables import each_row

INNER = "python3 -m verl.trainer.main_ppo \\\n  actor.ppo_micro_batch_size=$MICRO \\\n  trainer.nnodes=1\n"
MICRO = replace(target("actor.ppo_micro_batch_size", 2, spelled="hydra"), present="8")
CALLER = "export MICRO=8\nbash inner.sh\n"


@each_row(
    ("texts", "holder", "after"),
    [
        ({"inner.sh": INNER, "call.sh": CALLER}, "call.sh", CALLER.replace("8", "2")),
        ({"inner.sh": INNER, "job.env": "MICRO=8\n"}, "job.env", "MICRO=2\n"),
        # What the caller gives wins over the default behind the dash.
        ({"inner.sh": INNER.replace("$MICRO", "${MICRO:-4}"), "call.sh": CALLER}, "call.sh",
         CALLER.replace("8", "2")),
        ({"inner.sh": INNER, "call.sh": "MICRO=8 bash inner.sh\n"}, "call.sh", "MICRO=2 bash inner.sh\n"),
    ],
)  # fmt: skip
def test_that_the_file_which_hands_the_variable_is_patched(
    texts: dict[str, str], holder: str, after: str, tmp_path: Path
) -> None:
    files = [ConfigFile(name, text) for name, text in texts.items()]
    (edit,) = patch_files(files, [handed(files, MICRO)]).edits
    assert (edit.file.name, edit.after) == (holder, after)
    assert goes_back_and_forth(tmp_path, texts[holder], edit.after, holder)


@each_row(
    "texts",
    [
        # The variable serves another setting too, two files assign it, or the run had another value.
        {"inner.sh": INNER.replace("nnodes=1", "nnodes=$MICRO"), "call.sh": CALLER},
        {"inner.sh": INNER, "call.sh": CALLER, "other.sh": CALLER},
        {"inner.sh": INNER, "call.sh": CALLER.replace("8", "4")},
        # It is computed, is the script's own, or only a part of the value.
        {"inner.sh": INNER, "call.sh": "export MICRO=$((2 * N))\nbash inner.sh\n"},
        {"inner.sh": f"MICRO=8\n{INNER}", "call.sh": "echo 1\n"},
        {"inner.sh": INNER.replace("$MICRO", "1$MICRO"), "call.sh": CALLER},
    ],
)
def test_that_no_other_variable_is_taken_for_the_setting(texts: dict[str, str]) -> None:
    files = [ConfigFile(name, text) for name, text in texts.items()]
    assert handed(files, MICRO) is MICRO
