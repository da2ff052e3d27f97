"""The API's reference as a page that loads nothing: `/docs` and the schema of the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from service.api.app_state import Anyone
from service.api.problems import documented_problems
from service.html.markup import EMPTY, Html, coded, document, element, folded, join, paragraph, section, table
from service.schemas.published import diagnosis_schema

router = APIRouter(tags=["reference"])

_NOBODY = ("default-src", "frame-ancestors", "base-uri", "form-action")
POLICY = "; ".join(["style-src 'unsafe-inline'", *(f"{name} 'none'" for name in _NOBODY)])
# Anchors of schemas; what a route takes and gives leads there.
_REF = "#/components/schemas/"


@router.get("/docs", include_in_schema=False)
async def reference(request: Request) -> Response:
    """Show what `/openapi.json` says as a page."""
    # The routes of an app never change while it runs.
    state = request.app.state
    if not hasattr(state, "reference"):
        state.reference = page(request.app.openapi())
    return HTMLResponse(state.reference, headers={"content-security-policy": POLICY})


@router.get("/v1/schemas/diagnosis", response_class=JSONResponse, responses=documented_problems())
async def schema(_principal: Anyone) -> Response:
    """Give the JSON schema of a diagnosis, the object that every way of asking answers with."""
    return JSONResponse(diagnosis_schema())


def page(told: Mapping[str, Any]) -> str:
    """Write the page of an OpenAPI description."""
    by_tag: dict[str, list[Html]] = {}
    for path, methods in told["paths"].items():
        for method, route in methods.items():
            by_tag.setdefault(next(iter(route.get("tags", ())), "other"), []).append(
                _route(method, path, route)
            )
    schemas = told["components"]["schemas"]
    names = [*by_tag, "schemas"]
    links = (element("a", name, href=f"#{name}") for name in names)
    head = element(
        "header",
        element("h1", f"{told['info']['title']} {told['info']['version']}"),
        *(paragraph(coded(text)) for text in told["info"]["description"].strip().split("\n\n")),
        paragraph(element("a", "openapi.json", href="openapi.json")),
        element("nav", *links, aria_label="Sections"),
    )
    parts = [section(tag, tag.capitalize(), *routes) for tag, routes in by_tag.items()]
    shapes = section("schemas", "Schemas", *(_schema(name, part) for name, part in sorted(schemas.items())))
    return document(
        f"{told['info']['title']}: API", head, element("main", *parts, shapes), lang="en", style=_STYLE
    )


def _route(method: str, path: str, route: Mapping[str, Any]) -> Html:
    said = str(route.get("description", "")).split("\n\n")
    summary = join(
        element("code", method.upper(), class_=f"method {method}"),
        " ",
        element("code", path),
        element("span", coded(said[0])),
    )
    return folded(
        summary,
        *(paragraph(coded(text)) for text in said[1:]),
        *_parameters_and_body(route),
        _answered(route),
        class_="route",
    )


def _parameters_and_body(route: Mapping[str, Any]) -> Iterator[Html]:
    """Render what a route takes: its parameters, and its body by media type."""
    rows = [
        (
            element("code", part["name"]),
            part["in"],
            _type(part.get("schema", {})),
            coded(part.get("description", "")),
        )
        for part in route.get("parameters", ())
    ]
    if rows:
        yield table("Parameters", ["name", "in", "type", "what"], rows)
    for kind, body in route.get("requestBody", {}).get("content", {}).items():
        yield paragraph("Body ", element("code", kind), ": ", _type(body.get("schema", {})))
        example = body.get("example")
        if example:
            yield element("pre", element("code", _json(example)), tabindex="0")


def _answered(route: Mapping[str, Any]) -> Html:
    rows = []
    for status, answer in route["responses"].items():
        kinds = answer.get("content", {})
        given = join(
            *(
                join(element("code", kind), " ", _type(part.get("schema", {})))
                for kind, part in kinds.items()
            ),
            between=", ",
        )
        rows.append((status, coded(answer.get("description", "")), given))
    return table("Answers", ["status", "what", "type"], rows)


def _schema(name: str, schema: Mapping[str, Any]) -> Html:
    required = set(schema.get("required", ()))
    rows = [
        (
            element("code", field),
            _type(part),
            "" if field in required else "optional",
            coded(part.get("description", "")),
        )
        for field, part in schema.get("properties", {}).items()
    ]
    said = (
        paragraph(coded(" ".join(text.split()))) for text in str(schema.get("description", "")).split("\n\n")
    )
    shape = table("Fields", ["field", "type", "", "what"], rows) if rows else paragraph(_type(schema))
    examples = (
        element("pre", element("code", _json(example)), tabindex="0")
        for example in schema.get("examples", ())
    )
    # Open, so that the browser's search and links to it find what is in it.
    return folded(element("code", name, id=f"schema-{name}"), *said, shape, *examples, is_open=True)


def _type(schema: Mapping[str, Any]) -> Html:
    """Render a type in a few words; a schema that has a name leads to it."""
    if reference := schema.get("$ref"):
        name = str(reference).removeprefix(_REF)
        return element("a", name, href=f"#schema-{name}")
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return join(*(_type(part) for part in schema[union]), between=" | ")
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return join(*(element("code", json.dumps(value)) for value in values), between=" | ")
    kind = schema.get("type")
    if kind == "array":
        return join("list of ", _type(schema.get("items", {})))
    if kind == "object" and schema.get("properties"):
        fields = (
            join(element("code", name), " ", _type(part)) for name, part in schema["properties"].items()
        )
        return join(*fields, between="; ")
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return join("object of ", _type(schema["additionalProperties"]))
    return join(str(schema.get("format") or kind or "any"), _bounds(schema))


def _bounds(schema: Mapping[str, Any]) -> Html:
    """Say the limits of a value, where it has any."""
    signs = {
        "minimum": "≥",
        "exclusiveMinimum": ">",
        "maximum": "≤",
        "exclusiveMaximum": "<",
        "maxLength": "length ≤",
        "minLength": "length ≥",
    }
    told = [f"{sign} {schema[name]}" for name, sign in signs.items() if name in schema]
    if schema.get("default") not in (None, ""):
        told.append(f"default {json.dumps(schema['default'])}")
    return element("span", f" ({', '.join(told)})", class_="soft") if told else EMPTY


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


_STYLE = """
.route summary span { display: inline; }
.method { font-weight: 700; padding: .1rem .4rem; border-radius: .3rem; background: var(--wash); }
.method.post { color: var(--good); } .method.delete { color: var(--bad); }
.method.get { color: var(--one); }
.scroll td, .scroll tbody th {
  white-space: normal; overflow-wrap: anywhere; min-width: 5rem; max-width: 30rem;
}
.scroll td:last-child { min-width: 12rem; }
td span { display: inline; margin: 0; }
pre { overflow-x: auto; background: var(--wash); padding: .7rem; border-radius: .4rem; }
summary { overflow-wrap: anywhere; }
"""
