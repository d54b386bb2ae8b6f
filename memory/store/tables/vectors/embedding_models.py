"""The models of a store's vectors and of its cache, and the progress of a new set of vectors (features I6, I7).

Each vector belongs to a model id: the vectors used by searches to the `embedding_model` in `meta`, cached ones to that
of their row. This table describes the ids.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import NamedTuple
from uuid import uuid4

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

PREVIOUS = "embedding_model_before"
"""Key in `meta` of the id of the model that was in use before the last change of models."""
CHOICE = "embedding_choice"
"""Key in `meta` of the name of the model that was chosen for the store."""
LEASE_SECONDS = 120.0
"""Seconds after its last batch for which a builder on another machine keeps other builders out."""


class ModelFingerprint(NamedTuple):
    """Description of a model id: the user's name for the model, its revision, how token vectors are pooled, and the
    number of dimensions."""

    model_id: str
    name: str
    revision: str
    pooling: str
    dimensions: int


class Build(NamedTuple):
    """A set of vectors being built while another is in use: `done` of `total` passages have a vector."""

    model_id: str
    name: str
    done: int
    total: int
    holder: str
    until: float


def note(txn: Transaction, stamp: ModelFingerprint, now: float) -> None:
    """Stores the description of a model id, at `now` (epoch seconds)."""
    txn.connection.execute("INSERT OR REPLACE INTO embedding_models VALUES (?, ?, ?, ?, ?, ?)", (*stamp, now))


def stamps(connection: Connection) -> dict[str, ModelFingerprint]:
    """Descriptions by model id. An id stored before this table existed has none."""
    found = rows(connection, "SELECT model_id, name, revision, pooling, dimensions FROM embedding_models")
    return {row[0]: ModelFingerprint(*row) for row in found}


def stamp_of(connection: Connection, model_id: str) -> ModelFingerprint | None:
    """The description of a model id; None if there is none."""
    found = rows(
        connection,
        "SELECT model_id, name, revision, pooling, dimensions FROM embedding_models WHERE model_id = ?",
        (model_id,),
    )
    return ModelFingerprint(*found[0]) if found else None


def build(connection: Connection) -> Build | None:
    """The unfinished build of vectors, whether or not a process works on it now; None if there is none."""
    found = rows(connection, "SELECT model_id, name, done, total, holder, until FROM embedding_build")
    return Build(*found[0]) if found else None


def new_holder() -> str:
    """A name for this process that is unique among all builders of vectors."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex}"


def at_work(found: Build, now: float) -> bool:
    """Whether a process works on the build at `now`. On the same host, a dead process is detected at once."""
    if not now < found.until <= now + LEASE_SECONDS:
        return False
    # A process id only means something on its own host; on Windows, os.kill would send Ctrl+C.
    host, _, rest = found.holder.partition(":")
    if host != socket.gethostname() or sys.platform == "win32":
        return True
    try:
        os.kill(int(rest.partition(":")[0]), 0)  # signal 0 only checks that the process exists
    except ProcessLookupError:
        return False
    except (OSError, ValueError, OverflowError):  # it exists, or this is not a process id: assume that it works
        return True
    return True


def note_build(txn: Transaction, found: Build) -> None:
    """Stores the progress of a build."""
    txn.connection.execute("INSERT OR REPLACE INTO embedding_build VALUES (1, ?, ?, ?, ?, ?, ?)", found)


def end_build(txn: Transaction) -> None:
    """Deletes the record of the build."""
    txn.connection.execute("DELETE FROM embedding_build")


def choose(txn: Transaction, name: str) -> None:
    """Stores the name of the chosen model."""
    set_meta(txn, CHOICE, name)


def previous(connection: Connection) -> str:
    """The id of the model before the last change of models, "" for none."""
    return get_meta(connection, PREVIOUS) or ""


def note_previous(txn: Transaction, model_id: str) -> None:
    """Stores the id of the model that was in use until now."""
    set_meta(txn, PREVIOUS, model_id)
