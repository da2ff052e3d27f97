"""Attack a server and the command line, and tell of each attack whether it held: `python -m eval.attack`.

The server is started for it with keys of several kinds, on loopback, in a folder that is removed at the end.
The exit code is 1 where something fell.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from eval.attack import access, commands, database, uploads, wire
from eval.attack.target import Attack, Target
from eval.errors import EvalError

# In this order: what spends an address's requests comes late, and last what leaves no database.
ATTACKS: tuple[Attack, ...] = (
    *access.ATTACKS,
    *wire.ATTACKS,
    *uploads.ATTACKS,
    *commands.ATTACKS,
    *access.LAST,
    *database.ATTACKS,
)

# What asks a command to end: a supervisor, a user's Ctrl-C, a terminal that is closed.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _StoppedError(BaseException):
    """Somebody ended the attacks; no attack may take it for a failure of its own."""


@contextmanager
def _stoppable() -> Iterator[None]:
    """Raise _StoppedError at the first signal that asks to end; later ones do not disturb the cleaning up."""

    def stop(number: int, _frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise _StoppedError(number)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def attack(target: Target, found: Attack) -> str:
    """Carry out one attack; gives what fell. One that could not be carried out has not been held."""
    try:
        return found.run(target)
    except Exception as error:  # noqa: BLE001 - the others are still to be carried out
        return f"not carried out: {type(error).__name__}: {error}"[:300]


def main(words: Sequence[str] | None = None) -> int:
    """Carry out the attacks whose names have the given words, or all; exit code 1 where one was not held."""
    parser = argparse.ArgumentParser(prog="python -m eval.attack", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="WORD", help="only attacks whose names have one of these")
    parser.add_argument("--home", type=Path, help="copy the index of this home instead of building one")
    given = parser.parse_args(words)
    chosen = [
        found
        for found in ATTACKS
        if not given.names or any(word.lower() in found.name.lower() for word in given.names)
    ]
    try:
        with _stoppable(), tempfile.TemporaryDirectory(prefix="whycrash-attack-") as folder:
            fell = _carried_out(Target(Path(folder) / "target"), chosen, given.home)
    except _StoppedError as stopped:
        sys.stderr.write("stopped; the server is ended and its folder removed\n")
        return 128 + int(stopped.args[0])
    except EvalError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{len(chosen) - fell} of {len(chosen)} attacks were held\n")
    return int(fell > 0)


def _carried_out(target: Target, chosen: Sequence[Attack], home: Path | None) -> int:
    """Start the server, carry out the attacks, and end it; gives how many attacks were not held."""
    fell = 0
    target.folder.mkdir()
    try:
        target.prepare(home)
        target.start()
        for found in chosen:
            began = time.monotonic()
            result = attack(target, found)
            fell += bool(result)
            seconds = time.monotonic() - began
            sys.stdout.write(f"{'FELL' if result else 'held'}  {seconds:6.1f} s  {found.name}\n")
            sys.stdout.write(f"      {result}\n" if result else "")
            sys.stdout.flush()
    finally:
        target.stop()
    return fell


if __name__ == "__main__":
    sys.exit(main())
