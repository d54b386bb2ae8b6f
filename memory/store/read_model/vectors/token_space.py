"""The static token vectors of a snapshot's passages, loaded on first use."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.state.models import Models
from speckit_memory.memory.store.read_model.state.read_point import ReadPoint
from speckit_memory.memory.store.read_model.vectors.token_table import TokenTable
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.pipeline.arithmetic import distinct, idf
from speckit_memory.pipeline.ports import Column, Ids, Unavailable, Vectors
from speckit_memory.pipeline.process.clock import opening


class SnapshotTokens:
    """The tokens of one state of the store and the model of their vectors. Implements `pipeline.ports.TokenSpace`."""

    __slots__ = ("_columns", "_held", "_loading", "_models", "_moment")

    def __init__(self, moment: ReadPoint, columns: Columns, models: Models, table: TokenTable | None = None) -> None:
        """`table` holds the tokens if they are already loaded."""
        self._moment = moment
        self._columns = columns
        self._models = models
        self._held = table
        self._loading = threading.Lock()

    def count(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens that each text costs its reader (feature A6)."""
        return self._models.count_tokens(texts)

    def of_text(self, text: str) -> Ids | Unavailable:
        """Distinct token numbers of a query, ascending; Unavailable without the store's token model."""
        tokens = self._models.tokens(text)
        return tokens if isinstance(tokens, Unavailable) else distinct(tokens)

    def of_passages(self, ids: Ids) -> list[Ids]:
        """Distinct token numbers of each chunk with its title and headings, ascending; empty for an unknown id.

        A memory of several chunks answers with its first chunk.
        """
        return self._loaded().of(self._first_chunks(np.asarray(ids)))

    def vectors(self, tokens: Ids) -> Vectors:
        """Unit vectors of tokens, shape (n, dimensions)."""
        return self._models.token_vectors(np.asarray(tokens))

    def weights(self, tokens: Ids) -> Column:
        """Inverse document frequency log((n - df + ½) / (df + ½) + 1) of each token over the chunks, > 0."""
        table = self._loaded()
        return idf(table.frequency(tokens).astype(np.float64), table.count)

    def advanced(
        self, moment: ReadPoint, connection: Connection, columns: Columns, outdated: Ids, put: Ids
    ) -> SnapshotTokens:
        """The tokens of the state `columns`.

        Args:
            moment: The new state.
            connection: An open transaction that sees the new state.
            columns: The memories and chunks of the new state.
            outdated: Ids of memories that were changed or deleted.
            put: Ids of memories that were added or changed.
        """
        twin = SnapshotTokens(moment, columns, self._models)
        if self._held is not None:
            # After a change of the model every memory is among the outdated ones.
            gone = self._columns.chunks_of(outdated)
            twin._held = self._held.replaced(gone, *token_sets.load(connection, put))
        return twin

    def _first_chunks(self, ids: Ids) -> Ids:
        """The ids, with each memory of several chunks replaced by its first chunk."""
        chunks = self._columns.chunks
        whole = np.searchsorted(chunks, ids, "left") == np.searchsorted(chunks, ids, "right")
        if not whole.any():
            return ids
        chunks = self._columns.chunks_of(ids[whole])
        # Chunk ids ascend within a memory, so the first occurrence of a parent is its first chunk.
        parents, first = np.unique(self._columns.parents(chunks), return_index=True)
        translated = ids.copy()
        known = np.isin(ids, parents) & whole
        translated[known] = chunks[first[np.searchsorted(parents, ids[known])]]
        return translated

    def _loaded(self) -> TokenTable:
        if self._held is not None:
            return self._held
        with opening(), self._loading:
            if self._held is not None:
                return self._held
            with self._moment.read() as (connection, is_of_it):
                chunks, lengths, tokens = token_sets.load(connection)
            known = np.isin(chunks, self._columns.chunks)
            table = TokenTable(chunks[known], lengths[known], tokens[np.repeat(known, lengths)])
            if is_of_it:
                self._held = table
            return table
