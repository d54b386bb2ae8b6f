"""A store that is not there: what was looked at, how to make one, and who may."""

from __future__ import annotations

from pathlib import Path

from speckit_memory.config.files.paths import is_folder, is_there
from speckit_memory.config.workspace.settings import FOLDER, ROOT_VARIABLE, Settings, is_home
from speckit_memory.errors import SpeckitError


def no_store(
    config: Settings, actions: tuple[str, ...], further: str = "", *, named: Path | None = None
) -> SpeckitError:
    """The error of whoever needs a store that nobody has made: which folder was looked at, and why that one, unless a
    file was `named`.

    `further` ends the message.
    """
    if named:
        return SpeckitError(
            "E010", f"there is no store at {config.db}{further}", hint="--db names it.", actions=actions
        )
    if config.environ.get(ROOT_VARIABLE):
        why = f"{ROOT_VARIABLE} names it"
    elif kind := _kind(config.root):
        why = f"the nearest folder with {kind}, from {_start()} upwards"
    else:
        why = f"no folder from {_start()} upwards holds {FOLDER} or .git"
    return SpeckitError(
        "E010",
        f"there is no store at {config.db}{further}",
        hint=f"Nothing has been indexed for the workspace {config.root} ({why}).",
        actions=actions,
    )


def why_not_create(config: Settings) -> str:
    """Why an agent may not make a store in this workspace, "" when it may.

    Clients start servers in folders of their own choice, which nobody meant to be a workspace.
    """
    if not is_folder(config.root):
        return "it is not there"
    if config.environ.get(ROOT_VARIABLE):
        return ""
    if config.root == config.root.parent:
        return "it is the root of the file system"
    if is_home(config.root):
        return "it is your home folder"
    return "" if _kind(config.root) else f"it holds neither .git nor {FOLDER}"


def _kind(root: Path) -> str:
    """What makes a folder a workspace; "" when it is none."""
    if is_folder(root / FOLDER):
        return FOLDER
    return ".git" if is_there(root / ".git") else ""


def _start() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # deleted while the server runs
        return "the folder it was started in"
