"""What all targets share: one model, workspaces that are taken away at the end, and small mutations of bytes."""

from __future__ import annotations

import atexit
import math
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hypothesis import strategies as st

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.memory.lifecycle import archival
from speckit_memory.memory.models.embedders import StaticEmbedder

NOTES = {
    "docs/fusion.md": (
        "---\ntitle: Why rank fusion\ntrigger_phrases: [reciprocal rank fusion]\nimportance_tier: important\n---\n"
        "# Why rank fusion\n\nScores of lexical and dense channels cannot be compared, so the ranks are fused.\n"
    ),
    "docs/storage/wal.md": (
        "# Write-ahead log\n\nThe store runs SQLite in WAL mode. `computeMPAB`, busy_timeout: see REQ-006.\n"
    ),
    "docs/storage/backup.md": (
        "---\ncausalLinks: {supports: [wal.md]}\n---\n# Backups\n\n<!-- ANCHOR:how -->\nCopy the file online.\n"
        "<!-- /ANCHOR:how -->\n"
    ),
    "docs/rules.md": "---\nimportance_tier: constitutional\n---\n# House rules\n\nNever push on Fridays.\n",
    "docs/cjk.md": "# 検索の設計\n\n全文検索は二文字の並びで日本語を索引する。\n",
    "docs/long.md": "# Long passage\n\n" + "The quokka cache keeps warm entries close to the reader. " * 90 + "\n",
}


@cache
def model() -> StaticEmbedder:
    """The bundled model, read once."""
    return StaticEmbedder()


def folder(where: Path | None = None) -> Path:
    """A folder that lives as long as the process, in the usual place for such unless `where` says another."""
    made = Path(mkdtemp(prefix="fuzz-", dir=where))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def opened(root: Path, pipeline: str = "default", **more: Any) -> Memory:
    """An open store in a folder, with the model that is there already."""
    memory = Memory.open(root / "memory.db", pipeline, root=root, environ={}, **more)
    memory.session.opened._models.embedder = model()  # read once for all stores
    return memory


def give_up_absent(memory: Memory) -> None:
    """Deletes what is absent for good, as maintenance does once its time is over."""
    with memory.session.database.write() as txn:
        while archival.delete_absent(txn, math.inf, 0.0):
            pass


def with_notes() -> Path:
    """A workspace with a few notes in its store."""
    root = folder()
    for name, text in NOTES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    with opened(root) as memory:
        memory.index([root / "docs"])
    return root


def said_with_codes(error: SpeckitError, *never: str) -> None:
    """Holds an error to the codes of the product, without these."""
    codes = {problem.code for problem in error.problems}
    assert codes <= set(CODES) - set(never), error


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes], tokens: tuple[bytes, ...], most: int = 8) -> bytes:
    """Bytes with pieces cut out, put in, doubled and moved. Fewer changes are simpler."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(["put", "cut", "replace", "double", "bytes"]))
        if kind == "put":
            data[start:start] = draw(st.sampled_from(tokens))
        elif kind == "cut":
            del data[start:end]
        elif kind == "replace":
            data[start:end] = draw(st.sampled_from(tokens))
        elif kind == "double":
            data[start:start] = data[start:end] * draw(st.integers(1, 50))
        else:
            data[start:start] = draw(st.binary(max_size=4))
    return bytes(data)
