"""Locates fetched models and reads their manifests (feature I6).

A model is a folder with its files and a manifest of their SHA-256 digests. One rename moves the complete folder into
place; later changes to its files are detected by their digests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from speckit_memory.config.workspace.settings import MODELS_VARIABLE
from speckit_memory.errors import SpeckitError

MANIFEST = "speckit-model.json"
LARGEST_MANIFEST = 1_000_000

_DIGEST = 64
"""Characters of a SHA-256."""


@dataclass(frozen=True, slots=True)
class ModelManifest:
    """The manifest of a fetched model: name, source repository, revision, pooling, dimensions, and the SHA-256 of every
    file by path."""

    model: str
    source: str
    revision: str
    pooling: str
    dimensions: int
    files: dict[str, str]


def models_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of fetched models: SPECKIT_MODELS, else in the account's data folder. Raises E001 if neither
    is set."""
    if named := environ.get(MODELS_VARIABLE):
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = str(_home(environ) / "Library" / "Application Support")
    else:
        base = environ.get("XDG_DATA_HOME") or str(_home(environ) / ".local" / "share")
    if not Path(base).is_absolute():
        message = f"this account has no folder for models; set {MODELS_VARIABLE} to one"
        raise SpeckitError("E001", message)
    return Path(base) / "speckit-memory" / "models"


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path("~").expanduser()


def place_of(model: str, environ: Mapping[str, str]) -> Path:
    """Return the folder of a model, which may not exist. Names that differ only in case share one."""
    return models_folder(environ) / model.lower().replace("/", "--").replace(":", "-")


def manifest_of(folder: Path) -> ModelManifest | None:
    """Return the manifest of a folder, None if it is missing or invalid."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            read: dict[str, Any] = json.loads(file.read(LARGEST_MANIFEST))
        manifest = ModelManifest(**read)
        known = all(len(digest) == _DIGEST for digest in manifest.files.values())
        return manifest if known and manifest.dimensions > 0 else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def write_manifest(folder: Path, manifest: ModelManifest) -> None:
    """Write the manifest of a folder."""
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest), indent=1, sort_keys=True), encoding="utf-8")


def installed_models(environ: Mapping[str, str]) -> dict[str, ModelManifest]:
    """Return the manifests of the fetched models, by name."""
    try:
        folders = sorted(folder for folder in models_folder(environ).iterdir() if folder.is_dir())
    except OSError:
        return {}
    found = [manifest for folder in folders if (manifest := manifest_of(folder))]
    return {manifest.model: manifest for manifest in found}


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def damaged_files(folder: Path, manifest: ModelManifest) -> list[str]:
    """Return the files of a model that are missing or differ from those that were fetched."""
    return [
        name
        for name, digest in sorted(manifest.files.items())
        if not (folder / name).is_file() or sha256_of(folder / name) != digest
    ]
