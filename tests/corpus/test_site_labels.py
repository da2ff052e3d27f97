"""Labelled sites: how they are drawn and laid out, how answers are read, and what the shipped table holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from corpus.errors import InvalidCorpusError
from corpus.extract.__main__ import main
from corpus.extract.messages import labels, sampling
from corpus.extract.messages.labels import NO_FAILURE, SiteLabel, agreement, read_answers, read_labels
from corpus.extract.messages.packages import AtlasPackage, atlas_packages
from corpus.extract.messages.sampling import DrawnSite, SamplingPlan, draw, read_drawn, sites_of, write_pages
from tests.factories import whole_corpus
from tests.tables import each_row

ORCHARD = """
def plant(rows, trees):
    if rows % trees:
        raise ValueError(f"The orchard's rows ({rows}) must be a multiple of its trees ({trees})")
    if rows > 40:
        raise MemoryError(f"Planting {rows} rows exhausts the shared memory of the shed")
    assert trees, "No trees were given to the gardener of this orchard"
"""
PLAN = SamplingPlan(count=12, seed=3, exponent=0.5, told="memory", untold_weight=0.5, logged_weight=0.1)


def orchard(package: str, files: int) -> list[DrawnSite]:
    """Give the sites of a made-up package whose files say the like of each other."""
    texts = [
        (f"{package}/{number}.py", ORCHARD.replace("orchard", f"{package} {'a' * number}"))
        for number in range(files)
    ]
    return list(sites_of(package, "1.0", texts))


def labelled(number: int, reader: str, cause: str, second: str = "") -> SiteLabel:
    """Label the site of a number."""
    return SiteLabel(
        package="toy",
        version="1",
        file="toy/a.py",
        symbol="f",
        line=number,
        words="",
        reader=reader,
        cause=cause,
        second=second,
    )


def test_a_drawn_site_shows_its_statement_and_what_stands_around() -> None:
    first = sites_of("toy", "1.0", [("toy/a.py", ORCHARD)])
    site = next(site for site in first if site.exception == "MemoryError")
    assert (site.symbol, site.line, site.words) == (
        "plant",
        6,
        "planting rows exhausts the shared memory of the shed",
    )
    assert site.code[sampling.AROUND].strip().startswith("raise MemoryError")


def test_a_draw_is_the_same_each_time_and_spread_over_packages_and_files() -> None:
    pools = {"pears": orchard("pears", 9), "plums": orchard("plums", 4)}
    drawn = draw(pools, PLAN)
    assert drawn == draw(pools, PLAN)
    assert [site.number for site in drawn] == list(range(1, len(drawn) + 1))
    assert set(Counter(site.package for site in drawn)) == {"pears", "plums"}
    assert max(Counter((site.package, site.file) for site in drawn).values()) <= 3
    wordings = [" ".join(site.words.split()[:5]) for site in drawn]
    assert len(set(wordings)) == len(wordings), "no wording is drawn twice"


def test_every_tenth_site_has_two_readers_and_each_page_marks_the_statement(tmp_path: Path) -> None:
    sites = [site.model_copy(update={"number": number}) for number, site in enumerate(orchard("figs", 8), 1)]
    write_pages(sites, tmp_path, ["A", "B"])
    assert read_drawn(tmp_path / "sites.jsonl") == sites
    pages = [page.read_text() for page in sorted((tmp_path / "in").iterdir())]
    heads = Counter(row.split()[1] for page in pages for row in page.splitlines() if row.startswith("=== "))
    assert {int(number) for number in heads} == {site.number for site in sites}
    assert sum(heads.values()) == len(sites) + -(-len(sites) // 10)
    marked = [row for page in pages for row in page.splitlines() if row.startswith(">")]
    assert len(marked) == sum(heads.values())
    assert all("raise" in row or "assert" in row for row in marked)


def test_answers_become_a_table_that_holds_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = [site.model_copy(update={"number": number}) for number, site in enumerate(orchard("figs", 1), 1)]
    write_pages(sites, tmp_path, ["A", "B"])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "A-00.txt").write_text("1 batch-not-divisible\n2 shm-exhausted host-oom-kill\n3 -\n")
    (tmp_path / "out" / "B-00.txt").write_text("1 config-key-invalid batch-not-divisible\n")
    table = tmp_path / "sites.csv"
    assert main(["messages", "labels", str(tmp_path), "--out", str(table)]) == 0
    assert "3 sites, 4 labels; of 1 sites with two readers 0.000 are alike" in capsys.readouterr().out
    told = {(label.line, label.reader): (label.cause, label.second) for label in read_labels(table)}
    assert told == {
        (4, "A"): ("batch-not-divisible", ""),
        (4, "B"): ("config-key-invalid", "batch-not-divisible"),
        (6, "A"): ("shm-exhausted", "host-oom-kill"),
        (7, "A"): (NO_FAILURE, ""),
    }
    assert "orchard" not in table.read_text(), "of the message only a digest is kept"


@each_row(
    "row",
    ["9 user-code-error", "1 no-such-cause", "1", "one user-code-error", "1 disk-full hub-unreachable -"],
)
def test_an_answer_to_nothing_or_of_no_cause_is_refused(row: str, tmp_path: Path) -> None:
    sites = [site.model_copy(update={"number": number}) for number, site in enumerate(orchard("figs", 1), 1)]
    write_pages(sites, tmp_path, ["A"])
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / "A-00.txt").write_text(f"{row}\n")
    with pytest.raises(InvalidCorpusError, match=r"A-00\.txt"):
        read_answers(tmp_path, ("user-code-error", "disk-full", "hub-unreachable"))


def test_agreement_counts_what_chance_would_give() -> None:
    pairs = [
        ("disk-full", "disk-full"),
        ("disk-full", "disk-full"),
        ("node-lost", "node-lost"),
        ("node-lost", "disk-full"),
    ]
    rows = [
        labelled(number, reader, cause)
        for number, pair in enumerate(pairs, 1)
        for reader, cause in zip("AB", pair, strict=True)
    ]
    told = agreement(rows)
    # Observed 3 of 4; by chance (2 * 3 + 2 * 1) / 16.
    assert (told.sites, told.share, told.kappa) == (4, 0.75, pytest.approx(0.5))
    near = [labelled(1, "A", "disk-full", "node-lost"), labelled(1, "B", "node-lost")]
    assert agreement(near).near == 1.0
    assert agreement(rows[:1]).sites == 0


def test_the_shipped_labels_are_of_known_causes_packages_and_readers() -> None:
    found = read_labels()
    causes, packages = whole_corpus().causes, atlas_packages()
    assert len({label.site for label in found}) >= 4000
    wrong = [
        label
        for label in found
        if label.package not in packages
        or label.cause not in {*causes, NO_FAILURE}
        or label.second not in {*causes, NO_FAILURE, ""}
        or len(label.words) != 12
    ]
    assert not wrong
    twice = agreement(found)
    assert twice.sites >= 400
    assert twice.kappa >= 0.8


def test_the_words_of_a_labelled_site_are_found_by_place_and_digest() -> None:
    """A release is read again as it was; what stands elsewhere or says something else is another site."""
    table = atlas_packages()
    name = next(iter(table))
    files = [(f"{name}/a.py", ORCHARD)]

    def released(package: AtlasPackage, version: str) -> list[tuple[str, str]]:
        return files if (package.name, version) == (name, "1.0") else []

    sites = list(sites_of(name, "1.0", files))
    wanted = [labels.label_of(sites[0], "A", "batch-not-divisible"), labels.label_of(sites[1], "A", "-")]
    moved = [wanted[0], wanted[1].model_copy(update={"words": "0" * 12})]
    assert [site.line for site in labels.texts_of(wanted, table, released)] == [4, 6]
    assert [site.line for site in labels.texts_of(moved, table, released)] == [4]
