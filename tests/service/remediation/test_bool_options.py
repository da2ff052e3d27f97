"""A switch that is read by `type=bool` is not turned off by the word `False`, and the change says so."""

from __future__ import annotations

from dataclasses import replace

from service.remediation.bool_options import told_of_bool
from tests.service.factories import failed, proposal, report
from tests.tables import each_row


@each_row(
    ("row", "key", "now", "is_told"),
    [
        ("p.add_argument('-s', '--shaping', type=bool, default=True)", "shaping", "true", True),
        ("p.add_argument('-s', '--shaping', type=bool, default=True)", "--shaping", "True", True),
        ("p.add_argument('--shaping', type=str2bool, default=True)", "shaping", "true", False),
        ("p.add_argument('--shaping', action='store_true')", "shaping", "true", False),
        ("p.add_argument('--other', type=bool)", "shaping", "true", False),
        ("p.add_argument('--shaping', type=bool)", "shaping", "3", False),
    ],
)
def test_that_the_way_to_turn_it_off_is_told(row: str, key: str, now: str, *, is_told: bool) -> None:
    text = f"import argparse\np = argparse.ArgumentParser()\n{row}\n"
    log = replace(report(failed()), launches=(f"{text}\ntrain.py",))
    change = proposal(key, "off", from_=now, framework="python")
    told = told_of_bool([change], log, "en")[0]
    assert ("type=bool" in told.why) is is_told
    assert told.key == change.key
