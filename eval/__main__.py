"""Score answers to labelled incidents and report the figures: `python -m eval`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from eval import baselines, gate, incidents, other_tools, report
from eval.answers import System
from eval.cassette import Cassette
from eval.composer import Composer
from eval.errors import EvalError
from eval.explained import Explained
from eval.metrics import METRICS, compare
from eval.report import Run
from eval.run import Progress as Report
from eval.run import by_split, read_scores, run, write
from service.llm.models import open_model
from service.pipeline.triage import Triage
from service.schemas.errors import ServiceError
from service.settings import load_settings

OUT = Path("out/eval")


def main(words: list[str]) -> int:
    """Run the evaluation; exit code 1 where a figure is below its floor, 2 for misuse."""
    options = _options(words)
    try:
        return _evaluate(options)
    except (EvalError, ServiceError) as error:
        sys.stderr.write(f"eval: {error}\n")
        return 2


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m eval", description=__doc__)
    parser.add_argument(
        "--incidents", type=Path, default=incidents.FOLDER, help="folder of labelled incidents, yours or ours"
    )
    parser.add_argument("--split", choices=("fit", "test"), help="only this part of them")
    parser.add_argument(
        "--bare", action="store_true", help="logs alone, without the stacks and dumps beside them"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder for results.jsonl and report.html")
    parser.add_argument("--no-baselines", action="store_true", help="only the composer")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="also with the recorded answers of this model (eval/recordings/NAME.jsonl)",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="ask the configured model (WHYCRASH_MODEL) for what --model NAME has no recorded answer to",
    )
    parser.add_argument(
        "--looks",
        action="store_true",
        help="with --record: offer the model tools to look further, at most WHYCRASH_MODEL_CALLS times",
    )
    parser.add_argument(
        "--compare", type=Path, metavar="OLD", help="results.jsonl of an earlier run: show what changed"
    )
    parser.add_argument("--gate", action="store_true", help="fail where a figure is below its floor")
    parser.add_argument(
        "--raise-floors",
        action="store_true",
        help="raise the floors to the figures of this run; none is lowered",
    )
    return parser.parse_args(words)


def _evaluate(options: argparse.Namespace) -> int:
    console = Console(width=150)
    loaded = incidents.load(options.incidents, options.split, bare=options.bare)
    triage = Triage(load_settings())
    for finding in incidents.findings(loaded, triage.library.causes):
        console.print(f"incident: {finding}", markup=False, style="yellow")
    cassette = Cassette.load(options.model) if options.model else None
    systems, skipped = _systems(triage, loaded, cassette, options)
    with bars() as progress:
        result = run(loaded, systems, triage.library, progress)
    write(result, options.out / "results.jsonl")
    (options.out / "report.html").write_text(report.page(result), encoding="utf-8")
    report.terminal(result, console)
    if cassette is not None:
        _replayed(cassette, options, console)
    for answer in result.answers["composer"]:
        for fault in answer.faults or ():
            console.print(f"{answer.incident}: {fault}", markup=False, style="yellow")
    for reason in skipped:
        console.print(f"left out: {reason}", markup=False, style="dim")
    console.print(
        f"{options.out / 'report.html'} shows each wrong answer; {options.out / 'results.jsonl'} holds all.",
        markup=False,
    )
    if options.compare:
        _compared(result, options.compare, console)
    return _gated(result, options, console)


def _systems(
    triage: Triage, loaded: list[incidents.Incident], cassette: Cassette | None, options: argparse.Namespace
) -> tuple[list[System], list[str]]:
    systems: list[System] = [Composer(triage)]
    if cassette is not None:
        settings = load_settings()
        model = open_model(settings) if options.record else None
        if model is None and not cassette.recordings:
            raise EvalError(
                f"{cassette.path} holds no recorded answers: set WHYCRASH_MODEL and add --record."
            )
        systems.append(Explained(triage, settings, cassette, model, options.looks))
    if options.no_baselines:
        return systems, []
    fit = [item for item in loaded if item.label.split == "fit"]
    skipped: list[str] = []
    for found, reasons in (baselines.all_systems(triage, fit), other_tools.all_systems()):
        systems += found
        skipped += reasons
    return systems, skipped


def _replayed(cassette: Cassette, options: argparse.Namespace, console: Console) -> None:
    """Keep what was recorded, and tell which answers are for another prompt and which are missing."""
    if options.record:
        cassette.save()
    for words, names in (
        ("recorded for an earlier prompt", cassette.stale),
        ("not recorded", cassette.missing),
    ):
        if names:
            console.print(
                f"{cassette.path.name}: {len(names)} {words}: {', '.join(sorted(names))}", markup=False
            )


def _compared(result: Run, old: Path, console: Console) -> None:
    before = read_scores(old, "composer")
    changes = [(words, compare(before, result.scores["composer"], name)) for name, words, _ in METRICS]
    changed = [(words, change) for words, change in changes if change.better or change.worse]
    for words, change in changed:
        console.print(
            f"{words}: {change.before:.3f} -> {change.after:.3f} (p {change.p:.3f}); "
            f"better {', '.join(change.better) or '-'}; worse {', '.join(change.worse) or '-'}",
            markup=False,
        )
    if not changed:
        console.print(f"nothing changed since {old}", markup=False)


def _gated(result: Run, options: argparse.Namespace, console: Console) -> int:
    floors = gate.load()
    scores = by_split(result, "composer")
    if options.raise_floors:
        gate.save(gate.raised_floors(scores, floors))
    if not options.gate:
        return 0
    fallen = gate.below_floors({split: rows for split, rows in scores.items() if rows}, floors)
    for row in fallen:
        console.print(f"below the floor: {row}", markup=False, style="red")
    return 1 if fallen else 0


@contextmanager
def bars() -> Iterator[Report]:
    """Show progress bars on the error stream while something runs."""
    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done)

        yield show


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
