"""Which frameworks a job runs, told by file paths, module names and printed versions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from corpus.call_lines import CallLine, dated_packages
from corpus.expressions import compiled
from corpus.frameworks import cued_frameworks, known_frameworks
from ingest.logs.stacks.stack import Frame


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework seen in a log; `version` is empty where none is printed."""

    name: str
    version: str
    line: int


class FrameworkLog:
    """Gather the frameworks of one log: the first line of each, and its version once one is printed."""

    def __init__(self) -> None:
        self._found: dict[str, Framework] = {}
        # What only lines show that others print as well: these others, with the first such line.
        self._shared: dict[str, tuple[int, frozenset[str]]] = {}

    def see(self, name: str, line: int, version: str = "") -> None:
        """Note a framework; a version, once known, stays."""
        known = self._found.get(name)
        if known is None:
            self._found[name] = Framework(name, version, line)
        elif version and not known.version:
            self._found[name] = Framework(name, version, known.line)

    def see_shared(self, name: str, line: int, others: Collection[str]) -> None:
        """Note a framework by a line that `others` print too: it counts where none of them is seen."""
        if name not in self._found:
            self._shared.setdefault(name, (line, frozenset(others)))

    def see_text(self, text: str, line: int) -> None:
        """Note what the text speaks of."""
        for name in cued_frameworks(text):
            self.see(name, line)

    def all(self) -> tuple[Framework, ...]:
        """Give what was found, the job's own framework before what it runs on."""
        rank = known_frameworks().cue_rank
        shared = [
            Framework(name, "", line)
            for name, (line, others) in self._shared.items()
            if name not in self._found and others.isdisjoint(self._found)
        ]
        found = (*self._found.values(), *shared)
        return tuple(sorted(found, key=lambda each: (rank.get(each.name, len(rank)), each.line)))


def with_forks(found: tuple[Framework, ...], launches: Iterable[str]) -> tuple[Framework, ...]:
    """Add those made from a framework and started as it that the job's own files show.

    Their output is that framework's, so that often only a launch script tells which of them runs.
    """
    names = {item.name: item for item in found}
    rows = known_frameworks().rows.values()
    forks = {row.id: names[row.started_as] for row in rows if row.started_as in names and row.id not in names}
    if not forks:
        return found
    shown = {name for text in launches for name in cued_frameworks(text)}
    added = [Framework(name, "", base.line) for name, base in forks.items() if name in shown]
    rank = known_frameworks().cue_rank
    return tuple(sorted((*added, *found), key=lambda each: (rank.get(each.name, len(rank)), each.line)))


def dated_versions(texts: Iterable[str], frames: Iterable[Frame] = ()) -> Mapping[str, str]:
    """Give the range of versions that lines and calls leave open for each framework which they date."""
    rows = [row for row in known_frameworks().rows.values() if row.dated_by]
    found: dict[str, dict[str, None]] = {}
    for text in texts:
        for row in rows:
            for sign in row.dated_by:
                if match := compiled(sign.says).search(text):
                    found.setdefault(row.id, {})[sign.versions.format(**match.groupdict())] = None
    calls = (CallLine(frame.file, frame.line, frame.function, frame.code) for frame in frames)
    for package, versions in dated_packages(calls).items():
        found.setdefault(known_frameworks().of_package(package), {})[versions] = None
    return {name: ",".join(ranges) for name, ranges in found.items()}
