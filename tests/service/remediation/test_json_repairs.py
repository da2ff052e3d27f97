"""A JSON file that stops the parser where the log says is edited so that it can be parsed."""

from __future__ import annotations

import json

from service.remediation.code_edits.failing_code import JobFile
from service.remediation.json_repairs import json_repair
from tests.service.factories import failed, report
from tests.tables import each_row


def _said(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"json.decoder.JSONDecodeError: {error}"
    return "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"


@each_row(
    ("text", "place", "after"),
    [
        ('{\n  "a": 1,\n}\n', "ds.json:2", '"a": 1'),
        ('{"a": [1, 2,]}\n', "ds.json:1", '{"a": [1, 2]}'),
        ('{\n  "a": 1\n  "b": 2\n}\n', "ds.json:2", '"a": 1,'),
        ('{"a": 1 "b": 2}\n', "ds.json:1", '{"a": 1, "b": 2}'),
        ('{\n  "a": True,\n  "b": "True"\n}\n', "ds.json:2", '"a": true,'),
        ('{"q": "None or True", "b": True}\n', "ds.json:1", '{"q": "None or True", "b": true}'),
        ('{"betas": [0.9, 00.999]}\n', None, None),
        ('{"from": [3-5]}\n', None, None),
        ("{\n  'a': 1\n}\n", None, None),
        ('{"a": 1}\n', None, None),
        ('{\n  "a": 1,\n', None, None),
    ],
    ids=[
        "behind-the-last",
        "in-a-list",
        "between-rows",
        "in-a-row",
        "a-word",
        "beside-a-text",
        "a-number",
        "a-range",
        "quotes",
        "whole",
        "cut",
    ],
)
def test_that_a_row_is_written_so_that_the_file_parses(
    text: str, place: str | None, after: str | None
) -> None:
    """Only an edit after which the whole file parses is given."""
    found = json_repair(report(failed(text=_said(text))), [JobFile("conf/ds.json", text)])
    assert (found and found.place, found and found.after) == (place, after)
    if found is not None:
        json.loads(found.text)


def test_that_a_file_which_stops_elsewhere_is_left_alone() -> None:
    """Another file than the one that was read may be broken too."""
    log = report(failed(text=_said('{\n  "a": 1,\n}\n')))
    assert json_repair(log, [JobFile("a.json", '{"b": 1,}\n')]) is None
    twice = [JobFile(name, '{\n  "a": 1,\n}\n') for name in ("a.json", "b.json")]
    assert json_repair(log, twice) is None


def test_that_a_number_which_python_does_not_read_is_no_error() -> None:
    """A file beside the broken one may hold a number of more digits than Python takes."""
    text = '{\n  "a": 1,\n}\n'
    files = [JobFile("long.json", f'{{"b": {"1" * 5000}}}'), JobFile("ds.json", text)]
    found = json_repair(report(failed(text=_said(text))), files)
    assert found is not None
    assert found.place == "ds.json:2"


def test_that_the_place_of_a_newer_parser_is_known() -> None:
    """Python 3.13 names the comma itself, and the parser of an older one what follows it."""
    said = (
        "json.decoder.JSONDecodeError: Illegal trailing comma before end of object: line 2 column 9 (char 10)"
    )
    found = json_repair(report(failed(text=said)), [JobFile("ds.json", '{\n  "a": 1,\n}\n')])
    assert found is not None
    assert found.text == '{\n  "a": 1\n}\n'
