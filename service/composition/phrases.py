"""The sentences of an answer that are not a case's own, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from corpus import phases
from corpus.message import words
from corpus.schema import Language
from ingest.logs.facts import Fact, Value, size_in_words
from ingest.logs.timeline import Place
from service.schemas.diagnosis import Outcome, Telemetry

# The fields without which a fact cannot be put into words.
_FACTS: Mapping[str, tuple[str, ...]] = {
    "gpu_oom": ("asked_gib", "free_gib", "capacity_gib"),
    "gpu_fit": ("weights_gib", "capacity_gib"),
    "gpu_training": ("trained_b", "state_gib", "capacity_gib"),
    "host_oom": ("used_gib", "limit_gib"),
    "collective": ("op", "seq", "timeout_s"),
    "exit": ("code",),
    "port": ("port",),
    "batch": ("size", "divisor"),
    "sequence": ("length", "limit"),
}


def phrase(name: str, language: Language, **values: object) -> str:
    """Give a sentence in `language` with its values filled in."""
    return words(f"answer.{name}", language, **values)


def titled(title: str, text: str, language: Language) -> str:
    """Give a paragraph of an explanation with its title before it."""
    return f"{_title(title, language)}{text}"


def titled_text(explanation: str, title: str, language: Language) -> str:
    """Give the paragraph of an explanation that has a title, without it; empty where there is none."""
    start = _title(title, language)
    found = (part for part in explanation.split("\n\n") if part.startswith(start))
    return next(found, start).removeprefix(start)


def untitled_text(explanation: str) -> list[str]:
    """Give the paragraphs of an explanation before the first one with a title."""
    return list(takewhile(lambda part: not part.startswith("**"), explanation.split("\n\n")))


def _title(title: str, language: Language) -> str:
    return f"{phrase('paragraph-title', language, title=phrase(title, language))} "


def phase(name: str, language: Language) -> str:
    """Give the words for a phase of a job, or the empty string for none."""
    known = phases.load().by_name.get(name)
    return known.title.to(language) if known else ""


def place(where: Place, language: Language) -> str:
    """Say where a line stands, at the beginning of a sentence."""
    if where.file:
        return phrase("place-in-file", language, line=where.line, file=where.file)
    return phrase("place", language, line=where.line)


def fact(found: Fact, language: Language) -> str:
    """Put a fact into words; empty where it lacks the fields for it."""
    needed = _FACTS.get(found.kind, ())
    if not needed or any(name not in found.fields for name in needed):
        return ""
    values: dict[str, Value] = {}
    for name in needed:
        value = found.fields[name]
        if not isinstance(value, str) and name.endswith("_gib"):
            value = size_in_words(value)
        values[name] = f"{value:.4g}" if isinstance(value, float) else value
    return phrase(f"fact-{found.kind}", language, **values)


def outcome(ended: Outcome, language: Language) -> str:
    """Write how a job ended in a line, with how far its log shows that it came.

    Empty where nobody told how, and the log counts no steps.
    """
    told = {
        "exit-code": ended.exit_code,
        "signal": ended.signal,
        "state": ended.state,
        "at-step": ended.last_step,
        "at-checkpoint": ended.last_checkpoint,
    }
    return " · ".join(
        phrase(name, language, value=value)
        for name, value in told.items()
        if value is not None and not (name == "at-step" and value == 0)
    )


def duration(seconds: float, language: Language) -> str:
    """Write a time in its two largest units."""
    days, hours, minutes = int(seconds // 86400), int(seconds // 3600 % 24), int(seconds // 60 % 60)
    told = {"days": days, "hours": hours, "minutes": minutes, "seconds": int(seconds % 60)}
    names = [name for name, value in told.items() if value]
    shown = " ".join(phrase(f"in-{name}", language, value=told[name]) for name in names[:2])
    return phrase("lasted", language, time=shown) if shown else ""


def telemetry(said: Telemetry, language: Language) -> list[str]:
    """Put what the machine says of each cause into words, with the readings that it rests on."""
    spoken = [
        item for place, item in enumerate(said.causes) if place == 0 or item.says in ("agrees", "contradicts")
    ]
    rows = []
    for item in spoken:
        there = [f"{one.name} = {one.value}" for one in item.readings if one.value is not None]
        missing = [f"{one.name}: {one.unavailable}" for one in item.readings if one.value is None]
        shown = "; ".join("`{}`".format(text.replace("`", "'")[:160]) for text in (there or missing)[:3])
        line = f"- {item.cause}: {phrase(item.says, language)}. {item.why}"
        rows.append(f"{line} ({shown})" if shown else line.rstrip())
    return rows
