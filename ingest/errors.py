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


class ArchiveInputError(FolderInputError):
    """The file is an archive of several files, where one log file is expected."""


class EmptyInputError(InputError):
    """The log is empty: nothing was written, or the wrong file was given."""


class BinaryInputError(InputError):
    """The file is not text."""


class BrokenArchiveError(InputError):
    """The compressed file is damaged from its first bytes on."""


class PartialInputError(InputError):
    """The log cannot be read on; what was read up to there counts.

    `omits` is the word under which a report says so.
    """

    omits = "unread"


class DamagedArchiveError(PartialInputError):
    """The compressed file is cut or damaged; what was read up to there counts."""

    omits = "damaged_archive"


class BombInputError(PartialInputError):
    """The compressed file unpacks to far more than a log does; reading stopped there."""

    omits = "beyond_limit"


class GrowingInputError(PartialInputError):
    """The file grows faster than it is read; reading stopped some way behind the size it had at first."""

    omits = "still_growing"


class UnreadableInputError(PartialInputError):
    """The disk or the network failed while the file was read."""

    omits = "read_error"


class BrokenTemplatesError(InputError):
    """The file given as a healthy run's templates is none, or of another version."""


class SearchIndexError(IngestError):
    """The search index cannot be used."""


class NewerIndexError(SearchIndexError):
    """The index was written by a newer whycrash; update whycrash or point WHYCRASH_HOME elsewhere."""


class ChromaServerError(SearchIndexError):
    """The Chroma server gives no answer; start it, or set WHYCRASH_CHROMA_URL to where it is."""


class ModelError(IngestError):
    """The embedding model cannot be used."""


class PoolLostError(IngestError):
    """The workers of a pool cannot be started or reached; all that they had is to be handed out again."""


class ArtefactError(InputError):
    """A file beside the log is damaged, hostile or not known; it is left out."""


class InvalidExpressionError(IngestError):
    """An expression cannot be matched in linear time; the message is Hyperscan's reason."""


class RedactionPatternError(IngestError):
    """What WHYCRASH_REDACT_EXTRA says is neither a name nor an expression that can be used."""
