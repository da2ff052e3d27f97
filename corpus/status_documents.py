"""How the JSON of schedulers and platforms is told as lines: rows of `status_documents.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpus import library
from corpus.schema import Record

FILE = "status_documents.yaml"


class LineGroup(Record):
    """Lines with blanks; with `each`, for every item of the list at that path."""

    each: str = ""
    lines: Annotated[tuple[str, ...], Field(min_length=1)]


class StatusDocument(Record):
    """A kind of document: the keys that one has, values that it must have, and what it tells."""

    name: str
    keys: Annotated[tuple[str, ...], Field(min_length=2)]
    values: Mapping[str, str] = Field(default_factory=dict, alias="is")
    groups: Annotated[tuple[LineGroup, ...], Field(min_length=1)]

    def fits(self, document: Mapping[str, object]) -> bool:
        """Tell whether a document is one of these."""
        has_keys = all(key in document for key in self.keys)
        return has_keys and all(document.get(key) == value for key, value in self.values.items())


class DocumentTable(Record):
    """All kinds; the first that fits counts."""

    rows: Annotated[tuple[StatusDocument, ...], Field(min_length=1)]

    def of(self, document: Mapping[str, object]) -> StatusDocument | None:
        """Give a document's kind."""
        return next((row for row in self.rows if row.fits(document)), None)


@cache
def load() -> DocumentTable:
    """Load the table; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    return library.validated(DocumentTable, {"rows": library.read_yaml(path)}, str(path))
