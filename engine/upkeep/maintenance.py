"""Runs due background jobs, one process at a time, in small transactions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.upkeep.maintenance_jobs import Job, PreparedBatch
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.segment_files.findings import GivenUpError
from speckit_memory.memory.store.tables import jobs
from speckit_memory.memory.store.tables.jobs import JobRun
from speckit_memory.pipeline.process.yielding import yield_now


@contextmanager
def heartbeat(beat: Callable[[], bool], seconds: float, most: int) -> Iterator[None]:
    """Calls `beat` every `seconds` from a separate thread while the block runs.

    Stops after `most` calls, as the block may hang, and when `beat` returns False or raises; exceptions are logged. No
    call is in progress after the block.
    """
    over = threading.Event()

    def go_on() -> None:
        with harmless("work continues without renewing its lease"):
            for _ in range(most):
                # wait returns True once the block is over.
                if over.wait(seconds) or not beat():
                    return

    thread = threading.Thread(target=go_on, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        # Waits for a call in progress, so that none touches the store after the block.
        thread.join()


MOST_BATCHES = 20
"""Maximum number of batches per run of a job; the next run continues."""
AGAIN_SECONDS = 600.0
"""A failed job is tried again after this time."""
BEAT_SECONDS = jobs.LEASE_SECONDS / 3
"""Interval of renewing the lease while a batch is prepared, which may take longer than a lease lasts."""
MOST_BEATS = 90
"""Half an hour: a batch that takes longer counts as hanging, and another process may take over."""
NOT_THE_JOBS = ("E022", "E026", "E027")
"""Failures of the store as a whole: busy, replaced or closed."""

State = Literal["ran", "unfinished", "failed", "not due", "waiting"]


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome of a job: `waiting` if it is due and did not run.

    `count` is the number of changes, or of items waiting in a dry run; `failure` is the error message.
    """

    job: str
    state: State
    count: int
    what: str
    failure: str = ""


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """The outcome of a run of all jobs. With `elsewhere`, another process was running them, and this one did
    nothing."""

    jobs: tuple[JobOutcome, ...]
    elsewhere: bool = False

    @property
    def failed(self) -> bool:
        """Whether a job failed."""
        return any(done.state == "failed" for done in self.jobs)


class _LostError(Exception):
    """Another process has taken the lease."""


def due(connection: Connection, now: float, every: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs that are due at `now` (epoch seconds)."""
    runs = jobs.last_runs(connection)
    return tuple(job for job in every if _is_due(job, runs.get(job.name), now, connection))


def _is_due(job: Job, last: JobRun | None, now: float, connection: Connection) -> bool:
    if last is None or last.ended_at is None or last.remains:
        return True  # it never ran, was killed, or stopped at its bound
    # The interval cannot be measured then; running once more is harmless.
    if last.ended_at > now:
        return True  # the clock was set back by an unknown amount
    if now - last.ended_at >= (AGAIN_SECONDS if last.failure else job.seconds):
        return True
    return job.at_once and not last.failure and job.waiting(connection, now) > 0


def foreseen(database: Database, every: Sequence[Job]) -> MaintenanceReport:
    """What a run would do now. Writes nothing."""
    with database.snapshot_read() as connection:
        now = time.time()
        running = {job.name for job in due(connection, now, every)}
        return MaintenanceReport(
            tuple(
                JobOutcome(job.name, "waiting", job.waiting(connection, now), job.what)
                if job.name in running
                else JobOutcome(job.name, "not due", 0, job.what)
                for job in every
            ),
            jobs.is_held(connection, now),
        )


def run_due(database: Database, every: Sequence[Job], *, patience_ms: int | None = None) -> MaintenanceReport:
    """Runs the due jobs, each for up to `MOST_BATCHES` batches, unless another process is running them.

    A failed job is recorded and does not stop the others. Yields between batches; an exception from that ends the run,
    and finished batches stay.

    Args:
        database: The store's file.
        every: The jobs.
        patience_ms: How long to wait for other writers; default: that of the database.

    Raises:
        SpeckitError: The store cannot be written.
    """
    running = due(database.reader(), time.time(), every)
    if not running:
        # Read without the lease first: most calls find nothing due and write nothing.
        return MaintenanceReport(tuple(JobOutcome(job.name, "not due", 0, job.what) for job in every))
    runner = _Runner(database, patience_ms)
    if not runner.begin():
        return MaintenanceReport(_left_waiting(every, running), elsewhere=True)
    done: dict[str, JobOutcome] = {}
    try:
        # another process may have run them while this one waited for the lease
        running = due(database.reader(), time.time(), every)
        for job in running:
            done[job.name] = runner.run(job)
    except _LostError:
        rest = [job for job in running if job.name not in done]
        return MaintenanceReport(tuple(done.get(one.job, one) for one in _left_waiting(every, rest)), elsewhere=True)
    finally:
        runner.end()
    return MaintenanceReport(tuple(done.get(one.job, one) for one in _left_waiting(every, ())))


def told_runs(connection: Connection, now: float, every: Sequence[Job]) -> tuple[str, str]:
    """The last run of each job in words, at `now` (epoch seconds), and a hint if one failed, else ""."""
    runs = jobs.last_runs(connection)
    ran = [(job, runs[job.name]) for job in every if job.name in runs]
    # most jobs had nothing to do: they share a line, so that the important ones are not cut from an answer
    idle: dict[str, list[str]] = {}
    for job, run in ran:
        if _idle(run):
            idle.setdefault(_moment(run, "%Y-%m-%d %H:%M"), []).append(job.name)
    told = [_told_run(job, run) for job, run in ran if not _idle(run)]
    told += [f"nothing to do at {moment}: {', '.join(names)}" for moment, names in idle.items()]
    waiting = [job.name for job in every if job.name not in runs]
    told += [f"not run yet: {', '.join(waiting)}"] if waiting else []
    told += ["a process is running them"] if jobs.is_held(connection, now) else []
    failed = any(run.failure for _, run in ran)
    return "; ".join(told), "`speckit-memory maintain` runs what is due again and says what fails." if failed else ""


def _idle(run: JobRun) -> bool:
    return not (run.failure or run.changed or run.remains or run.ended_at is None)


def _moment(run: JobRun, form: str) -> str:
    return time.strftime(form, time.localtime(run.began_at))


def _told_run(job: Job, run: JobRun) -> str:
    when = _moment(run, "%Y-%m-%d %H:%M:%S")
    if run.failure:
        return f"{job.name} failed at {when}: {run.failure}"
    more = ", and more to do" if run.remains or run.ended_at is None else ""
    return f"{job.name} at {when}: {run.changed} {job.what}{more}"


def _left_waiting(every: Sequence[Job], waiting: Sequence[Job]) -> tuple[JobOutcome, ...]:
    return tuple(JobOutcome(job.name, "waiting" if job in waiting else "not due", 0, job.what) for job in every)


class _Runner:
    """Runs jobs under the lease."""

    def __init__(self, database: Database, patience_ms: int | None) -> None:
        self._database, self._patience_ms = database, patience_ms
        # Unique per run, not per process: two threads of one process exclude each other too.
        self._holder = uuid4().hex

    def begin(self) -> bool:
        """Takes the lease; whether it is held now."""
        with self._database.write(self._patience_ms) as txn:
            return jobs.take(txn, self._holder, time.time())

    def end(self) -> None:
        """Releases the lease; if that fails, it expires."""
        try:
            with self._database.write(self._patience_ms) as txn:
                jobs.release(txn, self._holder)
        except SpeckitError:
            pass

    def run(self, job: Job) -> JobOutcome:
        """Runs one job."""
        began, changed, remains = time.time(), 0, True
        for _ in range(MOST_BATCHES):
            yield_now()
            now = time.time()
            try:
                batch = self._batch(job, now)
                # One transaction for the lease, the batch and its record: a crash leaves either all of them or none.
                with self._database.write(self._patience_ms) as txn:
                    ended = time.time()  # preparing may have taken minutes
                    # renewed in the batch's own transaction: with a lost lease the batch is rolled back
                    if not jobs.renew(txn, self._holder, ended):
                        raise _LostError
                    more = batch(txn, now)
                    changed, remains = changed + more, more > 0
                    # ended_at is None while items remain, so that the job stays due.
                    jobs.note(txn, JobRun(job.name, began, None if remains else ended, changed, remains, ""))
            except (_LostError, GivenUpError):  # the lease is another process's, or this one ends
                raise
            except Exception as error:  # one job's failure; the others still run
                if isinstance(error, SpeckitError) and error.code in NOT_THE_JOBS:
                    raise
                return self._noted(job, JobRun(job.name, began, time.time(), changed, False, _describe(error)))
            if not remains:
                return JobOutcome(job.name, "ran", changed, job.what)
        return self._noted(job, JobRun(job.name, began, time.time(), changed, True, ""))

    def _batch(self, job: Job, now: float) -> Callable[[Transaction, float], int]:
        if not isinstance(job.batch, PreparedBatch):
            return job.batch
        with heartbeat(self._beat, BEAT_SECONDS, MOST_BEATS):
            found = job.batch.find(self._database, now)
        write = job.batch.write
        return lambda txn, now: write(txn, now, found)

    def _beat(self) -> bool:
        """Renews the lease. False ends the heartbeat; writing the batch then reports the reason."""
        try:
            with self._database.write() as txn:
                return jobs.renew(txn, self._holder, time.time())
        except SpeckitError as error:
            return error.code == "E022"  # there is time for another one before the lease ends

    def _noted(self, job: Job, run: JobRun) -> JobOutcome:
        # a failure must be recorded, even if that means waiting: no process may retry at once, say a paid service
        with self._database.write(None if run.failure else self._patience_ms) as txn:
            if not jobs.renew(txn, self._holder, time.time()):
                raise _LostError
            jobs.note(txn, run)
        return JobOutcome(job.name, "failed" if run.failure else "unfinished", run.changed, job.what, run.failure)


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, SpeckitError) else f"{type(error).__name__}: {error}"
