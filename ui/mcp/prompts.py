"""What a user may choose in an assistant: explain a crash, or mend its job."""

from __future__ import annotations

from typing import Annotated

from mcp.server import MCPServer
from pydantic import Field

_Log = Annotated[str, Field(description="Path of the log, a folder of ranks' logs, or an archive.")]
_Config = Annotated[str, Field(description="Path of the launch script or configuration, where there is one.")]


def add(server: MCPServer[None]) -> None:
    """Add the prompts to a server."""

    @server.prompt(title="Explain a crash")
    def explain_crash(log: _Log, config: _Config = "") -> str:
        """Say why a job died, with the line that proves it and how sure that is."""
        return (
            f"{_triage(log, config)} Then tell me in a few sentences: what died and why, quoting the line "
            "with role `root` and its number; how likely that is, and what else it may be where confidence "
            "is below 0.7; the first change with its arithmetic. Say plainly where the verdict is unknown, "
            "and which checks come next."
        )

    @server.prompt(title="Mend a job that crashed")
    def fix_crash(
        log: _Log,
        config: _Config = "",
        keep: Annotated[
            str, Field(description="What must stay as it is, such as the batch size or the model.")
        ] = "",
    ) -> str:
        """Propose the change that cures a crash, as a patch of the job's own files."""
        stays = (
            f" These must stay: {keep}. Say so with `follow_up`, and take what is proposed then."
            if keep
            else ""
        )
        return (
            f"{_triage(log, config)}{stays} Show me the patch with the reason of each changed row. Check "
            "every option that you add beyond it with `look_up_setting` at the job's version. Apply nothing "
            "before I agree. Where there is no patch, give the steps in their order instead."
        )


def _triage(log: str, config: str) -> str:
    """Give the sentence that has the client call the tool `triage_log` with the files."""
    beside = f" and config_paths [{config!r}]" if config else ""
    return f"Call `triage_log` with paths [{log!r}]{beside}."
