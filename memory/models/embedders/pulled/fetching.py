"""Fetches a model by name, once; afterwards no network is used (feature I6).

The library fastembed lists the models and their repositories; every file is checked against the digest in its
repository. The complete folder is renamed into place.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import abridge
from speckit_memory.errors.problems import closest
from speckit_memory.memory.models.embedders.pulled.encoder import text_embedding
from speckit_memory.memory.models.embedders.pulled.shelf import (
    ModelManifest,
    damaged_files,
    manifest_of,
    place_of,
    sha256_of,
    write_manifest,
)

OnBytes = Callable[[int, int], None]
"""Called with the bytes received and the total."""

_ALWAYS = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
"""Files that the library reads of every model."""
CHUNK = 1 << 18


class ModelOffer(NamedTuple):
    """A model that can be fetched."""

    model: str
    dimensions: int
    megabytes: float
    licence: str
    description: str


def offered_models() -> list[ModelOffer]:
    """Return the models that the library knows, by name. Raises E001 if it is not installed."""
    return [
        ModelOffer(one["model"], one["dim"], one["size_in_GB"] * 1_000, one["license"], one["description"])
        for one in sorted(text_embedding().list_supported_models(), key=lambda one: one["model"].lower())
    ]


def fetch(model: str, environ: Mapping[str, str], progress: OnBytes | None = None) -> tuple[ModelManifest, bool]:
    """Fetch a model; return its manifest, and whether it had to be fetched. Raises E001 if that fails.

    An intact model is not fetched again; a damaged one is.
    """
    known = _describe_model(model)
    place = place_of(known["model"], environ)
    if found := _complete_manifest(place):
        return found, False
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        staging = Path(mkdtemp(prefix=".fetching-", dir=place.parent))
    except OSError as error:
        raise SpeckitError("E001", f"models cannot be stored in {place.parent}: {error.strerror}") from error
    try:
        write_manifest(staging, _fetched(known, staging, progress or (lambda _done, _total: None)))
        return _move_into_place(staging, place), True
    except OSError as error:
        raise _failed(known["model"], f"{error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _complete_manifest(place: Path) -> ModelManifest | None:
    """Return the manifest of the model in a folder, None unless the model is complete and intact."""
    manifest = manifest_of(place)
    return manifest if manifest is not None and not damaged_files(place, manifest) else None


def _move_into_place(staging: Path, place: Path) -> ModelManifest:
    """Move a fetched folder into place; return the manifest there. Raises OSError after restoring the old folder.

    Another process may do the same at any moment; its model is equally good.
    """
    if found := _complete_manifest(place):
        return found
    aside = Path(mkdtemp(prefix=".replaced-", dir=place.parent))
    old = aside / "model"
    try:
        with suppress(FileNotFoundError):
            # Two renames: a folder cannot be replaced atomically if it is not empty.
            place.rename(old)
        try:
            staging.rename(place)
        except OSError:
            if found := _complete_manifest(place):
                return found
            if old.exists() and not place.exists():
                old.rename(place)
            raise
        if found := _complete_manifest(place):
            return found
        raise OSError(errno.EIO, f"the model in {place} is not the one that was stored")
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _describe_model(model: str) -> dict[str, Any]:
    every: list[dict[str, Any]] = text_embedding().list_supported_models()
    for one in every:
        if one["model"].lower() == model.lower():
            if not one["sources"].get("hf"):
                raise SpeckitError("E001", f"fastembed names no repository for '{model}'")
            return one
    names = [one["model"] for one in every]
    near = closest(model, names) or closest(model.rpartition("/")[2], [name.rpartition("/")[2] for name in names])
    whole = next((name for name in names if near and name.endswith(near)), "")
    raise SpeckitError(
        "E001",
        f"fastembed has no model '{abridge(model)}'" + (f"; did you mean '{whole}'?" if whole else ""),
        hint="A sentence encoder in an ONNX file can be named by its path.",
        actions=("run `speckit-memory model list` for its models",),
    )


def _fetched(known: Mapping[str, Any], folder: Path, progress: OnBytes) -> ModelManifest:
    """Download the files of the newest revision, checking each against the digest in the repository."""
    import requests
    from huggingface_hub import HfApi, hf_hub_url

    source, model = known["sources"]["hf"], known["model"]
    wanted = {known["model_file"], *known["additional_files"]}
    try:
        found = HfApi().model_info(source, files_metadata=True, timeout=30)
    except Exception as error:  # the library and its dependencies raise many types
        raise _failed(model, f"{type(error).__name__}: {error}") from error
    files = {one.rfilename: one for one in found.siblings or [] if one.rfilename in {*wanted, *_ALWAYS}}
    if missing := sorted(wanted - files.keys()):
        raise _failed(model, f"its repository {source} has no {', '.join(missing)}")
    total = sum(one.size or 0 for one in files.values())
    done, digests = 0, {}
    for name, one in sorted(files.items()):
        target = folder / name
        # The repository is not trusted: its names must not leave the folder.
        if not target.resolve().is_relative_to(folder.resolve()):
            raise _failed(model, f"its repository {source} has a file '{name}' outside the model's folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with (
                requests.get(hf_hub_url(source, name, revision=found.sha), stream=True, timeout=(10, 60)) as answer,
                target.open("wb") as file,
            ):
                answer.raise_for_status()
                for part in answer.iter_content(CHUNK):
                    done += len(part)
                    if done > total:
                        raise _failed(model, f"'{name}' is longer than its repository says")
                    file.write(part)
                    progress(done, total)
                file.flush()
                os.fsync(file.fileno())
        except requests.RequestException as error:
            raise _failed(model, f"{type(error).__name__}: {abridge(str(error))}") from error
        if not _is_whole(target, one):
            raise _failed(model, f"the checksum of '{name}' is not that of its repository")
        digests[name] = sha256_of(target)
    pooling = _pooling(model)
    return ModelManifest(model, source, found.sha or "", pooling, known["dim"], digests)


def _is_whole(path: Path, told: Any) -> bool:
    """Whether a file has the digest of the repository: SHA-256 for LFS files, the git blob id for others."""
    if told.lfs is not None:
        return bool(sha256_of(path) == told.lfs.sha256)
    content = path.read_bytes()
    # The git blob id: SHA-1 of "blob SIZE", a NUL and the content.
    git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return bool(git.hexdigest() == told.blob_id)


def _pooling(model: str) -> str:
    """Describe the library's pooling of this model by the class that runs it and the release."""
    import fastembed

    for runs in text_embedding().EMBEDDINGS_REGISTRY:
        if any(one.model.lower() == model.lower() for one in runs._list_supported_models()):
            return f"{runs.__name__} of fastembed {fastembed.__version__}"
    return f"fastembed {fastembed.__version__}"


def _failed(model: str, reason: str) -> SpeckitError:
    return SpeckitError(
        "E001",
        f"fastembed:{model} could not be fetched: {reason}",
        hint="Nothing was changed.",
        actions=("try again with a network connection", "name the path of a model that is on this machine"),
    )
