"""Tell by a file's first bytes whether it is one that is read beside a log; every file of a job is asked."""

from __future__ import annotations

PICKLES = tuple(bytes((0x80, version)) for version in (2, 3, 4, 5))
# So many of its first bytes tell a dump.
HEAD = 4096

# Keys of an entry since the first version; two of them near the beginning tell a dump from other pickles.
_KEYS = (
    b"record_id",
    b"profiling_name",
    b"input_sizes",
    b"time_created_ns",
    b"pg_config",
    b"collective_seq_id",
    b"version",
)


def is_dump(head: bytes) -> bool:
    """Tell by its first bytes, HEAD of them, whether a file is a flight recorder dump."""
    begins = head.startswith(PICKLES) or head.lstrip()[:1] in (b"{", b"[")
    return begins and sum(key in head for key in _KEYS) >= 2
