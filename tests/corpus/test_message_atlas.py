"""The message atlas: sites out of sources, packed without their texts, and found again by a line's words."""

from __future__ import annotations

import re
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from corpus.errors import InvalidCorpusError
from corpus.extract.__main__ import main
from corpus.extract.messages import checks, native_sites, python_sites
from corpus.extract.messages.archives import sources
from corpus.extract.messages.packages import AtlasPackage, atlas_packages
from corpus.frameworks import known_frameworks
from corpus.message_atlas import Atlas, shipped
from corpus.message_words import fixed_groups, line_groups
from tests.tables import each_row

TABLE = """
packages:
- name: toykit
  framework: toy
  source: https://example.org/toykit/blob/v{version}/src/{path}#L{line}
  inside: src/
  archive: source
  versions: ['1.0', '2.0', '3.0']
"""

ENGINE = """
import os
LIMIT = "The harvest of the orchard exceeds every basket"
class BasketOverflowError(ValueError):
    def __init__(self, count):
        super().__init__(f"Basket overflow after {count} pears were picked")
class Orchard:
    def __init__(self, config, ladders):
        if config.max_pears % config.get("pears_per_crate") != 0:
            raise ValueError(f"Pears ({config.max_pears}) do not fill whole crates, set --pears-per-crate")
        assert ladders > 1, "Picking from tall trees requires at least two ladders"
        height = os.environ["TOY_LADDER_HEIGHT"]
        if height:
            message = "Ladder of height %s reaches no branch of the tree" % height
            raise RuntimeError(message)
    def ripen(self, sun):
        try:
            sun.shine()
        except OSError as error:
            logger.error("Ripening failed while the sun was %s: %s", sun, error)
            raise RuntimeError(LIMIT) from error
        if self.frozen:
            return
        parser.error("no frozen orchard may ever be ripened again")
"""
# The same module a version later: some lines moved, one message worded anew.
LATER = ENGINE.replace("        assert", "\n\n        assert").replace("Picking from", "Climbing up")


def sites_of(text: str) -> dict[str, python_sites.FoundSite]:
    """Give the sites of a module by their first fixed words."""
    return {" ".join(site.runs[0][:3]): site for site in python_sites.read_sites(text)}


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    """Read three releases of a made-up package, and pack them."""
    place = tmp_path_factory.mktemp("atlas")
    (place / "atlas.yaml").write_text(TABLE)
    rows = ["--rows", str(place / "rows"), "--table", str(place / "atlas.yaml")]
    for version, text in (("1.0", "x = 1"), ("2.0", ENGINE), ("3.0", LATER)):
        folder = place / f"toykit-{version}" / "src" / "toykit"
        folder.mkdir(parents=True)
        (folder / "engine.py").write_text(text)
        read = ["messages", "read", "toykit", "--version", version, "--source", str(folder.parent.parent)]
        assert main([*read, *rows]) == 0
    assert main(["messages", "pack", *rows, "--out", str(place / "atlas.bin")]) == 0
    return Atlas(place / "atlas.bin")


def test_that_packing_writes_the_classes_of_each_package(atlas: Atlas) -> None:
    classes = atlas.path.with_name("package_classes.txt").read_text()
    assert classes == "toykit: BasketOverflowError Orchard\n"


@each_row(
    ("begins", "symbol", "kind", "exception", "names"),
    [
        ("basket overflow after", "BasketOverflowError.__init__", "raise", "BasketOverflowError", ("count",)),
        (
            "pears",
            "Orchard.__init__",
            "raise",
            "ValueError",
            ("max_pears", "pears_per_crate", "--pears-per-crate"),
        ),
        ("picking from tall", "Orchard.__init__", "assert", "AssertionError", ("ladders",)),
        ("ladder of height", "Orchard.__init__", "raise", "RuntimeError", ("TOY_LADDER_HEIGHT",)),
        ("ripening failed while", "Orchard.ripen", "log", "", ()),
        ("the harvest of", "Orchard.ripen", "raise", "RuntimeError", ()),
        ("no frozen orchard", "Orchard.ripen", "raise", "SystemExit", ("frozen",)),
    ],
)
def test_a_site_has_its_place_its_exception_and_what_was_checked(
    begins: str, symbol: str, kind: str, exception: str, names: tuple[str, ...]
) -> None:
    """Whether the message stands in the raise, in a variable, a constant or an exception's own class."""
    site = sites_of(ENGINE)[begins]
    assert (site.symbol, site.kind, site.exception, site.names) == (symbol, kind, exception, names)


@each_row(
    ("code", "exception", "kind", "runs"),
    [
        (
            'TORCH_CHECK(a == b, "Wheels (", a, ") turn against ", b, " the wind");',
            "RuntimeError",
            "check",
            (("wheels",), ("turn", "against"), ("the", "wind")),
        ),
        (
            'TORCH_CHECK_VALUE(f(a, "x"), "no sail " "fits the mast");',
            "ValueError",
            "check",
            (("no", "sail", "fits", "the", "mast"),),
        ),
        (
            'TORCH_CHECK_WITH(SinkError, false, "Hull of ", name, " leaks at the bow");',
            "SinkError",
            "check",
            (("hull", "of"), ("leaks", "at", "the", "bow")),
        ),
        (
            'if (x) throw std::out_of_range("keel below the sea" + name);',
            "out_of_range",
            "raise",
            (("keel", "below", "the", "sea"),),
        ),
        (
            'RAY_LOG(ERROR) << "Anchor " << n << " dragged on sand"; go();',
            "",
            "log",
            (("anchor",), ("dragged", "on", "sand")),
        ),
        (
            'WARN("Rudder %d of ship %s is stuck", n, name);',
            "",
            "log",
            (("rudder",), ("of", "ship"), ("is", "stuck")),
        ),
        (
            '// throw Storm("a commented storm is none");\nAT_ERROR("real storm came up");',
            "RuntimeError",
            "raise",
            (("real", "storm", "came", "up"),),
        ),
    ],
)
def test_native_checks_are_read(
    code: str, exception: str, kind: str, runs: tuple[tuple[str, ...], ...]
) -> None:
    """Macros of checks, thrown errors and logged ones, with holes where a value is put in."""
    (site,) = native_sites.read_sites(f"void sail(int a) {{\n{code}\n}}\n")
    assert (site.exception, site.kind, site.runs, site.symbol) == (exception, kind, runs, "sail")


@each_row(
    ("line", "symbol", "lines"),
    [
        (
            "ValueError: Pears (14) do not fill whole crates, set --pears-per-crate",
            "Orchard.__init__",
            {"2.0": 10, "3.0": 10},
        ),
        (
            "[rank3]: AssertionError: Picking from tall trees requires at least two ladders",
            "Orchard.__init__",
            {"2.0": 11},
        ),
        (
            "AssertionError: Climbing up tall trees requires at least two ladders.",
            "Orchard.__init__",
            {"3.0": 13},
        ),
        (
            "> **RuntimeError: Ladder of height 12 m reaches no branch of the tree**",
            "Orchard.__init__",
            {"2.0": 15, "3.0": 17},
        ),
        (
            "toykit.BasketOverflowError: Basket overflow after 3 pears were picked",
            "BasketOverflowError.__init__",
            {"2.0": 6, "3.0": 6},
        ),
        (
            "(pid=77) ERROR engine.py:20] Ripening failed while the sun was down: [Errno 5]",
            "Orchard.ripen",
            {"2.0": 20, "3.0": 22},
        ),
    ],
)
def test_a_line_leads_to_its_site(atlas: Atlas, line: str, symbol: str, lines: dict[str, int]) -> None:
    """Whatever was put into the message, and whatever stands around it."""
    site = atlas.look_up(line)[0].sites[0]
    assert (site.package, site.file, site.symbol, dict(site.lines)) == (
        "toykit",
        "toykit/engine.py",
        symbol,
        lines,
    )


@each_row(
    "line",
    [
        "INFO step 10 loss 0.31 the trees are tall",
        "ValueError: Pears are ripe",
        "at least two ladders",
        "Climbing up at least",
        "",
        "水果已经成熟",
    ],
)
def test_other_lines_have_no_site(atlas: Atlas, line: str) -> None:
    """A few words of a message are none of it."""
    assert atlas.look_up(line) == []


def test_a_site_dates_the_installation_and_leads_to_its_line(atlas: Atlas) -> None:
    """Versions that lack it are left out; the address is that of the job's version, or of one before."""
    old = atlas.look_up("Picking from tall trees requires at least two ladders")[0].sites[0]
    new = atlas.look_up("Climbing up tall trees requires at least two ladders")[0].sites[0]
    both = atlas.look_up("Ladder of height 12 m reaches no branch of the tree")[0].sites[0]
    assert [site.versions for site in (old, new, both)] == [">1.0,<3.0", ">2.0", ">1.0"]
    assert [both.nearest(version) for version in ("2.0", "2.5", "9", None)] == ["2.0", "2.0", "3.0", "3.0"]
    assert both.address("2.0") == "https://example.org/toykit/blob/v2.0/src/toykit/engine.py#L15"
    assert both.framework == "toy"


def test_the_atlas_holds_no_text_of_a_message(atlas: Atlas) -> None:
    """Of a message only hashes are kept: its words stand in the file only where they are names."""
    stored = str([atlas.page(number) for number in range(len(atlas.head["pages"]))]) + str(atlas.head)
    said = {
        "fill",
        "whole",
        "crates",
        "reaches",
        "branch",
        "ripening",
        "overflow",
        "picked",
        "harvest",
        "climbing",
    }
    assert said & set(re.findall(r"[a-z]+", stored)) == set()


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    """An atlas of another version is told from one that can be read."""
    (tmp_path / "atlas.bin").write_bytes(b"whycrash.atlas/0\n" + zlib.compress(b"{}"))
    with pytest.raises(InvalidCorpusError, match=r"atlas\.bin"):
        Atlas(tmp_path / "atlas.bin")


def test_archives_are_read_as_they_are_installed(tmp_path: Path) -> None:
    """A wheel's paths and those of a source archive are the same ones, and tests are left out."""
    package = AtlasPackage(name="toykit", inside="src/", copies=("toykit/copied/",))
    with zipfile.ZipFile(tmp_path / "toykit-1.0-py3-none-any.whl", "w") as wheel:
        own = "toykit-1.0.data/purelib/toykit/engine.py"
        for name in (own, "toykit/tests/test_engine.py", "toykit/data.json", "toykit/copied/engine.py"):
            wheel.writestr(name, "x = 1")
    (tmp_path / "engine.py").write_text("x = 1")
    with tarfile.open(tmp_path / "toykit-1.0.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "engine.py", "toykit-1.0/src/toykit/engine.py")
        archive.add(tmp_path / "engine.py", "toykit-1.0/examples/engine.py")
    for name in ("toykit-1.0-py3-none-any.whl", "toykit-1.0.tar.gz"):
        assert list(sources(tmp_path / name, package)) == [("toykit/engine.py", "x = 1")]


def test_groups_of_a_line_hold_those_of_its_message() -> None:
    """Digits, quotes, signs and joints of identifiers make no difference; the order of the words does."""
    fixed = set(fixed_groups([("max", "model", "len"), ("is", "too", "long")]))
    assert fixed <= set(line_groups("ERROR: `--max-model-len` 4096 is too long"))
    assert not fixed <= set(line_groups("too long is len model max"))


@each_row(
    ("row", "finding"),
    [
        ({"source": "https://example.org/{path}", "versions": ["1.0"]}, "an address names"),
        ({"framework": "no-such-framework", "versions": ["1.0"]}, "unknown framework"),
        ({}, "no versions"),
    ],
)
def test_a_wrong_row_of_the_table_is_found(row: dict[str, Any], finding: str) -> None:
    """Whoever adds a package is told what is missing."""
    table = {"toykit": AtlasPackage.model_validate({"name": "toykit", **row})}
    assert [finding in text for text in checks.table_findings(table, known_frameworks().rows)] == [True]


def test_a_damaged_atlas_is_found(atlas: Atlas, tmp_path: Path) -> None:
    """All of it is read: a cut file, and versions that nobody asked for, are told."""
    table = {"toykit": AtlasPackage(name="toykit", versions=("1.0", "2.0"))}
    whole = atlas.path.read_bytes()
    (tmp_path / "cut.bin").write_bytes(whole[:-40])
    assert list(checks.atlas_findings(atlas.path, table)) == ["atlas.bin: toykit 3.0 is not in atlas.yaml"]
    assert "damaged" in list(checks.atlas_findings(tmp_path / "cut.bin", table))[-1]


def test_the_atlas_that_ships_covers_the_packages_of_its_table() -> None:
    """Forty packages and forty thousand sites at least, in the versions that the table names."""
    atlas, table = shipped(), atlas_packages()
    assert set(atlas.packages) <= set(table)
    assert len(atlas.packages) >= 40
    assert atlas.sites >= 40_000
    assert [
        name for name, versions in atlas.packages.items() if set(versions) - set(table[name].versions)
    ] == []


@each_row(
    ("line", "package", "names"),
    [
        (
            "ValueError: Target modules {'query'} not found in the base model. Please check the target.",
            "peft",
            {"peft_config.target_modules"},
        ),
        (
            "AssertionError: real_train_batch_size (24) must be divisible by minimal possible batch size (6)",
            "verl",
            {"data.train_batch_size", "trainer.n_gpus_per_node"},
        ),
    ],
)
def test_lines_of_real_packages_lead_to_them(line: str, package: str, names: set[str]) -> None:
    """What the frameworks say is found with the settings that they check."""
    # Packages copy from each other: the same check may stand in several.
    sites = [site for site in shipped().look_up(line)[0].sites if site.package == package]
    assert names <= set(sites[0].names)
