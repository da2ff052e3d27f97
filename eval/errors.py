"""Errors of the evaluation."""

from __future__ import annotations


class EvalError(Exception):
    """The evaluation cannot be run."""


class InvalidIncidentError(EvalError):
    """An incident's folder or label is invalid; the message names the file and the field."""
