"""Packages that the failing message says to install: what is known of them, and nothing else."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Fused int4 layers require torchao >= 0.9.0", [("torchao", ">=0.9.0")]),
        ("Requires accelerate>1.3.0 for sharded runs", [("accelerate", ">1.3.0")]),
        ("compiled blocks require PyTorch >= 2.5", [("torch", ">=2.5")]),
        ("fused_pad needs TE >= 2.7.0.", [("transformer-engine", ">=2.7.0")]),
        ("you need autoawq>0.2.6 for this backend. Take the latest one.", [("autoawq", ">0.2.6")]),
        ("Please install PEFT 0.7.2 or higher.", [("peft", ">=0.7.2")]),
        ("please upgrade `autoawq` package to at least 0.2.0.", [("autoawq", ">=0.2.0")]),
        (
            "the version of PEFT you are using is not compatible, use one that is greater than 0.6.1",
            [("peft", ">0.6.1")],
        ),
        ("Please upgrade your accelerate library.", [("accelerate", "newer than what is installed")]),
        ("this needs a newer version of torchao", [("torchao", "newer than what is installed")]),
        ("run `conda install -c conda-forge libcst`", [("libcst", "install")]),
        ("uv add 'helion==1.4.0'", [("helion", "==1.4.0")]),
        ("cupy is not available. Please install it", [("cupy", "install")]),
        ("The `jmespath` library is required, install it", [("jmespath", "install")]),
        ("pip install git+https://example.invalid/some/project.git", []),
        ("the decoder requires page_size >= 2", []),
        ("the sampler requires num_frames > 1, got num_frames=1", []),
        ("a backend is not available", []),
        ("Please update your configuration.", []),
    ],
)
def test_that_words_of_a_message_name_package_and_release(said: str, asked: list[tuple[str, str]]) -> None:
    """What frameworks say in their own ways; a noun that is no package's name asks for none."""
    body = f"ImportError: {said}"
    told = report(failed(text=body, body=body, kind="error", cause="package-missing"))
    made = named_installs("package-missing", told, whole_corpus())
    assert [(item.change.key, item.change.to) for item in made] == asked


def test_that_a_message_of_another_cause_asks_by_command_or_upgrade_alone() -> None:
    """What only lacks in passing is not what failed there."""
    rows = {
        "the fused step lacks this. Run `pip install -U trl`": [("trl", "newer than what is installed")],
        "this argument is too new. Please upgrade peft.": [("peft", "newer than what is installed")],
        "wandb is not installed, so that the loss is not drawn": [],
    }
    for said, asked in rows.items():
        body = f"ValueError: {said}"
        told = report(failed(text=body, body=body, kind="error", cause="config-key-invalid"))
        made = named_installs("config-key-invalid", told, whole_corpus())
        assert [(item.change.key, item.change.to) for item in made] == asked, said


def test_that_a_release_that_the_failing_package_asks_of_itself_is_a_newer_one() -> None:
    """Its own calls run, so that it is there and only too old."""
    body = "NotImplementedError: not in this release. Run `pip install --upgrade peft`"
    frames = (Frame("/env/lib/python3.11/site-packages/peft/tuners/lora/layer.py", 9, "forward"),)
    told = report(failed(text=body, body=body, kind="error", cause="package-incompatible", frames=frames))
    made = named_installs("package-incompatible", told, whole_corpus())
    assert [(item.change.key, item.change.to) for item in made] == [("peft", "newer than what is installed")]


def test_that_a_package_whose_own_call_asks_is_there() -> None:
    """`pip install transformers[torch]`: what raises runs, and the extra brings what it lacks."""
    body = (
        "ImportError: needs `accelerate`: run `pip install transformers[torch]` or `pip install accelerate`"
    )
    frames = (Frame("/env/lib/python3.11/site-packages/transformers/training_args.py", 9, "check"),)
    told = report(failed(text=body, body=body, kind="error", cause="package-missing", frames=frames))
    made = named_installs("package-missing", told, whole_corpus())
    assert [item.change.key for item in made] == ["accelerate", "transformers[torch]"]
