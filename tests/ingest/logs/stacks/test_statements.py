"""The part of a failing statement that its message speaks of is read from the row that a traceback quotes."""

from __future__ import annotations

from collections.abc import Mapping

from corpus.schema import StatementPart
from ingest.logs.stacks.statements import statement_part
from tests.tables import each_row


@each_row(
    ("code", "part", "names", "told"),
    [
        ("loss = self.head.weight.sum()", "attribute-owner", {"name": "weight"}, "self.head"),
        ("loss = a.weight + b.weight", "attribute-owner", {"name": "weight"}, None),
        ("return total / len(batches)", "divisor", {}, "len(batches)"),
        ("share = hits / 2 / seen", "divisor", {}, "seen"),
        ("total //= world", "divisor", {}, "world"),
        ("print('%d of %d' % (a, b), c / n)", "divisor", {}, "n"),
        ("first = rows[0]['text']", "sequence", {}, "rows"),
        ("first = rows[place + 1]", "index", {}, "place + 1"),
        ("x = rows[0] + others[1]", "sequence", {}, None),
        ("image = sample['pixels']", "mapping", {"key": "'pixels'"}, "sample"),
        ("image = sample[name]", "mapping", {"key": "'pixels'"}, "sample"),
        ("net = Encoder(width, depth=4)", "call", {"callee": "Encoder.__init__"}, "Encoder(width, depth=4)"),
        ("value = model.decode(x)", "call", {"callee": "Model.decode"}, "model.decode(x)"),
        ("value = int(row['age'])", "argument", {}, "row['age']"),
        ("print(f'{min(times):.2f} {max(times):.2f}')", "argument", {"callee": "min"}, "times"),
        ("everything = torch.cat(parts, dim=0)", "first-argument", {}, "parts"),
        ("for name, value in read_rows(path):", "iterated", {}, "read_rows(path)"),
        ("a, b = split(text)", "iterated", {}, "split(text)"),
        ("assert width % heads == 0, 'no'", "condition", {}, "width % heads == 0"),
        ("cost = rate * hours", "left", {"op": "*"}, "rate"),
        ("if now >= limit:", "right", {"op": ">="}, "limit"),
        ("elif now >= limit:", "left", {"op": ">="}, "now"),
        ("if low < step <= limit:", "left", {"op": "<="}, "step"),
        ("if low < step <= limit:", "right", {"op": "<="}, "limit"),
        ("if low < step <= limit:", "right", {"op": "<"}, "step"),
        ("if low < step < limit:", "right", {"op": "<"}, None),
        ("loss = criterion(", "called", {}, "criterion"),
        ("at = seen.index(step.move)", "searched", {}, "seen"),
        ("at = seen.index(step.move)", "sought", {}, "step.move"),
        ("at = seen.index(", "searched", {}, None),
        ("a = made[int(found[i])]", "mapping", {"key": "14"}, "made"),
        ("a = made[i] + found[i]", "mapping", {"key": "14"}, None),
        ("out = head(rows[0],", "sequence", {}, "rows"),
        ("text = table[key].format(name=", "mapping", {"key": "'a'"}, "table"),
        ("else:", "divisor", {}, None),
        (") -> None:", "divisor", {}, None),
        ("not a statement at all", "divisor", {}, None),
    ],
)
def test_a_statement_tells_the_part_that_a_message_does_not_name(
    code: str, part: StatementPart, names: Mapping[str, str | None], told: str | None
) -> None:
    assert statement_part(code, part, names) == told


def test_that_a_statement_that_only_led_there_tells_no_more_than_the_message_names() -> None:
    assert statement_part("fit(rows[0] / total)", "divisor", {}, leads=True) is None
    assert statement_part("fit(frame['label'])", "mapping", {"key": "'label'"}, leads=True) == "frame"
    assert statement_part("fit(frame[column])", "mapping", {"key": "'label'"}, leads=True) is None


def test_that_a_long_part_is_no_name_to_tell() -> None:
    assert statement_part(f"x = 1 / sum([{', '.join(['value'] * 20)}])", "divisor", {}) is None
