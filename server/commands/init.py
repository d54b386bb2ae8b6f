"""`init`: make a folder a workspace, and say how a client is told of it."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import click

from speckit_memory.config.files.paths import named_path, resolved, working_folder
from speckit_memory.config.workspace.settings import DB_VARIABLE, FOLDER, ROOT_VARIABLE, settings, workspace_root
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import keep_out_of_git, make_folder
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import print_json, printable
from speckit_memory.server.setup.clients import CLIENTS, NAME, Entry
from speckit_memory.server.setup.writing import Configured, Made, agents_section, configure, starter_files


@click.command("init")
@click.option(
    "--write",
    is_flag=True,
    help="Also write config.yaml and pipeline.yaml to start from, a section of AGENTS.md that tells agents when to use "
    "the memory, and the server into the files of clients.",
)
@click.option(
    "--client",
    "named",
    type=click.Choice(list(CLIENTS)),
    multiple=True,
    help="A client to configure; may be repeated. Else those that the folder shows signs of (.cursor, .vscode, ...).",
)
@shared("json")
def command(common: Common, write: bool, named: tuple[str, ...]) -> None:
    """Make the current folder (or SPECKIT_ROOT) a workspace, and print what an MCP client needs to know.

    Creates the folder .speckit with a .gitignore of its own, which keeps the store out of version control. What --write
    puts there changes nothing until you edit it. Files of yours are never replaced: a client's file and AGENTS.md are
    added to, after a copy beside them, and what cannot be added to without a loss is printed for you to paste.
    """
    place = os.environ.get(ROOT_VARIABLE)
    root = resolved(named_path(place, ROOT_VARIABLE) if place else working_folder())
    before = workspace_root(root)
    made = Made(created=_folder(root))
    entry = _entry(root)
    chosen = [CLIENTS[name] for name in dict.fromkeys(named)] or [
        client for client in CLIENTS.values() if client.is_used(root)
    ]
    if write:
        starter_files(root, made)
        agents_section(root, made)
    configured = [configure(client, entry, root, made if write else None) for client in chosen]
    client = {"mcpServers": {NAME: entry}}
    if common.as_json:
        document = {"workspace": str(root), "store": str(settings(root=root).db), **asdict(made), "client": client}
        print_json({**document, "clients": [asdict(one) for one in configured]})
        return
    done = f"created {', '.join(made.created)}" if made.created else "nothing to create"
    click.echo(printable(f"workspace {root}; {done}"))
    if before != root:
        click.echo(printable(f"until now this folder belonged to the workspace {before}"))
    _tell(configured, made)
    if not named:
        click.echo("\nFor an MCP client:")
        print_json(client)
    _tell_how(named, write)
    whole = "." if root == resolved(working_folder()) else str(root)
    click.echo(printable(f"\nNext: speckit-memory index {whole}"))


def _tell(configured: list[Configured], made: Made) -> None:
    for file, copy in made.changed.items():
        click.echo(printable(f"added to {file}; as it was: {copy}"))
    for left, why in made.left.items():
        click.echo(printable(f"left {left} as it is: {why}"))
    for one in configured:
        if one.outcome in ("to do", "by hand"):
            why = f" ({one.reason})" if one.reason else ""
            click.echo(printable(f"\n{one.title}, to add to {one.file}{why}:\n{one.configuration.rstrip()}"))
        else:
            missing = f"; {one.reason}" if one.reason else ""
            click.echo(printable(f"{one.title} starts the server from {one.file}: {one.outcome}{missing}"))


def _tell_how(named: tuple[str, ...], write: bool) -> None:
    if not named:
        click.echo(f"\nIn the form of one client: --client {', '.join(CLIENTS)}; with --write it goes into its file.")
    if not write:
        click.echo("Files to start from, and a section of AGENTS.md for agents: speckit-memory init --write")
        click.echo("Six tools instead of all, in a third of the room: profile: core in .speckit/config.yaml")


def _folder(root: Path) -> list[str]:
    folder = root / FOLDER
    if folder.is_symlink() and not resolved(folder).is_relative_to(root):
        hint = "Nothing is written through a link that leads out of the workspace."
        actions = ("replace it by a folder", f"keep the store elsewhere with {DB_VARIABLE}")
        raise SpeckitError("E014", f"{folder} is a link to {resolved(folder)}", hint=hint, actions=actions)
    make_folder(folder)
    return [f"{FOLDER}/.gitignore"] if keep_out_of_git(folder) else []


def _entry(root: Path) -> Entry:
    """How a client starts this server, which it does in a folder of its own choice."""
    script = shutil.which(sys.argv[0])
    environment = {ROOT_VARIABLE: str(root)}
    if db := os.environ.get(DB_VARIABLE):
        environment[DB_VARIABLE] = str(named_path(db, DB_VARIABLE).absolute())
    return {
        "command": str(Path(script).absolute()) if script else "speckit-memory",
        "args": ["serve"],
        "env": environment,
    }
