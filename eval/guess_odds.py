"""Count how often a change was right that the cause alone called for: `python -m eval.guess_odds [--write]`.

Counted are the changes of labelled incidents, as the program answers them now, and the first ones of public
logs as they were answered at first sight. A label that names no setting says nothing of a package, and none
tells of commands; a longer wait it would have named.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpus.library import Library
from eval import incidents
from eval.fresh import rounds
from eval.incidents import LabelledChange
from eval.metrics import is_among, settable
from service.pipeline.triage import ReadJob, Triage, read_config, with_notebooks
from service.remediation import guesses
from service.remediation.guesses import GuessCount, GuessOdds, kind_of_guess
from service.settings import load_settings

# What the job's own program is called among the changes of a recorded answer.
_OWN = frozenset({"python", "code", "script"})


@dataclass(frozen=True)
class GuessedFirst:
    """A change that the cause alone called for: of which kind, and whether it was right."""

    kind: str
    stated: bool
    right: bool


def of_incidents(triage: Triage) -> Iterator[GuessedFirst]:
    """Give those of labelled incidents."""
    for incident in incidents.load():
        label, source = incident.label, incident.source()
        files = with_notebooks(source, [read_config(path) for path in incident.job_files])
        job = ReadJob(triage.reader.read(source), label.language, tuple(files))
        answer = triage.diagnose(job, incident.telemetry).first
        cures = [change for change in answer.changes if change.purpose == "cure" and change.goes_with is None]
        for place, change in enumerate(cures if label.verdict == "diagnosed" else ()):
            if change.is_bare:
                kind = kind_of_guess(
                    change.framework, change.key, change.kind, triage.library, change.to, is_behind=place > 0
                )
                yield from _judged(kind, answer.standing, change.key, label.changes, triage.library)


def of_rounds(library: Library) -> Iterator[GuessedFirst]:
    """Give those of public logs, as far as the records tell: the settings of cases and tables."""
    for sight in rounds.recorded():
        answers = {answer["id"]: answer for answer in sight.answers}
        for log in rounds.load(sight.round).logs:
            answer = answers.get(log.id, {})
            if answer.get("changes") and answer.get("standing") and log.verdict == "diagnosed":
                yield from _of_record(answer["changes"][0], answer, log.changes, library)


def _of_record(
    first: str, answer: Mapping[str, Any], wanted: Sequence[LabelledChange], library: Library
) -> Iterator[GuessedFirst]:
    framework, _, key = first.partition(":")
    causes = answer.get("causes")
    cause = str(causes[0]) if isinstance(causes, list) and causes else ""
    remedies = [
        row for row in library.remedies.get(cause, ()) if (row.framework, row.key) == (framework, key)
    ]
    of_cases = (change for case in library.cases.values() if case.cause == cause for change in case.changes)
    rows = [*remedies, *(row for row in of_cases if (row.framework, row.key) == (framework, key))]
    if framework in _OWN or not rows or any(row.own or row.holds for row in remedies):
        return
    kind = kind_of_guess(framework, key, rows[0].kind, library)
    yield from _judged(kind, str(answer["standing"]), key, wanted, library)


def _judged(
    kind: str, standing: str, key: str, wanted: Sequence[LabelledChange], library: Library
) -> Iterator[GuessedFirst]:
    """Judge a change by what a label accepts, where that says anything of its kind."""
    if kind != "command" and (kind == "wait" or settable(wanted, library)):
        yield GuessedFirst(kind, standing == "established", is_among(key, wanted))


def counted(found: Iterable[GuessedFirst]) -> GuessOdds:
    """Count the changes by their kinds."""
    of: Counter[tuple[str, bool]] = Counter()
    right: Counter[tuple[str, bool]] = Counter()
    for item in found:
        of[item.kind, item.stated] += 1
        right[item.kind, item.stated] += item.right
    return GuessOdds(
        rows=tuple(
            GuessCount(kind=kind, stated=stated, right=right[kind, stated], of=of[kind, stated])
            for kind, stated in sorted(of)
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, say what was counted, and write the file where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m eval.guess_odds", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {guesses.FILE.name}")
    options = parser.parse_args(arguments)
    triage = Triage(load_settings())
    table = counted([*of_incidents(triage), *of_rounds(triage.library)])
    for row in table.rows:
        odds = table.odds(row.kind, stated=row.stated)
        told = "the log states the cause" if row.stated else "it does not"
        mark = "  a guess" if odds < guesses.LEAST_ODDS else ""
        sys.stdout.write(f"{row.kind:10}{told:26}{row.right:4} of {row.of:3}{odds:6.2f}{mark}\n")
    if options.write:
        guesses.FILE.write_text(table.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
