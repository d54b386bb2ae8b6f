"""Writes the files of `init --write`: new ones only if missing, changes to users' files only after a copy."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Literal

from speckit_memory.config.files.regular_file import read_as_written, read_text
from speckit_memory.config.files.written_file import written
from speckit_memory.config.workspace.settings import CONFIG_FILE, FOLDER, PIPELINE_FILE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.parsing.generated import BEGINS, ENDS
from speckit_memory.memory.store.file.guarding.store_file import IGNORED, IGNORED_BEFORE
from speckit_memory.server.setup.client_file import ByHandError, FileEdit, change, configuration, with_ends_of
from speckit_memory.server.setup.clients import NAME, AgentClient, Entry

AGENTS_FILE = "AGENTS.md"
_SECTION = re.compile(re.escape(BEGINS) + ".*?" + re.escape(ENDS), re.DOTALL)
SCHEMA_FILE = "pipeline.schema.json"
"""The schema next to the pipeline file, for editors; generated from the installed components, to be committed."""
Outcome = Literal["created", "added", "there already", "by hand", "to do"]


@dataclass(slots=True)
class FileChanges:
    """The files `created`, `changed` (with their backup copies) and `left` alone (with reasons)."""

    created: list[str] = field(default_factory=list)
    changed: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClientOutcome:
    """The outcome for a client: "to do" if writing was not requested, "by hand" if it was not possible.

    `reason` says why it was not possible, or what is still missing for the entry to work.
    """

    name: str
    title: str
    file: str
    outcome: Outcome
    configuration: str
    reason: str = ""


def starter_files(root: Path, made: FileChanges) -> None:
    """Writes missing files for users to edit, and the schema for their editors. Raises E020."""
    for file, content in ((CONFIG_FILE, _text("config.yaml")), (PIPELINE_FILE, _text("pipeline.yaml"))):
        if _new(root / file, content):
            made.created.append(file.as_posix())
    ignored = root / FOLDER / ".gitignore"
    if not ignored.is_symlink() and _says(ignored, IGNORED_BEFORE):
        _changed(FileEdit(ignored, IGNORED_BEFORE, IGNORED), root, made)
    from speckit_memory.engine.pipelines.pipelines import schema  # loads every component; only needed here

    file = root / FOLDER / SCHEMA_FILE
    try:
        text = json.dumps(schema(), indent=1) + "\n"
    except SpeckitError as error:  # the workspace's files select the extensions, and may be wrong
        made.left[f"{FOLDER}/{SCHEMA_FILE}"] = str(error)
        return
    if not file.is_symlink() and not _says(file, text):
        if not file.exists():
            made.created.append(f"{FOLDER}/{SCHEMA_FILE}")
        _write(file, text)


def agents_section(root: Path, made: FileChanges) -> None:
    """Adds the section for agents to AGENTS.md. Raises E020."""
    file = root / AGENTS_FILE
    try:
        before = None if file.is_symlink() else read_as_written(file)
    except FileNotFoundError:
        _write(file, _with_section(""))
        made.created.append(AGENTS_FILE)
        return
    except (OSError, UnicodeDecodeError):
        before = None
    if before is None:
        made.left[AGENTS_FILE] = "it is a link or not text; `init` does not change it"
        return
    _changed(FileEdit(file, before, with_ends_of(before, _with_section(before))), root, made)


def configure(client: AgentClient, entry: Entry, root: Path, made: FileChanges | None) -> ClientOutcome:
    """Adds the server to a client's file.

    Args:
        client: The client.
        entry: The command that starts the server, with local paths.
        root: Folder of the workspace.
        made: Collects the changes; None to return the entry without writing it.

    Raises:
        SpeckitError: E020 if the file cannot be written.
    """
    text, file = configuration(client, entry), str(client.file(root))
    if made is None:
        return ClientOutcome(client.name, client.title, file, "to do", text)
    try:
        wanted = change(client, entry, root)
    except ByHandError as error:
        return ClientOutcome(client.name, client.title, file, "by hand", text, str(error))
    outcome = _changed(wanted, root, made)
    by_name = client.entry(entry)["command"] == NAME
    reason = (
        f"it starts `{NAME}`, which is not on your PATH yet: install it there, or add its folder to PATH"
        if by_name and not shutil.which(NAME)
        else ""
    )
    return ClientOutcome(client.name, client.title, file, outcome, text, reason)


def _changed(change: FileEdit, root: Path, made: FileChanges) -> Outcome:
    if change.before == change.after:
        return "there already"
    shown = _display(change.file, root)
    if change.before is None:
        _make_folder(change.file.parent)
        _write(change.file, change.after)
        made.created.append(shown)
        return "created"
    copy = _copied(change.file, change.before)
    _write(change.file, change.after)
    made.changed[shown] = _display(copy, root)
    return "added"


def _copied(file: Path, content: str) -> Path:
    """Writes a copy next to the file, under an unused name."""
    number = 1
    while True:
        copy = file.with_name(f"{file.name}.before-speckit-memory{'' if number == 1 else f'-{number}'}")
        if _new(copy, content):
            return copy
        number += 1


def _new(file: Path, content: str) -> bool:
    """Writes a file unless its name exists, even as a broken link; returns whether it was written."""
    try:
        # "x" fails atomically if the name exists
        with file.open("x", encoding="utf-8", newline="") as stream:
            stream.write(content)
    except FileExistsError:
        return False
    except OSError as error:
        raise _unwritable(file, error) from error
    return True


def _says(file: Path, content: str) -> bool:
    try:
        return read_text(file, errors="replace") == content
    except OSError:
        return False


def _write(file: Path, content: str) -> None:
    try:
        with written(file) as stream:
            stream.write(content)
    except OSError as error:
        raise _unwritable(file, error) from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(file: Path, error: OSError) -> SpeckitError:
    return SpeckitError("E020", f"{file} could not be written: {error.strerror}")


def _display(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)


def _text(name: str) -> str:
    return files("speckit_memory.server.setup").joinpath(name).read_text(encoding="utf-8")


def _with_section(before: str) -> str:
    """Inserts the section into the file's text, in place of an older one or at the end."""
    section = f"{BEGINS}\n{_text('agents_section.md')}{ENDS}"
    if _SECTION.search(before):
        # a function, since backslashes in a replacement string would be interpreted
        return _SECTION.sub(lambda _: section, before, count=1)
    return f"{before.rstrip()}\n\n{section}\n" if before.strip() else f"{section}\n"
