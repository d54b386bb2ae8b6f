"""Token ids on disk: the distinct tokens of each passage by the store's token model (features C1, R1).

They are stored and deleted together with the passage's vector, which may be by another model. Each passage has one
ascending array of little-endian ids, of the width in bytes that the model's vocabulary needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.tables.meta import get_meta, set_meta
from speckit_memory.pipeline.ports import Ids, Tokens

MODEL = "token_model"
"""Key in `meta` of the model that tokenised the passages."""
WIDTH = "token_bytes"
"""Key in `meta` of the number of bytes per token id."""


def claim(txn: Transaction, model_id: str) -> None:
    """Records the model of the store's tokens. Raises E002 when the store has tokens of another model."""
    known = get_meta(txn.connection, MODEL)
    if known is None:
        set_meta(txn, MODEL, model_id)
    elif known != model_id:
        raise SpeckitError("E002", f"the store holds tokens of {known}, these were made by {model_id}")


def insert(txn: Transaction, chunk_ids: Sequence[int], tokens: Sequence[Tokens]) -> None:
    """Stores distinct ascending tokens for chunks that have none. Raises E002 if their width differs from the
    store's."""
    if not chunk_ids:
        return
    width = str(tokens[0].itemsize)
    known = get_meta(txn.connection, WIDTH)
    if known is None:
        set_meta(txn, WIDTH, width)
    elif known != width:
        raise SpeckitError("E002", f"the store holds tokens of {known} bytes, these have {width}")
    txn.connection.executemany(
        "INSERT INTO chunk_tokens VALUES (?, ?)",
        ((chunk_id, _little(each).tobytes()) for chunk_id, each in zip(chunk_ids, tokens, strict=True)),
    )


def forget_all(txn: Transaction) -> None:
    """Deletes the tokens of all chunks, so that another model can be used."""
    txn.connection.execute("DELETE FROM chunk_tokens")
    txn.connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (MODEL, WIDTH))


def load(connection: Connection, memories: Ids | None = None) -> tuple[Ids, Ids, Tokens]:
    """Chunk ids ascending, shape (n,), the number of tokens of each, shape (n,), and all tokens concatenated.

    `memories` restricts the result to chunks of these; None for all.
    """
    if memories is None:
        found = rows(connection, "SELECT chunk_id, tokens FROM chunk_tokens ORDER BY chunk_id")
    else:
        found = rows(
            connection,
            "SELECT t.chunk_id, t.tokens FROM chunks c JOIN chunk_tokens t ON t.chunk_id = c.id "
            "WHERE c.memory_id IN (SELECT value FROM carray(?)) ORDER BY t.chunk_id",
            (integers(memories),),
        )
    # flat: all tokens one after the other; lengths split it
    kind = np.dtype(np.uint32 if get_meta(connection, WIDTH) == "4" else np.uint16)
    lengths = np.array([len(blob) // kind.itemsize for _, blob in found], np.int64)
    flat = np.frombuffer(b"".join(blob for _, blob in found), kind.newbyteorder("<")).astype(kind)
    return np.array([chunk_id for chunk_id, _ in found], np.int64), lengths, flat


def _little(tokens: Tokens) -> NDArray[np.unsignedinteger]:
    return tokens.astype(tokens.dtype.newbyteorder("<"), copy=False)
