"""`help`: shows the help of a command."""

from __future__ import annotations

import click

from speckit_memory.errors import nearest


@click.command("help")
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(context: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of a COMMAND, such as 'links add', or of all commands."""
    shown = context.find_root()
    for name in names:
        group = shown.command
        found = group.get_command(shown, name) if isinstance(group, click.Group) else None
        if found is None:
            known = group.list_commands(shown) if isinstance(group, click.Group) else ()
            raise click.UsageError(f"no command '{name}'; {nearest(name, known)}", shown)
        shown = click.Context(found, parent=shown, info_name=name)
    click.echo(shown.get_help())
