"""All kinds in their order; where two find the same place, the earlier one names it."""

from __future__ import annotations

from ingest.redaction.commands import COMMANDS
from ingest.redaction.compound_names import CALLED
from ingest.redaction.kinds import ADDRESSED, ISSUED, PRIVATE, SHAPED, SecretKind
from ingest.redaction.labelled import BESIDE
from ingest.redaction.named import NAMED
from ingest.redaction.pii import PEOPLE

KINDS: tuple[SecretKind, ...] = (
    *PRIVATE,
    *ISSUED,
    *SHAPED,
    *ADDRESSED,
    *NAMED,
    *BESIDE,
    *COMMANDS,
    *PEOPLE,
    *CALLED,
)
