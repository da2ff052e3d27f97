"""What is said where a file of the job cannot be read or changed safely."""

from __future__ import annotations


class NotPatchableError(Exception):
    """A file cannot be changed safely; the message says where and why, as a clause without a full stop."""
