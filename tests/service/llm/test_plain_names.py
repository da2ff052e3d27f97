"""Names that say nothing of their own, and sentences that make little of a failure."""

from __future__ import annotations

from corpus.library import Library
from service.llm.comfort import comforts
from service.llm.plain_names import is_measure, is_plain_name
from service.pipeline.triage import Triage
from tests.tables import each_row

LINES = "model = Zebra.load('zebra-7b')  # job 20261128093000"


def _library(triage: Triage) -> Library:
    return triage.library


@each_row(
    ("name", "is_plain"),
    [
        # Of words that settings and their choices have, with small numbers.
        ("max_model_len", True),
        ("bf16-mixed", True),
        ("H100-80GB", True),
        ("NCCL_P2P_DISABLE", True),
        ("h5py", True),
        ("remove_unused_columns", True),
        # What the lines have.
        ("zebra-7b", True),
        ("20261128093000", True),
        # Names of nobody, accounts, telephones, digits in place of letters, orders.
        ("gpu_sos77", False),
        ("TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE", False),
        ("DE89370400440532013000", False),
        ("0900-1122", False),
        ("p3tr0v", False),
        ("s3nd", False),
        ("zebr", False),
        ("kill_all_ranks_now", False),
    ],
)
def test_a_name_is_plain_by_its_pieces_or_by_the_lines(triage: Triage, name: str, is_plain: bool) -> None:
    """Each piece is a word of our knowledge or a small number, and together they are no order."""
    assert is_plain_name(name, _library(triage), LINES) is is_plain


@each_row(
    ("number", "is_one"),
    [
        ("4096", True),
        ("131072", True),
        ("17179869184", True),
        ("80,000,000,000", True),
        ("13800138001", False),
        ("6222021001116000", False),
    ],
)
def test_a_number_of_a_settings_size_is_told_from_an_accounts(number: str, is_one: bool) -> None:
    """Small, or round and of a size that bytes have."""
    assert is_measure(number) is is_one


@each_row(
    ("sentence", "makes_little"),
    [
        ("There is nothing to fix.", True),
        ("No change is needed here.", True),
        ("Out of memory is only a warning here.", True),
        ("The run may simply go on.", True),
        ("Nobody should look at it.", True),
        ("Zero errors were found.", True),
        ("显存不足属于正常现象。", True),
        ("本次无需处理。", True),
        ("The worker needs no GPU of its own.", False),
        ("Nothing else holds the memory of this card.", False),
        ("The first warning came before the error.", False),
        ("The job can go on from its last checkpoint once there is room.", False),
        ("进程在第 3 步被终止。", False),
    ],
)
def test_what_makes_little_of_a_failure_is_known(sentence: str, makes_little: bool) -> None:
    """It says that the failure is none, or that nothing is to be done about it."""
    assert comforts(sentence) is makes_little
