"""Packages that the failing message says to install: what is known of them, and nothing else."""

from __future__ import annotations

from ingest.logs.stacks.stack import Frame
from service.remediation.packages.named import named_installs
from tests.factories import whole_corpus
from tests.service.factories import failed, report

NEEDS = "ValueError: This needs the PEFT library. Make sure to run"


def test_that_the_command_of_the_message_names_the_package() -> None:
    """Options before it are left out; a name that no catalogue has may be anybody's."""
    rows: dict[tuple[str, str], list[tuple[str, object]]] = {
        ("package-missing", f"{NEEDS} `pip install -U peft`."): [("peft", "install")],
        ("package-missing", f"{NEEDS} pip install 'trl>=0.9,<1'"): [("trl", "<1,>=0.9")],
        ("package-missing", f"{NEEDS} pip install accelerate; pip install peft"): [
            ("accelerate", "install"),
            ("peft", "install"),
        ],
        ("package-missing", "ImportError: You must install peft, trl and rich in order to do this"): [
            ("peft", "install"),
            ("trl", "install"),
            ("rich", "install"),
        ],
        ("package-missing", f"{NEEDS} pip install no-such-thing-anywhere"): [],
        ("package-missing", f"{NEEDS} pip install -r requirements.txt"): [],
        ("disk-full", f"{NEEDS} pip install peft"): [],
        ("package-missing", "ImportError: To decode audio, please install 'torchcodec'."): [
            ("torchcodec", "install")
        ],
        ("package-missing", "ImportError: You need to install the `soundfile` package."): [
            ("soundfile", "install")
        ],
        ("package-missing", "RuntimeError: sentencepiece is required for this, but is not installed"): [
            ("sentencepiece", "install")
        ],
        (
            "package-missing",
            "ImportError: This converter requires the protobuf library but it was not found",
        ): [("protobuf", "install")],
        (
            "package-missing",
            "ImportError: ProTokenizer requires the SentencePiece library but it was not found",
        ): [("sentencepiece", "install")],
        ("package-missing", "ImportError: Missing optional dependency 'openpyxl'."): [
            ("openpyxl", "install")
        ],
        ("package-missing", "Exception: cv2 is not installed"): [("opencv-python-headless", "install")],
        ("package-missing", "ValueError: Make sure you have `sentencepiece` installed to use it."): [
            ("sentencepiece", "install")
        ],
        (
            "package-missing",
            "ImportError: an incompatible version of peft. Found 0.4.0, but only versions above 0.6.0 work",
        ): [("peft", ">=0.6.0")],
        (
            "package-missing",
            "RuntimeError: unsupported version of `numpy`: 2.1.0; only version <2.0 works here.",
        ): [("numpy", "<2.0")],
        (
            "package-missing",
            "ValueError: Found an incompatible version of the file, only versions above 2",
        ): [],
        ("package-missing", "ImportError: please install the missing packages first"): [],
        ("package-missing", "ImportError: my_own_thing is not installed"): [],
    }
    found = {}
    for cause, text in rows:
        told = report(failed(text=text, body=text, kind="error", cause=cause))
        made = named_installs(cause, told, whole_corpus())
        found[cause, text] = [(item.change.key, item.change.to) for item in made]
    assert found == rows


def test_that_a_package_whose_own_call_asks_is_there() -> None:
    """`pip install transformers[torch]`: what raises runs, and the extra brings what it lacks."""
    body = (
        "ImportError: needs `accelerate`: run `pip install transformers[torch]` or `pip install accelerate`"
    )
    frames = (Frame("/env/lib/python3.11/site-packages/transformers/training_args.py", 9, "check"),)
    told = report(failed(text=body, body=body, kind="error", cause="package-missing", frames=frames))
    made = named_installs("package-missing", told, whole_corpus())
    assert [item.change.key for item in made] == ["accelerate", "transformers[torch]"]
