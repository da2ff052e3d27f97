"""Errors of the evaluation."""

from __future__ import annotations


class EvalError(Exception):
    """The evaluation cannot be run."""


class InvalidIncidentError(EvalError):
    """An incident's folder or label is invalid; the message names the file and the field."""


class InvalidRoundError(EvalError):
    """A round of public logs is missing or invalid; the message names the file and the field."""


class FetchError(EvalError):
    """A public text cannot be had, or is not the one that was labelled; the message names the log."""
