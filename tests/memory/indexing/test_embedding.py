from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from speckit_memory.config.workspace.options import SHIPPED_INDEXING
from speckit_memory.engine.runtime.models import QueryModels, serving
from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.models.crossencoders import chosen
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.models.passage_vectors import embedding_text, weighted_query
from speckit_memory.memory.scanning.moves import FileMove
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.pipeline.ports import Vectors

Write = Callable[[str, str], Path]


class Plain:
    """An embedder that tells nothing about tokens."""

    model_id = "plain"
    dimensions = 2

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.tile(np.array([0.6, 0.8], np.float32), (len(texts), 1))

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_documents([text])[0]
        return vector


def stored(database: Database) -> list[list[int]]:
    _, lengths, flat = token_sets.load(database.reader())
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]


@pytest.mark.requirement("R1")
def test_indexing_stores_the_tokens_of_title_and_passage_also_of_a_file_that_was_moved(
    indexer: Indexer, database: Database, embedder: StaticEmbedder, root: Path, write: Write
) -> None:
    write("a.md", "# Rank fusion\n\nScores are added, scores are standardised.\n")
    text = embedding_text("Rank fusion", "", "# Rank fusion\n\nScores are added, scores are standardised.")
    expected = [np.unique(embedder.tokenise([text])[0]).tolist()]
    assert len(expected[0]) < len(embedder.tokenise([text])[0])

    assert indexer.index([root], now=1.0).embedded == 1
    assert stored(database) == expected
    (root / "a.md").rename(root / "b.md")
    report = indexer.index([root], now=2.0)
    assert (report.embedded, report.renamed, report.absent) == (1, [FileMove("a.md", "b.md")], [])
    assert stored(database) == expected
    assert database.check() == []


def test_pending_passages_get_their_tokens_with_their_vectors(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    write("a.md", "Scores are added.\n")
    Indexer(database, None, Analyser(), root).index([root], now=1.0)
    assert stored(database) == [[]]
    indexer.index([root], now=2.0)
    assert [len(tokens) > 2 for tokens in stored(database)] == [True]


def test_a_model_that_tells_no_tokens_leaves_none(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    write("a.md", "Scores are added.\n")
    indexer.index([root], now=1.0)
    Indexer(database, Plain(), Analyser(), root).index([root], now=2.0)
    assert stored(database) == [[]]
    assert database.check() == []
    models = QueryModels(database, lambda: serving(Plain()), Analyser(), chosen(""), SHIPPED_INDEXING)
    np.testing.assert_array_equal(models.embed("text", np.ones_like), Plain().embed_query("text"))


@pytest.mark.requirement("C1")
def test_a_query_counts_its_tokens_by_the_root_of_their_rarity(embedder: StaticEmbedder) -> None:
    tokens = embedder.tokenise(["rare common"])[0]
    rarity = dict(zip(tokens.tolist(), range(1, 1 + len(tokens)), strict=True))
    asked = weighted_query(embedder, tokens, lambda ids: np.array([rarity[token] for token in ids.tolist()], float))
    np.testing.assert_array_equal(asked, embedder.pool_query(tokens, np.sqrt(np.arange(1.0, 1 + len(tokens)))))
