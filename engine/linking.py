"""Causal edges between memories that are named by their keys."""

from __future__ import annotations

import time
from collections.abc import Iterable

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Relation
from speckit_memory.memory.store.tables.edges import add_edge


def link(database: Database, edges: Iterable[tuple[str, str, str, float]], created_by: str) -> None:
    """Adds edges (source key, relation, target key, strength), all or none. Raises E030 and E080."""
    with database.write() as transaction:
        for source, relation, target, strength in edges:
            ends = [reader.get_memory(transaction.connection, key).id for key in (source, target)]
            add_edge(
                transaction, ends[0], ends[1], _relation(relation), strength,
                evidence="", created_by=created_by, now=time.time(),
            )  # fmt: skip


def _relation(name: str) -> Relation:
    if name not in list(Relation):
        raise SpeckitError("E030", f"the relation is '{name}'; {nearest(name, list(Relation))}")
    return Relation(name)
