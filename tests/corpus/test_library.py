"""Loading the corpus, looking things up, and what its errors say."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from corpus import library
from corpus.errors import InvalidCorpusError, UnknownCaseError
from corpus.library import Library
from corpus.log_patterns import PatternTable
from corpus.schema import Alias, Expression, Record, SettingSpec, Text
from service.pipeline.lint import findings
from tests.factories import BODY, CASE, case_file, whole_corpus
from tests.tables import each_row

SHARED_CAUSES = library.ROOT.parent.parent / "shared" / "causes.yaml"

CAUSES = """\
storage:
  disk-full:
    title: {en: Disk full, zh: 磁盘已满}
    means: {en: No room, zh: 没有空间}
    action: change-environment
    advice: {en: Make room, zh: 腾出空间}
    checks: []
"""
KNOBS = """\
framework: ray
spelled: flag
settings:
- {key: --temp-dir, type: str, effect: {en: Where files go, zh: 文件位置}}
"""


def write_corpus(root: Path, case: str = case_file(), causes: str = CAUSES, specs: str = KNOBS) -> Path:
    """Write a corpus of one cause, one case and one setting."""
    for name, text in (
        ("causes.yaml", causes),
        ("cases/ray/disk-full.md", case),
        ("settings/ray.yaml", specs),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def spec(key: str, versions: str = "", *aliases: Alias) -> SettingSpec:
    """Make a setting of verl."""
    return SettingSpec(
        framework="verl",
        key=key,
        type="str",
        spelled="hydra",
        versions=versions,
        aliases=aliases,
        effect=Text(en="e", zh="z"),
    )


def shelf(*specs: SettingSpec) -> Library:
    """Make a library that only holds settings."""
    return Library({}, {}, {(item.framework, item.key): item for item in specs})


@pytest.mark.long
def test_the_corpus_that_ships_holds_together(table: PatternTable) -> None:
    """Every pattern finds its examples and not its near misses, through the real scanner.

    Every reference resolves.
    """
    assert findings(whole_corpus(), table) == []


@pytest.mark.skipif(
    not SHARED_CAUSES.exists(), reason="the shared list of causes is not beside this checkout"
)
def test_every_shared_cause_is_described() -> None:
    """Causes are added, never renamed."""
    shared = yaml.safe_load(SHARED_CAUSES.read_text(encoding="utf-8"))
    entries = shared.get("causes", shared)
    ids = (
        {row["id"] for row in entries}
        if isinstance(entries, list)
        else {cause for group in entries.values() for cause in group}
    )
    assert len(ids) > 20
    assert ids <= set(whole_corpus().causes)


def test_every_case_speaks_both_languages() -> None:
    """A case's Chinese part is Chinese, its English part is not."""

    def chinese(text: str) -> float:
        return sum("一" <= char <= "鿿" for char in text) / len(text)

    cases = whole_corpus().cases
    assert len(cases) > 30
    assert [
        case.id for case in cases.values() if chinese(case.body.zh) < 0.1 or chinese(case.body.en) > 0.02
    ] == []


@each_row(
    ("wanted", "message"),
    [
        ("other/disk-full", r"No case 'other/disk-full'; near: ray/disk-full\."),
        ("ray/nothing", r"No case 'ray/nothing'\.$"),
    ],
)
def test_an_unknown_case_is_an_error_that_names_near_ones(tmp_path: Path, wanted: str, message: str) -> None:
    """The message helps who mistyped the folder."""
    with pytest.raises(UnknownCaseError, match=message):
        library.load(write_corpus(tmp_path)).case(wanted)


@each_row(
    ("key", "version", "expected"),
    [
        ("trainer.new", None, "trainer.new"),
        ("trainer.new", "0.6", "trainer.new"),
        ("trainer.new", "0.4", None),
        ("trainer.old", "0.4", "trainer.new"),
        ("trainer.old", "0.6", None),
        ("trainer.old", None, "trainer.new"),
        ("trainer.old", "0.4.0.dev0", "trainer.new"),
        ("trainer.gone", None, None),
    ],
)
def test_a_setting_is_found_by_the_names_its_version_knows(
    key: str, version: str | None, expected: str | None
) -> None:
    """An alias counts only in its own versions; an unknown version may be any."""
    found = shelf(spec("trainer.new", ">=0.5", Alias(key="trainer.old", versions="<0.5"))).setting(
        "verl", key, version
    )
    assert (found.key if found else None) == expected


@each_row(
    ("key", "version", "expected"),
    [
        ("trainer.new", "0.6", ("trainer.new", "trainer.short")),
        ("trainer.new", "0.4", ("trainer.old",)),
        ("trainer.old", "0.4", ("trainer.old",)),
        ("trainer.old", "0.6", ("trainer.new", "trainer.short")),
        ("trainer.short", "0.6", ("trainer.new", "trainer.short")),
        ("trainer.new", None, ("trainer.new", "trainer.old", "trainer.short")),
        ("trainer.gone", None, ()),
    ],
)
def test_that_a_setting_gives_its_names_at_a_version(
    key: str, version: str | None, expected: tuple[str, ...]
) -> None:
    """The preferred name comes first; names of other versions are left out."""
    known = spec(
        "trainer.new",
        ">=0.5",
        Alias(key="trainer.old", versions="<0.5"),
        Alias(key="trainer.short", versions=">=0.6"),
    )
    assert shelf(known).names("verl", key, version) == expected


@each_row(
    ("key", "found"),
    [
        ("--max-len", "--max-len"),
        ("max_len", "--max-len"),
        ("--max_len", "--max-len"),
        ("max-width", "--max-len"),
        ("maxlen", None),
    ],
)
def test_that_dashes_and_underscores_name_the_same_setting(key: str, found: str | None) -> None:
    """Users write a flag as they please, and as a plain name in a file."""
    known = shelf(spec("--max-len", "", Alias(key="--max-width"))).setting("verl", key)
    assert (known.key if known else None) == found


def test_that_an_exact_name_comes_before_another_spelling() -> None:
    """Where two settings differ by their dashes alone, each is found by its own."""
    both = shelf(spec("--batch"), spec("batch"))
    assert [found.key for name in ("--batch", "batch") if (found := both.setting("verl", name))] == [
        "--batch",
        "batch",
    ]


def test_a_setting_of_another_framework_is_not_found() -> None:
    """Names are looked up within their framework."""
    assert shelf(spec("lr")).setting("trl", "lr") is None


@each_row(
    ("version", "specifier", "expected"),
    [
        ("0.8.2", ">=0.7,<0.8.3", True),
        ("0.8.3", ">=0.7,<0.8.3", False),
        ("0.8.3rc1", ">=0.8", True),
        ("2.6.0+cu124", "==2.6.0", True),
        (None, "<1", True),
        ("main", "<1", True),
        ("9", "", True),
    ],
)
def test_a_version_fits_where_nothing_speaks_against_it(
    version: str | None, specifier: str, expected: bool
) -> None:
    """Unknown and unreadable versions may be the right ones; pre-releases count."""
    assert library.fits(version, specifier) is expected


@each_row(
    ("text", "field"),
    [
        (case_file(CASE.replace("cause: disk-full\n", "")), r"cause: Field required"),
        (case_file(CASE + "colour: red\n"), r"colour: Extra inputs"),
        (case_file(CASE.replace("ray/disk-full", "Ray Disk")), r"id: String should match"),
        (case_file(CASE.replace("change-environment", "pray")), r"action: Input should be"),
        (case_file(CASE.replace('">=2.0"', '"about 2"')), r"frameworks\.ray: .*no version specifier"),
        (
            case_file(CASE.replace("pattern:ray.*", "patern:ray.*")),
            r"signatures\.any\.0: .*there is no test patern",
        ),
        (case_file(CASE.replace("kind: flag", "kind: magic")), r"changes\.0\.kind: "),
        (case_file(CASE.replace("https://", "http://")), r"sources\.0\.url: "),
        (case_file(CASE.split("sources:", maxsplit=1)[0] + "sources: []\n"), r"sources: .*at least 1"),
        (case_file(CASE.replace(', zh: "磁盘已满"', "")), r"title\.zh: Field required"),
        (case_file(CASE + "checks: [unclosed\n"), r"expected ',' or ']'"),
        (case_file(body=BODY.split("## zh", maxsplit=1)[0]), r"the body has no '## zh'"),
        (case_file(body="## en\n\n## zh\n字\n"), r"the body has no '## en'"),
        ("# A title\n", r"a case begins with front matter"),
        (case_file("- a list\n"), r"front matter"),
    ],
)
def test_a_broken_case_names_its_file_and_field(tmp_path: Path, text: str, field: str) -> None:
    """Whoever writes a case learns where it is wrong."""
    with pytest.raises(InvalidCorpusError, match=rf"(?s)disk-full\.md: .*{field}"):
        library.load(write_corpus(tmp_path, case=text))


def test_a_case_is_named_by_its_path(tmp_path: Path) -> None:
    """Id and path must agree, so that an id tells where to look."""
    with pytest.raises(InvalidCorpusError, match=r"disk-full\.md: its id is 'ray/other'"):
        library.load(write_corpus(tmp_path, case=case_file(CASE.replace("ray/disk-full", "ray/other"))))


@each_row(
    ("parts", "message"),
    [
        (
            {"causes": CAUSES.replace("    action: change-environment\n", "")},
            r"causes\.yaml: disk-full: action",
        ),
        ({"specs": KNOBS.replace("type: str", "type: text")}, r"settings/ray\.yaml: --temp-dir: type"),
    ],
)
def test_a_broken_table_names_file_row_and_field(tmp_path: Path, parts: dict[str, str], message: str) -> None:
    """Causes and settings say where they are wrong, too."""
    with pytest.raises(InvalidCorpusError, match=message):
        library.load(write_corpus(tmp_path, **parts))


def test_a_process_loads_the_corpus_once_and_gives_it_to_each_cache(tmp_path: Path) -> None:
    """The parts of a server share it; whoever starts with one of the caches reads that."""
    loaded = [library.load(), library.load(cache=tmp_path / "one"), library.load(cache=tmp_path / "two")]
    assert loaded[0] is loaded[1] is loaded[2]
    one, two = ([path.read_bytes() for path in (tmp_path / name).iterdir()] for name in ("one", "two"))
    assert one == two != []


def test_a_cached_corpus_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cache gives back equals what the files give."""
    monkeypatch.setattr(library, "loaded_once", lambda _kind, _digest, _stored, load: load()[1])
    cache = tmp_path / "cache"
    first, second = library.load(cache=cache), library.load(cache=cache)
    assert first == second == whole_corpus()
    assert [path.suffix for path in cache.iterdir()] == [".json"]


def test_a_cache_of_another_form_is_read_anew(tmp_path: Path) -> None:
    """A cache file that an older program wrote is no error."""
    root, cache = write_corpus(tmp_path / "corpus"), tmp_path / "cache"
    library.load(root, cache)
    next(cache.iterdir()).write_text('{"causes": "none"}', encoding="utf-8")
    assert list(library.load(root, cache).cases) == ["ray/disk-full"]


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    """The corpus loads where no cache folder can be made."""
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert list(library.load(write_corpus(tmp_path / "corpus"), tmp_path / "cache").cases) == [
        "ray/disk-full"
    ]


@each_row("name", ["causes.yaml", "cases/ray/disk-full.md", "settings/ray.yaml"])
def test_the_digest_follows_every_file(tmp_path: Path, name: str) -> None:
    """One changed byte anywhere makes an index stale."""
    root = write_corpus(tmp_path)
    before = library.digest(root)
    assert library.digest(root) == before
    with (root / name).open("a", encoding="utf-8") as stream:
        stream.write(" ")
    assert library.digest(root) != before


def test_the_digest_follows_names(tmp_path: Path) -> None:
    """A moved case is another corpus."""
    root = write_corpus(tmp_path)
    before = library.digest(root)
    (root / "cases/ray/disk-full.md").rename(root / "cases/ray/full-disk.md")
    assert library.digest(root) != before


def test_that_the_tables_that_ship_are_checked_by_the_lint_alone_and_all_others_at_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Table(Record):
        row: Expression

    broken = {"row": "("}
    monkeypatch.setattr(library, "ROOT", tmp_path / "ships")
    assert library.validated_table(Table, broken, tmp_path / "ships" / "table.yaml").row == "("
    with library.checking_all(), pytest.raises(InvalidCorpusError, match="no expression"):
        library.validated_table(Table, broken, tmp_path / "ships" / "table.yaml")
    with pytest.raises(InvalidCorpusError, match="no expression"):
        library.validated_table(Table, broken, tmp_path / "own" / "table.yaml")
