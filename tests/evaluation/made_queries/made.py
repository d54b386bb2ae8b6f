"""Collections for the tests of made queries, and what is made of them."""

from __future__ import annotations

from random import Random

from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.evaluation.made_queries.collection import Collection
from speckit_memory.evaluation.made_queries.query_maker import derive


def collection(*texts: str, titles: tuple[str, ...] = ()) -> Collection:
    """Documents 0, 1, 2 … with these bodies."""
    named = titles or ("",) * len(texts)
    documents = zip(named, texts, strict=True)
    return Collection(DatasetDocument(str(row), title, text) for row, (title, text) in enumerate(documents))


def made(kind: str, of: Collection, seed: int = 1) -> dict[str, tuple[int, ...]]:
    """All queries of a kind with the rows of their relevant documents."""
    return {query.text: query.relevant for query in derive(kind)(of, Random(seed))}
