"""Which models made the vectors of a store and of its cache, and the vectors that are being made (features I6, I7).

Every vector belongs to a model by its id: those that searches use by the store's fact `embedding_model`, those of the
cache by their row. Here stands what an id means.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import NamedTuple
from uuid import uuid4

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

PREVIOUS = "embedding_model_before"
"""The store's fact that says which model's vectors were in use before the last change of them."""
CHOICE = "embedding_choice"
"""The store's fact that says which model was chosen for it by name."""
LEASE_SECONDS = 120.0
"""So long after its last batch a builder on another machine keeps others out."""


class Stamp(NamedTuple):
    """What an id means: the model as a user names it, which state of it, how vectors of tokens become one, and the
    length of its vectors."""

    model_id: str
    name: str
    revision: str
    pooling: str
    dimensions: int


class Build(NamedTuple):
    """Vectors that are being made beside those in use: `done` of `total` passages have one."""

    model_id: str
    name: str
    done: int
    total: int
    holder: str
    until: float


def note(txn: Transaction, stamp: Stamp, now: float) -> None:
    """Writes what an id means, at `now` (epoch seconds)."""
    txn.connection.execute("INSERT OR REPLACE INTO embedding_models VALUES (?, ?, ?, ?, ?, ?)", (*stamp, now))


def stamps(connection: apsw.Connection) -> dict[str, Stamp]:
    """What each known id means. One that was written before there were stamps has none."""
    found = rows(connection, "SELECT model_id, name, revision, pooling, dimensions FROM embedding_models")
    return {row[0]: Stamp(*row) for row in found}


def stamp_of(connection: apsw.Connection, model_id: str) -> Stamp | None:
    """What an id means, None where that was never written."""
    found = rows(
        connection,
        "SELECT model_id, name, revision, pooling, dimensions FROM embedding_models WHERE model_id = ?",
        (model_id,),
    )
    return Stamp(*found[0]) if found else None


def build(connection: apsw.Connection) -> Build | None:
    """The vectors that are being made, whether or not somebody is at it now."""
    found = rows(connection, "SELECT model_id, name, done, total, holder, until FROM embedding_build")
    return Build(*found[0]) if found else None


def new_holder() -> str:
    """Names this process among all that may make vectors."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex}"


def at_work(found: Build, now: float) -> bool:
    """Whether somebody is making the vectors at `now`: a process that is gone is told from one that is slow."""
    if not now < found.until <= now + LEASE_SECONDS:
        return False
    host, _, rest = found.holder.partition(":")
    if host != socket.gethostname() or sys.platform == "win32":
        return True
    try:
        os.kill(int(rest.partition(":")[0]), 0)  # asks whether it lives and does nothing to it
    except ProcessLookupError:
        return False
    except (OSError, ValueError, OverflowError):  # it lives, or this is no number that a process here could have
        return True
    return True


def note_build(txn: Transaction, found: Build) -> None:
    """Writes how far the vectors are."""
    txn.connection.execute("INSERT OR REPLACE INTO embedding_build VALUES (1, ?, ?, ?, ?, ?, ?)", found)


def end_build(txn: Transaction) -> None:
    """No vectors are being made."""
    txn.connection.execute("DELETE FROM embedding_build")


def choice(connection: apsw.Connection) -> str:
    """The model that was chosen for the store by name, "" for none."""
    return get_meta(connection, CHOICE) or ""


def choose(txn: Transaction, name: str) -> None:
    """Notes the choice."""
    set_meta(txn, CHOICE, name)


def previous(connection: apsw.Connection) -> str:
    """The id of the model before the last change, "" for none."""
    return get_meta(connection, PREVIOUS) or ""


def note_previous(txn: Transaction, model_id: str) -> None:
    """Notes which model was in use until now."""
    set_meta(txn, PREVIOUS, model_id)
