"""What the product is made of is exact, hashed, listed and licensed; nothing of it runs what it reads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from eval import supply_chain
from eval.errors import EvalError
from eval.supply_chain import UNHASHED, LockedPackage
from tests import syntax
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
FOLDERS = ("corpus", "ingest", "service", "eval", "ui", "whycrash")
# Jobs that are meant to fail, written as their users write them, and never imported.
FOREIGN = "eval/lab/experiments/"


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Give the product's modules."""
    for module in syntax.modules(*FOLDERS):
        if not module.name.startswith(FOREIGN):
            yield module.name, module.tree


def test_every_package_of_the_lock_is_exact_and_has_hashes() -> None:
    """What cannot have them is listed with its reason."""
    packages = supply_chain.read_lock()
    assert len(packages) > 150
    assert [each.name for each in packages if not each.hashes and each.name not in UNHASHED] == []
    assert len({each.name for each in packages}) == len(packages)


def test_a_lock_that_is_not_exact_is_refused(tmp_path: Path) -> None:
    """A range, or an address, would let another file in."""
    for row in ("aiohttp>=3", "aiohttp", "aiohttp @ https://host.example/a.whl"):
        (tmp_path / "lock").write_text(f"anyio==1.0\n{row}\n")
        with pytest.raises(EvalError, match="no exact version"):
            supply_chain.read_lock(tmp_path / "lock")


def _wheel(folder: Path, content: str) -> Path:
    path = folder / "made_up-1.0-py3-none-any.whl"
    rows = {
        "made_up.py": content,
        "made_up-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n",
        "made_up-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "made_up-1.0.dist-info/RECORD": "made_up.py,,\n",
    }
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in rows.items():
            packed.writestr(name, text)
    return path


def test_a_package_with_other_bytes_is_not_installed(tmp_path: Path) -> None:
    """As `make install` installs: a file that is not the one that was locked never gets there."""
    lock = tmp_path / "requirements.lock"
    right = _wheel(tmp_path, "VALUE = 1\n").read_bytes()
    lock.write_text(f"made-up==1.0 \\\n    --hash=sha256:{sha256(right).hexdigest()}\n")

    def installed(into: str) -> subprocess.CompletedProcess[str]:
        words = ["pip", "install", "--offline", "--no-index", "--no-cache", "--find-links", str(tmp_path)]
        uv = str(Path(sys.executable).with_name("uv"))
        return subprocess.run(
            [uv, *words, "--target", str(tmp_path / into), "--requirements", str(lock)],
            capture_output=True,
            text=True,
            check=False,
        )

    assert installed("right").returncode == 0
    assert (tmp_path / "right" / "made_up.py").exists()
    _wheel(tmp_path, "VALUE = 2\n")
    refused = installed("wrong")
    assert refused.returncode != 0
    assert "ash" in refused.stderr
    assert not (tmp_path / "wrong" / "made_up.py").exists()


def test_the_bill_of_materials_has_everything_and_what_it_needs() -> None:
    """Each package of the lock with its hashes, the model's weights, and no reference that leads nowhere."""
    packages = supply_chain.read_lock()
    bill = supply_chain.bill_of_materials(packages)
    parts = {part["bom-ref"]: part for part in bill["components"]}
    assert set(parts) == {package.purl for package in packages} | {"all-MiniLM-L6-v2"}
    named = {ref for row in bill["dependencies"] for ref in (row["ref"], *row["dependsOn"])}
    assert named - {"whycrash"} <= set(parts)
    needs = {row["ref"]: row["dependsOn"] for row in bill["dependencies"]}
    assert any(ref.startswith("pkg:pypi/pydantic@") for ref in needs["whycrash"])
    assert any(
        ref.startswith("pkg:pypi/pydantic-core@")
        for name, refs in needs.items()
        if name.startswith("pkg:pypi/pydantic@")
        for ref in refs
    )
    assert bill == supply_chain.bill_of_materials(packages)


def test_no_licence_is_one_that_nobody_agreed_to() -> None:
    """Of all that is installed."""
    stated = {package.name: supply_chain.licence_of(package.name) for package in supply_chain.read_lock()}
    assert {name: licence for name, licence in stated.items() if supply_chain.is_refused(licence)} == {}
    assert sum(map(bool, stated.values())) > 150


@each_row(
    ("licence", "refused"),
    [
        ("MIT", False),
        ("LGPL-3.0-only", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("MPL-2.0", False),
        ("AGPL-3.0-or-later", True),
        ("GPL-3.0-only", True),
        ("GNU General Public License v2 (GPLv2)", True),
        ("SSPL-1.0", True),
        ("unknown", True),
    ],
)
def test_a_licence_that_binds_users_is_refused(licence: str, refused: bool) -> None:
    """A person has to look at it first."""
    assert supply_chain.is_refused(licence) is refused


ADVISORY = """\
id: PYSEC-0000-1
details: It runs what it reads.
affected:
- package: {ecosystem: PyPI, name: made-up}
  ranges:
  - type: GIT
    events: [{introduced: "0"}]
  - type: ECOSYSTEM
    events: [{introduced: "1.2"}, {fixed: "1.4"}, {introduced: "2.0"}, {last_affected: "2.1"}]
  versions: ["0.7"]
"""


@each_row(
    ("version", "found"),
    [
        ("0.7", True),
        ("0.8", False),
        ("1.2", True),
        ("1.10", False),
        ("1.3.9", True),
        ("1.4", False),
        ("2.0", True),
        ("2.1", True),
        ("2.1.1", False),
        ("2.0rc1", False),
    ],
)
def test_an_advisory_counts_for_the_versions_that_it_names(version: str, found: bool, tmp_path: Path) -> None:
    """By its list and by its ranges; one that was taken back counts for none."""
    folder = tmp_path / version / "vulns" / "made-up"
    folder.mkdir(parents=True)
    (folder / "one.yaml").write_text(ADVISORY)
    (folder / "withdrawn.yaml").write_text(f"{ADVISORY}withdrawn: 2024-01-01T00:00:00Z\n")
    package = LockedPackage("made-up", version, ())
    told = [match.advisory for match in supply_chain.audit([package], tmp_path / version)]
    assert told == (["PYSEC-0000-1"] if found else [])


def test_a_folder_that_is_no_database_is_not_an_audit(tmp_path: Path) -> None:
    """Nothing found in nothing would look like nothing to find."""
    assert supply_chain.main(["audit", str(tmp_path)]) == 2


# What makes objects, and so may run code, of bytes.
LOADERS = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"}
# Who may name one, and what of it.
NAMED = {"ingest/artefacts/plain_pickle.py": "the numbers of opcodes; nothing is loaded with it"}
# Python's own pipes carry pickles: these are between processes of ours, which nobody else can open.
PIPES = {
    "ingest/workers/process.py",
    "ingest/workers/processes.py",
    "ingest/workers/ray_driver.py",
    "ingest/workers/ray_pool.py",
    "service/telemetry/nvml.py",
    "service/workers/index_builder.py",
}


# It only asks whether a file of the job's parses: what the compiler makes of it is thrown away.
COMPILES = {("service/remediation/code_edits/source_text.py", "compile")}


def _loads(tree: ast.Module) -> Iterator[str]:
    """Give what a module does that may run what it reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in LOADERS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LOADERS:
            yield node.module or ""
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {word.arg: ast.unparse(word.value) for word in node.keywords}
            makes = (
                name in ("eval", "exec", "compile", "__import__"),
                name.endswith("torch.load"),
                "unsafe_load" in name,
                given.get("allow_pickle") == "True",
                name in ("yaml.load", "yaml.load_all") and "oader" not in given.get("Loader", "").lower(),
            )
            if any(makes):
                yield name
            elif name.endswith(".recv") and not node.args:
                yield "pipe"


@pytest.mark.long
def test_nothing_makes_objects_of_bytes_that_somebody_else_may_write() -> None:
    """No pickle, no marshal, no `eval`, no YAML that makes objects; pipes alone, between our own."""
    found = {(name, what) for name, tree in modules() for what in _loads(tree)}
    assert {name for name, what in found if what == "pipe"} == PIPES
    told = {(name, what) for name, what in found if what != "pipe"}
    assert told == {(name, "pickle") for name in NAMED} | COMPILES
    for name, _ in COMPILES:
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        compiled = [node for node in ast.walk(tree) if ast.unparse(node).startswith("compile(")]
        thrown = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
        assert all(any(node is each for each in thrown) for node in compiled if isinstance(node, ast.Call))
    for name in NAMED:
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pickle"
        }
        assert used
        assert [attribute for attribute in used if not attribute.isupper()] == []


@each_row(
    "code",
    [
        "import pickle",
        "from marshal import loads",
        "import joblib.memory",
        "eval(text)",
        "np.load(path, allow_pickle=True)",
        "torch.load(path)",
        "yaml.load(text)",
        "yaml.unsafe_load(text)",
        "pipe.recv()",
    ],
)
def test_what_runs_what_it_reads_is_seen(code: str) -> None:
    """The test above has eyes."""
    assert list(_loads(ast.parse(code)))


def test_every_exception_to_a_rule_of_security_has_its_reason() -> None:
    """On its line, behind a dash; a rule that is passed over without one is passed over by habit."""
    bare = re.compile(r"#\s*noqa:[^#\n]*\bS\d{3}\b(?![^#\n]* - \S)")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, row in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if bare.search(row)
    ]
    assert found == []
