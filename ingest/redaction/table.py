"""All kinds in their order; where two find the same place, the earlier one names it."""

from __future__ import annotations

from ingest.redaction.addresses import ADDRESSED
from ingest.redaction.columns import COLUMNS
from ingest.redaction.commands import COMMANDS
from ingest.redaction.compound_names import CALLED
from ingest.redaction.drawn import DRAWN
from ingest.redaction.issuers import ISSUERS
from ingest.redaction.kinds import ISSUED, PRIVATE, SHAPED, SecretKind
from ingest.redaction.labelled import BESIDE
from ingest.redaction.named import NAMED
from ingest.redaction.nearby import NEARBY
from ingest.redaction.pii import PEOPLE
from ingest.redaction.printed import PRINTED
from ingest.redaction.prose import PROSE
from ingest.redaction.shown import SHOWN

SHIPPED: tuple[SecretKind, ...] = (
    *PRIVATE,
    *ISSUED,
    *SHAPED,
    *ISSUERS,
    *ADDRESSED,
    *NAMED,
    *BESIDE,
    *COMMANDS,
    *PEOPLE,
    *CALLED,
    *PROSE,
    *PRINTED,
    *NEARBY,
    *COLUMNS,
    *SHOWN,
    *DRAWN,
)

# Behind them stand the user's own (`ingest/redaction/extra.py`), once a prefilter with them is loaded.
KINDS: list[SecretKind] = [*SHIPPED]
