"""The evaluation database of a workspace in PostgreSQL, in a separate schema."""

from __future__ import annotations

from pathlib import Path

from speckit_memory.config.workspace.store_address import address_at
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation import losses
from speckit_memory.memory.store.evaluation.file import EvaluationFile, missing, translate_errors_of
from speckit_memory.memory.store.evaluation.schema import EVALUATION
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.file.guarding.store_file import unfinished_file
from speckit_memory.memory.store.postgres.database import PostgresDatabase

_PRUNED = ("queries", "answers", "pairs", "replays", "scorings", "channel_results", "uses")
_ROW_BYTES = (
    f"SELECT {' + '.join(f'(SELECT coalesce(sum(pg_column_size({name})), 0) FROM {name})' for name in _PRUNED)}"
)


class EvaluationWorkspace(EvaluationFile):
    """One session, used by one thread at a time. `path` is a store link."""

    def __init__(self, path: Path, *, create: bool, busy_timeout_ms: int, unfinished: bool = False) -> None:
        """Connects to nothing yet. `unfinished` is that of `PostgresDatabase.open`."""
        super().__init__(path, create=create, busy_timeout_ms=busy_timeout_ms)
        self._unfinished = unfinished

    def open(self) -> Connection:
        """The session, which is replaced by another one when it ends.

        Raises E010 (the workspace has none, and none may be created) and the errors of `PostgresDatabase.open`.
        """
        with self._guard, translate_errors_of(self.path):
            if self._connection is None:
                try:
                    database = PostgresDatabase.open(
                        self.path,
                        create=self._create,
                        busy_timeout_ms=self._busy_timeout_ms,
                        unfinished=self._unfinished,
                        kind=EVALUATION,
                    )
                except SpeckitError as error:
                    raise missing(self.path) if error.code == "E010" else error from error
                self._connection = database.bare()
                self._connection.set_busy_timeout(self._busy_timeout_ms)
            return self._connection

    def empty_log(self) -> bool:
        """True: the server cleans its files itself."""
        return True

    def used_bytes(self, connection: Connection) -> int:
        """Size in bytes of all records of the workspace."""
        return int(value(connection, _ROW_BYTES)) + losses.kept_bytes(connection)


def evaluation_at(path: Path, *, create: bool, busy_timeout_ms: int, unfinished: bool = False) -> EvaluationFile:
    """The evaluation database at a path: the file, or that of the workspace which a store link names.

    Args:
        path: The path of the file or of the store link.
        create: Whether a missing one is created.
        busy_timeout_ms: How long transactions wait for other writers.
        unfinished: Opens the copy that is to become this one.
    """
    if address_at(path):
        return EvaluationWorkspace(path, create=create, busy_timeout_ms=busy_timeout_ms, unfinished=unfinished)
    file = unfinished_file(path) if unfinished else path
    return EvaluationFile(file, create=create, busy_timeout_ms=busy_timeout_ms)
