"""A seeded store of 10,000 memories that looks like a project's: Zipfian words, short and long notes, edges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.records import Relation, Tier

MEMORIES = 10_000
SEED = 20_261_121
VOCABULARY = 20_000
EDGES = 12_000
_SYLLABLES = ("ba", "co", "di", "fer", "gra", "hal", "in", "jo", "kel", "lum", "mor", "nex", "or", "pli", "qua", "ris")
_TIERS = (Tier.NORMAL, Tier.IMPORTANT, Tier.CRITICAL, Tier.TEMPORARY)


def vocabulary(random: np.random.Generator) -> list[str]:
    """Pronounceable words, all different."""
    words: set[str] = set()
    while len(words) < VOCABULARY:
        parts = random.integers(2, 5)
        words.add("".join(random.choice(_SYLLABLES, parts)))
    return sorted(words)


class Corpus:
    """Texts and queries drawn from one distribution of words."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(SEED)
        self._words = np.array(vocabulary(self._random))
        self._random.shuffle(self._words)
        shares = 1 / (np.arange(VOCABULARY) + 20.0)
        self._shares = shares / shares.sum()

    def words(self, count: int) -> list[str]:
        """Words with frequencies after Zipf's law."""
        return [str(word) for word in self._random.choice(self._words, count, p=self._shares)]

    def sources(self) -> Iterator[Source]:
        """10,000 documents: most are short notes, one in five has sections and so several passages."""
        for number in range(MEMORIES):
            sections = int(self._random.integers(3, 7)) if number % 5 == 0 else 1
            body = "\n\n".join(
                f"## {' '.join(self.words(3))}\n\n{' '.join(self.words(int(self._random.integers(60, 160))))}."
                for _ in range(sections)
            )
            yield Source(
                key=f"specs/{number % 200:03d}/note-{number:05d}.md",
                text=body,
                title=" ".join(self.words(5)),
                tier=_TIERS[int(self._random.choice(4, p=(0.8, 0.12, 0.03, 0.05)))],
                triggers=(" ".join(self.words(2)),),
                created_at=1_760_000_000.0 + 600.0 * number,
            )

    def edges(self) -> Iterator[tuple[str, str, str, float]]:
        """Causal edges between neighbouring notes, none twice and at most a few per note."""
        relations = [relation.value for relation in Relation]
        for number in range(MEMORIES - 1):
            source = f"specs/{number % 200:03d}/note-{number:05d}.md"
            target = f"specs/{(number + 1) % 200:03d}/note-{number + 1:05d}.md"
            yield source, relations[number % 6], target, 0.5 + 0.5 * float(self._random.random())

    def queries(self, complexity: str, count: int) -> list[str]:
        """Questions of one complexity: up to 3, 4 to 8, and more than 8 words."""
        low, high = {"simple": (1, 4), "moderate": (4, 9), "complex": (9, 20)}[complexity]
        return [" ".join(self.words(int(self._random.integers(low, high)))) for _ in range(count)]


def build(folder: Path) -> tuple[Path, Corpus]:
    """The store, written to a folder, and the corpus for queries."""
    corpus = Corpus()
    path = folder / "memory.db"
    with Memory.open(path, root=folder) as memory:
        memory.index_documents(corpus.sources())
        memory.link(corpus.edges(), created_by="manual")
    return path, corpus
