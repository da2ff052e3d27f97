"""Changes of requirements, conda environments, `.env` files and Dockerfiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement

from corpus.schema import Scalar
from ingest.configfiles.errors import NotPatchableError
from service.patching import env_file, requirements
from service.patching.patch import is_met
from service.patching.target import PatchTarget
from tests.service.patching.applying import changed_lines, goes_back_and_forth, target
from tests.tables import each_row


def package(name: str, to: str, framework: str = "pip") -> PatchTarget:
    """Make a target for a package."""
    return target(name, to, kind="package", framework=framework)


def variable(name: str, to: Scalar) -> PatchTarget:
    """Make a target for an environment variable."""
    return target(name, to, kind="env", framework="env")


# Before, after, package, version.
PIP = [
    ("vllm==0.8.4\n", "vllm==0.8.5\n", "vllm", "==0.8.5"),
    ("vllm==0.8.4\n", "vllm==0.8.5\n", "vllm", "0.8.5"),
    ("vllm\ntorch\n", "vllm\ntorch>=2.6\n", "torch", ">=2.6"),
    ("torch>=2.5,<2.6  # cuda 12\n", "torch>=2.6,<2.7  # cuda 12\n", "torch", "<2.7,>=2.6"),
    ("torch ~= 2.5 ; python_version < '3.12'\n", "torch >=2.6 ; python_version < '3.12'\n", "torch", ">=2.6"),
    ("ray[default,serve]==2.9\n", "ray[default,serve]>=2.40\n", "ray", ">=2.40"),
    ("Flash_Attn==2.5\r\nx\r\n", "Flash_Attn<2.8\r\nx\r\n", "flash-attn", "<2.8"),
    ("numpy (>=1.20)\n", "numpy <2\n", "numpy", "<2"),
    ("-r base.txt\n# vllm==1\nvllm==0.8.4", "-r base.txt\n# vllm==1\nvllm<0.9", "vllm", "<0.9"),
    ("torch==2.5.1 --no-binary :all:\n", "torch==2.6 --no-binary :all:\n", "torch", "==2.6"),
    ("numpy\n", "numpy\nsetuptools<81\n", "setuptools", "<81"),
    ("numpy", "numpy\nsetuptools<81", "setuptools", "<81"),
    ("numpy\r\n", "numpy\r\nsetuptools<81\r\n", "setuptools", "<81"),
    ("numpy\n", "numpy\nray[default]\n", "ray[default]", "install"),
    ("torch-geometric==2.5\n", "torch-geometric==2.5\ntorch==2.6\n", "torch", "==2.6"),
    ("", "torch==2.6\n", "torch", "==2.6"),
]


@each_row(("before", "after", "name", "to"), PIP)
def test_a_requirement_gets_its_version(before: str, after: str, name: str, to: str, tmp_path: Path) -> None:
    wanted = package(name, to)
    assert requirements.apply(before, wanted) == after
    assert requirements.holds(after, wanted)
    assert requirements.carries(after, wanted)
    assert requirements.apply(after, wanted) == after
    assert goes_back_and_forth(tmp_path, before, after, "requirements.txt")


@each_row(
    ("text", "name", "to"), [("ray==2.9\n", "ray", "install"), ("torch<2.7,>=2.6\n", "torch", ">=2.6,<2.7")]
)
def test_what_is_said_already_stays(text: str, name: str, to: str) -> None:
    assert requirements.apply(text, package(name, to)) == text


@each_row(
    ("name", "text", "met"),
    [
        ("requirements.txt", "torch==2.6.1\n", True),
        ("requirements.txt", "torch===2.6.1  # cuda 12\n", True),
        ("requirements.txt", "torch==2.5\n", False),
        ("requirements.txt", "torch>=2.6\n", False),
        ("requirements.txt", "ray==2.6\n", False),
        ("environment.yml", "dependencies:\n- pip:\n  - torch==2.6.1\n", True),
        ("environment.yml", "dependencies:\n- torch=2.6.1\n", True),
        ("environment.yml", "dependencies:\n- torch=2.5\n", False),
        ("pyproject.toml", '[project]\nname = "a"\ndependencies = ["torch==2.6.1"]\n', True),
        ("pyproject.toml", '[project]\nname = "a"\ndependencies = ["torch>=2.6"]\n', False),
        ("run.sh", "pip install torch==2.6.1\n", False),
    ],
)
def test_that_a_pin_within_what_is_wanted_is_known(name: str, text: str, *, met: bool) -> None:
    """The environment that ran had another release than its list: the list is right as it is."""
    assert is_met(name, text, package("torch", ">=2.6,<2.7")) is met


@each_row(
    ("text", "wanted", "reason"),
    [
        ("torch==2.5 \\\n    --hash=sha256:00\n", package("torch", "2.6"), "line 1 pins torch by hashes"),
        ("torch==2.5 --hash=sha256:00\n", package("vllm", "0.9"), "hashes"),
        (
            "torch @ https://example.org/t.whl\n",
            package("torch", "2.6"),
            "line 1 installs torch from an address",
        ),
        (
            "torch==2.5; python_version<'3.11'\ntorch==2.6; python_version>='3.11'\n",
            package("torch", "2.7"),
            "lines 1, 2",
        ),
        ("torch==2.5==\n", package("torch", "2.7"), "no requirement"),
        ("torch\n", package("torch", "the newest"), "no version"),
        ("torch\n", package("build-essential python3-dev", "install"), "no version"),
        ("torch\n", package("cuda", "12.4", framework="apt"), "apt"),
        ("torch\n", target("lr", 1), "not set among the requirements"),
        ("torch \\\n", package("vllm", "1"), "backslash"),
    ],
)
def test_what_pip_would_read_otherwise_is_refused(text: str, wanted: PatchTarget, reason: str) -> None:
    with pytest.raises(NotPatchableError) as refused:
        requirements.apply(text, wanted)
    assert reason in str(refused.value)
    assert not requirements.holds(text, wanted)


NAMES = ["torch", "vllm", "ray", "flash-attn", "numpy", "Pillow"]
VERSIONS = ["", "==1.0", ">=2.6,<2.7", " ~= 1.4", "!=3", " (<4)", ">1 , <2"]
REST = [
    "",
    "  # why",
    " ; sys_platform == 'linux'",
    "; python_version<'3.12' # a",
    " --no-binary :all:",
    "  ",
]


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    names=st.lists(st.sampled_from(NAMES), unique=True, min_size=1),
    picks=st.lists(
        st.tuples(st.sampled_from(VERSIONS), st.sampled_from(REST), st.sampled_from(["", "[x]", "[a,b]"])),
        min_size=6, max_size=6,
    ),
    between=st.lists(
        st.sampled_from(["", "# none\n", "\n", "-r base.txt\n", "--index-url https://example.org\n"]),
        min_size=6, max_size=6,
    ),
    to=st.sampled_from(["==2.6", "<0.9", ">=2.6,<2.8", "1.2"]), ending=st.sampled_from(["\n", "\r\n"]),
    name=st.sampled_from(NAMES),
)  # fmt: skip
def test_only_the_packages_own_line_differs(
    names: list[str], picks: list[tuple[str, str, str]], between: list[str], to: str, ending: str, name: str
) -> None:
    """Extras, markers, comments and options of a line stay, and so does every other line."""
    text = "".join(
        f"{gap}{known}{extras}{version}{rest}\n"
        for known, (version, rest, extras), gap in zip(names, picks, between, strict=False)
    ).replace("\n", ending)
    after = requirements.apply(text, package(name, to))
    assert changed_lines(text, after) in ([(1, 1), (0, 0)] if name in names else [(0, 1)])
    assert requirements.holds(after, package(name, to))
    assert requirements.apply(after, package(name, to)) == after
    if name in names:
        (row,) = [row for row in after.split("\n") if row.startswith(name)]
        _, rest, extras = picks[names.index(name)]
        assert row.rstrip("\r").endswith(rest)
        assert (
            Requirement(row.split("#")[0].split(" --")[0].strip()).extras == Requirement(f"x{extras}").extras
        )


CONDA = (
    "name: t\ndependencies:\n  - python=3.11  # py\n  - numpy=1.26\n  - pip\n  - pip:\n      - "
    "vllm==0.8.4\n      - ray[default]\n"
)


@each_row(
    ("name", "to", "old", "new"),
    [
        ("vllm", "==0.8.5", "vllm==0.8.4", "vllm==0.8.5"),
        ("ray", ">=2.40", "ray[default]", "ray[default]>=2.40"),
        ("numpy", "<2", "numpy=1.26", "numpy<2"),
        ("trl", "<0.13", "      - ray[default]\n", "      - ray[default]\n      - trl<0.13\n"),
    ],
)
def test_a_conda_environment_gets_the_version(name: str, to: str, old: str, new: str) -> None:
    """In its pip section, or among its own packages where the package stands there."""
    made = requirements.apply_to_conda(CONDA, package(name, to))
    assert made == CONDA.replace(old, new)
    assert requirements.conda_holds(made, package(name, to))
    assert requirements.apply_to_conda(made, package(name, to)) == made


# Before, after, variable, value.
DOTENV: list[tuple[str, str, str, Scalar]] = [
    ("A=1\nB=2\n", "A=8\nB=2\n", "A", 8),
    ("export A=1\r\n", "export A=8\r\n", "A", 8),
    ("A='1'  # one", "A='8'  # one", "A", 8),
    ('A="x y"\n', 'A="z"\n', "A", "z"),
    ("A=\n", "A=8\n", "A", 8),
    ("AB=1\n# A=2\n", "AB=1\n# A=2\nA=8\n", "A", 8),
    ("B=1", "B=1\nA=8", "A", 8),
    ("A=1\n", 'A="x y"\n', "A", "x y"),
    ("A=8.0.0;9.0\n", "A=8.0;9.0;12.0\n", "A", "8.0;9.0;12.0"),
]
DOCKERFILE: list[tuple[str, str, str, Scalar]] = [
    ("FROM x\nENV A=1 B=2\nCMD y\n", "FROM x\nENV A=8 B=2\nCMD y\n", "A", 8),
    ('FROM x\nENV A="1" \\\n    B=2\n', 'FROM x\nENV A="1" \\\n    B=8\n', "B", 8),
    ("FROM x AS b\nENV A=1\nFROM b\nENV A=2\n", "FROM x AS b\nENV A=1\nFROM b\nENV A=8\n", "A", 8),
    ("FROM x\nRUN y\nENV B=1\nCMD z\n", "FROM x\nRUN y\nENV B=1\nENV A=8\nCMD z\n", "A", 8),
    ("FROM x\nCMD y\n", "FROM x\nENV A=8\nCMD y\n", "A", 8),
    ("FROM x\nENV B=1 \\\n  C=2\nCMD y\n", "FROM x\nENV B=1 \\\n  C=2\nENV A=8\nCMD y\n", "A", 8),
    ("FROM x", "FROM x\nENV A=8", "A", 8),
    ("FROM x\r\nENV A=1\r\n", "FROM x\r\nENV A=8\r\n", "A", 8),
]


@each_row(("before", "after", "name", "to"), DOTENV)
def test_a_variable_is_written_into_a_dotenv_file(
    before: str, after: str, name: str, to: Scalar, tmp_path: Path
) -> None:
    assert env_file.apply(before, variable(name, to)) == after
    assert env_file.holds(after, variable(name, to))
    assert env_file.apply(after, variable(name, to)) == after
    assert goes_back_and_forth(tmp_path, before, after, ".env")


@each_row(("before", "after", "name", "to"), DOCKERFILE)
def test_a_variable_is_written_into_the_last_stage(
    before: str, after: str, name: str, to: Scalar, tmp_path: Path
) -> None:
    assert env_file.apply_to_dockerfile(before, variable(name, to)) == after
    assert env_file.dockerfile_holds(after, variable(name, to))
    assert env_file.apply_to_dockerfile(after, variable(name, to)) == after
    assert goes_back_and_forth(tmp_path, before, after, "Dockerfile")


@each_row(
    ("text", "to", "reason"),
    [
        ("A=1\nA=2\n", 8, "more than once (lines 1, 2)"),
        ("A=$B\n", 8, "line 1 is computed"),
        ('A="${B}/x"\n', 8, "computed"),
        ("A=hello world\n", 8, "unusual"),
        ("A=1\n", "unset", "by hand"),
        ("A=1\n", "$HOME/x", "by hand"),
    ],
)
def test_a_variable_that_is_computed_or_doubled_is_refused(text: str, to: Scalar, reason: str) -> None:
    with pytest.raises(NotPatchableError) as refused:
        env_file.apply(text, variable("A", to))
    assert reason in str(refused.value)
    assert not env_file.holds(text, variable("A", to))


@each_row(
    ("text", "reason"),
    [("FROM x\nENV A 1\n", "old form"), ("RUN x\n", "no FROM"), ("FROM x\nENV A=$B\n", "computed")],
)
def test_a_dockerfile_that_says_it_otherwise_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NotPatchableError, match=reason):
        env_file.apply_to_dockerfile(text, variable("A", 8))
