"""Which frameworks a job runs, told by file paths, module names and printed versions."""

from __future__ import annotations

from dataclasses import dataclass

from corpus.frameworks import cued_frameworks, known_frameworks


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

    def see(self, name: str, line: int, version: str = "") -> None:
        """Note a framework; a version, once known, stays."""
        known = self._found.get(name)
        if known is None:
            self._found[name] = Framework(name, version, line)
        elif version and not known.version:
            self._found[name] = Framework(name, version, known.line)

    def see_text(self, text: str, line: int) -> None:
        """Note what the text speaks of."""
        for name in cued_frameworks(text):
            self.see(name, line)

    def all(self) -> tuple[Framework, ...]:
        """Give what was found, the job's own framework before what it runs on."""
        rank = known_frameworks().cue_rank
        return tuple(
            sorted(self._found.values(), key=lambda found: (rank.get(found.name, len(rank)), found.line))
        )
