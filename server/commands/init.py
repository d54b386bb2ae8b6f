"""`init`: makes a folder a workspace, and prints the configuration for clients."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import click

from speckit_memory.config.files.paths import named_path, resolve_path, working_folder
from speckit_memory.config.workspace.settings import DB_VARIABLE, FOLDER, ROOT_VARIABLE, settings, workspace_root
from speckit_memory.config.workspace.store_address import is_address, require_address
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import keep_out_of_git, make_folder
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, printable
from speckit_memory.server.setup.clients import CLIENTS, NAME, Entry
from speckit_memory.server.setup.writing import ClientOutcome, FileChanges, agents_section, configure, starter_files


@click.command("init")
@click.option(
    "--write",
    is_flag=True,
    help="Also write starter files config.yaml and pipeline.yaml, a section of AGENTS.md that tells agents when to use "
    "the memory, and the server entry in the files of clients.",
)
@click.option(
    "--client",
    "named",
    type=click.Choice(list(CLIENTS)),
    multiple=True,
    help="A client to configure; may be repeated. Else those that the folder shows signs of (.cursor, .vscode, ...).",
)
@shared_options("json")
def command(common: Common, write: bool, named: tuple[str, ...]) -> None:
    """Make the current folder (or SPECKIT_ROOT) a workspace for MCP clients.

    Creates the folder .speckit with its own .gitignore, which keeps the store out of version control, and prints the
    configuration that an MCP client needs. The files that --write creates change nothing until you edit them. Your
    files are never replaced: entries are added to a client's file and AGENTS.md after a copy is made next to them, and
    an entry that cannot be added without a loss is printed for you to paste.
    """
    place = os.environ.get(ROOT_VARIABLE)
    root = resolve_path(named_path(place, ROOT_VARIABLE) if place else working_folder())
    before = workspace_root(root)
    made = FileChanges(created=_folder(root))
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
        document = {"workspace": str(root), "store": settings(root=root).store_told, **asdict(made), "client": client}
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
    whole = "." if root == resolve_path(working_folder()) else str(root)
    click.echo(printable(f"\nNext: speckit-memory index {whole}"))


def _tell(configured: list[ClientOutcome], made: FileChanges) -> None:
    for file, copy in made.changed.items():
        click.echo(printable(f"added to {file}; copy of the original: {copy}"))
    for left, why in made.left.items():
        click.echo(printable(f"left {left} unchanged: {why}"))
    for one in configured:
        if one.outcome in ("to do", "by hand"):
            why = f" ({one.reason})" if one.reason else ""
            click.echo(printable(f"\n{one.title}, to add to {one.file}{why}:\n{one.configuration.rstrip()}"))
        else:
            missing = f"; {one.reason}" if one.reason else ""
            click.echo(printable(f"{one.title} starts the server from {one.file}: {one.outcome}{missing}"))


def _tell_how(named: tuple[str, ...], write: bool) -> None:
    if not named:
        click.echo(
            f"\nFor the format of one client: --client {', '.join(CLIENTS)}; --write adds it to the client's file."
        )
    if not write:
        click.echo("Starter files, and a section of AGENTS.md for agents: speckit-memory init --write")
        click.echo("Six tools instead of all, in a third of the tokens: profile: core in .speckit/config.yaml")


def _folder(root: Path) -> list[str]:
    folder = root / FOLDER
    if folder.is_symlink() and not resolve_path(folder).is_relative_to(root):
        hint = "Nothing is written through a link that leads out of the workspace."
        actions = ("replace it by a folder", f"keep the store elsewhere with {DB_VARIABLE}")
        raise SpeckitError("E014", f"{folder} is a link to {resolve_path(folder)}", hint=hint, actions=actions)
    make_folder(folder)
    return [f"{FOLDER}/.gitignore"] if keep_out_of_git(folder) else []


def _entry(root: Path) -> Entry:
    """How a client starts this server from a working folder of its choice."""
    # an absolute path, because clients start servers with another PATH
    script = shutil.which(sys.argv[0])
    environment = {ROOT_VARIABLE: str(root)}
    if db := os.environ.get(DB_VARIABLE):
        environment[DB_VARIABLE] = (
            require_address(db, DB_VARIABLE) if is_address(db) else str(named_path(db, DB_VARIABLE).absolute())
        )
    return {
        "command": str(Path(script).absolute()) if script else "speckit-memory",
        "args": ["serve"],
        "env": environment,
    }
