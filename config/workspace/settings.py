"""Where things are, decided once: arguments before environment before the workspace's defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from os.path import lexists
from pathlib import Path

from speckit_memory.config.files.paths import is_folder, is_there, named_path, resolved, working_folder
from speckit_memory.config.options.entity_linking import EntityLinking
from speckit_memory.config.options.recording_modes import Recording
from speckit_memory.config.options.vector_indexing import VectorIndexing
from speckit_memory.errors import SpeckitError

DB_VARIABLE = "SPECKIT_DB"
PIPELINE_VARIABLE = "SPECKIT_PIPELINE"
ROOT_VARIABLE = "SPECKIT_ROOT"
CROSS_ENCODER_VARIABLE = "SPECKIT_CROSS_ENCODER"
"""A model folder or an ONNX file (feature R1). Without it there is no cross-encoder."""
ENCODER_VARIABLE = "SPECKIT_ENCODER"
"""A sentence encoder on this machine, by name or by path, for a second look at the best rows (feature R1). Without it
there is none."""
EMBEDDER_VARIABLE = "SPECKIT_EMBEDDER"
"""The embedding model by name or by path (feature I6, docs/embedders.md). Without it the store says which, at first the
bundled static vectors."""
EMBEDDER_URL_VARIABLE = "SPECKIT_EMBEDDER_URL"
"""The address of the service that a model behind HTTP is asked at, such as http://127.0.0.1:8080/v1."""
EMBEDDER_KEY_VARIABLE = "SPECKIT_EMBEDDER_KEY"
"""The key for an address of the variable above. OPENAI_API_KEY and VOYAGE_API_KEY go to nobody but these services."""
EMBEDDER_DIMENSIONS_VARIABLE = "SPECKIT_EMBEDDER_DIMENSIONS"
"""The length of vectors that a service is asked for, where its model can give several."""
EMBEDDER_BATCH_VARIABLE = "SPECKIT_EMBEDDER_BATCH"
"""How many texts are sent to a service at a time."""
EMBEDDER_TIMEOUT_VARIABLE = "SPECKIT_EMBEDDER_TIMEOUT_S"
"""How many seconds a service may take for a request."""
EMBEDDER_RATE_VARIABLE = "SPECKIT_EMBEDDER_REQUESTS_PER_MINUTE"
"""How many requests a process sends to a service in a minute at most."""
EMBEDDER_BUDGET_VARIABLE = "SPECKIT_EMBEDDER_TOKEN_BUDGET"
"""How many tokens a process sends to a service at most."""
MODELS_VARIABLE = "SPECKIT_MODELS"
"""The folder of models that were fetched by name; by default that of the account's data."""
QUERY_PROMPT_VARIABLE = "SPECKIT_EMBEDDER_QUERY_PROMPT"
DOCUMENT_PROMPT_VARIABLE = "SPECKIT_EMBEDDER_DOCUMENT_PROMPT"
"""What the encoder is to see before every query and passage, such as "query: " and "passage: "; unset means what the
model's folder says."""
DEADLINE_VARIABLE = "SPECKIT_DEADLINE_MS"
"""After how many milliseconds a search leaves out what is costly or optional (feature P9); 0 means never."""
EXTENSIONS_VARIABLE = "SPECKIT_EXTENSIONS"
"""Where the components of installed extensions run: "trusted" here, "isolated" in a process of their own, or "none"."""
EXTENSIONS_MEMORY_VARIABLE = "SPECKIT_EXTENSIONS_MEMORY_MB"
"""The most address space in megabytes that the process of isolated extensions may have; 0 for no limit."""
EVALUATION_VARIABLE = "SPECKIT_EVALUATION"
"""What is noted beside answers: "all", "shadows" or "off" (docs/workspace.md)."""
VECTOR_INDEX_VARIABLE = "SPECKIT_VECTOR_INDEX"
"""From how many passages on an approximate index finds the nearest vectors; "exact" or "off" (docs/large-stores.md)."""
PROFILE_VARIABLE = "SPECKIT_PROFILE"
"""Which tools the server offers: "core" or "full" (docs/workspace.md)."""
DEBUG_VARIABLE = "SPECKIT_DEBUG"
"""Set to anything: tracebacks of defects are shown."""
LOG_CONTENT_VARIABLE = "SPECKIT_LOG_CONTENT"
"""Set to 1: logs of the server hold what was asked and answered."""
VARIABLES = (
    DB_VARIABLE,
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
"""The folder of the product in the root of a workspace."""
DEFAULT_DB = Path(FOLDER) / "memory.db"
CONFIG_FILE = Path(FOLDER) / "config.yaml"
PIPELINE_FILE = Path(FOLDER) / "pipeline.yaml"
"""Served instead of the shipped default when it is there."""
FLAGS_FILE = Path(FOLDER) / "flags.yaml"
"""Laid upon the shipped flags."""
BY_CALL = "this call"
BY_VALUE = "this call, as a value"
"""The call did not name a pipeline but gave one."""
SHIPPED = "shipped"
DEADLINE_MS = 2_000.0
"""Far above every budget: a safety net. Opening the store does not count."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The store, the pipeline and the workspace of one process.

    `root` is the folder that keys of memories are relative to; `deadline_ms` is that of searches, None for none.
    `pipeline` is a path, the name of a preset or what messages call a value, and `pipeline_by` who chose it: the call,
    a variable of the environment, the workspace's file by its path, or nobody, so that it is what is shipped.
    `overrides` are the values of its steps that the call sets; `recording` is what is noted beside answers, and
    `vector_index` tells which stores have an index of their vectors; `entities` tells whether background work links
    what names the same.
    """

    db: Path
    pipeline: str
    root: Path
    environ: Mapping[str, str]
    deadline_ms: float | None = DEADLINE_MS
    pipeline_by: str = SHIPPED
    overrides: Mapping[str, str] = field(default_factory=dict)
    recording: Recording = field(default_factory=Recording)
    vector_index: VectorIndexing = field(default_factory=VectorIndexing)
    entities: EntityLinking = "off"

    @property
    def pipeline_told(self) -> str:
        """The pipeline and who chose it, for people."""
        if self.pipeline_by == SHIPPED:
            return f"the shipped {self.pipeline}"
        return self.pipeline if self.pipeline_by == self.pipeline else f"{self.pipeline}, chosen by {self.pipeline_by}"

    @property
    def environ_of_root(self) -> Mapping[str, str]:
        """The environment of a process whose workspace is `root`: what is named nowhere else is looked for there."""
        return {**self.environ, ROOT_VARIABLE: str(self.root)}


def settings(
    db: str | Path | None = None,
    pipeline: str | None = None,
    root: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings in force: argument, environment, the workspace's files, default.

    Raises E014 for the home of nobody.
    """
    environ = os.environ if environ is None else environ
    base = resolved(named_path(root, "the workspace") if root else root_named_in(environ))
    file = Path(db or environ.get(DB_VARIABLE) or base / DEFAULT_DB)
    try:
        file = file.expanduser()
    except RuntimeError as error:
        raise SpeckitError("E014", f"'{file}' cannot be the store: {error}", actions=("write the path out",)) from error
    chosen, by = _pipeline(pipeline, base, environ)
    return Settings(file, chosen, base, environ, pipeline_by=by)


def _pipeline(named: str | None, root: Path, environ: Mapping[str, str]) -> tuple[str, str]:
    """The pipeline in force and who chose it. The name of a preset always means what is shipped.

    Whatever stands at the place of the workspace's file is chosen, also what cannot be read: a link that leads nowhere
    must not change unnoticed what is served.
    """
    if named:
        return named, BY_CALL
    if in_environment := environ.get(PIPELINE_VARIABLE):
        return in_environment, PIPELINE_VARIABLE
    if lexists(file := root / PIPELINE_FILE):
        return str(file), str(file)
    return "default", SHIPPED


def root_named_in(environ: Mapping[str, str]) -> Path:
    """The workspace: what SPECKIT_ROOT names, else the one that the working folder belongs to. Raises E014."""
    if named := environ.get(ROOT_VARIABLE):
        return named_path(named, ROOT_VARIABLE)
    return workspace_root(working_folder())


def workspace_root(start: Path) -> Path:
    """The nearest folder at or above `start` that holds `.speckit` or `.git`; `start` when there is none.

    What lies below it is no part of the root of the file system, nor of a home folder that is a repository: people keep
    their settings in one.
    """
    for folder in (start, *start.parents):
        if folder != start and folder == folder.parent:
            break
        if is_folder(folder / FOLDER) or (is_there(folder / ".git") and (folder == start or not is_home(folder))):
            return folder
    return start


def is_home(folder: Path) -> bool:
    """Whether this is the user's home folder."""
    try:
        return folder.resolve() == Path.home().resolve()
    except RuntimeError:  # a user without one
        return False
