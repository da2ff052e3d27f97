"""The table of what readings say of causes: `corpus/telemetry.yaml`, read and checked."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from corpus.condition_nodes import ConditionResult, every, some
from corpus.library import read_yaml, roots, validated
from corpus.schema import LogCondition, Record, Text, accepted_by
from ingest.logs.conditions import holds
from ingest.logs.report import CrashReport
from service.telemetry.conditions import SNAPSHOT, SnapshotContext, evaluate

FILE = "telemetry.yaml"
Effect = Literal["decides", "confirms", "contradicts"]


SnapshotCondition = Annotated[str, accepted_by(SNAPSHOT.check)]


class LogSign(Record):
    """Something of a log that rules ask for: one of `any` holds.

    A `follower` is a root that explains nothing itself.
    """

    follower: bool = False
    any: tuple[LogCondition, ...]

    def shown(self, report: CrashReport) -> bool:
        """Tell whether a log shows it."""
        if self.follower and not is_follower(report):
            return False
        view = report.view()
        return any(holds(condition, view) for condition in self.any)


class TelemetryRule(Record):
    """What a condition over log and snapshot says of causes."""

    id: str
    causes: Annotated[tuple[str, ...], Field(min_length=1)]
    log: tuple[str, ...] = ()
    when: tuple[LogCondition, ...] = ()
    all: tuple[SnapshotCondition, ...] = ()
    any: tuple[SnapshotCondition, ...] = ()
    requires: tuple[str, ...] = ()
    effect: Effect
    weight: Annotated[float, Field(gt=0, lt=1)]
    why: Text


class TelemetryRules(Record):
    """The whole table."""

    signs: dict[str, LogSign]
    groups: dict[str, tuple[SnapshotCondition, ...]]
    rules: tuple[TelemetryRule, ...]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        unknown = {name for rule in self.rules for name in rule.log if name not in self.signs}
        unknown |= {name for rule in self.rules for name in rule.requires if name not in self.groups}
        if unknown:
            raise ValueError(f"there is no sign or group {sorted(unknown)[0]!r}")
        if twice := [rule.id for rule in self.rules if sum(other.id == rule.id for other in self.rules) > 1]:
            raise ValueError(f"two rules are called {twice[0]!r}")
        return self

    def shown(self, rule: TelemetryRule, report: CrashReport) -> bool:
        """Tell whether the log is one that a rule speaks of."""
        view = report.view()
        signs = not rule.log or any(self.signs[name].shown(report) for name in rule.log)
        return signs and all(holds(condition, view) for condition in rule.when)

    def outcome(self, rule: TelemetryRule, context: SnapshotContext) -> ConditionResult:
        """Tell whether a rule's conditions over the snapshot hold."""
        parts = [evaluate(text, context) for text in rule.all]
        if rule.any:
            parts.append(some([evaluate(text, context) for text in rule.any]))
        parts += [some([evaluate(text, context) for text in self.groups[name]]) for name in rule.requires]
        return every(parts)


def is_follower(report: CrashReport) -> bool:
    """Tell whether the log's root only follows from something that the log does not show."""
    root = report.root
    return root is not None and (
        root.pattern_role in ("collateral", "wrapper") or (root.strength == "hints" and bool(root.cause))
    )


def load_rules(*folders: Path) -> TelemetryRules:
    """Load the rules of each folder of knowledge; raises InvalidCorpusError naming the wrong field."""
    return _loaded(folders or roots())


@cache
def _loaded(folders: tuple[Path, ...]) -> TelemetryRules:
    merged: dict[str, Any] = {"signs": {}, "groups": {}, "rules": []}
    where = ""
    for folder in folders:
        if (path := folder / FILE).exists():
            table, where = read_yaml(path), str(path)
            merged["signs"] |= table.get("signs", {})
            merged["groups"] |= table.get("groups", {})
            merged["rules"] += table.get("rules", [])
    return validated(TelemetryRules, merged, where)
