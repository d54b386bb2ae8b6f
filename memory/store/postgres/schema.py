"""The tables of a PostgreSQL store, derived from the schema that the named migrations make in SQLite.

Every table gets a column `workspace`, filled in by default and enforced by row-level security. Primary keys, unique
constraints, indexes and foreign keys begin with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from speckit_memory.memory.store.file.schema.declared import declared
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS, Migration
from speckit_memory.memory.store.postgres.statements import (
    WORKSPACE,
    Table,
    closing,
    expression,
    join,
    split_at,
    tokenise,
)

SETTING = "current_setting('speckit.workspace')::int"
"""SQL for the number of the workspace of a connection."""
_TYPES = {"INTEGER": "bigint", "REAL": "double precision", "TEXT": 'text COLLATE "C"', "BLOB": "bytea"}
_VIRTUAL = ("memory_fts", "surface_fts", "chunk_vectors")
LARGE = ("chunk_tokens", "chunk_vectors", "chunks", "memories", "postings", "texts")
"""The tables that partitions are made of: those that grow with the texts."""
MOST_PARTITIONS = 256
_CREATED = re.compile(r'CREATE TABLE "?(\w+)"? \(')
_TRIGGER = re.compile(r"CREATE TRIGGER (\w+) AFTER (\w+) ON (\w+) BEGIN (.*?);? END", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Schema:
    """What a database is made of."""

    tables: dict[str, Table]
    statements: tuple[str, ...]
    """Statements that create everything, in order."""


@cache
def derived(migrations: tuple[Migration, ...] = MIGRATIONS) -> Schema:
    """The schema after these migrations, without the virtual tables of SQLite's extensions."""
    entries = [entry for entry in declared(migrations).entries if not entry[2].startswith((*_VIRTUAL, "sqlite_"))]
    tables: dict[str, Table] = {}
    statements: list[str] = []
    for kind in ("table", "index", "view", "trigger"):
        for _, name, _, sql in (entry for entry in entries if entry[0] == kind):
            if kind == "table":
                tables[name], ddl = _table(name, sql)
                statements += ddl
            elif kind == "index":
                statements.append(_index(sql))
            elif kind == "view":
                statements.append(_view(sql))
            else:
                statements += _trigger(sql)
    return Schema(tables, tuple(statements))


def alterations(sql: str) -> list[str] | None:
    """The statements for a statement of a migration that changes the schema, None for one that changes rows.

    Tables of SQLite's extensions have no counterpart: their rows lie in tables that every database has.
    """

    tokens = tokenise(sql)
    words = [token.upper() for token in tokens]
    name = tokens[2].strip('"') if len(tokens) > 2 else ""
    match words[:2]:
        case ["CREATE", "VIRTUAL"]:
            return []
        case ["CREATE", "TABLE"]:
            return _table(name, sql)[1]
        case ["CREATE", "INDEX"] | ["CREATE", "UNIQUE"]:
            return [_index(sql)]
        case ["CREATE", "VIEW"]:
            return [_view(sql)]
        case ["CREATE", "TRIGGER"]:
            return list(_trigger(sql))
        case ["DROP", "TRIGGER"]:
            return [f"DROP FUNCTION {name} CASCADE"]
        case ["DROP", _]:
            return None if name in _VIRTUAL else [sql]
        case ["ALTER", "TABLE"] if words[3:5] == ["ADD", "COLUMN"]:
            line, _, constraints = _column(name, tokens[5:])
            return [f'ALTER TABLE "{name}" ADD {added}' for added in (f"COLUMN {line}", *constraints)]
        case ["ALTER", "TABLE"] if words[3:5] in (["DROP", "COLUMN"], ["RENAME", "COLUMN"]):
            return [sql]
        case ["INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "WITH", _]:
            return None
    raise ValueError(f"a statement of another form: {sql}")


def _table(name: str, sql: str) -> tuple[Table, list[str]]:

    tokens = tokenise(sql)
    opening = tokens.index("(")
    columns: list[str] = []
    key: list[str] = []
    lines: list[str] = []
    constraints: list[str] = []
    for part in split_at(",", tokens[opening + 1 : closing(tokens, opening)]):
        word = part[0].upper()
        if word in ("PRIMARY", "UNIQUE"):
            named = [token for token in part[part.index("(") + 1 : -1] if token != ","]
            if word == "PRIMARY":
                key = [column.strip('"') for column in named]
            constraints.append(f"{'PRIMARY KEY' if word == 'PRIMARY' else 'UNIQUE'} ({', '.join([WORKSPACE, *named])})")
        elif word == "CHECK":
            constraints.append(_text(part))
        else:
            column = part[0].strip('"')
            if "GENERATED" not in [token.upper() for token in part]:
                columns.append(column)
            line, keyed, more = _column(name, part)
            lines.append(line)
            constraints += more
            if keyed:
                key = [column]
                constraints.insert(0, f"PRIMARY KEY ({WORKSPACE}, {part[0]})")
    lines.append(f"{WORKSPACE} int NOT NULL DEFAULT {SETTING}")
    body = ",\n    ".join([*lines, *constraints])
    ddl = [f'CREATE TABLE "{name}" (\n    {body}\n)', *secured(name)]
    if "AUTOINCREMENT" in sql:
        ddl += _never_again(name, key[0])
    return Table(name, tuple(columns), tuple(key)), ddl


def _never_again(table: str, key: str) -> Iterator[str]:
    """A trigger that keeps the highest number among deleted rows, so that no later row gets it: AUTOINCREMENT."""
    yield (
        f"CREATE FUNCTION {table}_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"INSERT INTO last_ids (name, id) SELECT '{table}', max({key}) FROM gone HAVING count(*) > 0 "
        f"ON CONFLICT ({WORKSPACE}, name) DO UPDATE SET id = greatest(last_ids.id, excluded.id); RETURN NULL; END $$"
    )
    yield (
        f"CREATE TRIGGER {table}_deleted AFTER DELETE ON {table} REFERENCING OLD TABLE AS gone "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_deleted()"
    )


def secured(table: str) -> Iterator[str]:
    """Statements that show each workspace only its own rows of a table, its owner included."""
    yield f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY'
    yield f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY'
    own = f"({WORKSPACE} = {SETTING})"
    yield f'CREATE POLICY of_workspace ON "{table}" USING {own} WITH CHECK {own}'


def divided(statement: str, partitions: int) -> Iterator[str]:
    """The statements that make a part of the schema: a large table is divided by workspace into this number of parts.

    No policy admits a row of a partition: all statements name the whole table, whose policies apply.
    """
    found = _CREATED.match(statement)
    if not partitions or found is None or found[1] not in LARGE:
        yield statement
        return
    name = found[1]
    yield f"{statement} PARTITION BY HASH ({WORKSPACE})"
    for number in range(partitions):
        part = f"{name}_of_{number}"
        yield f'CREATE TABLE {part} PARTITION OF "{name}" FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})'
        yield from islice(secured(part), 2)


def _column(table: str, tokens: Sequence[str]) -> tuple[str, bool, list[str]]:
    """The definition of a column, whether it is the primary key, and the constraints of the table that it implies."""

    name, kind, *rest = tokens
    words = [token.upper() for token in rest]
    kept: list[str] = []
    constraints: list[str] = []
    keyed = False
    at = 0
    while at < len(rest):
        if words[at] == "PRIMARY":
            keyed = True
            at += 3 if words[at + 2 : at + 3] == ["AUTOINCREMENT"] else 2
        elif words[at] == "UNIQUE":
            constraints.append(f"UNIQUE ({WORKSPACE}, {name})")
            at += 1
        elif words[at] == "REFERENCES":
            target, column = rest[at + 1], rest[at + 3]
            at += 5
            how = "NO ACTION"
            if words[at : at + 2] == ["ON", "DELETE"]:
                sets = words[at + 2] == "SET"
                how = f"SET NULL ({name})" if sets else words[at + 2]
                at += 4 if sets else 3
            constraints.append(
                f"FOREIGN KEY ({WORKSPACE}, {name}) REFERENCES {target} ({WORKSPACE}, {column}) "
                f"ON DELETE {how} DEFERRABLE"
            )
        elif words[at] in ("CHECK", "AS"):
            end = closing(rest, at + 1)
            kept.append(_text(rest[at : end + 1]))
            at = end + 1
        elif words[at] == "VIRTUAL":
            kept.append("STORED")
            at += 1
        else:
            kept.append(_text(rest[at : at + 1]))
            at += 1
    if keyed and kind.upper() == "INTEGER" and not constraints and not kept:
        kept.append(f"DEFAULT next_id('{table}', '{name}')")
    return f"{name} {_TYPES[kind.upper()]} {' '.join(kept)}".rstrip(), keyed, constraints


def _text(tokens: Sequence[str]) -> str:

    return join(expression(tokens))


def _index(sql: str) -> str:
    return re.sub(r"\(", f"({WORKSPACE}, ", sql, count=1)


def _view(sql: str) -> str:

    return _text(tokenise(sql)).replace(" AS SELECT", " WITH (security_invoker = true) AS SELECT", 1)


def _trigger(sql: str) -> Iterator[str]:
    """A trigger per statement whose change counts the rows: cascades are separate statements."""
    found = _TRIGGER.fullmatch(sql)
    if found is None:
        raise ValueError(f"a trigger of another form: {sql}")
    name, event, table, statement = found.groups()
    rows = "gone" if event == "DELETE" else "came"
    yield (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"{statement.replace('+ 1', f'+ (SELECT count(*) FROM {rows})')}; RETURN NULL; END $$"
    )
    side = "OLD" if event == "DELETE" else "NEW"
    yield (
        f"CREATE TRIGGER {name} AFTER {event} ON {table} REFERENCING {side} TABLE AS {rows} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
    )


PRINCIPAL = "coalesce(current_setting('speckit.principal', true), '')"
"""SQL for the principal of a connection. `*` sees the rows of all, and no person can have this name."""
# the highest number may be that of a private row
NEXT_ID = (
    "CREATE OR REPLACE FUNCTION next_id(name text, col text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ "
    f"DECLARE n bigint; own text := {PRINCIPAL}; BEGIN PERFORM set_config('speckit.principal', '*', true); "
    "EXECUTE format('SELECT greatest(max(%I), (SELECT id FROM last_ids l WHERE l.name = %L), 0) + 1 FROM %I', "
    "col, name, name) INTO n; PERFORM set_config('speckit.principal', own, true); RETURN n; END $$"
)
"""Numbers for rows without one, as SQLite gives them, with the highest numbers of deleted rows."""
_PATHS = {
    "memories": "key",
    "removed_files": "key",
    "source_paths": "path",
    "task_records": "folder || '/'",
    "uncounted_folders": "folder || '/'",
}
"""Tables with the path of a memory or of a folder."""
_IDS = (("postings", "memory_id"), ("chunk_vectors", "rowid"))
"""Tables that no migration makes, and their columns with the id of a memory or a passage."""


def unprotected(tables: Iterable[str]) -> Iterator[str]:
    """Statements that show private rows to everybody, for the time of a migration."""
    for table in (*tables, *dict(_IDS)):
        yield f'DROP POLICY IF EXISTS of_principal ON "{table}"'


def protected(migrations: tuple[Migration, ...]) -> Iterator[str]:
    """Statements that show the rows of a private memory to its owner alone, where the schema has principals."""
    tables = derived(migrations).tables
    if "private_ids" not in tables:
        return
    yield from (NEXT_ID, *_PRIVATE)
    for table, conditions in sorted(_conditions(migrations).items()):
        own = f"({' AND '.join(conditions)})"
        yield f'CREATE POLICY of_principal ON "{table}" AS RESTRICTIVE USING {own} WITH CHECK {own}'


def _conditions(migrations: tuple[Migration, ...]) -> dict[str, list[str]]:
    """What rows of a table must meet to be shown, by the paths and the ids in it."""
    everybody = f"(SELECT {PRINCIPAL}) = '*'"
    found = {
        table: [f"(owner_of({path}) = '' OR owner_of({path}) = (SELECT {PRINCIPAL}) OR {everybody})"]
        for table, path in _PATHS.items()
    }
    made = declared(migrations)
    ids = dict.fromkeys(_IDS, "")
    for table in derived(migrations).tables:
        required = {str(name) for _, name, _, filled, _, key in made.columns[table] if filled or key}
        ids |= {(table, name): "" for name in required & {"memory_id"}}
        ids |= {(table, str(name)): str(other) for _, _, other, name, *_ in made.references[table] if name in required}
    for (table, column), target in ids.items():
        found.setdefault(table, []).append(
            f"EXISTS (SELECT FROM causal_edges e WHERE e.id = {column})"
            if target == "causal_edges"
            else f"NOT EXISTS (SELECT FROM private_ids p WHERE p.id = {column} AND p.owner <> (SELECT {PRINCIPAL}) "
            f"AND NOT {everybody})"
        )
    return found


_PRIVATE = (
    "CREATE OR REPLACE FUNCTION owner_of(path text) RETURNS text LANGUAGE sql IMMUTABLE AS "
    "$$ SELECT CASE WHEN lower(path COLLATE \"C\") LIKE 'private/_%/%' THEN split_part(path, '/', 2) ELSE '' END $$",
    "CREATE OR REPLACE FUNCTION memory_came() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "INSERT INTO private_ids (id, owner) VALUES (NEW.id, owner_of(NEW.key)) ON CONFLICT DO NOTHING; "
    "RETURN NULL; END $$",
    "CREATE OR REPLACE TRIGGER memory_came AFTER INSERT ON memories FOR EACH ROW "
    "WHEN (owner_of(NEW.key) <> '') EXECUTE FUNCTION memory_came()",
    "CREATE OR REPLACE FUNCTION chunk_came() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "INSERT INTO private_ids (id, owner) SELECT NEW.id, owner FROM private_ids WHERE id = NEW.memory_id "
    "ON CONFLICT DO NOTHING; RETURN NULL; END $$",
    "CREATE OR REPLACE TRIGGER chunk_came AFTER INSERT ON chunks FOR EACH ROW "
    "WHEN (NEW.id <> NEW.memory_id) EXECUTE FUNCTION chunk_came()",
    # a key that begins with a slash is one for the time of a move
    "CREATE OR REPLACE FUNCTION memory_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF NEW.key NOT LIKE '/%' AND owner_of(NEW.key) <> coalesce((SELECT owner FROM private_ids WHERE id = NEW.id), '') "
    "THEN RAISE insufficient_privilege USING MESSAGE = 'a memory stays with its owner'; END IF; RETURN NEW; END $$",
    "CREATE OR REPLACE TRIGGER memory_moved BEFORE UPDATE OF key ON memories FOR EACH ROW "
    "EXECUTE FUNCTION memory_moved()",
)
"""The list of private ids. Ids of memories stay when they are deleted, for what refers to them still, such as the log
of changes; no id is used twice."""
LIST_PRIVATE = (
    "INSERT INTO private_ids (id, owner) SELECT id, owner_of(key) FROM memories WHERE owner_of(key) <> '' "
    "UNION SELECT c.id, owner_of(m.key) FROM chunks c JOIN memories m ON m.id = c.memory_id "
    "WHERE owner_of(m.key) <> '' ON CONFLICT DO NOTHING"
)
"""Lists what was stored before there were principals, for the workspace of a session that sees everything."""
FUNCTIONS = (
    'CREATE TABLE last_ids (name text COLLATE "C" NOT NULL, id bigint NOT NULL, '
    f"{WORKSPACE} int NOT NULL DEFAULT {SETTING}, PRIMARY KEY ({WORKSPACE}, name))",
    *secured("last_ids"),
    NEXT_ID,
    "CREATE FUNCTION random_token() RETURNS bigint LANGUAGE sql VOLATILE AS "
    "$$ SELECT ('x' || encode(uuid_send(gen_random_uuid()), 'hex'))::bit(64)::bigint $$",
)
"""What tables and statements use."""
VECTORS = "CREATE TABLE chunk_vectors (rowid bigint NOT NULL, embedding vector NOT NULL, " + (
    f"{WORKSPACE} int NOT NULL DEFAULT {SETTING}, PRIMARY KEY ({WORKSPACE}, rowid))"
)
POSTINGS = (
    f"CREATE TABLE postings (memory_id bigint NOT NULL, {WORKSPACE} int NOT NULL DEFAULT {SETTING}, words int, "
    'term text COLLATE "C" NOT NULL, analysed bytea, written bytea)',
    f"CREATE INDEX postings_by_term ON postings ({WORKSPACE}, term)",
    f"CREATE INDEX postings_by_memory ON postings ({WORKSPACE}, memory_id)",
    *(
        f"CREATE VIEW {table} WITH (security_invoker = true) AS "
        f"SELECT memory_id AS rowid FROM postings WHERE term = '' AND {column} IS NOT NULL"
        for table, column in (("memory_fts", "analysed"), ("surface_fts", "written"))
    ),
)
"""The words of each memory with their places in the two full-text tables of SQLite, a column for each. The row of the
empty word holds the lengths of the fields, and in `words` their sum for the analysed words. The indexes are not unique:
PostgreSQL then stores a word, or the number of a memory, once for many rows."""
