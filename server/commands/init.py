"""`init`: make a folder a workspace, and say how a client is told of it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from speckit_memory.config.files.paths import named_path, resolved, working_folder
from speckit_memory.config.settings import CONFIG_FILE, DB_VARIABLE, FOLDER, ROOT_VARIABLE, settings, workspace_root
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.store_file import keep_out_of_git, make_folder
from speckit_memory.server.options import Common, shared
from speckit_memory.server.output import print_json, printable

TEMPLATE = """\
# What holds for everybody who works in this workspace. Commit this file. docs/workspace.md explains it,
# `speckit-memory doctor` checks it. Beside it may lie pipeline.yaml, how searches go, and flags.yaml.

# Which files `speckit-memory index` takes below the folders it is given. Patterns are those of .gitignore files,
# relative to this workspace. What .gitignore files leave out is left out already.
# sources:
#   include:            # hidden folders to enter; with other patterns too, only what matches is taken
#     - .notes/
#   exclude:            # left out; "!" takes back what a .gitignore leaves out
#     - drafts/
#     - "!private/decisions/"

# Milliseconds after which a search skips optional steps.
# deadline_ms: 2000

# Where components of installed extensions run: "trusted" in the server's process, "isolated" in one of their own that
# may have so many megabytes, "none" nowhere. docs/extending.md says what each is for.
# extensions: trusted
# extensions_memory_mb: 2048

# How documents are taken in; docs/saving.md says what each means.
# saving:
#   secrets: credentials      # "all" with addresses of e-mail, "keep" for nothing
#   quality: mend             # "require" or "report"
#   prediction_error: act     # "report"

# What is noted beside answers, to compare pipelines later: "all" queries that were served, only those that "shadows"
# answered too, or "off". What was asked is kept with texts: true alone; the rest is ids and figures.
# evaluation:
#   record: all
#   texts: false
#   keep_days: 90
#   max_mb: 50
#   observe: 0.05       # share of the queries whose scores are kept part by part
#   sample: 1.0         # share of the queries that are noted when one pipeline answered alone

# From how many passages on the nearest vectors are found by an index that is approximate, if the extra "ann" is
# installed; "exact" answers without it, "off" has none written. docs/large-stores.md says what it costs.
# vector_index: 200000

# How many checkpoints of the store are kept, and for how many days; the oldest goes for a new one.
# checkpoints:
#   keep: 10
#   days: null
"""


@click.command("init")
@click.option("--write", is_flag=True, help="Also write a config.yaml with everything in it commented out.")
@shared("json")
def command(common: Common, write: bool) -> None:
    """Make the current folder (or SPECKIT_ROOT) a workspace, and print what an MCP client needs to know.

    Creates the folder .speckit with a .gitignore of its own, which keeps the store out of version control. Files that
    are there already stay as they are.
    """
    named = os.environ.get(ROOT_VARIABLE)
    root = resolved(named_path(named, ROOT_VARIABLE) if named else working_folder())
    before = workspace_root(root)
    created = _folder(root)
    if write and _config_file(root):
        created.append(CONFIG_FILE.as_posix())
    client = _client(root)
    if common.as_json:
        store = str(settings(root=root).db)
        print_json({"workspace": str(root), "store": store, "created": created, "client": client})
        return
    done = f"created {', '.join(created)}" if created else "nothing to create"
    click.echo(printable(f"workspace {root}; {done}"))
    if before != root:
        click.echo(printable(f"until now this folder belonged to the workspace {before}"))
    click.echo("\nFor an MCP client:")
    print_json(client)
    click.echo("\nNext: speckit-memory index PATH")


def _folder(root: Path) -> list[str]:
    folder = root / FOLDER
    if folder.is_symlink() and not resolved(folder).is_relative_to(root):
        hint = "Nothing is written through a link that leads out of the workspace."
        actions = ("replace it by a folder", f"keep the store elsewhere with {DB_VARIABLE}")
        raise SpeckitError("E014", f"{folder} is a link to {resolved(folder)}", hint=hint, actions=actions)
    make_folder(folder)
    return [f"{FOLDER}/.gitignore"] if keep_out_of_git(folder) else []


def _config_file(root: Path) -> bool:
    try:
        # a link is there already, even one that leads nowhere: nothing is written through it
        with (root / CONFIG_FILE).open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        return False
    except OSError as error:
        raise SpeckitError("E020", f"{root / CONFIG_FILE} could not be written: {error.strerror}") from error
    return True


def _client(root: Path) -> dict[str, Any]:
    """The entry of this server in the configuration of a client, which starts it in a folder of its own choice."""
    script = shutil.which(sys.argv[0])
    environment = {ROOT_VARIABLE: str(root)}
    if db := os.environ.get(DB_VARIABLE):
        environment[DB_VARIABLE] = str(named_path(db, DB_VARIABLE).absolute())
    entry = {
        "command": str(Path(script).absolute()) if script else "speckit-memory",
        "args": ["serve"],
        "env": environment,
    }
    return {"mcpServers": {"speckit-memory": entry}}
