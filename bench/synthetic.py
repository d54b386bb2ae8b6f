"""Seeded stores of any size that look like a project's: Zipfian words, short and long notes, folders, edges.

`python -m bench.synthetic FOLDER --memories 100000` writes one. Documents are made one after the other, so that what
this takes of memory grows with the vocabulary alone. The vocabulary grows with the size after Heaps' law: a million
notes know more words than ten thousand do. The 10,000 memories are those of all figures so far, to the letter.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.records import Relation, Tier

if TYPE_CHECKING:
    from speckit_memory.memory.intake.index_report import IndexProgress, OnProgress

MEMORIES = 10_000
SEED = 20_261_121
VOCABULARY = 20_000
"""Different words of 10,000 memories."""
HEAPS = 0.5
"""How the vocabulary grows: with this power of the size. Texts people write have 0.4 to 0.6."""
NOTES_OF_A_FOLDER = 50
FEWEST_FOLDERS = 200
SECONDS_BETWEEN = 600.0
"""Between two notes of 10,000; of more, all together span as long as those do, so that none is of the future."""
LINKED_AT_ONCE = 20_000
TOLD_EVERY = 10_000
_SYLLABLES = ("ba", "co", "di", "fer", "gra", "hal", "in", "jo", "kel", "lum", "mor", "nex", "or", "pli", "qua", "ris")
_TIERS = (Tier.NORMAL, Tier.IMPORTANT, Tier.CRITICAL, Tier.TEMPORARY)


def vocabulary(random: np.random.Generator, size: int) -> list[str]:
    """So many pronounceable words, all different."""
    most = 4 if size <= VOCABULARY else 6  # syllables: of at most four there are 70,000
    words: set[str] = set()
    while len(words) < size:
        parts = random.integers(2, most + 1)
        words.add("".join(random.choice(_SYLLABLES, parts)))
    return sorted(words)


class Corpus:
    """Texts and queries drawn from one distribution of words. What is drawn depends on what was drawn before."""

    def __init__(self, memories: int = MEMORIES, seed: int = SEED) -> None:
        """`memories`: how many `sources` gives."""
        self.memories = memories
        self._random = np.random.default_rng(seed)
        size = max(1, round(VOCABULARY * (memories / MEMORIES) ** HEAPS))
        self._words = np.array(vocabulary(self._random, size))
        self._random.shuffle(self._words)
        shares = 1 / (np.arange(size) + 20.0)
        # What `choice` makes of shares at each call, made once: it draws the same.
        self._below = (shares / shares.sum()).cumsum()
        self._below /= self._below[-1]
        self._folders = max(FEWEST_FOLDERS, memories // NOTES_OF_A_FOLDER)
        self._seconds = SECONDS_BETWEEN * min(1.0, MEMORIES / memories)

    def words(self, count: int) -> list[str]:
        """Words with frequencies after Zipf's law."""
        drawn: list[str] = self._words[self._below.searchsorted(self._random.random(count), side="right")].tolist()
        return drawn

    def _key(self, number: int) -> str:
        return f"specs/{number % self._folders:03d}/note-{number:05d}.md"

    def sources(self) -> Iterator[Source]:
        """The documents: most are short notes, one in five has sections and so several passages."""
        for number in range(self.memories):
            sections = int(self._random.integers(3, 7)) if number % 5 == 0 else 1
            body = "\n\n".join(
                f"## {' '.join(self.words(3))}\n\n{' '.join(self.words(int(self._random.integers(60, 160))))}."
                for _ in range(sections)
            )
            yield Source(
                key=self._key(number),
                text=body,
                title=" ".join(self.words(5)),
                tier=_TIERS[int(self._random.choice(4, p=(0.8, 0.12, 0.03, 0.05)))],
                triggers=(" ".join(self.words(2)),),
                created_at=1_760_000_000.0 + self._seconds * number,
            )

    def edges(self) -> Iterator[tuple[str, str, str, float]]:
        """Causal edges between neighbouring notes, none twice and at most a few per note."""
        relations = [relation.value for relation in Relation]
        for number in range(self.memories - 1):
            strength = 0.5 + 0.5 * float(self._random.random())
            yield self._key(number), relations[number % 6], self._key(number + 1), strength

    def queries(self, complexity: str, count: int) -> list[str]:
        """Questions of one complexity: up to 3, 4 to 8, and more than 8 words."""
        low, high = {"simple": (1, 4), "moderate": (4, 9), "complex": (9, 20)}[complexity]
        return [" ".join(self.words(int(self._random.integers(low, high)))) for _ in range(count)]


def build(
    folder: Path, memories: int = MEMORIES, *, seed: int = SEED, progress: OnProgress | None = None
) -> tuple[Path, Corpus]:
    """The store, written to a folder that has none yet, and the corpus for queries."""
    corpus = Corpus(memories, seed)
    path = folder / "memory.db"
    with Memory.open(path, root=folder, environ={}) as memory:
        memory.index_documents(corpus.sources(), progress=progress)
        link(memory, corpus)
        memory.lifecycle.write_segment()  # that of the index run does not know the edges
    return path, corpus


def link(memory: Memory, corpus: Corpus) -> None:
    """Adds the edges between the notes of a store."""
    edges = corpus.edges()
    while some := tuple(islice(edges, LINKED_AT_ONCE)):
        memory.graph.add_edges(some, created_by="manual")


def _telling() -> OnProgress:
    """Prints a line for each further `TOLD_EVERY` memories."""
    begun, told = time.monotonic(), 0

    def tell(progress: IndexProgress) -> None:
        nonlocal told
        if progress.done // TOLD_EVERY > told:
            told = progress.done // TOLD_EVERY
            print(f"{progress.done:,} memories, {progress.done / (time.monotonic() - begun):,.0f} a second", flush=True)

    return tell


def main() -> None:
    """Writes a store and says how long that took."""
    parser = argparse.ArgumentParser(prog="python -m bench.synthetic", description="Writes a seeded store.")
    parser.add_argument("folder", type=Path, help="where memory.db is written; made if it is missing")
    parser.add_argument("--memories", type=int, default=MEMORIES, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="other words and texts (default: %(default)s)")
    chosen = parser.parse_args()
    if chosen.memories < 2:
        parser.error("--memories: at least 2 are needed")
    if (chosen.folder / "memory.db").exists():
        parser.error(f"{chosen.folder / 'memory.db'} is there already; name another folder or delete it")
    chosen.folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    path, _ = build(chosen.folder, chosen.memories, seed=chosen.seed, progress=_telling())
    print(f"{path}: {chosen.memories:,} memories in {time.monotonic() - begun:,.0f} s, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
