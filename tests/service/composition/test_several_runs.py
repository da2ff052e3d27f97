"""What the answer says of lines before the root: of an earlier run, or of none that it came of."""

from service.pipeline.triage import Triage
from tests.factories import OOM, traceback
from tests.tables import each_row
from tests.warm import explained

BANNER = (
    "Launching the trainer with 8 processes\nUsing the configuration of base.yaml\n"
    "Loading the tokenizer from /models/lark\nPreparing the data set of 459 rows\n"
)
FULL = "OSError: [Errno 28] No space left on device: '/scratch/run-7/state.pt'"
OLD_DRIVER = (
    "/env/torch/cuda/__init__.py:141: UserWarning: CUDA initialization: The NVIDIA driver on your system is "
    "too old (found version 11040).\n"
)


@each_row(
    ("language", "said", "unsaid"),
    [("en", "An earlier run ended with:", "is a consequence"), ("zh", "更早的一次运行以此结束", "它的后果")],
)
def test_that_an_earlier_run_in_the_file_is_told_apart(
    language: str, said: str, unsaid: str, triage: Triage
) -> None:
    answer = explained(triage, BANNER + traceback(OOM) + BANNER + traceback(FULL), language=language)
    assert answer.cause == "disk-full"
    assert [entry.earlier_run for entry in answer.cascade] == [True, False]
    assert said in answer.explanation
    assert unsaid not in answer.explanation


@each_row(("language", "unsaid"), [("en", "is a consequence"), ("zh", "其后的这些")])
def test_that_nothing_printed_before_the_root_is_its_consequence(
    language: str, unsaid: str, triage: Triage
) -> None:
    started = "INFO loading the model\nINFO loading the data\n"
    answer = explained(triage, OLD_DRIVER + started + traceback(FULL), language=language)
    assert answer.cause == "disk-full"
    assert unsaid not in answer.explanation
