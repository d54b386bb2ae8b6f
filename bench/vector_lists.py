"""What the lists of like rows find, and in what time, over the vectors of real texts.

Run it with `python -m bench.vector_lists FOLDER... [--rows N] [--questions N]`; a folder holds `corpus.jsonl` and
`queries.jsonl` in the form of BEIR, or several such folders. Passages are the sentences of all documents, and
stretches of three; where that gives fewer rows than are asked for, mixtures of near ones are added. Printed are the
share of the 50 nearest that are found, on the average and of the worst question, and milliseconds of one processor for
a question: of comparing all, and by lists. Figures stand in docs/decisions/0055-like-rows-beyond-memory.md.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.store.read_model.vectors import ivf_lists
from speckit_memory.memory.store.read_model.vectors.ivf_lists import InvertedLists
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import ListedMatrix, answered_by
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.pipeline.ports import Ids, Vectors

WANTED = 50
NEAR = 8
"""Mixtures are of two passages that stand at most so far apart."""
BLOCK = 20_000
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n")
LEAST_CHARACTERS = 30


class Everything:
    """A scope that admits all."""

    complete = True

    def __init__(self, size: int) -> None:
        self.size = size

    def admits(self, ids: Ids) -> NDArray[np.bool_]:
        return ids >= 0


def passages(folder: Path) -> Iterator[str]:
    for row in _rows(folder / "corpus.jsonl"):
        text = f"{row.get('title', '')}. {row['text']}"
        sentences = [part.strip() for part in _SENTENCE.split(text) if len(part.strip()) > LEAST_CHARACTERS]
        yield from sentences
        yield from (" ".join(sentences[at : at + 3]) for at in range(0, len(sentences), 2))


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def collections(folders: list[Path]) -> list[Path]:
    """The folders that hold a collection, among these and right below them."""
    names = ("corpus.jsonl", "*/corpus.jsonl")
    found = [file.parent for folder in folders for name in names for file in folder.glob(name)]
    if not found:
        raise SystemExit(f"none of {', '.join(map(str, folders))} holds a corpus.jsonl")
    return sorted(set(found))


def embedded(folders: list[Path]) -> tuple[Vectors, Vectors]:
    """The vectors of all distinct passages and of all questions."""
    embedder = StaticEmbedder()
    texts = list(dict.fromkeys(text for folder in folders for text in passages(folder)))
    rows = np.vstack([embedder.embed_documents(texts[at : at + 2000]) for at in range(0, len(texts), 2000)])
    asked = [row["text"] for folder in folders for row in _rows(folder / "queries.jsonl")]
    questions = np.vstack([embedder.embed_query(text) for text in asked])
    return rows.astype(np.float32), questions[questions.any(axis=1)].astype(np.float32)


def of_size(rows: Vectors, count: int) -> Vectors:
    """So many of the rows, at random, or all and mixtures."""
    rng = np.random.default_rng(7)
    if count <= len(rows):
        return rows[np.sort(rng.permutation(len(rows))[:count])]
    larger = np.empty((count, rows.shape[1]), np.float32)
    larger[: len(rows)] = rows
    for start in range(len(rows), count, BLOCK):
        size = min(BLOCK, count - start)
        first = rng.integers(0, len(rows) - NEAR, size)
        share = rng.uniform(0.3, 0.7, (size, 1))
        mixed = share * rows[first] + (1 - share) * rows[first + rng.integers(1, NEAR, size)]
        larger[start : start + size] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return larger


def milliseconds(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.thread_time()
    result = work()
    return 1e3 * (time.thread_time() - began), result


def measure(rows: Vectors, questions: Vectors) -> dict[str, float]:
    """All figures of a matrix."""
    everything, ids = Everything(len(rows)), np.arange(len(rows), dtype=np.int64)
    exact = VectorMatrix(ids, ids, rows)
    with TemporaryFile() as file:
        built, _ = milliseconds(lambda: ivf_lists.write(rows, file))
        stored = np.memmap(file, np.uint8, "r")
        listed = ListedMatrix(exact, InvertedLists(stored, len(rows)))
        if listed.failure:
            raise SystemExit(listed.failure)
        shares, compared, looked_up = [], [], []
        before = answered_by("lists")
        for question in questions:
            all_ms, meant = milliseconds(lambda q=question: exact.nearest(q, WANTED, everything, "chunk"))  # type: ignore[misc]
            ms, found = milliseconds(lambda q=question: listed.nearest(q, WANTED, everything, "chunk"))  # type: ignore[misc]
            shares.append(len(np.intersect1d(meant[0], found[0])) / WANTED)
            compared.append(all_ms)
            looked_up.append(ms)
        return {
            "rows": len(rows),
            "lists": ivf_lists.list_count(len(rows)),
            "found": float(np.mean(shares)),
            "worst": min(shares),
            "by_lists": (answered_by("lists") - before) / len(questions),
            "all_ms": float(np.median(compared)),
            "lists_ms": float(np.median(looked_up)),
            "lists_p95_ms": float(np.quantile(looked_up, 0.95)),
            "written_s": built / 1e3,
            "bytes_per_row": stored.size / len(rows),
        }


def main() -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--rows", type=int, default=0, help="so many rows; all passages unless given")
    parser.add_argument("--questions", type=int, default=300, help="so many questions, at random")
    asked = parser.parse_args()
    rows, questions = embedded(collections(asked.folders))
    chosen = np.random.default_rng(0).permutation(len(questions))[: asked.questions]
    figures = measure(of_size(rows, asked.rows or len(rows)), questions[chosen])
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
