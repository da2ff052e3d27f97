"""What a model may say: a fixed form, every part of it bounded and none of it believed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

MAX_QUOTES = 12
MAX_CASES = 8
MAX_CHANGES = 12
MAX_TEXT = 6000
_NAME, _LINE = 300, 1000
# An answer longer than this is no answer in the form; what follows is not read.
MAX_ANSWER = 60_000
_FENCE = re.compile(r"^\s*```(?:json)?\s*|\s*```\s*$")

C = TypeVar("C", bound=BaseModel)


def _words(limit: int) -> BeforeValidator:
    return BeforeValidator(lambda value: str(value)[:limit] if isinstance(value, (str, int, float)) else "")


def _first(count: int) -> BeforeValidator:
    return BeforeValidator(lambda value: list(value[:count]) if isinstance(value, (list, tuple)) else [])


Name = Annotated[str, _words(_NAME)]
Line = Annotated[str, _words(_LINE)]
Prose = Annotated[str, _words(MAX_TEXT)]


class Claim(BaseModel):
    """A part of a model's answer; what it holds beyond the form is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Quote(Claim):
    """Words of the log, as the model holds them; `line` is where it says that they stand."""

    line: Annotated[Name, Field(description="its mark")] = ""
    text: Annotated[Line, Field(description="its words")] = ""


class Pick(Claim):
    """One of the offered changes."""

    framework: Name = ""
    key: Name = ""
    to: Name = ""


class Proposal(Pick):
    """A change that the model proposes: an offered one, or one of its own, which is checked.

    Of the job's own code, `key` is the place (`train.py:42`), `before` the statement there and `to` what it
    is to be; without `before`, `to` says in words what to do.
    """

    to: Line = ""

    kind: Annotated[Name, Field(description="as listed")] = "setting"
    before: Line = ""
    why: Annotated[Line, Field(description="one sentence")] = ""


class Claims(Claim):
    """A model's answer about a log."""

    cause: Annotated[Name, Field(description="the id of one cause, or no-failure, or insufficient-evidence")]
    certainty: Annotated[Name, Field(description="high, medium or low")] = "medium"
    quotes: Annotated[
        tuple[Quote, ...],
        _first(MAX_QUOTES),
        Field(description="lines of the log that prove it, the most telling first"),
    ] = ()
    cases: Annotated[
        tuple[Name, ...], _first(MAX_CASES), Field(description="ids of the known cases that apply")
    ] = ()
    changes: Annotated[
        tuple[Proposal, ...],
        _first(MAX_CHANGES),
        Field(description="the changes to make, the first to try first"),
    ] = ()
    explanation: Annotated[
        Prose, Field(description="Markdown; every paragraph cites [L12], [case:id] or [telemetry]")
    ]


class ModelReply(Claim):
    """A model's answer to a follow-up question."""

    cases: Annotated[
        tuple[Name, ...], _first(MAX_CASES), Field(description="ids of the known cases that apply")
    ] = ()
    changes: Annotated[
        tuple[Pick, ...],
        _first(MAX_CHANGES),
        Field(description="the offered changes that the answer is about"),
    ] = ()
    answer: Annotated[
        Prose, Field(description="Markdown; every paragraph cites [L12], [case:id] or [telemetry]")
    ]


def schema(kind: type[Claim]) -> dict[str, Any]:
    """Give the JSON schema of a form, closed as providers that enforce schemas want it.

    All fields, no others.
    """
    made = kind.model_json_schema()
    definitions = made.pop("$defs", {})
    closed = _closed(made, definitions)
    return {"title": kind.__name__, "description": (kind.__doc__ or "").strip(), **closed}


def _closed(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _closed(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    told = (
        {"description": node["description"]} if "description" in node and node.get("type") != "object" else {}
    )
    if node.get("type") == "object":
        fields = {name: _closed(field, definitions) for name, field in node["properties"].items()}
        return {
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }
    if node.get("type") == "array":
        return {"type": "array", **told, "items": _closed(node["items"], definitions)}
    return {"type": "string", **told}


def parse(kind: type[C], text: str) -> C:
    """Read a model's answer; raises ValueError with what is wrong, in words for the model."""
    body = _FENCE.sub("", text[:MAX_ANSWER]).strip()
    begin = body.find("{")
    if begin < 0:
        raise ValueError("there is no JSON object in it")
    try:
        # What a model writes after its object is left alone.
        data, _ = json.JSONDecoder().raw_decode(body[begin:])
        return kind.model_validate(data)
    except ValidationError as error:
        rows = [
            f"{'.'.join(map(str, item['loc'])) or 'the object'}: {item['msg']}" for item in error.errors()[:5]
        ]
        raise ValueError("; ".join(rows)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no valid JSON: {error.msg} at character {error.pos}") from error
