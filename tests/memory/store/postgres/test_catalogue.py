"""Every table, key and view of a database in PostgreSQL keeps workspaces apart: read from the catalogue of the server.

That holds for the store and for the evaluation database, each in its schema. Restrictive policies keep what is private
from other principals. Two tables have no workspace of their own. `migrations` says which schema the database has, which
is one for all. `workspaces` gives the names their numbers, and shows a session only the name that it was opened with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_server import link_at, server

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.schema import EVALUATION
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.opening import STORE
from speckit_memory.memory.store.postgres.schema import derived
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.writing import writer

SHARED = {"migrations", "workspaces"}
OWN = "(workspace = (current_setting('speckit.workspace'::text))::integer)"
NAMED = (
    "(name = ANY (ARRAY[current_setting('speckit.name'::text), "
    "(current_setting('speckit.name'::text) || '.unfinished'::text)]))"
)
TABLES = "FROM pg_class c WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')"
KINDS = (STORE, EVALUATION)


@pytest.fixture(params=KINDS, ids=[kind.schema for kind in KINDS])
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session of the product's role in a database with two workspaces, in neither of them."""
    for name in ("one", "other"):
        Database.open(link_at(tmp_path / name)).close()
        EvaluationDatabase.open(tmp_path / name).close()
    import psycopg

    schema = request.param.schema
    with psycopg.connect(server(), autocommit=True, options=f"-c search_path={schema},public") as opened:
        tables = {name for (name,) in opened.execute(f"SELECT relname::text {TABLES}")}
        assert tables >= set(derived(request.param.steps).tables)
        yield opened


def test_every_table_forces_a_policy_on_rows_read_and_written(session: Any) -> None:
    policies: dict[str, list[tuple[Any, ...]]] = {}
    for table, *policy in session.execute(
        "SELECT polrelid::regclass::text, polcmd::text, polpermissive, polroles = '{0}', "
        "pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid) FROM pg_policy"
    ):
        policies.setdefault(table, []).append(tuple(policy))
    found = session.execute(f"SELECT relname::text, relrowsecurity AND relforcerowsecurity {TABLES}").fetchall()

    for table, forced in found:
        if table == "migrations":
            continue
        own = NAMED if table == "workspaces" else OWN  # for rows read, and for rows written
        assert (table, forced) == (table, True)
        assert (table, policies[table][:1]) == (table, [("*", True, True, own, own)])
        # further ones only take rows away
        assert {
            (cmd, permissive, every, read == written) for cmd, permissive, every, read, written in policies[table][1:]
        } <= {("*", False, True, True)}


OPEN = {
    "workspaces": "names of workspaces",
    "migrations": "names of migrations",
    "commits": "random numbers",
    "last_ids": "the highest number of each table",
    "private_ids": "the owner of each private id, by which the policies decide",
    "meta": "facts about the whole store",
    "store_identity": "a random number",
    "id_sequence": "the next number",
    "job_runs": "times of background work",
    "job_lease": "the process that works",
    "graph_state": "the number of changes of the graph",
    "embedding_models": "descriptions of models",
    "embedding_build": "numbers of passages",
    "embedding_cache": "vectors by the hash of a text, looked up by those who have the text, and in no copy",
    "session_state": "names of sessions",
    "changed_keys": "last parts of paths, from a change until its transaction resolves links",
}
"""Tables that refer to no memory, and what they hold."""


@pytest.mark.parametrize("session", [STORE], indirect=True)
def test_every_table_that_refers_to_a_memory_shows_private_rows_to_their_owner_alone(session: Any) -> None:
    conditions = dict(
        session.execute(
            "SELECT tablename::text, qual FROM pg_policies WHERE schemaname = 'speckit' "
            "AND policyname = 'of_principal' AND permissive = 'RESTRICTIVE' AND cmd = 'ALL' AND qual = with_check"
        ).fetchall()
    )
    tables = {table for (table,) in session.execute(f"SELECT relname::text {TABLES}")}
    assert conditions.keys() == tables - OPEN.keys()
    assert OPEN.keys() <= tables
    referring = session.execute(
        "SELECT c.relname::text, a.attname::text FROM pg_constraint k JOIN pg_class c ON c.oid = conrelid "
        "JOIN pg_attribute a ON attrelid = c.oid AND attnum = conkey[2] "
        "WHERE contype = 'f' AND attnotnull AND confrelid::regclass::text IN ('memories', 'chunks', 'causal_edges') "
        "UNION SELECT relname::text, attname::text FROM pg_attribute "
        f"JOIN (SELECT oid, relname {TABLES}) c ON c.oid = attrelid "
        "WHERE (attname = 'memory_id' OR relname = 'chunk_vectors' AND attname = 'rowid')"
    ).fetchall()
    assert len(referring) > 30
    assert [(table, column) for table, column in referring if f"= {table}.{column})" not in conditions[table]] == []


def test_every_table_has_the_workspace_filled_in_and_never_null(session: Any) -> None:
    found = session.execute(
        "SELECT attrelid::regclass::text, attnotnull, pg_get_expr(adbin, adrelid) FROM pg_attribute "
        "JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum "
        f"WHERE attname = 'workspace' AND attrelid IN (SELECT c.oid {TABLES})"
    ).fetchall()
    tables = {table for (table,) in session.execute(f"SELECT relname::text {TABLES}")}

    assert {table for table, *_ in found} == tables - SHARED
    assert {tuple(rest) for _, *rest in found} == {(True, "(current_setting('speckit.workspace'::text))::integer")}


def test_every_key_and_every_index_begins_with_the_workspace(session: Any) -> None:
    first = session.execute(
        "SELECT indrelid::regclass::text, indexrelid::regclass::text, pg_get_indexdef(indexrelid, 1, true) "
        f"FROM pg_index WHERE indrelid IN (SELECT c.oid {TABLES})"
    ).fetchall()

    assert {table for table, *_ in first} == {table for (table,) in session.execute(f"SELECT relname::text {TABLES}")}
    assert [index for table, index, column in first if column != "workspace" and table not in SHARED] == []


def test_every_foreign_key_begins_with_the_workspace_on_both_sides(session: Any) -> None:
    found = session.execute(
        "SELECT conname::text, "
        "(SELECT attname::text FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1]), "
        "(SELECT attname::text FROM pg_attribute WHERE attrelid = confrelid AND attnum = confkey[1]) "
        "FROM pg_constraint WHERE connamespace = current_schema()::regnamespace AND contype = 'f'"
    ).fetchall()

    assert len(found) > 6
    assert [row for row in found if row[1:] != ("workspace", "workspace")] == []


def test_no_function_or_view_has_rights_of_its_own(session: Any) -> None:
    functions = session.execute(
        "SELECT proname::text, prosecdef FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
    ).fetchall()
    views = session.execute(
        "SELECT relname::text, relkind::text, coalesce(reloptions @> '{security_invoker=true}', false) FROM pg_class "
        "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('v', 'm')"
    ).fetchall()

    assert len(functions) >= 3
    assert [name for name, definer in functions if definer] == []
    assert len(views) >= 2
    assert [(name, kind) for name, kind, invoker in views if kind != "v" or not invoker] == []


def test_a_session_sees_the_name_of_its_workspace_alone(tmp_path: Path) -> None:
    with Database.open(link_at(tmp_path / "one")) as one, Database.open(link_at(tmp_path / "other")) as other:
        assert one.workspace != other.workspace  # type: ignore[attr-defined]
        import psycopg

        with psycopg.connect(server(), autocommit=True, options="-c search_path=speckit,public") as session:
            with pytest.raises(psycopg.errors.UndefinedObject):
                session.execute("SELECT name FROM workspaces")
            session.execute("SELECT set_config('speckit.name', %s, false)", (one.workspace,))  # type: ignore[attr-defined]
            assert session.execute("SELECT name FROM workspaces").fetchall() == [(one.workspace,)]  # type: ignore[attr-defined]
            renamed = session.execute("UPDATE workspaces SET id = DEFAULT WHERE name = %s", (other.workspace,))  # type: ignore[attr-defined]
            assert renamed.rowcount == 0
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute("INSERT INTO workspaces (name) VALUES ('a third')")


@pytest.mark.parametrize("setting", [None, "", "x"])
def test_a_session_in_no_workspace_reads_and_writes_nothing(session: Any, setting: str | None) -> None:
    import psycopg

    if setting is not None:
        session.execute("SELECT set_config('speckit.workspace', %s, false)", (setting,))
    for statement in ("SELECT * FROM meta", "INSERT INTO last_ids (name, id) VALUES ('a', 1)"):
        with pytest.raises((psycopg.errors.UndefinedObject, psycopg.errors.InvalidTextRepresentation)):
            session.execute(statement)


def test_rows_cannot_be_written_into_another_workspace(tmp_path: Path) -> None:
    import psycopg

    with Database.open(link_at(tmp_path / "one")) as one, Database.open(link_at(tmp_path / "other")) as other:
        foreign = other.reader().workspace  # type: ignore[attr-defined]
        session = one.reader().session  # type: ignore[attr-defined]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("INSERT INTO meta (key, value, workspace) VALUES ('a', 'b', %s)", (foreign,))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("UPDATE graph_state SET workspace = %s", (foreign,))
        with one.write() as transaction:
            transaction.connection.execute("INSERT INTO meta (key, value) VALUES ('a', 'b')")

        assert other.reader().execute("SELECT count(*) FROM meta WHERE key = 'a'").get == 0


def test_a_workspace_that_may_not_be_created_is_missing_whoever_else_has_one(tmp_path: Path) -> None:
    link = link_at(tmp_path / "missing")
    for _ in range(2):
        with pytest.raises(SpeckitError) as raised:
            Database.open(link, create=False)
        assert raised.value.code == "E010"


def test_the_size_of_a_store_is_that_of_its_own_rows(tmp_path: Path, document: Callable[..., Document]) -> None:
    with Database.open(link_at(tmp_path / "one")) as one, Database.open(link_at(tmp_path / "other")) as other:
        pages = [store.reader().pragma("page_count") for store in (one, other)]
        with one.write() as transaction:
            many = document("a.md", *map(str, range(2_000)), content_hash="h")
            writer.put_document(transaction, many, None, 1.0, None)

        assert pages == [0, 0]
        assert one.reader().pragma("page_count") > 10
        assert other.reader().pragma("page_count") == 0
