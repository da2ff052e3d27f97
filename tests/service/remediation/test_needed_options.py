"""An option that another one needs beside it, as messages say it."""

from __future__ import annotations

from ingest.logs.configs.launch import Setting
from service.remediation.needed_options import needed_options
from tests.factories import whole_corpus
from tests.service.factories import failed, report
from tests.tables import each_row


@each_row(
    ("message", "needed"),
    [
        ("--packing requires --padding-free", "--padding-free"),
        ("--packing requires --padding-free unless rows are short", "--padding-free"),
        ("--packing must be used with --padding-free", "--padding-free"),
        ("--padding-free must be set when --packing is used", "--padding-free"),
        # It is to be off, as it is.
        ("--packing requires --padding-free to be disabled", None),
        ("--packing only works if --padding-free is set to False", None),
        ("`packing` can only be used when `padding_free` is not set", None),
        ("--packing requires --padding-free=0", None),
        # It is the other one that needs this, or would if it were off.
        ("--packing must be set when --padding-free is used", None),
        ("--padding-free must be set when --packing is not used", None),
        # No option is missing.
        ("--packing requires flash_attn to be installed", None),
        ("--packing requires the `flash_attn` package", None),
    ],
)
def test_that_only_what_is_to_be_on_is_needed(message: str, needed: str | None) -> None:
    job = report(failed(body=f"train.py: error: {message}"))
    given = [Setting("--packing", "true", 1, "flag")]
    found = [option.key for option in needed_options(job, given, whole_corpus())]
    assert found == ([needed] if needed else [])
