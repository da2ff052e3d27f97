"""Errors of ingestion. Each docstring is the sentence that a user may see, each class says who can act."""

from __future__ import annotations


class IngestError(Exception):
    """Something given to whycrash cannot be read."""


class InputError(IngestError):
    """The log cannot be read."""


class MissingInputError(InputError):
    """There is no such file."""


class FolderInputError(InputError):
    """The path is a folder, where one log file is expected."""


class EmptyInputError(InputError):
    """The log is empty: nothing was written, or the wrong file was given."""


class BinaryInputError(InputError):
    """The file is not text."""


class BrokenArchiveError(InputError):
    """The compressed file is damaged from its first bytes on."""


class SearchIndexError(IngestError):
    """The search index cannot be used."""


class NewerIndexError(SearchIndexError):
    """The index was written by a newer whycrash; update whycrash or point WHYCRASH_HOME elsewhere."""


class ModelError(IngestError):
    """The embedding model cannot be used."""
