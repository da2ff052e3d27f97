"""Load the corpus from its files, look things up in it, and check it."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from corpus.errors import InvalidCorpusError, UnknownCaseError
from corpus.keys import canonical
from corpus.known_issues import KnownIssue
from corpus.message import Message
from corpus.record_cache import CachedCorpus, loaded_once, read_cache, write_cache
from corpus.schema import (
    CHECKED,
    Blank,
    Case,
    Cause,
    FactHeadline,
    Language,
    MessageForm,
    Procedure,
    Record,
    Remedy,
    Scalar,
    SettingSpec,
    Text,
)
from corpus.vocabulary import CorpusVocabulary, vocabulary_of

R = TypeVar("R", bound=Record)

ROOT = Path(__file__).parent
EXTRACTED = "extracted"
# Where each framework documents its settings; a row of another source names it itself.
DOCUMENTED = "documented.yaml"
GUIDANCE = "guidance.yaml"
PROCEDURES = "procedures.yaml"
MESSAGE_FORMS = "message_forms.yaml"
BLANKS = "blanks.yaml"
FACT_HEADLINES = "fact_headlines.yaml"
FRAMEWORKS = "frameworks.yaml"
RULES = "rules.yaml"
KNOWN_ISSUES = "known_issues"
# Names a folder of a site's own knowledge. The environment alone: a file beside a log cannot set it.
KNOWLEDGE = "WHYCRASH_KNOWLEDGE"
# The C loader reads the corpus about ten times faster; PyYAML ships without it on some platforms.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CHECKS_ALL: ContextVar[bool] = ContextVar("_CHECKS_ALL", default=False)
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_LIMITED = re.compile(r"<!-- where (?P<when>.+?) -->(?P<text>.+?)<!-- end -->", re.DOTALL)
_LANGUAGE = re.compile(r"^## (en|zh)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Library:
    """The whole corpus in memory."""

    causes: Mapping[str, Cause]
    cases: Mapping[str, Case]
    specs: Mapping[tuple[str, str], SettingSpec]
    remedies: Mapping[str, Sequence[Remedy]] = field(default_factory=dict)
    guidance: Mapping[str, str] = field(default_factory=dict)
    procedures: Sequence[Procedure] = ()
    message_forms: Sequence[MessageForm] = ()
    blanks: Sequence[Blank] = ()
    fact_headlines: Sequence[FactHeadline] = ()

    def case(self, case_id: str) -> Case:
        """Give one case; raises UnknownCaseError."""
        try:
            return self.cases[case_id]
        except KeyError:
            close = [known for known in self.cases if case_id.split("/")[-1] in known]
            case = repr(case_id)
            raise UnknownCaseError(
                Message("errors.no-case-near", case=case, near=", ".join(close[:5]))
                if close
                else Message("errors.no-case", case=case)
            ) from None

    def setting(self, framework: str, key: str, version: str | None = None) -> SettingSpec | None:
        """Give the setting of that name or alias that `version` of the framework knows, if any.

        Dashes and underscores count as the same, and so do a flag and its plain name, unless both are
        settings.
        """
        exact = self._known((framework, key), key, version)
        return exact or next(
            (
                found
                for name in self._by_spelling.get((framework, canonical(key)), ())
                if (found := self._known((framework, name), name, version)) is not None
            ),
            None,
        )

    def is_setting(self, name: str) -> bool:
        """Tell whether any framework has a setting of that name, or one whose key ends in it."""
        return canonical(name) in self._endings

    @cached_property
    def vocabulary(self) -> CorpusVocabulary:
        """The words that causes, cases, settings and remedies are described in, and the settings' names."""
        described = (self.causes, self.cases, self.specs, self.remedies, self.procedures)
        return vocabulary_of(described, [name for key in self.specs for name in key], self.choices)

    @cached_property
    def choices(self) -> frozenset[str]:
        """The words that some setting may be set to."""
        told = (word for spec in self.specs.values() for word in (*spec.choices, spec.default))
        return frozenset(word for word in told if isinstance(word, str))

    @cached_property
    def keys(self) -> Mapping[str, Sequence[str]]:
        """The keys of each framework's settings."""
        table: dict[str, list[str]] = {}
        for framework, key in self.specs:
            table.setdefault(framework, []).append(key)
        return table

    def keys_ending(self, framework: str, name: str) -> Sequence[str]:
        """Give the explained keys of settings below a section that end in a name, or are called by it."""
        last = canonical(name)
        below = self._by_leaf.get((framework, last.rsplit(".", 1)[-1]), ())
        called = {key for key in below if last in self.specs[framework, key].called}
        return [key for key in below if key in called or canonical(key).endswith(f".{last}")]

    @cached_property
    def _by_leaf(self) -> Mapping[tuple[str, str], Sequence[str]]:
        table: dict[tuple[str, str], list[str]] = {}
        for (framework, key), spec in self.specs.items():
            for leaf in (canonical(key).rsplit(".", 1)[-1], *spec.called):
                if spec.explained and "." in key:
                    table.setdefault((framework, leaf), []).append(key)
        return table

    @cached_property
    def _endings(self) -> frozenset[str]:
        keys = (canonical(key) for _, key in (*self.specs, *self._by_alias))
        places = ((key, [0, *(place.end() for place in re.finditer(r"\.", key))]) for key in keys)
        called = (name for spec in self.specs.values() for name in spec.called)
        return frozenset((*(key[start:] for key, starts in places for start in starts), *called))

    def names(self, framework: str, key: str, version: str | None = None) -> tuple[str, ...]:
        """Give the names of a setting that are valid at the version, the preferred one first.

        None if it has none there.

        `key` may be a name of another version: the new name asks for the old one, and the old one for the
        new.
        """
        spec = self.setting(framework, key, version) or self.setting(framework, key)
        if spec is None:
            return ()
        preferred = (spec.key,) if fits(version, spec.versions) else ()
        return (*preferred, *(alias.key for alias in spec.aliases if fits(version, alias.versions)))

    def settings_named(self, value: Scalar, language: Language) -> Scalar:
        """Give a change's value in `language` where it is told in words, any other as it is."""
        return self.guidance.get(value, value) if language == "zh" and isinstance(value, str) else value

    def _known(self, name: tuple[str, str], key: str, version: str | None) -> SettingSpec | None:
        spec = self.specs.get(name)
        if spec is not None and fits(version, spec.versions):
            return spec
        for candidate in self._by_alias.get(name, ()):
            if any(alias.key == key and fits(version, alias.versions) for alias in candidate.aliases):
                return candidate
        return None

    @cached_property
    def refined(self) -> Mapping[str, frozenset[str]]:
        """The cases that each case refines, and those that these refine in turn."""
        return {name: frozenset(self._refined_by(name)) for name in self.cases}

    def _refined_by(self, name: str) -> Iterator[str]:
        seen, waiting = {name}, [name]
        while waiting:
            for other in self.cases[waiting.pop()].refines:
                yield other
                if other in self.cases and other not in seen:
                    seen.add(other)
                    waiting.append(other)

    @cached_property
    def _by_spelling(self) -> dict[tuple[str, str], list[str]]:
        table: dict[tuple[str, str], list[str]] = {}
        for framework, key in (*self.specs, *self._by_alias):
            table.setdefault((framework, canonical(key)), []).append(key)
        return table

    @cached_property
    def _by_alias(self) -> dict[tuple[str, str], list[SettingSpec]]:
        table: dict[tuple[str, str], list[SettingSpec]] = {}
        for spec in self.specs.values():
            for alias in spec.aliases:
                table.setdefault((spec.framework, alias.key), []).append(spec)
        return table


# Bounded, as versions come out of logs.
@lru_cache(maxsize=1 << 16)
def fits(version: str | None, specifier: str) -> bool:
    """Tell whether `version` is in `specifier`; an unknown or unreadable version may be, so it fits."""
    if not specifier or version is None:
        return True
    try:
        return Version(version) in SpecifierSet(specifier, prereleases=True)
    except InvalidVersion:
        return True


def roots() -> tuple[Path, ...]:
    """Give the folders of knowledge: the one that ships, then the one that WHYCRASH_KNOWLEDGE names.

    The second has the files and folders of the first, as far as it has something to add.
    """
    own = os.environ.get(KNOWLEDGE)
    if not own:
        return (ROOT,)
    if not Path(own).is_dir():
        raise InvalidCorpusError(f"{KNOWLEDGE}: there is no folder {own}")
    return (ROOT, Path(own))


def pages(name: str, root: Path | None = None) -> tuple[Path, ...]:
    """Give the files of that name, or pattern of names, in `root` or in every folder of knowledge."""
    folders = (root,) if root is not None else roots()
    return tuple(path for folder in folders for path in sorted(folder.glob(name)))


def load(root: Path | None = None, cache: Path | None = None) -> Library:
    """Load causes, cases and settings of `root`, or of every folder of knowledge.

    Raises InvalidCorpusError naming file and field. With a `cache` folder, what was loaded and checked once
    is read back without its YAML. The parts of a server share what the folders of knowledge give.
    """
    known = digest(root)
    stored = cache / f"corpus-{known[:16]}.json" if cache else None
    if root is not None:
        return _loaded((root,), stored)[1]
    return loaded_once(Library, known, stored, lambda: _loaded(roots(), stored))


def _loaded(folders: Sequence[Path], stored: Path | None) -> tuple[CachedCorpus, Library]:
    shelf = read_cache(CachedCorpus, stored)
    if shelf is None:
        specs = tuple(spec for folder in folders for spec in _specs(folder / "settings"))
        twice = [
            name for name, count in Counter((spec.framework, spec.key) for spec in specs).items() if count > 1
        ]
        if twice:
            raise InvalidCorpusError(
                f"{twice[0][0]}: the setting {twice[0][1]} stands twice in the catalogue"
            )
        shelf = CachedCorpus(
            causes=tuple(cause for folder in folders for cause in read_causes(folder / "causes.yaml")),
            cases=tuple(case for folder in folders for case in _cases(folder)),
            specs=specs,
            remedies=tuple(remedy for folder in folders for remedy in _remedies(folder / "remedies")),
            guidance=tuple(text for folder in folders for text in _guidance(folder / GUIDANCE)),
            procedures=tuple(_rows(Procedure, folders, PROCEDURES)),
            # A later folder's forms come first: of those that fit, the first counts.
            message_forms=tuple(_rows(MessageForm, reversed(folders), MESSAGE_FORMS)),
            blanks=tuple(_rows(Blank, reversed(folders), BLANKS)),
            fact_headlines=tuple(_rows(FactHeadline, reversed(folders), FACT_HEADLINES)),
        )
        write_cache(shelf, stored)
    table: dict[str, list[Remedy]] = {}
    for remedy in shelf.remedies:
        table.setdefault(remedy.cause, []).append(remedy)
    return shelf, Library(
        causes={cause.id: cause for cause in shelf.causes},
        cases={case.id: case for case in shelf.cases},
        specs={(spec.framework, spec.key): spec for spec in shelf.specs},
        remedies=table,
        guidance={text.en: text.zh for text in shelf.guidance},
        procedures=shelf.procedures,
        message_forms=shelf.message_forms,
        blanks=shelf.blanks,
        fact_headlines=shelf.fact_headlines,
    )


def digest(root: Path | None = None) -> str:
    """Give a hash over all files of the corpus, to tell whether an index is up to date."""
    total = sha256()
    for folder in (root,) if root is not None else roots():
        for path in sorted(
            [
                *folder.glob("causes.yaml"),
                *folder.glob("cases/**/*.md"),
                *folder.glob("settings/*.yaml"),
                *folder.glob("remedies/*.yaml"),
                *folder.glob(f"{KNOWN_ISSUES}/*.yaml"),
                *folder.glob("settings/extracted/*.json"),
                *folder.glob(GUIDANCE),
                *folder.glob(PROCEDURES),
                *folder.glob(MESSAGE_FORMS),
                *folder.glob(BLANKS),
                *folder.glob(FACT_HEADLINES),
                *folder.glob(FRAMEWORKS),
                *folder.glob(RULES),
            ]
        ):
            total.update(str(path.relative_to(folder)).encode())
            total.update(path.read_bytes())
    return total.hexdigest()


def read_yaml(path: Path) -> Any:
    """Read one YAML file; raises InvalidCorpusError with the place of a syntax error."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidCorpusError(f"{path}: is no UTF-8 text ({error.reason})") from error
    return parse_yaml(text, path)


def parse_yaml(text: str, path: Path) -> Any:
    """Parse YAML text that came out of `path`."""
    try:
        return yaml.load(text, Loader=_LOADER)  # noqa: S506 - one of the two safe loaders
    except yaml.YAMLError as error:
        raise InvalidCorpusError(f"{path}: {error}") from error


def dump_yaml(data: Any) -> str:
    """Write plain data as YAML, Chinese readable, keys in their order."""
    return str(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=110))


def validated(kind: type[R], data: Any, where: str, context: Mapping[str, bool] | None = None) -> R:
    """Validate `data` as `kind`; raises InvalidCorpusError with the first field that is wrong."""
    try:
        return kind.model_validate(data, context=context)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the record"
        raise InvalidCorpusError(f"{where}: {field}: {first['msg']}") from error


@contextlib.contextmanager
def checking_all() -> Iterator[None]:
    """Compile every expression and condition of what is read meanwhile, also of the tables that ship."""
    token = _CHECKS_ALL.set(True)
    try:
        yield
    finally:
        _CHECKS_ALL.reset(token)


def validated_table(kind: type[R], data: Any, path: Path) -> R:
    """Validate a table that is read at each start; raises InvalidCorpusError naming the first wrong field.

    Expressions and conditions of what ships are not compiled here: most are of no use to the log at hand, and
    `whycrash corpus lint` compiles them all.
    """
    ships = path.is_relative_to(ROOT) and not _CHECKS_ALL.get()
    return validated(kind, data, str(path), CHECKED if ships else None)


def parse_case(text: str, path: Path) -> Case:
    """Parse a case file: YAML front matter, then `## en` and `## zh`."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise InvalidCorpusError(f"{path}: a case begins with front matter between two lines '---'")
    data = parse_yaml(match[1], path)
    if not isinstance(data, dict):
        raise InvalidCorpusError(f"{path}: front matter is a mapping of fields")
    parts = _LANGUAGE.split(match[2])
    bodies = {lang: body.strip() for lang, body in zip(parts[1::2], parts[2::2], strict=True)}
    missing = [lang for lang in ("en", "zh") if not bodies.get(lang)]
    if missing:
        raise InvalidCorpusError(f"{path}: the body has no '## {missing[0]}'")
    limited = [
        {"language": language, "when": [part["when"]], "text": part["text"]}
        for language, body in bodies.items()
        for part in _LIMITED.finditer(body)
    ]
    shown = {language: _LIMITED.sub(r"\g<text>", body) for language, body in bodies.items()}
    return validated(Case, {**data, "body": Text(**shown).model_dump(), "limited": limited}, str(path))


def read_causes(path: Path) -> Iterator[Cause]:
    """Read the causes of one file, in their order; raises InvalidCorpusError naming cause and field."""
    for category, entries in read_yaml(path).items() if path.exists() else ():
        for cause_id, fields in entries.items():
            yield validated(Cause, {"id": cause_id, "category": category, **fields}, f"{path}: {cause_id}")


def _cases(folder: Path) -> Iterator[Case]:
    """Read the cases: pages, and tables of bugs of frameworks that later versions are without."""
    written = folder / "cases"
    for path in sorted(written.glob("**/*.md")):
        case = parse_case(path.read_text(encoding="utf-8"), path)
        if path.with_suffix("").as_posix().removeprefix(written.as_posix() + "/") != case.id:
            raise InvalidCorpusError(f"{path}: its id is {case.id!r}; id and path must be the same")
        yield case
    for path in sorted((folder / KNOWN_ISSUES).glob("*.yaml")):
        table = read_yaml(path)
        for row in table["issues"]:
            where = f"{path}: {row.get('id')}"
            issue = validated(KnownIssue, {"framework": table["framework"], **row}, where)
            yield validated(Case, issue.fields(table.get("package", table["framework"])), where)


def _remedies(folder: Path) -> Iterator[Remedy]:
    """Read measures: what all spellings of one share (why, costs, when) is written once, above them."""
    pages = folder / DOCUMENTED
    documented = read_yaml(pages) if pages.exists() else {}
    for path in sorted(set(folder.glob("*.yaml")) - {pages}):
        for cause, measures in read_yaml(path).items():
            yield from (
                remedy for measure in measures for remedy in _spellings(measure, cause, documented, path)
            )


def _spellings(
    measure: dict[str, Any], cause: str, documented: Mapping[str, str], path: Path
) -> Iterator[Remedy]:
    shared = {name: value for name, value in measure.items() if name != "rows"}
    for row in measure["rows"]:
        made = {"cause": cause, "source": documented.get(row.get("framework"), ""), **shared, **row}
        # A row's conditions come on top of those of its measure.
        made |= {name: [*shared.get(name, []), *row.get(name, [])] for name in ("when", "unless")}
        yield validated(Remedy, made, f"{path}: {cause}: {row.get('key')}")


@cache
def chinese_guidance() -> frozenset[str]:
    """Give what the corpus that ships says in Chinese in place of a value."""
    return frozenset(text.zh for text in _guidance(ROOT / GUIDANCE))


def _rows(kind: type[R], folders: Iterable[Path], name: str) -> Iterator[R]:
    """Read the rows of a table of that name in each folder that has one."""
    for path in (folder / name for folder in folders):
        for number, row in enumerate(read_yaml(path) if path.exists() else [], 1):
            yield validated(kind, row, f"{path}: row {number}")


def _guidance(path: Path) -> Iterator[Text]:
    seen: set[str] = set()
    for row in read_yaml(path) if path.exists() else []:
        text = validated(Text, row, str(path))
        if text.en in seen:
            raise InvalidCorpusError(f"{path}: {text.en!r} stands twice")
        seen.add(text.en)
        yield text


def _specs(folder: Path) -> Iterator[SettingSpec]:
    written: list[SettingSpec] = []
    for path in sorted(folder.glob("*.yaml")):
        table = read_yaml(path)
        shared = {"framework": table["framework"], "spelled": table["spelled"]}
        written += (
            validated(SettingSpec, {**shared, **row}, f"{path}: {row.get('key')}")
            for row in table["settings"]
        )
    yield from written
    # Whoever explains a setting need not take it out of the extracted ones: the explained one counts.
    known = {(spec.framework, spec.key) for spec in written}
    for path in sorted((folder / EXTRACTED).glob("*.json")):
        yield from (spec for spec in _extracted(path) if (spec.framework, spec.key) not in known)


def _extracted(path: Path) -> Iterator[SettingSpec]:
    """Read settings that only their source describes.

    Thousands of rows, hence JSON, which loads in no time.
    """
    try:
        table = json.loads(path.read_bytes())
    except ValueError as error:
        raise InvalidCorpusError(f"{path}: {error}") from error
    for row in table["settings"]:
        yield validated(SettingSpec, {"framework": table["framework"], **row}, f"{path}: {row.get('key')}")
