"""Errors for a missing store: where it was expected and how to create it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from speckit_memory.config.files.paths import is_folder, is_there
from speckit_memory.config.workspace.settings import FOLDER, ROOT_VARIABLE, Settings, is_home, settings
from speckit_memory.errors import SpeckitError

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.server.console.arguments.options import Common

_UNNAMED = ("run `speckit-memory index PATH` first, in the project's folder", "name another store with --db FILE")
_NAMED = ("correct the path", "leave --db out for the store of the workspace", "create it: index PATH with this --db")


def no_store(
    config: Settings, actions: tuple[str, ...], further: str = "", *, named: Path | str | None = None
) -> SpeckitError:
    """Builds the E010 for a missing store, with the workspace and the reason for choosing it.

    Args:
        config: The settings, with the path of the store.
        actions: Steps to try.
        further: Text appended to the message.
        named: The store given with --db, if any; the hint names the option then.
    """
    if named:
        return SpeckitError(
            "E010", f"there is no store at {config.store_told}{further}", hint="--db names it.", actions=actions
        )
    if config.environ.get(ROOT_VARIABLE):
        why = f"{ROOT_VARIABLE} names it"
    elif kind := _kind(config.root):
        why = f"the nearest folder with {kind}, from {_start()} upwards"
    else:
        why = f"no folder from {_start()} upwards contains {FOLDER} or .git"
    return SpeckitError(
        "E010",
        f"there is no store at {config.store_told}{further}",
        hint=f"Nothing has been indexed for the workspace {config.root} ({why}).",
        actions=actions,
    )


def existing_store(common: Common) -> Memory:
    """Opens an existing store; without one, the error says where it was expected and how to create it."""
    try:
        return common.open(create=False)
    except SpeckitError as error:
        if error.code != "E010":
            raise
        raise no_store(settings(common.db), _NAMED if common.db else _UNNAMED, named=common.db) from None


def why_not_create(config: Settings) -> str:
    """The reason why an agent may not create a store in this workspace, "" if it may.

    Clients may start servers in arbitrary folders that were never intended as workspaces.
    """
    if not is_folder(config.root):
        return "it does not exist"
    if config.environ.get(ROOT_VARIABLE):
        return ""
    if config.root == config.root.parent:
        return "it is the root of the file system"
    if is_home(config.root):
        return "it is your home folder"
    return "" if _kind(config.root) else f"it contains neither .git nor {FOLDER}"


def _kind(root: Path) -> str:
    """The entry that marks a folder as a workspace; "" if it is none."""
    # .speckit wins over .git, as it was created on purpose
    if is_folder(root / FOLDER):
        return FOLDER
    return ".git" if is_there(root / ".git") else ""


def _start() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # deleted while the server runs
        return "the folder it was started in"
