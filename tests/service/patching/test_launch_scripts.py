"""What a launch script says beside the options of its programs: limits, the launcher, the sign of a key."""

from __future__ import annotations

from service.patching import launchers, yaml_file
from service.patching.diagnosis_patch import patch_targets
from service.patching.patch import patch
from service.patching.target import PatchTarget
from tests.service.factories import failed, library, proposal, report, spec

TORCHRUN = PatchTarget("pytorch", "command", ("torchrun --standalone --nproc_per_node=auto",), True)
FILES = PatchTarget("host", "command", ("ulimit -n",), "65536")
PLAIN = PatchTarget("hydra", "setting", ("trainer.nnodes",), 2, replaces="trainer.nnodes")
ADDED = PatchTarget("hydra", "setting", ("+trainer.mode",), "auto", replaces="trainer.mode")


def test_that_a_key_which_lacks_its_sign_alone_is_sought_with_it() -> None:
    """The right name differs from the wrong one by the sign, without which names are compared."""
    change = proposal("+trainer.mode", "auto", replaces="trainer.mode")
    targets = patch_targets([change], report(failed()), library(spec()))
    assert [target.names for target in targets] == [("+trainer.mode",)]


def test_what_stands_beside_a_programs_options_is_changed_in_place() -> None:
    """One limit, one interpreter, one sign; where that is not plain, nothing is written."""
    rows = {
        ("ulimit -n 128\npython a.py\n", FILES): "ulimit -n 65536\npython a.py\n",
        ("ulimit -Sn 128 -u 50\n", FILES): "ulimit -Sn 65536 -u 50\n",
        ("ulimit -n $LIMIT\n", FILES): None,
        ("python a.py\n", FILES): None,
        ("set -x\npython -u a.py --x 1\n", TORCHRUN): f"set -x\n{TORCHRUN.names[0]} a.py --x 1\n",
        ("WANDB_MODE=offline python3 -m pkg.train\n", TORCHRUN): (
            f"WANDB_MODE=offline {TORCHRUN.names[0]} -m pkg.train\n"
        ),
        ("torchrun --nproc_per_node 2 a.py\n", TORCHRUN): None,
        ("python a.py\npython b.py\n", TORCHRUN): None,
        ("python a.py +trainer.nnodes=2\n", PLAIN): "python a.py trainer.nnodes=2\n",
        ("python a.py trainer.mode=auto x=1\n", ADDED): "python a.py +trainer.mode=auto x=1\n",
        ("python a.py x=1\n", ADDED): None,
    }
    made = {(text, target): patch("run.sh", text, [target]).text for text, target in rows}
    assert made == {(text, target): after or text for (text, target), after in rows.items()}


def test_words_that_no_shell_reads_are_no_launcher() -> None:
    """A command may hold a blank to fill in, or the half of a quotation that a message cut off."""
    words = ("kubectl logs <pod> --previous", "pip install 'vllm", "echo $(", "cat <<END", "", "# a note")
    assert [text for text in words if launchers.is_launcher(text)] == []
    assert launchers.is_launcher("torchrun --nproc_per_node=2")


def test_an_argument_of_a_call_is_changed_under_the_one_key_of_the_programs_own_file() -> None:
    """`DataLoader.num_workers` is what the file calls `data.num_workers`; of two such keys neither is."""
    workers = PatchTarget("pytorch", "setting", ("DataLoader.num_workers",), 1, "directive")
    assert yaml_file.apply("data:\n  num_workers: 0\n", workers) == "data:\n  num_workers: 1\n"
    twice = "train:\n  num_workers: 0\neval:\n  num_workers: 2\n"
    assert patch("config.yaml", twice, [workers]).text == twice
