"""What is done in the background: when each job ran last and with what result, and who may run jobs now.

One process at a time does: it holds the lease, a row that ends by itself. Every batch renews it in its own transaction,
so that whoever has lost it finds that out before it changes anything, and it is renewed while a batch is prepared.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows

LEASE_SECONDS = 60.0
"""So long after it renewed the lease a holder that was killed keeps others out."""


class Run(NamedTuple):
    """The last run of a job. Times are epoch seconds, `ended_at` None while it runs or when it was killed.

    `changed` counts what it changed; with `remains` it stopped at its bound, and `failure` says why it failed.
    """

    job: str
    began_at: float
    ended_at: float | None
    changed: int
    remains: bool
    failure: str


def take(txn: Transaction, holder: str, now: float) -> bool:
    """Takes the lease from `now` (epoch seconds) on, unless another one holds it.

    A lease that ends later than any can was taken by a clock that has been set back since: it holds nobody off.
    """
    taken = txn.connection.execute(
        "INSERT INTO job_lease (one, holder, until) VALUES (1, ?1, ?2 + ?3) ON CONFLICT DO UPDATE "
        "SET holder = excluded.holder, until = excluded.until WHERE holder = ?1 OR until <= ?2 OR until > ?2 + ?3 "
        "RETURNING 1",
        (holder, now, LEASE_SECONDS),
    ).fetchall()
    return bool(taken)


def renew(txn: Transaction, holder: str, now: float) -> bool:
    """Extends the lease; False when it is not the holder's any more."""
    renewed = txn.connection.execute(
        "UPDATE job_lease SET until = ?2 + ?3 WHERE holder = ?1 RETURNING 1", (holder, now, LEASE_SECONDS)
    ).fetchall()
    return bool(renewed)


def release(txn: Transaction, holder: str) -> None:
    """Gives the lease back, if the holder still has it."""
    txn.connection.execute("DELETE FROM job_lease WHERE holder = ?", (holder,))


def held(connection: apsw.Connection, now: float) -> bool:
    """Whether somebody holds the lease at `now`."""
    found = rows(connection, "SELECT 1 FROM job_lease WHERE until > ?1 AND until <= ?1 + ?2", (now, LEASE_SECONDS))
    return bool(found)


def note(txn: Transaction, run: Run) -> None:
    """Writes how a run of a job stands."""
    txn.connection.execute("INSERT OR REPLACE INTO job_runs VALUES (?, ?, ?, ?, ?, ?)", run)


def last_runs(connection: apsw.Connection) -> dict[str, Run]:
    """The last run of every job that ever ran."""
    found = rows(connection, "SELECT job, began_at, ended_at, changed, remains, failure FROM job_runs ORDER BY job")
    return {
        job: Run(job, began, ended, changed, bool(remains), why) for job, began, ended, changed, remains, why in found
    }
