"""Temporary folders with room for what Ray puts below them: a socket's path may have 107 bytes."""

from __future__ import annotations

import os
import tempfile

# What an address of a Unix socket holds, without the zero at its end.
_LONGEST = 107
# The longest of our folders, with the longest that Ray makes below it: its sessions are named by time and
# process.
_BELOW = "/wc-ray-4194304-12345678/session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store"


def place() -> str:
    """Give the folder for temporary files, or /tmp where the names below that would be too long."""
    given = tempfile.gettempdir()
    fits = len(os.fsencode(given + _BELOW)) <= _LONGEST
    return given if fits else "/tmp"  # noqa: S108 - callers make folders of their own in it


def new_folder(prefix: str) -> str:
    """Make a folder for Ray; the caller deletes it."""
    return tempfile.mkdtemp(prefix=prefix, dir=place())
