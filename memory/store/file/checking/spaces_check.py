"""Checks that all vectors of a store were made by the model that it names (feature I6).

A vector does not carry its model. But the embedding cache holds each vector under its model: a vector that is cached
under another model, and not under the one in use, belongs to another vector space.
"""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from speckit_memory.memory.store.file.guarding.queries import rows, table_exists, value

MISFITS = """
FROM embedding_cache c JOIN embedding_models m USING (model_id) WHERE length(c.vector) <> 4 * m.dimensions
"""
"""SQL for cached vectors whose length differs from the dimensions of their model (4 bytes per number)."""


def of_another_model(connection: apsw.Connection) -> Iterator[tuple[int, str]]:
    """Yields the passages whose vectors were not made by the model in use, each with the evidence."""
    serving = value(connection, "SELECT value FROM meta WHERE key = 'embedding_model'")
    if serving is None or not table_exists(connection, "chunk_vectors"):
        return
    size = value(connection, "SELECT dimensions FROM embedding_models WHERE model_id = ?", (serving,))
    others = [
        model for (model,) in rows(connection, "SELECT DISTINCT model_id FROM embedding_cache") if model != serving
    ]
    # Hashes of vectors, since the vectors themselves may not fit in memory.
    made = {key: model for model in others for key in _cached(connection, model)}
    own = set(_cached(connection, serving)) if made else set()
    for row, vector in connection.execute("SELECT rowid, embedding FROM chunk_vectors"):
        if size is not None and len(vector) != 4 * size:
            yield row, f"it has {len(vector) // 4} numbers and those of {serving} have {size}"
        elif (key := hash(vector)) in made and key not in own:
            yield row, f"it was made by {made[key]}, but {serving} is in use"


def _cached(connection: apsw.Connection, model: str) -> Iterator[int]:
    """Hashes of the cached vectors of a model."""
    for (vector,) in connection.execute("SELECT vector FROM embedding_cache WHERE model_id = ?", (model,)):
        yield hash(vector)
