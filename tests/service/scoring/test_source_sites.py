"""Lines of logs led to the frameworks' own sources: as the answer tells it, and as it orders changes."""

from __future__ import annotations

from service.composition.diagnosis_view import diagnosis_view, source_words
from service.pipeline.triage import Triage
from service.scoring.source_sites import find_sites
from tests.factories import event
from tests.service.factories import report
from tests.tables import each_row
from tests.warm import explained

VERL = "/opt/venv/lib/python3.11/site-packages/verl"
SPLIT = f"""\
Traceback (most recent call last):
  File "{VERL}/trainer/main_ppo.py", line 300, in run
    validate_config(config=config)
  File "{VERL}/utils/config.py", line {{line}}, in validate_config
    assert real_train_batch_size % minimal_bsz == 0, (
AssertionError: real_train_batch_size (96) must be divisible by minimal possible batch size (40)
"""
SPLIT_OWN = SPLIT.replace(f"{VERL}/utils/config.py", "/home/me/fork/checks.py")
MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "79.15 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in "
    "use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but "
    "unallocated.\n"
)


def test_the_answer_leads_to_the_line_of_the_source(triage: Triage) -> None:
    """The traceback's own line dates the installation where the log names no version."""
    (place,) = explained(triage, SPLIT.format(line=121)).sources[:1]
    assert (place.line, place.package, place.path) == (6, "verl", "verl/utils/config.py")
    assert (place.symbol, place.exception) == ("validate_config", "AssertionError")
    assert {"data.train_batch_size", "trainer.n_gpus_per_node"} <= set(place.settings)
    assert place.url is not None
    assert place.url.endswith(f"/v{place.version}/verl/utils/config.py#L{place.source_line}")


def test_the_line_of_a_traceback_dates_the_installation(triage: Triage) -> None:
    """Each version has the check on another line: the one that the traceback names is shown."""
    known = explained(triage, SPLIT.format(line=1)).sources[0]
    dated = {}
    for line in range(known.source_line - 60, known.source_line + 1):
        place = explained(triage, SPLIT.format(line=line)).sources[0]
        if place.source_line == line:
            dated[line] = place.version
    assert len(dated) >= 2
    assert len(set(dated.values())) == len(dated)


def test_a_traceback_into_other_files_has_no_place_in_a_framework(triage: Triage) -> None:
    """A copy of a framework's check in somebody's own file is not the framework's."""
    assert explained(triage, SPLIT_OWN.format(line=121)).sources == ()


def test_a_message_of_compiled_code_is_found_without_calls(triage: Triage) -> None:
    """The allocator's message stands in C++, whatever calls of Python led there."""
    place = explained(triage, MEMORY).sources[0]
    assert (place.path, place.exception) == ("c10/cuda/CUDACachingAllocator.cpp", "OutOfMemoryError")


def test_no_place_is_shown_of_a_message_whose_package_the_calls_and_the_log_do_not_tell(
    triage: Triage,
) -> None:
    """Python's own words stand in many sources: with calls, the file or the release is to be known."""
    log = (
        "Traceback (most recent call last):\n"
        '  File "/job/run.py", line 9, in main\n'
        "    pool = make_pool(4)\n"
        f"{MEMORY}"
    )
    assert explained(triage, log).sources == ()
    known = explained(triage, f"PyTorch version: 2.6.0\n{log}").sources
    assert {place.version.rpartition(".")[0] for place in known} == {"2.6"}


@each_row(
    ("body", "found"),
    [
        (
            "AssertionError: real_train_batch_size (96) must be divisible by minimal possible batch size (4)",
            1,
        ),
        ("the train batch size was split by four workers", 0),
        ("", 0),
    ],
)
def test_only_whole_messages_have_a_site(body: str, found: int) -> None:
    """A few common words lead nowhere."""
    failed = event(3, body=body, text=body, role="root", pattern_role="origin", kind="error")
    assert len(find_sites(report(failed))) == found


@each_row(("language", "words"), [("en", "involves"), ("zh", "涉及")])
def test_the_place_is_told_in_the_readers_language(language: str, words: str, triage: Triage) -> None:
    """With package, version, file, line and the settings that are checked there."""
    view = diagnosis_view(explained(triage, SPLIT.format(line=121), language=language))
    told = source_words(view.sources[0], view.language)
    assert told.startswith(f"verl {view.sources[0].version}")
    assert f"{words} data.train_batch_size" in told
