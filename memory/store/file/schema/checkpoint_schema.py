"""The table that a migration adds for checkpoints (feature M14)."""

from __future__ import annotations

STORE_IDENTITY = """
CREATE TABLE store_identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    store_id TEXT NOT NULL CHECK (length(store_id) = 32)
) STRICT;
INSERT INTO store_identity VALUES (1, lower(hex(randomblob(16))));
"""
"""The identity of this store, which tells its own checkpoints from those of other stores: see `checkpoints`."""
