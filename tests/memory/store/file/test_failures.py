from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from answered import refused

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.failures import translate_errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (apsw.BusyError, "E022"),
        (apsw.LockedError, "E022"),
        (apsw.CorruptError, "E024"),
        (apsw.NotADBError, "E024"),
        (apsw.CantOpenError, "E020"),
        (apsw.PermissionsError, "E020"),
        (apsw.AuthError, "E020"),
        (apsw.ReadOnlyError, "E020"),
        (apsw.FullError, "E081"),
        (apsw.ConstraintError, "E081"),
        (apsw.IOError, "E021"),
        (apsw.SQLError, "E021"),
        (apsw.InterruptError, "E021"),
    ],
)
@pytest.mark.requirement("T26")
def test_a_failure_of_the_driver_becomes_an_error_that_names_the_file(error: type[apsw.Error], code: str) -> None:
    with refused(code, match=r"store\.db") as caught, translate_errors(Path("store.db")):
        raise error("what SQLite said")
    assert isinstance(caught.value.__cause__, error)
    # neither a full disk nor a value that is none passes by itself
    assert caught.value.problems[0].retryable == (code == "E022")


def test_other_exceptions_pass(database: Database) -> None:
    with pytest.raises(KeyError), translate_errors(Path("store.db")):
        raise KeyError


def test_a_failing_statement_is_translated_where_it_is_run(database: Database) -> None:
    with refused("E021"), database.snapshot_read() as connection:
        connection.execute("SELECT * FROM nothing")
    with refused("E081"), database.write() as txn:
        txn.connection.execute("UPDATE id_sequence SET next = 0")
    assert not database.reader().in_transaction


@pytest.mark.parametrize("statement", ["SELECT * FROM gone", "SELECT gone FROM memories", "DROP TABLE gone"])
def test_a_table_or_column_that_a_store_does_not_have_is_damage(database: Database, statement: str) -> None:
    with refused("E024", match="gone"), database.snapshot_read() as connection:
        connection.execute(statement)
