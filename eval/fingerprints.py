"""How far one fingerprint means one cause: labelled incidents that share one, of different jobs.

`python -m eval.fingerprints` prints how many pairs there are, and how many have a cause in common. What a
person confirmed of a crash weighs by that (`service/scoring/confirmed_evidence.py`).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from eval import incidents
from service.pipeline.triage import Triage
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.settings import load_settings


def agreeing_pairs(labelled: Iterable[tuple[str, frozenset[str]]]) -> tuple[int, int]:
    """Count pairs of one fingerprint that have a cause in common, and all pairs; both know a cause."""
    groups: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for crash, causes in labelled:
        if crash and (known := causes - {UNKNOWN_CAUSE}):
            groups[crash].append(known)
    pairs = [pair for group in groups.values() for pair in combinations(group, 2)]
    return sum(bool(one & other) for one, other in pairs), len(pairs)


def main() -> None:
    """Read all incidents and print the count."""
    triage = Triage(load_settings())
    labelled = []
    for incident in incidents.load():
        read = triage.read(incident.source())
        labelled.append((triage.diagnose(read).first.fingerprint, frozenset(incident.label.causes)))
    same, count = agreeing_pairs(labelled)
    sys.stdout.write(f"{same} of {count} pairs with one fingerprint have a cause in common\n")


if __name__ == "__main__":
    main()
