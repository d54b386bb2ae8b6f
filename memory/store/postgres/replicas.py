"""Replicas of a store in PostgreSQL: how far each is behind, and which server a read comes from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Lock
from typing import Any, NamedTuple

from speckit_memory.config.workspace.store_address import Replicas, split_address
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.failures import DriverError
from speckit_memory.memory.store.file.guarding.identity import ReadSource, ReplicaState
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS

AGAIN = 10.0
"""Seconds after which a server that could not be read from is tried again."""
STANDING = (
    "SELECT pg_is_in_recovery(), CASE WHEN pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn() "
    "AND EXISTS (SELECT FROM pg_stat_wal_receiver) THEN 0 "
    "ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8 END, "
    "(SELECT coalesce(max(count), 0) FROM commits), (SELECT coalesce(max(seq), 0) FROM changes), "
    "(SELECT store_id FROM store_identity), (SELECT count(*) FROM migrations)"
)
"""A standby that is connected and has replayed all that it received is not behind. Otherwise the time of the last
commit that it has replayed bounds how far it is behind."""
_UNREACHABLE = ("E021", "E051")


class Standing(NamedTuple):
    """What a server holds of a workspace."""

    in_recovery: bool
    behind_seconds: float | None
    commits: int
    last_change: int
    store: str | None
    migrations: int

    def mismatch(self, store: str) -> str:
        """Why this cannot be the state of a replica of a store, "" if it can."""
        if not self.in_recovery:
            return "it is not a standby"
        if self.store != store:
            return "it holds another store" if self.store else "it does not have this workspace"
        return "" if self.migrations == len(MIGRATIONS) else "its schema is of another version"


class Replica:
    """A replica, and what is known of it."""

    def __init__(self, address: str, workspace: str) -> None:
        """`address` is shown; an address that names another workspace is never read from."""
        self.address = address
        self.url, named = split_address(address)
        self.problem = ""
        """Why it is not read from, "" if it is."""
        self.holds_store = False
        """Whether it was a replica of this store when it was last asked."""
        self._until = 0.0
        self._caught_up = -math.inf
        self._misnamed = f"its address names the workspace '{named}'" if named not in ("", workspace) else ""

    def is_due(self) -> bool:
        """Whether to ask it now. After a failure only one thread does."""
        if not self.problem:
            return True
        due = time.monotonic() >= self._until
        if due:
            self._until = time.monotonic() + AGAIN
        return due

    def leave_alone(self, problem: str) -> None:
        """Has it left alone for a while."""
        self.problem = problem
        self._until = time.monotonic() + AGAIN

    def judge(self, standing: Standing, store: str, lag_seconds: float) -> ReplicaState:
        """Notes whether it may be read from, and returns its state with that."""
        now = time.monotonic()
        if standing.behind_seconds == 0:
            self._caught_up = now
        behind = math.inf if standing.behind_seconds is None else standing.behind_seconds
        # after a quiet hour, a commit that is being replayed does not mean that it is an hour behind
        behind = min(max(0.0, behind), now - self._caught_up)
        told = None if behind == math.inf else round(behind, 3)
        problem = self._misnamed or standing.mismatch(store)
        self.holds_store = not problem
        state = ReplicaState(self.address, told, standing.last_change, problem)
        if self.holds_store and behind > lag_seconds:
            state = state._replace(problem=f"it is {state.lag}")
        self.problem = ""
        if state.problem:
            self.leave_alone(state.problem)
        return state


Ask = Callable[[Replica | None, bool], tuple[Any, Standing]]
"""Begins a read on a replica, or on the store itself for None; returns its connection and what that server holds. The
second argument is whether to wait for a server that does not answer."""


class ReadRouting:
    """Decides which server a read comes from. Thread-safe.

    No read of this process shows an earlier state than one that it wrote or was shown. The replicas are asked in the
    order given, then the store itself; if that cannot be reached, any replica answers.
    """

    def __init__(self, replicas: Replicas, workspace: str) -> None:
        """`workspace` is the name of the store's workspace."""
        self.replicas = [Replica(address, workspace) for address in replicas.addresses]
        self.store = ""
        """The random identifier of the store."""
        self._lag_seconds = replicas.lag_seconds
        self._commits = 0
        self._guard = Lock()
        self._lost: tuple[float, SpeckitError] | None = None

    def saw(self, commits: int) -> None:
        """Notes that this process wrote or was shown this commit."""
        with self._guard:
            self._commits = max(self._commits, commits)

    def lose(self, error: SpeckitError) -> None:
        """Notes that the store could not be reached."""
        self._lost = time.monotonic() + AGAIN, error

    def loss(self) -> SpeckitError | None:
        """The error with which the store could not be reached a moment ago."""
        lost = self._lost
        return lost[1] if lost and time.monotonic() < lost[0] else None

    def choose(self, ask: Ask, since: int) -> tuple[Any, Standing, ReadSource]:
        """The connection that a read comes from, what its server holds, and what to say about it.

        Args:
            ask: Begins the read on a server.
            since: The change that the server must have.

        Raises:
            SpeckitError: The store cannot be reached, and no replica holds it.
        """
        for replica in self.replicas:
            if not replica.is_due():
                continue
            connection, standing, state = self._asked(replica, ask)
            if standing and not state.problem and standing.commits >= self._commits and standing.last_change >= since:
                self.saw(standing.commits)
                return connection, standing, ReadSource(state, self._warnings())
            end(connection)
        able = [replica for replica in self.replicas if replica.holds_store]
        error = self.loss() if able else None
        if error is None:
            try:
                connection, standing = ask(None, not able)
            except SpeckitError as failed:
                if not able or failed.code not in _UNREACHABLE:
                    raise
                error = failed
                self.lose(error)
            else:
                self._lost = None
                self.saw(standing.commits)
                return connection, standing, ReadSource(None, self._warnings())
        for replica in able:
            connection, standing, state = self._asked(replica, ask)
            if standing and replica.holds_store and not standing.mismatch(self.store):
                warning = (
                    f"the store cannot be reached, and the replica {replica.address} answered: it is {state.lag}, and "
                    "the latest changes may be missing"
                )
                return connection, standing, ReadSource(state, (warning,))
            end(connection)
        raise error

    def states(self, ask: Ask) -> Iterator[ReplicaState]:
        """The present state of each replica."""
        for replica in self.replicas:
            connection, _, state = self._asked(replica, ask)
            end(connection)
            yield state

    def _asked(self, replica: Replica, ask: Ask) -> tuple[Any, Standing | None, ReplicaState]:
        try:
            connection, standing = ask(replica, False)
        except (SpeckitError, DriverError) as error:
            replica.holds_store = False
            said = error.problems[0].message if isinstance(error, SpeckitError) else error
            replica.leave_alone(f"it cannot be used ({said})")
            return None, None, ReplicaState(replica.address, problem=replica.problem)
        return connection, standing, replica.judge(standing, self.store, self._lag_seconds)

    def _warnings(self) -> tuple[str, ...]:
        return tuple(
            f"the replica {replica.address} is not read from: {replica.problem}"
            for replica in self.replicas
            if replica.problem
        )


def end(connection: Any) -> None:
    """Ends a read that is of no use."""
    if connection is not None:
        with suppress(SpeckitError):  # its session was lost
            connection.rollback()
