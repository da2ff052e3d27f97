"""Errors of the corpus, by what the reader can do about them."""

from __future__ import annotations


class CorpusError(Exception):
    """The knowledge files cannot be used."""


class UnknownCaseError(CorpusError):
    """There is no case of that name; `whycrash search` finds its id."""


class InvalidCorpusError(CorpusError):
    """A knowledge file breaks its form; the message names the file and the field."""
