"""Fetch the public logs of rounds, score what the program says of them, and forget them."""

from __future__ import annotations

import argparse
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from eval.__main__ import bars
from eval.composer import Composer
from eval.errors import EvalError
from eval.fresh import curve, rounds, texts
from eval.fresh.rounds import FirstSight
from eval.fresh.scoring import FIGURES, ScoredLog, answered, figures
from eval.seat import Seat
from service.pipeline.triage import Triage
from service.schemas.errors import ServiceError
from service.settings import load_settings

ROOT = Path(__file__).parent.parent.parent
# Figures of which none is good.
_HARMS = frozenset({"forbidden", "failed_called_healthy", "failed_told_green", "sure_and_wrong"})


def main(words: list[str]) -> int:
    """Score rounds or write the page; exit code 2 for misuse, 1 where a text could not be had."""
    options = _options(words)
    try:
        if options.page:
            scores = rounds.recorded(options.rounds)
            page = ROOT / curve.PAGE
            page.write_text(curve.written(page.read_text(encoding="utf-8"), scores), encoding="utf-8")
            (ROOT / curve.PLOT).write_text(curve.plot(scores), encoding="utf-8")
            return 0
        return _scored(options)
    except (EvalError, ServiceError) as error:
        sys.stderr.write(f"eval.fresh: {error}\n")
        return 2


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m eval.fresh", description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, metavar="ROUND", help="all rounds unless named")
    texts.add_options(parser)
    parser.add_argument(
        "--words",
        type=Path,
        metavar="DIR",
        help="score the answers with what readers said in a model's seat (`python -m eval.seat --words`)",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the figures as those of first sight; once for each round, as its logs are new only once",
    )
    parser.add_argument(
        "--page", action="store_true", help="draw the recorded figures and write them into the documentation"
    )
    return parser.parse_args(words)


def _scored(options: argparse.Namespace) -> int:
    if options.record and options.words:
        raise EvalError("--record keeps the figures without a model: leave out --words.")
    console = Console(width=150)
    settings = load_settings()
    triage = Triage(settings)
    system = Seat(triage, settings, options.words) if options.words else Composer(triage)
    found = [
        rounds.load(number, options.rounds) for number in options.numbers or rounds.numbers(options.rounds)
    ]
    complete = True
    with texts.opened(options.folder) as source, bars() as progress:
        for item in found:
            rows, missing = answered(item, source, system, triage.library, progress)
            _print_round(item.round, rows, missing, console)
            complete = complete and not missing
            if options.record:
                _record(item.round, rows, missing, options.rounds)
    return 0 if complete else 1


def _print_round(number: int, rows: list[ScoredLog], missing: list[str], console: Console) -> None:
    console.print(f"round {number}: {len(rows)} logs", markup=False)
    words = dict(FIGURES)
    for name, figure in figures(rows).items():
        if figure.count:
            console.print(f"  {words[name]}: {curve.cell(figure)}", markup=False)
    for row in rows:
        lost = [words[name] for name, _ in FIGURES if getattr(row.score, name) == float(name in _HARMS)]
        if lost:
            named = f"{row.answer.verdict} {', '.join(row.answer.causes[:2])}".strip()
            console.print(f"  {row.log.id}: {named}; missed: {', '.join(lost)}", markup=False)
    for reason in missing:
        console.print(f"  not scored: {reason}", markup=False)


def _record(number: int, rows: list[ScoredLog], missing: list[str], folder: Path) -> None:
    if missing:
        raise EvalError(f"round {number} is not recorded: {len(missing)} of its texts could not be had.")
    # The program's commit; `-dirty` where files differ from it, `unknown` outside a repository.
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    rounds.record(
        FirstSight(
            round=number,
            scored=datetime.now(UTC).date(),
            program=done.stdout.strip() or "unknown",
            figures=figures(rows),
            answers=tuple(row.record() for row in rows),
        ),
        folder,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
