"""A script without `set -e` says its last word whatever became of its program: that undoes no failure."""

from __future__ import annotations

import pytest

from tests.factories import ReadLog

STEPS = "step 1/10 loss 2.0\nstep 2/10 loss 1.9\n"
MORE = "step 3/10 loss 1.8\nstep 4/10 loss 1.7\n"
ENTERED = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 90, in <module>\n'
    "    main()\n"
    '  File "/job/train.py", line 40, in main\n'
    "    loss = step(batch)\n"
    "RuntimeError: shapes do not fit\n"
)
AT_MODULE = ENTERED.replace("    main()\n", "    result = main_of(sample)\n")
RUN_AS_MODULE = ENTERED.replace("in <module>", "in _run_module_as_main").replace("main()\n", "return run()\n")
DEAD = {
    "by the statement that enters it": ENTERED,
    "run by python -m": RUN_AS_MODULE,
    "by an exception of a module, right above": AT_MODULE,
    "killed": "/job/run.sh: line 3:  4711 Killed                  python train.py\n",
    "told by its launcher": "srun: error: gpu-07: task 3: Exited with exit code 1\n",
    "never started": "./run.sh: line 20: /opt/venv/bin/python: No such file or directory\n",
}


@pytest.mark.parametrize("said", ["Training complete!\n", "=== done ===\nTraining finished.\n", "训练完成\n"])
@pytest.mark.parametrize("name", DEAD)
def test_that_a_scripts_last_word_undoes_no_death(read: ReadLog, name: str, said: str) -> None:
    for before in ("", STEPS):
        assert read(before + DEAD[name] + said).root is not None


@pytest.mark.parametrize("name", DEAD)
def test_that_work_behind_it_does(read: ReadLog, name: str) -> None:
    assert read(STEPS + DEAD[name] + MORE + "Training complete!\n").root is None


def test_that_a_loop_of_a_module_may_live_through_what_it_prints(read: ReadLog) -> None:
    """It says more of its work before it ends."""
    work = "".join(f"sample {number} was written\n" for number in range(8))
    assert read(STEPS + AT_MODULE + work + "Training complete!\n").root is None
