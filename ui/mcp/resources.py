"""What an assistant may read without a call: the guide, the causes, the cases, the answer's schema."""

from __future__ import annotations

import json

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError

from ingest.redaction.redactor import Redactor
from service.schemas.published import diagnosis_schema
from ui.mcp import skill
from ui.mcp.assistant import ERRORS, Assistant

_JSON, _MARKDOWN = "application/json", "text/markdown"


def add(server: MCPServer[None], assistant: Assistant) -> None:
    """Add the resources to a server."""

    @server.resource(
        "whycrash://guide",
        title="How to use whycrash",
        description="Which tool to call when, how to read an answer, and what not to do.",
        mime_type=_MARKDOWN,
    )
    def guide() -> str:
        return skill.guide()

    @server.resource(
        "whycrash://causes",
        title="The catalogue of causes",
        description="Every id that `cause` may have, with its category, title and meaning.",
        mime_type=_JSON,
    )
    def causes() -> str:
        return json.dumps(assistant.causes(), ensure_ascii=False, indent=1)

    @server.resource(
        "whycrash://schema/diagnosis",
        title="JSON schema of a diagnosis",
        description="The schema of the object that `whycrash explain --json` and the HTTP API give.",
        mime_type=_JSON,
    )
    def schema() -> str:
        return json.dumps(diagnosis_schema(), indent=1)

    @server.resource(
        "whycrash://case/{framework}/{name}",
        title="A known failure mechanism",
        description="One case by its id, such as verl/train-batch-not-divisible, in Markdown.",
        mime_type=_MARKDOWN,
    )
    def case(framework: str, name: str) -> str:
        try:
            told = assistant.case(f"{framework}/{name}", "")
        except ERRORS as error:
            # What goes wrong is told in its own sentence.
            raise ResourceError(Redactor().clean(str(error)) or type(error).__name__) from error
        return "\n\n".join([f"# {told.title}", told.text, *told.sources])
