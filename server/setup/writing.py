"""Writes the files of `init --write`: new ones only if missing, changes to users' files only after a copy."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from speckit_memory.config.files.regular_file import read_as_written, read_text
from speckit_memory.config.files.written_file import written
from speckit_memory.config.workspace.settings import CONFIG_FILE, FOLDER, PIPELINE_FILE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import IGNORED, IGNORED_BEFORE
from speckit_memory.server.setup import agents_section as section
from speckit_memory.server.setup.client_file import ByHandError, FileEdit, change, configuration, with_ends_of
from speckit_memory.server.setup.clients import NAME, AgentClient, Entry

CONFIG = """\
# Settings for everyone who works in this workspace. Commit this file. docs/workspace.md explains it,
# `speckit-memory doctor` checks it. The same folder may contain pipeline.yaml, the steps of a search, and flags.yaml.

# Which files `speckit-memory index` takes below the folders it is given. Patterns are those of .gitignore files,
# relative to this workspace. Files ignored by .gitignore are excluded by default.
# sources:
#   include:            # hidden folders to enter; with other patterns, only matching files are taken
#     - .notes/
#   exclude:            # excluded files; "!" includes files that a .gitignore excludes
#     - drafts/
#     - "!private/decisions/"
#   formats: [rst, html]  # taken in addition to Markdown and plain text

# Milliseconds after which a search skips optional steps; 0 for never.
# deadline_ms: 2000

# Where components of installed extensions run: "isolated" in a separate process with the memory limit below,
# "trusted" in the server's process, "none" not at all. docs/extending.md explains the choice.
# extensions: isolated
# extensions_memory_mb: 2048

# How documents are saved; docs/saving.md explains each setting.
# saving:
#   secrets: credentials      # "all" removes e-mail addresses, too; "keep" removes nothing
#   quality: mend             # "require" or "report"
#   prediction_error: act     # "report"
#   passages: all             # "thinned"

# Which tools agents are offered: "core" (the six of daily work) or "full" (all).
# profile: core

# Whether background work links documents that mention the same names: "link" or "off". docs/lifecycle.md has the rules.
# entities: link

# Which queries are recorded to compare pipelines later: "all" that were served, only those replayed for "shadows", or
# "off". The text of queries is kept for some days; the rest is ids and figures.
# evaluation:
#   record: all
#   keep_texts: 7       # days, or never
#   keep_days: 90
#   max_mb: 50
#   observe: 0.05       # share of the queries whose partial scores are recorded
#   sample: 1.0         # share of the queries recorded when only one pipeline answered

# Number of passages from which vector search uses an approximate index, if the extra "ann" is installed; "exact" never
# uses the index, "off" does not build one. docs/large-stores.md has its cost.
# vector_index: 200000

# How many checkpoints of the store are kept, and for how many days; a new one replaces the oldest.
# checkpoints:
#   keep: 10
#   days: null

# How many days a memory, with all that was learned about it, is kept while its file is missing.
# absent_days: 90
"""

SCHEMA_FILE = "pipeline.schema.json"
"""The schema next to the pipeline file, for editors; generated from the installed components, to be committed."""
PIPELINE = f"""\
# yaml-language-server: $schema={SCHEMA_FILE}
# The search pipeline of this workspace, initially the shipped one. docs/pipeline.md explains the format,
# `speckit-memory pipeline show` prints every step, `pipeline check` reports problems, and `eval run --own
# --pipeline default --pipeline .speckit/pipeline.yaml` measures a change on your own documents. A running server
# notices your changes.
pipeline: workspace
extends: default

# Differences from it, by part; each part may have `add`, `change` and `remove`:
# candidates:
#   channels:
#     change: [{{id: vector, limit: 100}}]

# Shadow pipelines, which answer each query after the reply; `speckit-memory shadow report` compares them:
# shadows: [catalogue]
"""


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
    for file, content in ((CONFIG_FILE, CONFIG), (PIPELINE_FILE, PIPELINE)):
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
    file = root / section.FILE
    try:
        before = None if file.is_symlink() else read_as_written(file)
    except FileNotFoundError:
        _write(file, section.with_section(""))
        made.created.append(section.FILE)
        return
    except (OSError, UnicodeDecodeError):
        before = None
    if before is None:
        made.left[section.FILE] = "it is a link or not text; `init` does not change it"
        return
    _changed(FileEdit(file, before, with_ends_of(before, section.with_section(before))), root, made)


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
