"""The smallest change of versions after which packages fit, as their own metadata has it."""

from __future__ import annotations

from packaging.version import Version

from service.remediation.packages.moves import Situation, conflicts, smallest_moves
from tests.tables import each_row

CLASHES = [
    # What was built for one very version follows that one.
    ({"torch": "2.6.0", "torchvision": "0.20.1"}, "torchvision==0.21.0", "torch==2.5.1"),
    ({"torch": "2.7.0", "torchvision": "0.21.0"}, "torchvision==0.22.0", "torch==2.6.0"),
    ({"torch": "2.9.1", "torchaudio": "2.9.0"}, "torchaudio==2.9.1", "torch==2.9.0"),
    ({"torch": "2.4.0+cu121", "torchaudio": "2.5.1"}, "torchaudio==2.4.0", "torch==2.5.1"),
    ({"torch": "2.5.1", "xformers": "0.0.29.post2"}, "xformers==0.0.28.post3", "torch==2.6.0"),
    ({"torch": "2.7.1", "torchcodec": "0.7"}, "torchcodec==0.5.0", "torch==2.8.*"),
    # A package gives way to what requires a range of it.
    ({"verl": "0.5.0", "numpy": "2.2.6"}, "numpy<2.0.0", ""),
    ({"verl": "0.4.1", "tensordict": "0.8.0"}, "tensordict<=0.6.2", "verl>=0.5.0"),
    ({"transformers": "4.57.6", "huggingface-hub": "1.1.0"}, "huggingface-hub<1.0,>=0.34.0", ""),
    ({"transformers": "5.0.0", "huggingface-hub": "0.36.0"}, "huggingface-hub<2.0,>=1.3.0", ""),
    ({"transformers": "4.46.3", "tokenizers": "0.21.0"}, "tokenizers<0.21,>=0.20", ""),
    ({"transformers": "4.41.2", "tokenizers": "0.15.2"}, "tokenizers<0.20,>=0.19", ""),
    ({"trl": "0.21.0", "transformers": "4.51.3"}, "transformers>=4.55.0", "trl==0.19.1"),
    ({"trl": "0.24.0", "accelerate": "1.0.0"}, "accelerate>=1.4.0", ""),
    ({"llamafactory": "0.9.2", "trl": "0.15.0"}, "trl<=0.9.6,>=0.8.6", ""),
    ({"ms-swift": "3.2.0", "transformers": "4.52.4"}, "transformers<4.50,>=4.33", "ms-swift>=3.3.1"),
    ({"lmdeploy": "0.7.0", "torch": "2.6.0"}, "torch<=2.5.1,>=2.0.0", "lmdeploy>=0.7.3"),
    ({"deepspeed": "0.15.4", "pydantic": "1.10.13"}, "pydantic>=2.0.0", ""),
    ({"datasets": "3.0.0", "huggingface-hub": "0.20.0"}, "huggingface-hub>=0.22.0", ""),
    ({"peft": "0.18.0", "accelerate": "0.20.3"}, "accelerate>=0.21.0", ""),
    ({"diffusers": "0.35.0", "huggingface-hub": "0.20.0"}, "huggingface-hub>=0.34.0", ""),
    # A trainer or an engine is what the user chose: what it pins follows it.
    ({"axolotl": "0.8.0", "peft": "0.10.0"}, "peft==0.15.0", ""),
    ({"openrlhf": "0.8.0", "transformers": "4.40.2"}, "transformers==4.51.3", ""),
    ({"sglang": "0.5.4", "torch": "2.7.1"}, "torch==2.8.0", ""),
    ({"vllm": "0.8.5", "torch": "2.7.1"}, "torch==2.6.0", "vllm==0.10.0"),
    ({"vllm": "0.9.2", "torch": "2.6.0"}, "torch==2.7.0", ""),
    # What has no table of releases moves as the others ask for it.
    ({"torch": "2.7.1", "triton": "3.2.0"}, "triton==3.3.1", "torch==2.6.0"),
]


def versions(given: dict[str, str]) -> dict[str, Version]:
    """Read versions."""
    return {name: Version(text) for name, text in given.items()}


def told(situation: Situation) -> list[str]:
    """Give each set of moves as requirements."""
    return [
        " ".join(f"{move.package}{move.specifier}" for move in moves) for moves in smallest_moves(situation)
    ]


@each_row("seen, first, other", CLASHES)
def test_that_two_packages_are_made_to_fit(seen: dict[str, str], first: str, other: str) -> None:
    """The package that gives way moves to what the other one's metadata asks; the other way is second."""
    moves = told(Situation(versions(seen), {}))
    assert moves[0] == first
    assert not other or other in moves


@each_row(
    "torch, broken, build",
    [
        ("2.7.1", "torchcodec", "torchcodec==0.5.0"),
        ("2.5.1", "torchcodec", "torchcodec==0.1.1"),
        ("2.8.0+cu128", "torchcodec", "torchcodec==0.7.0"),
        ("2.6.0", "xformers", "xformers==0.0.29.post2"),
        ("2.4.0", "xformers", "xformers==0.0.27.post2"),
        ("2.4.1", "flash-attn", "flash-attn==2.8.3.post1"),
        ("2.1.2", "flash-attn", "flash-attn==2.7.3"),
        ("2.3.1", "torchvision", "torchvision==0.18.1"),
    ],
)
def test_that_a_library_which_does_not_load_is_taken_in_the_build_for_this_torch(
    torch: str, broken: str, build: str
) -> None:
    """The newest release that was built for the job's PyTorch."""
    assert told(Situation(versions({"torch": torch}), {}, frozenset({broken})))[0] == build


@each_row(
    "seen, wanted, move",
    [
        ({"torch": "2.6.0"}, {"torchvision": ""}, "torchvision==0.21.0"),
        ({"torch": "2.7.1"}, {"torchaudio": ""}, "torchaudio==2.7.1"),
        ({"transformers": "4.44.2"}, {"tokenizers": "<0.20"}, "tokenizers<0.20,>=0.19"),
        ({"torch": "2.10.0"}, {"torchcodec": ""}, "torchcodec==0.10.0"),
    ],
)
def test_that_what_is_asked_for_fits_the_rest(
    seen: dict[str, str], wanted: dict[str, str], move: str
) -> None:
    """A missing package comes in the version for the others, an asked one as far as the others allow it."""
    assert told(Situation(versions(seen), wanted)) == [move]


@each_row(
    "seen",
    [
        {"torch": "2.6.0", "torchvision": "0.21.0", "numpy": "1.26.4"},
        {"vllm": "0.8.5", "torch": "2.6.0+cu124"},
        {"transformers": "4.51.3", "tokenizers": "0.21.1", "huggingface-hub": "0.31.0"},
        {"torch": "2.7.1", "unheard-of": "1.0"},
    ],
)
def test_that_what_fits_is_left_alone(seen: dict[str, str]) -> None:
    """Without a clash there is no move."""
    assert list(conflicts(versions(seen))) == []
    assert told(Situation(versions(seen), {})) == []


def test_that_a_build_that_should_fit_is_not_exchanged() -> None:
    """A binary of the right release that does not load was built here: no other release is better."""
    seen = versions({"torch": "2.6.0", "flash-attn": "2.8.3"})
    assert told(Situation(seen, {}, frozenset({"flash-attn"}))) == []


def test_that_a_release_runs_on_the_python_of_the_job() -> None:
    """Releases for other Pythons are no choice: numpy 2.0.2 is the last one for Python 3.9."""
    situation = Situation(versions({"torch": "2.2.2"}), {"numpy": ""}, python=Version("3.9.18"))
    assert told(situation) == ["numpy==2.0.2"]
