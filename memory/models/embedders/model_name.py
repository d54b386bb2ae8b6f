"""Parses the name of an embedding model in a setting (feature I6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from speckit_memory.config.files.paths import is_there, named_path
from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError, nearest

BUNDLED = "bundled"
AUTOMATIC = "auto"
FASTEMBED = "fastembed"
SERVICES = ("openai", "voyage", "ollama", "llamacpp")
"""Kinds of models that are called over HTTP."""
KINDS = (FASTEMBED, *SERVICES)
WORDS = (BUNDLED, AUTOMATIC)

_KIND = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(?![\\/]{1,2}[^\\/])(.*)", re.DOTALL)
"""A word of two letters or more before a colon; a single letter is a drive."""
_MODEL = re.compile(r"[\w.][\w.:/@+-]{0,199}", re.ASCII)


class ModelName(NamedTuple):
    """A parsed name. `kind` is one of `KINDS`, `BUNDLED` or "path", and `model` the part after the colon or the
    path."""

    kind: str
    model: str = ""

    @property
    def remote(self) -> bool:
        """Whether texts are sent to a service."""
        return self.kind in SERVICES

    def __str__(self) -> str:
        if self.kind == "path":
            return self.model
        return f"{self.kind}:{self.model}" if self.model else self.kind


def parse_model_name(setting: str, environ: Mapping[str, str]) -> ModelName:
    """Parse the model name of a setting. Raises E001, with the nearest name, if it is invalid.

    "auto" follows the order of feature I6: Voyage, OpenAI, then the local model. It sends texts to the service for
    which the environment has a key; only the user can choose that: without "auto" no key is ever read.
    """
    if setting in ("", BUNDLED):
        return ModelName(BUNDLED)
    # Order of preference: Voyage, OpenAI, bundled; an empty variable counts as no key.
    if setting == AUTOMATIC:
        if environ.get("VOYAGE_API_KEY"):
            return ModelName("voyage", "voyage-3.5")
        if environ.get("OPENAI_API_KEY"):
            return ModelName("openai", "text-embedding-3-small")
        return ModelName(BUNDLED)
    found = _KIND.fullmatch(setting)
    if found is None:
        return _path(setting)
    kind, model = found[1].lower(), found[2]
    if kind not in KINDS:
        # A file name may contain a colon.
        if _there(setting):
            return ModelName("path", setting)
        raise _unknown(f"'{setting}' names no known kind of model; {nearest(kind, KINDS)}")
    if not _MODEL.fullmatch(model):
        raise _unknown(f"'{setting}' names no model after the colon, as in {_EXAMPLES[kind]}")
    return ModelName(kind, model)


_EXAMPLES = {
    FASTEMBED: "fastembed:BAAI/bge-small-en-v1.5",
    "openai": "openai:text-embedding-3-small",
    "voyage": "voyage:voyage-3.5",
    "ollama": "ollama:nomic-embed-text",
    "llamacpp": "llamacpp:bge-small-en-v1.5",
}


def _path(setting: str) -> ModelName:
    """Return the name for a path. Raises E001 for a bare word that is no file but similar to a known word: a typo."""
    if re.fullmatch(r"[A-Za-z]{3,12}", setting) and not _there(setting):
        offered = nearest(setting, (*WORDS, *KINDS))
        if offered.startswith("did you mean"):
            raise _unknown(f"'{setting}' names no model; {offered}")
    return ModelName("path", setting)


def _there(setting: str) -> bool:
    try:
        return is_there(named_path(setting, EMBEDDER_VARIABLE))
    except SpeckitError:
        return False


def _unknown(message: str) -> SpeckitError:
    return SpeckitError(
        "E001",
        message,
        hint="Accepted: bundled, auto, a path, or " + ", ".join(f"{kind}:MODEL" for kind in KINDS) + ".",
        actions=("run `speckit-memory model list` for the names", "see docs/embedders.md"),
    )
