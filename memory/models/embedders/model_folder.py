"""Reads the settings in the folder of a sentence encoder, in the layout of sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

Pooling = Literal["mean", "cls", "max"]
LONGEST = 256
"""Maximum input in tokens if the folder names none."""

_POOLING: dict[str, Pooling] = {
    "mean": "mean",
    "cls": "cls",
    "max": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}
_MODULES = ("Transformer", "Pooling", "Normalize")
_QUERY_PROMPTS = ("query",)
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


class Prompts(NamedTuple):
    """The texts with which a model was trained before queries and passages; usually empty."""

    query: str
    document: str


def prompts(folder: Path) -> Prompts:
    """Return the prompts that a folder names."""
    known = settings_of(folder / "config_sentence_transformers.json").get("prompts") or {}
    names = (_QUERY_PROMPTS, _DOCUMENT_PROMPTS)
    return Prompts(*(next((known[name] for name in some if name in known), "") for some in names))


def longest(folder: Path) -> int:
    """Return the maximum input of the model in tokens."""
    return int(settings_of(folder / "sentence_bert_config.json").get("max_seq_length") or LONGEST)


def pooling(folder: Path) -> Pooling:
    """Return how token vectors are pooled, the mean if the folder does not say. Raises ValueError for other methods."""
    modules = [(str(part.get("type", "")).rpartition(".")[2], part.get("path", "")) for part in _modules(folder)]
    if foreign := [kind for kind, _ in modules if kind not in _MODULES]:
        raise ValueError(f"{folder} requires the modules {', '.join(foreign)}; accepted: {', '.join(_MODULES)}")
    place = next((path for kind, path in modules if kind == "Pooling"), "1_Pooling")
    settings = settings_of(folder / place / "config.json")
    wanted = [key for key, value in settings.items() if key.startswith("pooling_mode_") and value is True]
    if "pooling_mode" in settings:
        wanted = [str(settings["pooling_mode"])]
    if not wanted:
        return "mean"
    if len(wanted) > 1 or wanted[0] not in _POOLING:
        raise ValueError(f"{folder} requires the pooling {', '.join(wanted)}; accepted: one of mean, cls, max")
    return _POOLING[wanted[0]]


def digest(files: Sequence[Path]) -> str:
    """Return the SHA-256 over the digests of files, in this order."""
    whole = sha256()
    for path in files:
        with path.open("rb") as file:
            whole.update(file_digest(file, "sha256").digest())
    return whole.hexdigest()


def _modules(folder: Path) -> list[dict[str, Any]]:
    return settings_of(folder / "modules.json") or []


def settings_of(path: Path) -> Any:
    """Return the content of a JSON file; empty if it does not exist."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
