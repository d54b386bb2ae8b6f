"""Whether all vectors of a store are of the model that it says they are (feature I6).

A vector says nothing of its model. But whatever was embedded is in the cache under the model that did it, so that a
vector which is there under another model, and not under the one in use, is of another space.
"""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from speckit_memory.memory.store.file.guarding.queries import rows, table_exists, value

MISFITS = """
FROM embedding_cache c JOIN embedding_models m USING (model_id) WHERE length(c.vector) <> 4 * m.dimensions
"""
"""Cached vectors that are longer or shorter than those of their model."""


def of_another_model(connection: apsw.Connection) -> Iterator[tuple[int, str]]:
    """The passages whose vectors the model in use did not make, each with what tells so."""
    serving = value(connection, "SELECT value FROM meta WHERE key = 'embedding_model'")
    if serving is None or not table_exists(connection, "chunk_vectors"):
        return
    size = value(connection, "SELECT dimensions FROM embedding_models WHERE model_id = ?", (serving,))
    others = [
        model for (model,) in rows(connection, "SELECT DISTINCT model_id FROM embedding_cache") if model != serving
    ]
    made = {key: model for model in others for key in _cached(connection, model)}
    own = set(_cached(connection, serving)) if made else set()
    for row, vector in connection.execute("SELECT rowid, embedding FROM chunk_vectors"):
        if size is not None and len(vector) != 4 * size:
            yield row, f"it has {len(vector) // 4} numbers and those of {serving} have {size}"
        elif (key := hash(vector)) in made and key not in own:
            yield row, f"it is of {made[key]}, and {serving} is in use"


def _cached(connection: apsw.Connection, model: str) -> Iterator[int]:
    """Digests of the vectors of a model in the cache."""
    for (vector,) in connection.execute("SELECT vector FROM embedding_cache WHERE model_id = ?", (model,)):
        yield hash(vector)
