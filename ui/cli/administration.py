"""`whycrash keys`: the commands by which a server's administrator says who may ask."""

from __future__ import annotations

from typing import Annotated

import typer

keys_app = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)


@keys_app.command("add")
def add_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="What it may do: triage, batch or admin; may be repeated. Default: triage.",
        ),
    ] = None,
) -> None:
    """Make a key, and show it this once."""
    from ui.cli import keys as command

    raise typer.Exit(command.add(name, scope or []))


@keys_app.command("list")
def list_keys() -> None:
    """List the keys, without their secrets."""
    from ui.cli import keys as command

    raise typer.Exit(command.show())


@keys_app.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")],
) -> None:
    """End a key; servers that run take it no more within a second."""
    from ui.cli import keys as command

    raise typer.Exit(command.revoke(key_id))
