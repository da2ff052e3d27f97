"""Paths as logs and people write them, of any system."""

from __future__ import annotations


def base_name(path: str) -> str:
    """Give a file's own name, without the folders before it; a backslash parts folders too."""
    return path.replace("\\", "/").rpartition("/")[2]
