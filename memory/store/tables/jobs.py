"""Background jobs: the last run of each with its result, and the lease that allows one process to run them.

The lease is a row that expires. Every batch renews it in its own transaction, so that a process that lost the lease
fails before it changes anything; it is also renewed while a batch is prepared.
"""

from __future__ import annotations

from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows

LEASE_SECONDS = 60.0
"""Seconds from the last renewal for which a killed holder keeps other processes out."""


class JobRun(NamedTuple):
    """The last run of a job. Times are epoch seconds, `ended_at` None while it runs or when it was killed.

    `changed` counts its changes; `remains` says that it stopped at its limit with work left, and `failure` why it
    failed ("" if it did not).
    """

    job: str
    began_at: float
    ended_at: float | None
    changed: int
    remains: bool
    failure: str


def take(txn: Transaction, holder: str, now: float) -> bool:
    """Takes the lease from `now` (epoch seconds), unless another holder has it; returns whether it was taken.

    A lease that ends more than `LEASE_SECONDS` from now was taken before the clock was set back, and is ignored.
    """
    # a single statement, which returns no row if another holder has the lease
    taken = txn.connection.execute(
        "INSERT INTO job_lease (one, holder, until) VALUES (1, ?1, ?2 + ?3) ON CONFLICT DO UPDATE "
        # own lease, expired lease, or one from before the clock was set back
        "SET holder = excluded.holder, until = excluded.until "
        "WHERE job_lease.holder = ?1 OR job_lease.until <= ?2 OR job_lease.until > ?2 + ?3 "
        "RETURNING 1",
        (holder, now, LEASE_SECONDS),
    ).fetchall()
    return bool(taken)


def renew(txn: Transaction, holder: str, now: float) -> bool:
    """Extends the lease; False when the holder no longer has it."""
    renewed = txn.connection.execute(
        "UPDATE job_lease SET until = ?2 + ?3 WHERE holder = ?1 RETURNING 1", (holder, now, LEASE_SECONDS)
    ).fetchall()
    return bool(renewed)


def release(txn: Transaction, holder: str) -> None:
    """Releases the lease, if the holder still has it."""
    txn.connection.execute("DELETE FROM job_lease WHERE holder = ?", (holder,))


def is_held(connection: Connection, now: float) -> bool:
    """Whether the lease is held at `now` (epoch seconds)."""
    found = rows(connection, "SELECT 1 FROM job_lease WHERE until > ?1 AND until <= ?1 + ?2", (now, LEASE_SECONDS))
    return bool(found)


def note(txn: Transaction, run: JobRun) -> None:
    """Stores the state of a job's run."""
    txn.connection.execute("INSERT OR REPLACE INTO job_runs VALUES (?, ?, ?, ?, ?, ?)", run)


def last_runs(connection: Connection) -> dict[str, JobRun]:
    """The last runs, by job."""
    found = rows(connection, "SELECT job, began_at, ended_at, changed, remains, failure FROM job_runs ORDER BY job")
    return {
        job: JobRun(job, began, ended, changed, bool(remains), why)
        for job, began, ended, changed, remains, why in found
    }
