"""A mapping of a file at hand that code counts through is told by its names."""

from __future__ import annotations

from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.counted_mappings import counted_mapping
from tests.service.factories import failed, report
from tests.tables import each_row

ROW = 'width = config["model"]["heads"][kind][i]["width"]'


@each_row(
    ("said", "row", "text", "told"),
    [
        ("KeyError: 0", ROW, '{"model": {"heads": {"graph": {"kind": "mlp", "width": 8}}}}', "(kind, width)"),
        ("KeyError: 0", 'x = c["heads"][0]', '{"heads": {"one": {"a": 1}, "two": 3}}', "(one, two)"),
        # A list, another key, a name in place of a number, or a mapping by numbers.
        ("KeyError: 0", ROW, '{"model": {"heads": {"graph": [{"width": 8}]}}}', ""),
        ("KeyError: 0", ROW, '{"model": {"tails": {"graph": {"width": 8}}}}', ""),
        ("KeyError: 'x'", ROW, '{"model": {"heads": {"graph": {"width": 8}}}}', ""),
        ("KeyError: 3", 'x = c["heads"][i]', '{"heads": {"1": {"a": 1}, "2": {"a": 3}}}', ""),
    ],
)
def test_that_the_names_below_a_key_are_told(said: str, row: str, text: str, told: str) -> None:
    frame = Frame("/job/train.py", 4, "<module>", row)
    log = report(failed(text=said, body=said, exception="KeyError", frames=(frame,)))
    found = counted_mapping(log, [JobFile("net.json", text)])
    assert (told in found.en) if told and found is not None else found is None
