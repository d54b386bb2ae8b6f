"""What stands beside the weights of a sentence encoder, in the layout of sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

Pooling = Literal["mean", "cls", "max"]
LONGEST = 256
"""Tokens of a text that are read when the folder names no limit."""

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
    """The words that a model was trained to see before a query and before a passage; usually none."""

    query: str
    document: str


def prompts(folder: Path) -> Prompts:
    """The prompts that a folder names."""
    known = settings_of(folder / "config_sentence_transformers.json").get("prompts") or {}
    names = (_QUERY_PROMPTS, _DOCUMENT_PROMPTS)
    return Prompts(*(next((known[name] for name in some if name in known), "") for some in names))


def longest(folder: Path) -> int:
    """How many tokens of a text the model reads."""
    return int(settings_of(folder / "sentence_bert_config.json").get("max_seq_length") or LONGEST)


def pooling(folder: Path) -> Pooling:
    """How the vectors of tokens become one; the mean when the folder does not say. Raises ValueError for other ways."""
    modules = [(str(part.get("type", "")).rpartition(".")[2], part.get("path", "")) for part in _modules(folder)]
    if foreign := [kind for kind, _ in modules if kind not in _MODULES]:
        raise ValueError(f"{folder} asks for the modules {', '.join(foreign)}; accepted: {', '.join(_MODULES)}")
    place = next((path for kind, path in modules if kind == "Pooling"), "1_Pooling")
    settings = settings_of(folder / place / "config.json")
    wanted = [key for key, value in settings.items() if key.startswith("pooling_mode_") and value is True]
    if "pooling_mode" in settings:
        wanted = [str(settings["pooling_mode"])]
    if not wanted:
        return "mean"
    if len(wanted) > 1 or wanted[0] not in _POOLING:
        raise ValueError(f"{folder} asks for the pooling {', '.join(wanted)}; accepted: one of mean, cls, max")
    return _POOLING[wanted[0]]


def digest(files: Sequence[Path]) -> str:
    """The SHA-256 of the content of files, in this order."""
    whole = sha256()
    for path in files:
        with path.open("rb") as file:
            whole.update(file_digest(file, "sha256").digest())
    return whole.hexdigest()


def _modules(folder: Path) -> list[dict[str, Any]]:
    return settings_of(folder / "modules.json") or []


def settings_of(path: Path) -> Any:
    """What a JSON file holds; nothing where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
