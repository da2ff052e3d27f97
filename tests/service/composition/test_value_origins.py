"""The rows of the job's own file that made what the failing statement is given."""

from __future__ import annotations

import textwrap

from ingest.logs.stacks.stack import Frame
from service.composition.value_origins import made_empty, value_rows
from tests.service.factories import failed, report
from tests.tables import each_row

SCORES = """
    def test(model, loader):
        rows = []
        for index, text in loader:
            loss = model(text)
            rows += list(zip(index, loss))  # one at a time
        # scores = None
        names, scores = zip(*rows)
        if scores == names:
            pass
        area = roc_auc(names, scores)
"""
TABLE = """
    class Table:
        def __init__(self, path, name):
            self.path = path
            self.data = read_csv(path)

        def one(self, place):
            row = self.data.iloc[place]
            return join(self.path, row["project"])
"""
OPENED = """
    def load(args):
        with open(args.file) as stream:
            text = stream.read()
            values = parse(text)
"""


def made(code: str, statement: str, line: int = 1, name: str = "run.py") -> list[str]:
    """Give the rows for a statement that failed in a file of the job's, as the traceback numbers it."""
    frame = Frame("/job/run.py", line, "test", statement)
    rows = value_rows(report(failed(frames=(frame,)), launches=(f"{textwrap.dedent(code)}\n{name}",)))
    assert {row.place.partition(":")[0] for row in rows} <= {name}
    return [row.code for row in rows]


@each_row(
    ("code", "statement", "rows"),
    [
        (
            SCORES,
            "area = roc_auc(names, scores)",
            ["names, scores = zip(*rows)", "rows += list(zip(index, loss))", "for index, text in loader:"],
        ),
        (
            TABLE,
            'return join(self.path, row["project"])',
            ["row = self.data.iloc[place]", "self.data = read_csv(path)"],
        ),
        (OPENED, "values = parse(text)", ["text = stream.read()", "with open(args.file) as stream:"]),
        (SCORES, "loss = model(text)", ["for index, text in loader:"]),
        (SCORES, "something else entirely here", []),
    ],
)
def test_a_statement_leads_back_to_what_made_its_values(code: str, statement: str, rows: list[str]) -> None:
    """From the nearest row back; what only hands on, compares or is a remark makes nothing."""
    found = made(code, statement)
    assert [row for row in rows if row not in found] == []
    assert [row for row in found if row.startswith(("#", "if", "def", "self.path"))] == []


def test_a_file_of_another_name_is_not_looked_at() -> None:
    """What is not at hand tells no rows."""
    assert made(SCORES, "area = roc_auc(names, scores)", name="other.py") == []


def test_the_row_is_found_where_it_moved_to() -> None:
    """An edit above it moves the row that failed."""
    assert made(SCORES, "area = roc_auc(names, scores)", line=9)


GATHERED = """
    class Bank:
        def __init__(self, width):
            self.hits = np.zeros((0, width))
            self.rows = []
            self.full = np.zeros((4, width))

        def test(self):
            other = np.array([])
            return np.vstack((self.hits, self.rows, other, self.full))
"""


def test_that_what_begins_empty_is_named() -> None:
    """Two of what the statement is given, with the rows that make them without an entry."""
    statement = "return np.vstack((self.hits, self.rows, other, self.full))"
    frame = Frame("/job/run.py", 10, "test", statement)
    told = report(failed(frames=(frame,)), launches=(f"{textwrap.dedent(GATHERED)}\nrun.py",))
    assert made_empty(told) == "self.hits (run.py:4), self.rows (run.py:5)"
