"""What a C++ core warns of between two signs of a good end is no failure of the job."""

from __future__ import annotations

from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

STEPS = "".join(
    f"{{'loss': {2 - step / 20:.3f}, 'epoch': {step / 20}}}\n {5 * step}%|##| {step}/20 "
    f"[00:{step:02}<00:09,  1.00s/it]\n"
    for step in range(1, 21)
)
DONE = "{'train_runtime': 311.5, 'train_samples_per_second': 2.1, 'train_loss': 1.1, 'epoch': 1.0}\n"
ZERO = "exit code: 0\n"
LOST = (
    "[rank3]:[W1105 07:12:40.981120055 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=71, "
    "addr=[localhost]:47114, remote=[localhost]:29500): failed to recv, got 0 bytes\n"
)
DUMP = (
    '[rank2]:[W1105 07:12:41.500300121 ProcessGroupNCCL.cpp:1659] Failed to check the "should dump" flag on '
    "TCPStore, (maybe TCPStore server has shut down too early)\n"
)
BROKEN = "[W1105 07:12:41 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=9): Broken pipe\n"


@each_row(
    ("log", "verdict"),
    [
        (STEPS + DONE + LOST + ZERO, "no-failure"),
        (STEPS + DONE + DUMP + BROKEN + ZERO, "no-failure"),
        # No good end stands before them, or the run went on behind it, or they are no warnings.
        (STEPS[: len(STEPS) // 2] + LOST + ZERO, "diagnosed"),
        (STEPS + DONE + STEPS[: len(STEPS) // 2] + LOST + ZERO, "diagnosed"),
        (STEPS + DONE + LOST.replace("[W1105", "[E1105") + ZERO, "diagnosed"),
    ],
)
def test_that_warnings_between_good_ends_are_none(triage: Triage, log: str, verdict: str) -> None:
    made = explained(triage, log)
    assert (made.verdict == "no-failure") is (verdict == "no-failure")
