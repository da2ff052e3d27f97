"""Messages: an id with values, whose English and Chinese words stand side by side in `corpus/messages/`.

The rows are plain YAML, not Fluent or gettext. Reading a thousand messages takes fluent.runtime about half a
second (it imports babel), as long as the rest of a cold `whycrash explain`; gettext needs a compiled file per
language, and keeps a sentence apart from its translation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, WrapValidator, model_validator

from corpus.schema import Language, Text

FOLDER = Path(__file__).with_name("messages")
T = TypeVar("T")
# One Chinese character (CJK Unified Ideographs).
CHINESE = re.compile("[\u4e00-\u9fff]")


# Which variable names the user's language, the first that is set (POSIX, section 8.2).
LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG")


def language_of_user() -> Language:
    """Choose the user's language by the variables, and not by the locale in use.

    A container often lacks the locale that its user has.
    """
    wanted = next((value for name in LOCALES if (value := os.environ.get(name))), "")
    return "zh" if wanted.startswith("zh") else "en"


class Message(str):
    """A sentence by its id (`file.row`) and values; as a string it reads in English.

    Values are numbers and strings, among them other messages, which follow the language of the whole. An
    error that is raised with a message keeps it: `str(error)` is the message.
    """

    id: str
    values: Mapping[str, Any]

    def __new__(cls, id: str, /, **values: object) -> Message:  # noqa: A002 - the word for it
        """Make a message; raises KeyError where the catalogue has no such row or a value is missing."""
        kept = {
            name: value if isinstance(value, int | float | str) else str(value)
            for name, value in values.items()
        }
        made = super().__new__(cls, words(id, "en", **kept))
        made.id = id
        made.values = kept
        return made

    def __str__(self) -> str:
        """Give the message itself, so that the text of an error that carries it can still be translated."""
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Give what makes it anew in another process."""
        return (self.id,), dict(self.values)

    def reference(self) -> dict[str, Any]:
        """Give it as JSON holds it: the id as `message`, and the values; messages among them the same way."""
        values = {
            name: value.reference() if isinstance(value, Message) else value
            for name, value in self.values.items()
        }
        return {"message": self.id, "values": values}

    @classmethod
    def from_reference(cls, given: Mapping[str, Any]) -> Message | None:
        """Make what `reference` gave; None where this version's catalogue has no such message."""
        if not is_message(given["message"]):
            return None
        values = {
            name: cls.from_reference(value) if isinstance(value, dict) else value
            for name, value in given.get("values", {}).items()
        }
        try:
            return cls(given["message"], **values)
        except (KeyError, ValueError):
            # Another version's message of this id takes other values.
            return None

    def in_language(self, language: Language) -> str:
        """Give its words in a language."""
        return words(self.id, language, **self.values)

    def with_values(self, change: Callable[[str], str]) -> Message:
        """Give the same message with every text among its values changed, such as redacted."""
        return Message(
            self.id,
            **{
                name: value.with_values(change)
                if isinstance(value, Message)
                else change(value)
                if isinstance(value, str)
                else value
                for name, value in self.values.items()
            },
        )


# A text field of a model that keeps a message as one; in JSON it is the English sentence.
MessageText = Annotated[
    str, WrapValidator(lambda value, check: value if isinstance(value, Message) else check(value))
]


class MessageReference(BaseModel):
    """A message as it crosses a border: its id in the catalogue, and its values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    message: str
    values: dict[str, int | float | str | MessageReference] = Field(
        default={}, exclude_if=lambda values: not values
    )


# The field that stands beside a model's texts; only where one of them is a message is it written.
References = Annotated[
    dict[str, MessageReference],
    Field(
        exclude_if=lambda references: not references,
        description=(
            "Of each text that is a message, by its field: the message's id and values, to be told in any "
            "language."
        ),
    ),
]


class Translatable(BaseModel):
    """A model whose texts may be messages; it has a field `messages: References`.

    In JSON a text is its English sentence, with the message's id and values beside it under `messages`. What
    reads that JSON has the message again. Without them, as an older version wrote it, the sentence stays.
    """

    @model_validator(mode="before")
    @classmethod
    def _pair_texts(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = data.get("messages") or {}
        if not isinstance(given, Mapping) or not (
            given or any(isinstance(value, Message) for value in data.values())
        ):
            return data
        references = {
            name: value if isinstance(value, MessageReference) else MessageReference.model_validate(value)
            for name, value in given.items()
        }
        restored = {
            name: found
            for name, value in references.items()
            if isinstance(data.get(name), str) and not isinstance(data[name], Message)
            if (found := Message.from_reference(value.model_dump())) is not None
        }
        return {**data, **restored, "messages": references | _references({**data, **restored})}

    def _own_values(self) -> tuple[object, ...]:
        return tuple(value for name, value in self if name != "messages")

    def __eq__(self, other: object) -> bool:
        """Compare the fields; the references only repeat what the texts are."""
        if not isinstance(other, Translatable):
            return NotImplemented
        return _kind_of(self) is _kind_of(other) and self._own_values() == other._own_values()

    def __hash__(self) -> int:
        """Hash the fields without the references."""
        return hash(self._own_values())

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy, with the references of the texts that the copy has."""
        if update:
            update = {**update, "messages": _references({**dict(self), **update})}
        return super().model_copy(update=update, deep=deep)


def _kind_of(model: BaseModel) -> type:
    """Give a model's class; of a generic one the class without its parameters."""
    return model.__pydantic_generic_metadata__["origin"] or type(model)


def _references(texts: Mapping[str, Any]) -> dict[str, MessageReference]:
    return {
        name: MessageReference.model_validate(value.reference())
        for name, value in texts.items()
        if isinstance(value, Message)
    }


def words(id: str, language: Language, /, **values: object) -> str:  # noqa: A002 - the word for it
    """Give the words of a message in a language, with its values filled in."""
    file, _, row = id.partition(".")
    template = rows(file)[row][language]
    return template.format(**{name: in_language(value, language) for name, value in values.items()})


def joined(first: str, second: str, language: Language) -> str:
    """Put two sentences together; one of a case or a remedy often lacks its full stop."""
    stop, gap = (".", " ") if language == "en" else ("。", "")
    if not first or not second:
        return first or second
    return f"{first}{'' if first.endswith(('.', '。', '!', '?', '！', '？')) else stop}{gap}{second}"


def in_both(id: str, /, **values: object) -> Text:  # noqa: A002 - the word for it
    """Give the words of a message in both languages, as the records of the corpus hold them."""
    return Text(en=words(id, "en", **values), zh=words(id, "zh", **values))


def in_language(text: T, language: Language) -> T | str:
    """Give a message's words in a language; whatever is none stays as it is."""
    return text.in_language(language) if isinstance(text, Message) else text


def message_id(text: str) -> str:
    """Give the id of a message; empty where a text is none."""
    return text.id if isinstance(text, Message) else ""


def edited(text: str, change: Callable[[str], str]) -> str:
    """Change a text; of a message, each of its values, so that it stays one."""
    return text.with_values(change) if isinstance(text, Message) else change(text)


def is_message(id: str) -> bool:  # noqa: A002 - the word for it
    """Tell whether the catalogue has a message of this id."""
    file, _, row = id.partition(".")
    return file in files() and row in rows(file)


def is_chinese(text: str) -> bool:
    """Tell whether a text holds Chinese characters."""
    return bool(CHINESE.search(text))


@cache
def files() -> frozenset[str]:
    """Name the files of the catalogue."""
    return frozenset(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def rows(file: str) -> Mapping[str, Mapping[Language, str]]:
    """Read one file of the catalogue: rows of both languages by their names."""
    # Imported where a file is read: most modules that name messages never tell one.
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with (FOLDER / f"{file}.yaml").open(encoding="utf-8") as stream:
        found: dict[str, dict[Language, str]] = yaml.load(stream, Loader=loader)  # noqa: S506 - a safe loader
    return found
