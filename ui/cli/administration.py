"""The commands of a server's administrator: who may ask, who did what, and what of whom is kept."""

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
    team: Annotated[
        str,
        typer.Option(
            "--team",
            metavar="TEAM",
            help="Whose it is: keys of one team see each other's work, and share its limits.",
        ),
    ] = "",
) -> None:
    """Make a key, and show it this once."""
    from ui.cli import keys as command

    raise typer.Exit(command.add(name, scope or [], team))


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


def audit(
    since: Annotated[
        str,
        typer.Option("--since", metavar="TIME", help="Only from then on: 2026-11-20, 2026-11-20T08:00, 7d."),
    ] = "",
) -> None:
    """Print who did what on the server, as lines of JSON, oldest first."""
    from ui.cli import audit as command

    raise typer.Exit(command.export(since))


def forget(
    caller: Annotated[
        str,
        typer.Argument(
            metavar="CALLER", help="A key's id, `team:TEAM`, a Slack user's id, or `local`; see `audit`."
        ),
    ],
) -> None:
    """Delete all that is kept of a caller: triages, batches, feedback, notes; a team's write-ups, too."""
    from ui.cli import audit as command

    raise typer.Exit(command.forget(caller))
