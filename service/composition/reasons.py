"""Why something was dropped, not measured or not believed, in the answer's language."""

from __future__ import annotations

from collections.abc import Iterable

from corpus.message import in_language
from corpus.schema import Language
from service.schemas.diagnosis import Dropped, Telemetry


def translate_reasons(dropped: Iterable[Dropped], language: Language) -> tuple[Dropped, ...]:
    """Give what was dropped and why in a language; what is no message of ours stays as it is."""
    return tuple(
        Dropped(what=str(in_language(item.what, language)), why=str(in_language(item.why, language)))
        for item in dropped
    )


def translate_readings(said: Telemetry, language: Language) -> Telemetry:
    """Give what the machine says with the reasons of missing readings in a language."""
    causes = []
    for cause in said.causes:
        readings = [
            item.model_copy(update={"unavailable": in_language(item.unavailable, language)})
            for item in cause.readings
        ]
        causes.append(cause.model_copy(update={"readings": tuple(readings)}))
    return said.model_copy(update={"causes": tuple(causes)})


def note(parts: Iterable[str], language: Language) -> str:
    """Give what became of a model in a language; a server's own words stay as they are."""
    told = " ".join(filter(None, (in_language(part, language) for part in parts)))
    return told.replace("。 ", "。")
