"""What a script asks of Slurm below its first command is read by nobody, and said to be."""

from __future__ import annotations

from ingest.configfiles.shell.directives import options, unread
from service.remediation.unread_directives import asked_in_vain
from tests.service.factories import failed, proposal, report
from tests.tables import each_row

HEAD = "#!/bin/bash\n#SBATCH --nodes=1\n"
BELOW = "set -e\n# memory\n#SBATCH --mem=80G --gres=gpu:$N\nsrun python train.py\n"


@each_row(
    ("key", "script", "to"),
    [
        ("--mem", HEAD + BELOW, "80G"),
        # A value of the shell is none, one that is read stands, and another option is another.
        ("--gres", HEAD + BELOW, "0"),
        ("--mem", HEAD + "#SBATCH --mem=80G\n" + BELOW.replace("80G", "$MEM"), "0"),
        ("--time", HEAD + BELOW, "0"),
        ("--mem", HEAD + BELOW.replace("#SBATCH", "##SBATCH"), "0"),
    ],
)
def test_that_a_change_takes_the_value_that_was_asked_in_vain(key: str, script: str, to: str) -> None:
    """The row is named, for it is to be moved."""
    change = proposal(key, "0", kind="setting", framework="slurm", why="More memory.")
    (told,) = asked_in_vain([change], report(failed(), launches=(f"{script}\njob/run.sh",)), "en")
    assert told.to == to
    assert ("Row 5 of `job/run.sh` asks for `--mem`" in told.why) is (to == "80G")


def test_that_what_is_read_and_what_is_not_are_all_directives() -> None:
    """No directive is both, and none is neither."""
    script = HEAD + BELOW
    assert [option.name for option in options(script)] == ["nodes"]
    assert [option.name for option in unread(script)] == ["mem", "gres"]
