"""`python -m eval.forged`: how often one forged error line in a job's log turns the answer of the rules.

Into each of a number of labelled logs that the rules answer rightly, an error line of another kind of failure
is put, as a line of the log or quoted in a sample's text, at several places. A reader of the log alone cannot
tell a well-forged line from a true one, so this is no figure to be brought to zero: it says what to expect.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table

from corpus.library import Library, read_yaml
from corpus.schema import Record
from eval import incidents
from eval.incidents import Incident
from ingest.logs.inputs import sources
from service.pipeline.triage import ReadJob, Triage
from service.settings import load_settings

FILE = Path(__file__).with_name("forged.yaml")
# A log of more lines takes long to read so often, and hides a line no better.
LONGEST = 3000
Place = Literal["early", "before the failure", "after the failure", "quoted before the failure"]
PLACES: tuple[Place, ...] = ("early", "before the failure", "after the failure", "quoted before the failure")


class ForgedLine(Record):
    """An error line that tells of a cause which is not the job's."""

    cause: str
    line: str


class ForgedOutcome(NamedTuple):
    """What became of the answer: the forged cause named, another wrong one, or no longer named any."""

    forged: int = 0
    other: int = 0
    abstained: int = 0
    logs: int = 0


@dataclass(frozen=True)
class ForgedLog:
    """A log with a forged line in it."""

    incident: Incident
    place: Place
    forged: ForgedLine

    @property
    def text(self) -> str:
        """The log's text; the labelled root lines move by one where the line stands before them."""
        rows, root = list(self.incident.lines), self.incident.label.root_lines[0]
        line = self.forged.line
        if self.place == "early":
            rows.insert(max(0, root // 10), line)
        elif self.place == "after the failure":
            rows.append(line)
        elif self.place == "before the failure":
            rows.insert(root - 1, line)
        else:
            rows.insert(root - 1, f'sample 17: prompt="why does it say {line!r} here?"')
        return "\n".join(rows)


def read_forged_lines() -> tuple[ForgedLine, ...]:
    """Read the lines."""
    return tuple(TypeAdapter(list[ForgedLine]).validate_python(read_yaml(FILE)))


def forged_logs(
    chosen: Sequence[Incident], lines: Sequence[ForgedLine], library: Library
) -> Iterator[ForgedLog]:
    """Put a line of another category into each log, at each place; the lines take turns."""
    turns = itertools.cycle(lines)
    for incident in chosen:
        categories = {library.causes[cause].category for cause in incident.label.causes}
        for place in PLACES:
            line = next(item for item in turns if library.causes[item.cause].category not in categories)
            yield ForgedLog(incident, place, line)


def answer(triage: Triage, text: str, language: str) -> tuple[str, str]:
    """Give verdict and cause by the rules, from the log alone."""
    report = triage.reader.read(sources.from_text(text))
    first = triage.diagnose(ReadJob(report, language)).first
    return first.verdict, first.cause or ""


def answered_rightly(triage: Triage, loaded: Sequence[Incident], count: int) -> list[Incident]:
    """Give the first incidents, by name, that the rules answer rightly from the log alone."""

    def is_right(item: Incident) -> bool:
        verdict, cause = answer(triage, item.text, item.label.language)
        return verdict == "diagnosed" and cause in item.label.causes

    short = (item for item in loaded if item.label.verdict == "diagnosed" and len(item.lines) <= LONGEST)
    return list(itertools.islice(filter(is_right, short), count))


def measure(triage: Triage, logs: Iterator[ForgedLog]) -> dict[Place, ForgedOutcome]:
    """Answer each forged log and count by place what became of the right cause."""
    counts = dict.fromkeys(PLACES, ForgedOutcome())
    for log in logs:
        verdict, cause = answer(triage, log.text, log.incident.label.language)
        before = counts[log.place]
        wrong = verdict == "diagnosed" and cause not in log.incident.label.causes
        took = wrong and cause == log.forged.cause
        counts[log.place] = ForgedOutcome(
            before.forged + took,
            before.other + (wrong and not took),
            before.abstained + (verdict != "diagnosed"),
            before.logs + 1,
        )
    return counts


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m eval.forged", description=__doc__)
    parser.add_argument(
        "--incidents", type=Path, default=incidents.FOLDER, help="folder of labelled incidents"
    )
    parser.add_argument("--logs", type=int, default=24, help="how many logs to forge lines into")
    options = parser.parse_args(words)
    triage = Triage(load_settings())
    chosen = answered_rightly(triage, incidents.load(options.incidents), options.logs)
    counts = measure(triage, forged_logs(chosen, read_forged_lines(), triage.library))
    table = Table("place of the forged line", "logs", "forged cause", "other cause", "abstained")
    for place, found in counts.items():
        told = (found.logs, found.forged, found.other, found.abstained)
        table.add_row(place, *map(str, told))
    Console().print(table)


if __name__ == "__main__":
    main()
