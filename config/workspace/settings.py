"""The locations and settings of a process, decided once: arguments, then environment, then workspace defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os.path import lexists
from pathlib import Path

from speckit_memory.config.files.paths import is_folder, is_there, named_path, resolve_path, working_folder
from speckit_memory.config.files.regular_file import workspace_text
from speckit_memory.config.workspace.options import DEADLINE_MS, EntityLinking, RecordingOptions, VectorIndexing
from speckit_memory.config.workspace.private_folders import of_another
from speckit_memory.config.workspace.store_address import (
    address_at,
    is_address,
    principal_at,
    store_label,
    store_link,
)
from speckit_memory.errors import SpeckitError

DB_VARIABLE = "SPECKIT_DB"
PRINCIPAL_VARIABLE = "SPECKIT_PRINCIPAL"
"""The person or program that this process acts for (docs/postgresql.md). Unset: none."""
READ_FROM_VARIABLE = "SPECKIT_READ_FROM"
"""Addresses of replicas of a store in PostgreSQL, with spaces between them."""
PIPELINE_VARIABLE = "SPECKIT_PIPELINE"
ROOT_VARIABLE = "SPECKIT_ROOT"
CROSS_ENCODER_VARIABLE = "SPECKIT_CROSS_ENCODER"
"""A model folder or an ONNX file (feature R1). Unset: no cross-encoder."""
ENCODER_VARIABLE = "SPECKIT_ENCODER"
"""A sentence encoder on this machine, by name or path, that reranks the best rows (feature R1). Unset: none."""
EMBEDDER_VARIABLE = "SPECKIT_EMBEDDER"
"""The embedding model by name or path (feature I6, docs/embedders.md). Unset: the store's model, at first the bundled
static vectors."""
EMBEDDER_URL_VARIABLE = "SPECKIT_EMBEDDER_URL"
"""The address of the HTTP service of a model, such as http://127.0.0.1:8080/v1."""
EMBEDDER_KEY_VARIABLE = "SPECKIT_EMBEDDER_KEY"
"""The key for the address above. OPENAI_API_KEY and VOYAGE_API_KEY are only sent to these services."""
EMBEDDER_DIMENSIONS_VARIABLE = "SPECKIT_EMBEDDER_DIMENSIONS"
"""The vector length to request from a service whose model supports several."""
EMBEDDER_BATCH_VARIABLE = "SPECKIT_EMBEDDER_BATCH"
"""Texts sent to a service per request."""
EMBEDDER_TIMEOUT_VARIABLE = "SPECKIT_EMBEDDER_TIMEOUT_S"
"""Timeout of a request to a service in seconds."""
EMBEDDER_RATE_VARIABLE = "SPECKIT_EMBEDDER_REQUESTS_PER_MINUTE"
"""Maximum requests per minute of a process to a service."""
EMBEDDER_BUDGET_VARIABLE = "SPECKIT_EMBEDDER_TOKEN_BUDGET"
"""Maximum tokens that a process sends to a service."""
MODELS_VARIABLE = "SPECKIT_MODELS"
"""The folder of models fetched by name; by default in the data folder of the account."""
QUERY_PROMPT_VARIABLE = "SPECKIT_EMBEDDER_QUERY_PROMPT"
DOCUMENT_PROMPT_VARIABLE = "SPECKIT_EMBEDDER_DOCUMENT_PROMPT"
"""Text put before every query or passage for the encoder, such as "query: " and "passage: ". Unset: the prompts in the
model's folder."""
DEADLINE_VARIABLE = "SPECKIT_DEADLINE_MS"
"""Milliseconds after which a search skips costly and optional steps (feature P9); 0 for never."""
EXTENSIONS_VARIABLE = "SPECKIT_EXTENSIONS"
"""Where components of installed extensions run: "isolated" in a separate process, "trusted" here, or "none"."""
EXTENSIONS_MEMORY_VARIABLE = "SPECKIT_EXTENSIONS_MEMORY_MB"
"""Maximum address space in megabytes of the process of isolated extensions; 0 for no limit."""
EVALUATION_VARIABLE = "SPECKIT_EVALUATION"
"""Which answered queries are recorded: "all", "shadows" or "off" (docs/workspace.md)."""
VECTOR_INDEX_VARIABLE = "SPECKIT_VECTOR_INDEX"
"""Number of passages from which an approximate vector index is used; "exact" or "off" (docs/large-stores.md)."""
PROFILE_VARIABLE = "SPECKIT_PROFILE"
"""The tools that the server offers: "core" or "full" (docs/workspace.md)."""
DEBUG_VARIABLE = "SPECKIT_DEBUG"
"""Set to any value: tracebacks of defects are shown."""
LOG_CONTENT_VARIABLE = "SPECKIT_LOG_CONTENT"
"""Set to 1: logs of the server include queries and answers."""
VARIABLES = (
    DB_VARIABLE,
    PRINCIPAL_VARIABLE,
    READ_FROM_VARIABLE,
    PIPELINE_VARIABLE,
    ROOT_VARIABLE,
    CROSS_ENCODER_VARIABLE,
    ENCODER_VARIABLE,
    EMBEDDER_VARIABLE,
    EMBEDDER_URL_VARIABLE,
    EMBEDDER_KEY_VARIABLE,
    EMBEDDER_DIMENSIONS_VARIABLE,
    EMBEDDER_BATCH_VARIABLE,
    EMBEDDER_TIMEOUT_VARIABLE,
    EMBEDDER_RATE_VARIABLE,
    EMBEDDER_BUDGET_VARIABLE,
    MODELS_VARIABLE,
    QUERY_PROMPT_VARIABLE,
    DOCUMENT_PROMPT_VARIABLE,
    DEADLINE_VARIABLE,
    EXTENSIONS_VARIABLE,
    EXTENSIONS_MEMORY_VARIABLE,
    EVALUATION_VARIABLE,
    VECTOR_INDEX_VARIABLE,
    PROFILE_VARIABLE,
    DEBUG_VARIABLE,
    LOG_CONTENT_VARIABLE,
)
FOLDER = ".speckit"
"""The product's folder in the root of a workspace."""
DEFAULT_DB = Path(FOLDER) / "memory.db"
CONFIG_FILE = Path(FOLDER) / "config.yaml"
PIPELINE_FILE = Path(FOLDER) / "pipeline.yaml"
"""Served instead of the shipped default if it exists."""
FLAGS_FILE = Path(FOLDER) / "flags.yaml"
"""Applied on top of the shipped flags."""
BY_CALL = "this call"
BY_VALUE = "this call, as a value"
"""The call gave a pipeline itself, not a name."""
SHIPPED = "shipped"
PRINCIPAL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
"""What a principal may be called."""
PRINCIPAL_RULE = "1 to 64 letters, digits and . _ @ -, the first one a letter or a digit"


@dataclass(frozen=True, slots=True)
class Settings:
    """The store, the pipeline and the workspace of one process.

    `db` is the file of the store, or the store link of a store in PostgreSQL (docs/postgresql.md).
    `root` is the folder to which keys of memories are relative; `deadline_ms` is that of searches, None for none.
    `pipeline` is a path, the name of a preset or a label for a value, and `pipeline_by` its origin: the call, an
    environment variable, the path of the workspace's file, or `SHIPPED`. `overrides` are step parameters set by the
    call; `recording` sets which queries are recorded; `vector_index` decides which stores have a vector index;
    `entities` tells whether background work links documents that share names; `principal` is the author of writes, ""
    for none; in PostgreSQL it alone reads its private folder.
    """

    db: Path
    pipeline: str
    root: Path
    environ: Mapping[str, str]
    deadline_ms: float | None = DEADLINE_MS
    pipeline_by: str = SHIPPED
    overrides: Mapping[str, str] = field(default_factory=dict)
    recording: RecordingOptions = field(default_factory=RecordingOptions)
    vector_index: VectorIndexing = field(default_factory=VectorIndexing)
    entities: EntityLinking = "off"
    principal: str = ""

    def is_closed(self, key: str) -> bool:
        """Whether a key, or a folder with a slash at its end, is in the private folder of another principal."""
        return of_another(key, self.principal) and bool(address_at(self.db))

    @property
    def store_told(self) -> str:
        """The store, for display: the address of one in PostgreSQL, else its path."""
        return store_label(self.db)

    @property
    def pipeline_told(self) -> str:
        """The pipeline and its origin, for display."""
        if self.pipeline_by == SHIPPED:
            return f"the shipped {self.pipeline}"
        return self.pipeline if self.pipeline_by == self.pipeline else f"{self.pipeline}, chosen by {self.pipeline_by}"

    @property
    def environ_of_root(self) -> Mapping[str, str]:
        """The environment with `root` as workspace: settings without a variable are read from there."""
        return {**self.environ, ROOT_VARIABLE: str(self.root)}


def settings(
    db: str | Path | None = None,
    pipeline: str | None = None,
    root: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings in force: argument, then environment, then the workspace's files, then default.

    Args:
        db: Path of the store, or the address of one in PostgreSQL.
        pipeline: Name of a preset, or a path.
        root: The workspace.
        environ: Environment variables; those of the process by default.

    Raises:
        SpeckitError: E014 for the home folder of an unknown user; E020, E030 or E057 for an address of a store that
            cannot be used; E030 for a principal that is not accepted.
    """
    environ = os.environ if environ is None else environ
    base = resolve_path(named_path(root, "the workspace") if root else root_named_in(environ))
    principal = environ.get(PRINCIPAL_VARIABLE, "")
    if principal and not PRINCIPAL_NAME.fullmatch(principal):
        raise SpeckitError(
            "E030",
            f"{PRINCIPAL_VARIABLE} is {principal!r}; accepted: {PRINCIPAL_RULE}",
        )
    file = _store(db, base, environ, principal)
    linked = principal_at(file)
    if principal and linked not in ("", principal):
        raise SpeckitError(
            "E030",
            f"{PRINCIPAL_VARIABLE} is {principal}, and {file} is the store link of {linked}",
            actions=("name the store by its address",),
        )
    chosen, by = _pipeline(pipeline, base, environ)
    return Settings(file, chosen, base, environ, pipeline_by=by, principal=linked or principal)


def _store(named: str | Path | None, root: Path, environ: Mapping[str, str], principal: str) -> Path:
    """The path of the store in force: its file, or its store link."""
    text, origin = (str(named), "this call") if named else (environ.get(DB_VARIABLE, ""), DB_VARIABLE)
    if not text:
        text, origin = _configured_store(root), str(root / CONFIG_FILE)
    if is_address(text):
        return store_link(text, root / FOLDER, origin, principal)
    file = Path(text or root / DEFAULT_DB)
    try:
        return file.expanduser()
    except RuntimeError as error:
        raise SpeckitError("E014", f"'{file}' cannot be the store: {error}", actions=("write the path out",)) from error


def _configured_store(root: Path) -> str:
    """The address that the workspace's file gives under `store`, "" if none. Raises the problem with it; those who read
    the whole file report the others."""
    file = root / CONFIG_FILE
    text, _ = workspace_text(file)
    if text is None or "store" not in text:
        return ""
    from speckit_memory.config.workspace.configured_store import configured_store

    return configured_store(text, str(file))


def _pipeline(named: str | None, root: Path, environ: Mapping[str, str]) -> tuple[str, str]:
    """The pipeline in force and its origin. The name of a preset always means the shipped one.

    Anything at the path of the workspace's file is chosen, even if it cannot be read: a dangling link must not silently
    change what is served.
    """
    if named:
        return named, BY_CALL
    if in_environment := environ.get(PIPELINE_VARIABLE):
        return in_environment, PIPELINE_VARIABLE
    if lexists(file := root / PIPELINE_FILE):
        return str(file), str(file)
    return "default", SHIPPED


def root_named_in(environ: Mapping[str, str]) -> Path:
    """The workspace: the value of SPECKIT_ROOT, else the workspace of the working folder. Raises E014."""
    if named := environ.get(ROOT_VARIABLE):
        return named_path(named, ROOT_VARIABLE)
    return workspace_root(working_folder())


def workspace_root(start: Path) -> Path:
    """The nearest folder at or above `start` that contains `.speckit` or `.git`; `start` if there is none.

    Neither the root of the file system nor a home folder that is a repository is the workspace of folders below it:
    people keep their settings in such a repository.
    """
    for folder in (start, *start.parents):
        # The root of the file system is a workspace only for itself.
        if folder != start and folder == folder.parent:
            break
        if is_folder(folder / FOLDER) or (is_there(folder / ".git") and (folder == start or not is_home(folder))):
            return folder
    return start


def is_home(folder: Path) -> bool:
    """Whether this is the user's home folder."""
    try:
        return folder.resolve() == Path.home().resolve()
    except RuntimeError:  # a user without a home folder
        return False
