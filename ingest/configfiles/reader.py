"""Read one of the job's own files, whatever its format, and change it at the place of a setting.

A file that its format's parser refuses is read as a print in a log is: row by row, without places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from corpus.message import Message
from corpus.schema import Scalar
from ingest.configfiles import (
    env_file,
    json_document,
    literals,
    notebook,
    outlines,
    python_code,
    sections,
    tree_settings,
    yaml_settings,
)
from ingest.configfiles import requirements as packages
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.formats import Format, format_of
from ingest.configfiles.literals import MAX_ENTRIES
from ingest.configfiles.run_record import read_record
from ingest.configfiles.settings import Setting, TextEdit, place_at, printed
from ingest.configfiles.settings import edited as with_edit
from ingest.configfiles.shell import arguments, commands, directives, document
from ingest.configfiles.shell.words import WordEdit
from ingest.configfiles.tree import TreeEdit, TreeNode
from ingest.configfiles.yaml_document import YamlFile, applied
from ingest.configfiles.yaml_document import read as read_yaml

# Characters of a file that are read, and of a script that is parsed; a longer one is read row by row.
MAX_TEXT = 4_000_000
MAX_SCRIPT = 1 << 18


def read(text: str, name: str = "") -> list[Setting]:
    """Read a file's settings in order, by what its name, else its content, says it is."""
    text = text[:MAX_TEXT]
    form = format_of(name, text)
    try:
        found = _READERS[form](text)
    except NotPatchableError:
        found = list(_DAMAGED[form](text)) if form in _DAMAGED else []
    return found[:MAX_ENTRIES]


def edited(text: str, name: str, setting: Setting, to: Scalar) -> str:
    """Give a file's text with another value at a setting's place, all else as it was.

    Raises NotPatchableError where there is no such place, or where the edit would change more.
    """
    if setting.place is None:
        raise NotPatchableError(Message("patch.line-value-computed", line=setting.line, text=setting.value))
    edit = setting.place.write(to)
    form = format_of(name, text)
    if isinstance(edit, WordEdit):
        return document.applied(text, [edit])
    if isinstance(edit, TextEdit):
        return with_edit(text, edit)
    assert isinstance(edit, TreeEdit)  # noqa: S101 - there is no other
    return json_document.applied(text, [edit]) if form == "json" else applied(read_yaml(text), [edit])


def _script(text: str) -> list[Setting]:
    if len(text) > MAX_SCRIPT:
        raise NotPatchableError(Message("patch.file-longer-characters", max_characters=f"{MAX_SCRIPT:,}"))
    return document.read(text)


def _conda(text: str) -> list[Setting]:
    """Read an environment's packages, and whatever else it says."""
    file = read_yaml(text)
    found = [setting for item in packages.conda_items(file) if (setting := _conda_package(file, item))]
    return [*found, *(each for each in yaml_settings.read(file) if not each.key.startswith("dependencies"))]


def _conda_package(file: YamlFile, item: TreeNode) -> Setting | None:
    # conda's own `name=version` is `name==version` of pip.
    found = arguments.read_requirement(re.sub(r"(?<![=<>!~])=(?!=)", "==", item.value, count=1))
    if found is None:
        return None
    place = place_at(
        file.text,
        item.start,
        "conda",
        lambda to: packages.conda_edit(file, item, packages.read_specifier(str(to))),
    )
    return Setting(found["name"], found["version"], place.line, "package", place)


def _requirement(text: str, line: packages.RequirementLine) -> Setting | None:
    asked = arguments.read_requirement(line.body)
    if asked is None:
        return None
    place = place_at(
        text,
        line.start + asked.start("version"),
        "",
        lambda to: TextEdit(
            line.start, line.end, packages.with_version(line, packages.read_specifier(str(to)))
        ),
    )
    return Setting(asked["name"], asked["version"], line.number, "package", place)


def _python(text: str) -> list[Setting]:
    """Read code; of a notebook's cells also what stands there of commands and variables."""
    return sorted([*python_code.read(text), *notebook.of_magics(text)], key=lambda setting: setting.line)


def _dotenv(text: str) -> list[Setting]:
    found = []
    for match in env_file.assignments(text):
        value = env_file.value_of(match)
        if env_file.is_unusual(match):
            value = sections.unquoted(sections.written_value(match["value"] + match["rest"]))
        found.append(_variable(text, match, value))
    return found


def _variable(text: str, match: env_file.Assigned, value: str) -> Setting:
    is_open = not env_file.is_unusual(match) and "$" not in match["value"]

    def write(to: Scalar) -> TextEdit:
        if env_file.is_composed(str(to)):
            raise NotPatchableError(Message("patch.variable-removed-composed-hand"))
        edit = env_file.replacement(text, match, str(to))
        return edit or TextEdit(*match.span("value"), match["value"])

    place = place_at(text, match.start("value"), "", write)
    return Setting(match["key"], value, place.line, "env", place if is_open else None)


def _dockerfile(text: str) -> list[Setting]:
    """Read the variables of the image that the job gets, and what its instructions run."""
    found = [
        _variable(text, match, env_file.value_of(match)) for match in env_file.dockerfile_assignments(text)
    ]
    for number, row in commands.logical_lines(text):
        instruction, _, rest = row.strip().partition(" ")
        if instruction.upper() in ("RUN", "CMD", "ENTRYPOINT"):
            found += commands.of_script(rest, number)
    return sorted(found, key=lambda setting: setting.line)


def _damaged_script(text: str) -> Iterator[Setting]:
    for option in directives.options(text):
        value = option.value.text if option.value is not None else "true"
        yield Setting(option.name, value, text.count("\n", 0, option.word.start) + 1, "directive")
    for number, row in commands.logical_lines(text):
        if not row.lstrip().startswith("#"):
            yield from commands.of_script(row, number)


def _damaged_yaml(text: str) -> Iterator[Setting]:
    rows = ((number, row.removesuffix("\r")) for number, row in enumerate(text.split("\n"), 1))
    return printed(outlines.entries(rows), "yaml")


def _damaged_json(text: str) -> Iterator[Setting]:
    rows = [
        (number, "" if row.lstrip().startswith("//") else row)
        for number, row in enumerate(text.split("\n"), 1)
    ]
    start = next((place for place, (_, row) in enumerate(rows) if row.strip()), len(rows))
    if start < len(rows) and (first := rows[start][1].lstrip())[0] == "{":
        opened = [(rows[start][0], first[1:]), *rows[start + 1 :]]
        yield from printed(literals.entries(opened, is_call=False), "json")


_READERS: dict[Format, Callable[[str], list[Setting]]] = {
    "shell": _script,
    "yaml": lambda text: yaml_settings.read(read_yaml(text)),
    "conda": _conda,
    "json": lambda text: (
        tree_settings.of_json(text) if (record := read_record(text)) is None else record.settings
    ),
    "requirements": lambda text: [
        setting for line in packages.read_lines(text) if (setting := _requirement(text, line))
    ],
    "dotenv": _dotenv,
    "dockerfile": _dockerfile,
    "sections": sections.read,
    "python": _python,
    "other": lambda _: [],
}
_DAMAGED: dict[Format, Callable[[str], Iterable[Setting]]] = {
    "shell": _damaged_script,
    "yaml": _damaged_yaml,
    "conda": _damaged_yaml,
    "json": _damaged_json,
}
