"""Whether a change of the reader keeps every answer: `python -m eval.same_answers OUT [--compare OLD]`.

Writes one row for each labelled incident (its report and its diagnosis) and for each large made log of
`eval.bench.made_logs` (its report). Of each row that differs from an earlier run's it tells what does.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corpus import log_patterns
from eval import incidents
from eval.bench import made_logs
from eval.bench.hostile import MadeStream
from ingest.logs.inputs.sources import LogSource
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from service.pipeline.triage import ReadJob, Triage, read_config
from service.settings import load_settings

# What tells of this run and not of the log.
OWN = frozenset({"id", "timings_ms", "created", "telemetry_taken"})
SHOWN = 12


def main(words: list[str]) -> int:
    """Write the rows; exit code 1 where one differs from OLD."""
    parser = argparse.ArgumentParser(prog="python -m eval.same_answers", description=__doc__)
    parser.add_argument("out", type=Path, help="file for the rows, JSON lines")
    parser.add_argument("--compare", type=Path, metavar="OLD", help="rows of an earlier run")
    parser.add_argument("--only", choices=("incidents", "made"), help="only this part")
    parser.add_argument(
        "--incidents", type=Path, default=incidents.FOLDER, help="their folder, where no checkout runs this"
    )
    parser.add_argument("--bytes", type=int, default=made_logs.SIZE, help="size of each made log")
    options = parser.parse_args(words)
    old = dict(_read(options.compare)) if options.compare else {}
    differing = 0
    with options.out.open("w", encoding="utf-8") as stream:
        for name, row in _rows(options.only, options.incidents, options.bytes):
            # Where the checkout lies is no part of an answer.
            text = json.dumps(row, ensure_ascii=False, default=str).replace(f"{Path.cwd()}/", "")
            told = json.loads(text)
            stream.write(json.dumps([name, told], ensure_ascii=False) + "\n")
            stream.flush()
            if name in old and (found := list(_differences(old[name], told))):
                differing += 1
                sys.stdout.write("\n  ".join([name, *found[:SHOWN]]) + "\n")
    missing = len(old.keys() - dict(_read(options.out)).keys()) if not options.only else 0
    sys.stdout.write(f"{differing} of {len(old)} rows differ, {missing} are missing\n" if old else "")
    return 1 if differing or missing else 0


def _rows(only: str | None, folder: Path, size: int) -> Iterator[tuple[str, Any]]:
    if only != "made":
        triage = Triage(load_settings())
        for incident in incidents.load(folder):
            report = triage.reader.read(incident.source())
            files = tuple(read_config(path) for path in incident.job_files)
            job = ReadJob(report, incident.label.language, files)
            first = triage.diagnose(job, incident.telemetry).first
            answer = {key: value for key, value in first.model_dump(mode="json").items() if key not in OWN}
            yield f"incident {incident.id}", {"report": _report_fields(report), "answer": answer}
    if only != "incidents":
        reader = Reader(log_patterns.load(), load_settings().home / "cache")
        for name, make in made_logs.all_logs(size).items():
            yield f"made {name}", {"report": _report_fields(reader.read(LogSource(name, MadeStream(make()))))}


def _report_fields(report: CrashReport) -> dict[str, Any]:
    """Give a report's fields; sets in order, and nothing that is kept for reading alone."""
    return {
        field.name: _plain(getattr(report, field.name))
        for field in dataclasses.fields(report)
        if not field.name.startswith("_")
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key), new.get(key), f"{place}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, f"{place}[{number}]")
    elif old != new and not (old != old and new != new):  # no number is equal to itself in both
        yield f"{place}: {str(old)[:200]} -> {str(new)[:200]}"


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
