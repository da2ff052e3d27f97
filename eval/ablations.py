"""Say what each part adds that names causes where no pattern does: `python -m eval.ablations [ROUND ...]`.

The parts are the reading of exceptions by their kind and by whose code raised them (`exceptions.yaml`), the
classifier of failing messages, and the atlas of the frameworks' own messages. Each is taken out alone, then
all together. What is said of a part is the difference over the same logs, with a 95 % interval of a bootstrap
that draws logs, so that both answers to a log stay together.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from eval import incidents
from eval.composer import Composer
from eval.errors import EvalError
from eval.fresh import rounds, texts
from eval.fresh.scoring import laid_out
from eval.incidents import Incident
from eval.metrics import Mean, mean, score
from ingest.logs import refinement
from ingest.logs.events import Event
from service.pipeline.triage import Triage
from service.schemas.errors import ServiceError
from service.scoring import message_classifier, source_sites
from service.settings import load_settings


class _Silent:
    """Stands in for the classifier and for the atlas: it knows nothing."""

    def odds(self, _message: object) -> Mapping[str, float]:
        return {}

    def look_up(self, *_asked: object) -> tuple[()]:
        return ()


def _unread(event: Event, *_asked: Any, **_how: Any) -> Event:
    return event


# What each part is asked by: where its name stands, the name, and what says nothing in its place.
PARTS: Mapping[str, tuple[object, str, Callable[..., object]]] = {
    "reading": (refinement, "classify_exception", _unread),
    "classifier": (message_classifier, "shipped", _Silent),
    "atlas": (source_sites, "shipped", _Silent),
}
HEAD = "| set | without | cause, top 1 | the part adds | abstained | sure and wrong |"
WITHOUT: tuple[tuple[str, ...], ...] = ((), *((name,) for name in PARTS), tuple(PARTS))


@dataclass(frozen=True)
class Effect:
    """What the answers lose without some parts: `added` is the mean difference of right causes."""

    without: tuple[str, ...]
    right: Mean
    added: Mean
    abstained: Mean
    sure_and_wrong: Mean


@contextmanager
def silenced(parts: Sequence[str]) -> Iterator[None]:
    """Let some parts say nothing."""
    with ExitStack() as stack:
        for name in parts:
            place, attribute, silent = PARTS[name]
            stack.enter_context(patch.object(place, attribute, silent))
        yield


def effects(of_set: Callable[[], Iterator[Incident]], triage: Triage) -> list[Effect]:
    """Answer the incidents of a set whole, then without each part; give what that changes."""
    system, scored = Composer(triage), {}
    for parts in WITHOUT:
        with silenced(parts):
            scored[parts] = [score(item, system.answer(item), triage.library) for item in of_set()]
    whole = scored[()]
    return [
        Effect(
            parts,
            mean([item.cause_top1 for item in rows]),
            mean(
                [
                    None
                    if first.cause_top1 is None or then.cause_top1 is None
                    # The same draw of logs for both: the difference of a log's two answers is drawn.
                    else first.cause_top1 - then.cause_top1
                    for first, then in zip(whole, rows, strict=True)
                ]
            ),
            mean([item.abstained for item in rows]),
            mean([item.sure_and_wrong for item in rows]),
        )
        for parts, rows in scored.items()
    ]


def table(name: str, found: Sequence[Effect]) -> str:
    """Write the rows of a set's effects, as the documentation holds them."""
    rows = []
    for effect in found:
        without = "-" if not effect.without else " and ".join(effect.without)
        added = "" if not effect.without else _cell(effect.added)
        told = (
            _cell(effect.right),
            added,
            f"{effect.abstained.value:.2f}",
            f"{effect.sure_and_wrong.value:.2f}",
        )
        rows.append(f"| {name} | {without} | {' | '.join(told)} |")
    return "\n".join(rows)


def _cell(row: Mean) -> str:
    return f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}] of {row.count}"


def main(words: list[str]) -> int:
    """Print the tables of the incidents apart and of the rounds that are named."""
    parser = argparse.ArgumentParser(prog="python -m eval.ablations", description=__doc__)
    parser.add_argument(
        "numbers", nargs="*", type=int, metavar="ROUND", help="public logs of these rounds too"
    )
    texts.add_options(parser)
    options = parser.parse_args(words)
    triage = Triage(load_settings())
    print_row = sys.stdout.write
    print_row(f"{HEAD}\n|{'---|' * HEAD.count(' |')}\n")
    try:
        print_row(table("`test`", effects(lambda: iter(incidents.load(split="test")), triage)) + "\n")
        if options.numbers:
            with texts.opened(options.folder) as source:
                found = [rounds.load(number, options.rounds) for number in options.numbers]
                named = f"rounds {min(options.numbers)} to {max(options.numbers)}"
                each = effects(lambda: (item for one in found for item in laid_out(one, source)), triage)
                print_row(table(named, each) + "\n")
    except (EvalError, ServiceError) as error:
        sys.stderr.write(f"eval.ablations: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
