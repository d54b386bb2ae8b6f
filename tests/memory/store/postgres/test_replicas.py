"""Searches read from streaming replicas: never behind what their process wrote or showed, and with the lag said."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import postgres_server
import pytest

from speckit_memory import Memory, SearchResult
from speckit_memory.config.workspace.settings import DB_VARIABLE, READ_FROM_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.identity import ReplicaState
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.postgres import replicas
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore
from speckit_memory.server.views.rows.rows import search_data, search_facts

pytestmark = pytest.mark.usefixtures("processes")
_numbers = itertools.count()


@dataclass
class Servers:
    """A server, and a replica whose lag a test decides."""

    primary: Any
    replica: Any
    name: str = "speckit"
    workspace: str = field(default_factory=lambda: f"replicated{next(_numbers)}")

    @property
    def store(self) -> str:
        return f"postgresql://speckit@/{self.name}?host={self.primary.pgdata}&workspace={self.workspace}"

    @property
    def read_from(self) -> str:
        return f"postgresql://speckit@/{self.name}?host={self.replica.pgdata}"

    def ask(self, server: Any, sql: str, database: str = "postgres") -> Any:
        import psycopg

        with psycopg.connect(server.get_uri(database=database), autocommit=True) as session:
            answer = session.execute(sql)
            return next(iter(answer.fetchone() or [None])) if answer.description else None

    def pause(self) -> None:
        self.ask(self.replica, "SELECT pg_wal_replay_pause()")
        while self.ask(self.replica, "SELECT pg_get_wal_replay_pause_state()") != "paused":
            pass

    def resume(self) -> None:
        self.ask(self.replica, "SELECT pg_wal_replay_resume()")

    def catch_up(self) -> None:
        self.resume()
        self._reach("pg_last_wal_replay_lsn()")
        self._reach("CASE WHEN EXISTS (SELECT FROM pg_stat_wal_receiver) THEN pg_last_wal_receive_lsn() END")

    def receive(self) -> None:
        self._reach("pg_last_wal_receive_lsn()")

    def _reach(self, place: str) -> None:
        written = self.ask(self.primary, "SELECT pg_current_wal_flush_lsn()")
        while not self.ask(self.replica, f"SELECT {place} >= '{written}'::pg_lsn"):
            pass

    @contextmanager
    def without(self, server: Any) -> Iterator[None]:
        """The time in which a server is down."""
        postgres_server.kill(server)
        try:
            yield
        finally:
            server.ensure_postgres_running()


@pytest.fixture(scope="session")
def started() -> Servers:
    primary = postgres_server.start()
    postgres_server.address(primary)
    return Servers(primary, postgres_server.replica_of(primary))


@pytest.fixture
def servers(started: Servers) -> Iterator[Servers]:
    """The two servers with a workspace of this test. The replica has caught up at the beginning."""
    started.catch_up()
    yield Servers(started.primary, started.replica)
    started.resume()


@pytest.fixture
def opened(servers: Servers, tmp_path: Path) -> Iterator[Callable[..., Memory]]:
    """Opens the store as another process would; `read_from` of the replica unless it is given."""
    kept: list[Memory] = []

    def open_memory(read_from: str | None = None, lag: float | None = None) -> Memory:
        if lag is not None:
            (tmp_path / ".speckit").mkdir(exist_ok=True)
            (tmp_path / ".speckit/config.yaml").write_text(f"read_lag_seconds: {lag}\n")
        environ = {
            DB_VARIABLE: servers.store,
            READ_FROM_VARIABLE: servers.read_from if read_from is None else read_from,
        }
        kept.append(Memory.open(root=tmp_path, environ=environ, shadows=False))
        return kept[-1]

    yield open_memory
    for memory in kept:
        memory.close()


def save(memory: Memory, tmp_path: Path, *names: str) -> None:
    (tmp_path / "docs").mkdir(exist_ok=True)
    for name in names:
        (tmp_path / "docs" / f"{name}.md").write_text(f"# About {name}\n\nThe zebra of {name} is fused by rank.\n")
    memory.index([tmp_path / "docs"])


def found(result: SearchResult) -> set[str]:
    return {Path(row.key).stem for row in result.results}


def source(result: SearchResult) -> str:
    """The replica that an answer names, "" for the store itself."""
    return str(result.notes.facts.get("replica", {}).get("address", ""))


def trips(memory: Memory) -> int:
    kept: Any = memory.session.database._connections
    return sum(connection.round_trips for _, connection in kept)


def test_a_search_reads_from_the_replica_in_one_round_trip_more_at_most(
    servers: Servers, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    save(opened(""), tmp_path, *(f"d{number}" for number in range(12)))
    servers.catch_up()
    counts: dict[str, list[int]] = {}
    answers = []
    for address in ("", servers.read_from):
        memory = opened(address)
        memory.session.opened.read_model.load()
        for number in range(7):
            before = trips(memory)
            answers.append(memory.search(f"zebra d{number % 2}"))
            counts.setdefault(address, []).append(trips(memory) - before)
        memory.session.store.state()
    # the words of a short question come with the second answer, the first one being the replica's own state
    assert max(counts[servers.read_from][3:]) <= min(4, counts[""][-1] + 1), counts
    assert [source(answer) for answer in answers[7:]] == [servers.read_from] * 7
    assert [answer.results for answer in answers[7:]] == [answer.results for answer in answers[:7]]
    note = answers[-1].notes.facts["replica"]
    assert set(note) == {"address", "behind_seconds", "last_change"}
    assert note["last_change"] == memory.session.database.latest()
    assert search_data(answers[-1])["replica"] == note
    assert f"from a replica {note['behind_seconds']:.1f} s behind" in search_facts(answers[-1])
    assert ("replica" in search_data(answers[0]), "replica" in search_facts(answers[0])) == (False, False)


def test_a_writer_sees_its_own_changes_and_others_see_the_replica_with_its_lag(
    servers: Servers, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    writer = opened()
    save(writer, tmp_path, "first")
    servers.catch_up()
    other = opened()
    assert (found(writer.search("zebra")), source(writer.search("zebra"))) == ({"first"}, servers.read_from)
    servers.pause()
    save(writer, tmp_path, "second")
    servers.receive()
    written, seen = writer.search("zebra"), other.search("zebra")
    assert (found(written), source(written), written.notes.warnings) == ({"first", "second"}, "", ())
    assert (found(seen), source(seen)) == ({"first"}, servers.read_from)
    assert seen.notes.facts["replica"]["behind_seconds"] > 0
    # the answers of each are valid as long as the state that it reads stays the same
    assert writer.session.store.state()[1] > other.session.store.state()[1]
    servers.catch_up()
    for memory in (writer, other):
        answer = memory.search("zebra")
        assert (found(answer), source(answer)) == ({"first", "second"}, servers.read_from)


def test_a_replica_that_is_too_far_behind_is_left_until_it_has_caught_up(
    servers: Servers, opened: Callable[..., Memory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = opened(""), opened(lag=0)
    save(writer, tmp_path, "first")
    servers.catch_up()
    assert source(reader.search("zebra")) == servers.read_from
    servers.pause()
    save(writer, tmp_path, "second")
    servers.receive()
    late = reader.search("zebra")
    assert (found(late), source(late)) == ({"first", "second"}, "")
    assert [
        warning for warning in late.notes.warnings if f"{servers.read_from} is not read from: it is up to" in warning
    ]
    servers.catch_up()
    assert source(reader.search("zebra")) == ""  # left alone for a while
    monkeypatch.setattr(replicas, "AGAIN", 0)
    reader.session.database._routing.replicas[0]._until = 0  # type: ignore[attr-defined]
    again = reader.search("zebra")
    assert (source(again), again.notes.warnings) == (servers.read_from, ())


def test_a_replica_that_is_down_is_left_out_and_used_again_when_it_is_back(
    servers: Servers, opened: Callable[..., Memory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "AGAIN", 0)
    memory = opened()
    save(memory, tmp_path, "first")
    servers.catch_up()
    assert source(memory.search("zebra")) == servers.read_from
    with servers.without(servers.replica):
        answer = memory.search("zebra")
        assert (found(answer), source(answer)) == ({"first"}, "")
        assert f"the replica {servers.read_from} is not read from: it cannot be used" in answer.notes.warnings[0]
        problem = next(check for check in memory.status().checks if check.name == "replicas")
        assert problem.verdict == "warn" and f"{servers.read_from} is not read from" in problem.detail
    servers.catch_up()
    assert source(memory.search("zebra")) == servers.read_from
    healthy = next(check for check in memory.status().checks if check.name == "replicas")
    assert healthy.verdict == "ok" and f"{servers.read_from} is up to" in healthy.detail


def test_searches_go_on_without_the_store_and_never_mix_a_segment_with_an_earlier_state(
    servers: Servers, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    writer = opened()
    save(writer, tmp_path, *(f"d{number}" for number in range(100)))
    servers.catch_up()
    reader = opened()
    reader.search("zebra d7")
    servers.pause()
    save(writer, tmp_path, "later")  # into a segment that the replica does not reach
    writer.lifecycle.write_segment()
    trusted = SegmentStore(writer.session.database).trusted()
    assert trusted is not None
    assert source(opened().search("zebra")) == ""
    servers.receive()
    with servers.without(servers.primary):
        for memory in (reader, opened()):
            answer = memory.search("zebra of later")
            assert ("later" in found(answer), source(answer)) == (False, servers.read_from)
            assert found(memory.search("zebra d7")) >= {"d7"}
        answer = writer.search("zebra of later")
        assert ("later" in found(answer), source(answer)) == (False, servers.read_from)
        assert any("the store cannot be reached" in warning for warning in answer.notes.warnings)
        with pytest.raises(SpeckitError) as raised:
            writer.documents.save(tmp_path / "docs" / "later.md")
        assert raised.value.code in ("E021", "E051")
    servers.catch_up()
    save(writer, tmp_path, "last")
    assert "last" in found(writer.search("zebra of last"))


def test_a_replica_that_is_promoted_is_not_read_from_any_more(
    servers: Servers, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    other = Servers(servers.primary, postgres_server.replica_of(servers.primary))
    memory = opened(other.read_from)
    save(memory, tmp_path, "first")
    other.catch_up()
    assert source(memory.search("zebra")) == other.read_from
    assert other.ask(other.replica, "SELECT pg_promote()")
    answer = memory.search("zebra")
    assert (found(answer), source(answer)) == ({"first"}, "")
    assert answer.notes.warnings == (f"the replica {other.read_from} is not read from: it is not a standby",)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("{replica}&workspace=other", "its address names the workspace 'other'"),
        ("{primary}", "it is not a standby"),
        ("{replica}/../elsewhere", "it holds another store"),
        ("{replica}/../postgres", "it cannot be used"),
    ],
)
def test_what_is_no_replica_of_the_store_is_not_read_from(
    servers: Servers, opened: Callable[..., Memory], address: str, problem: str, tmp_path: Path
) -> None:
    memory = opened("")
    save(memory, tmp_path, "first")
    if "elsewhere" in address:
        if not servers.ask(servers.primary, "SELECT 1 FROM pg_database WHERE datname = 'elsewhere'"):
            postgres_server.address(servers.primary, "elsewhere")
        elsewhere = Servers(servers.primary, servers.replica, "elsewhere")
        number = value(memory.session.database.reader(), "SELECT current_setting('speckit.workspace')::int")
        for _ in range(number):
            link = tmp_path / f"elsewhere{next(_numbers)}.db"
            Database.open(postgres_server.link_at(link, elsewhere.store.partition("&")[0])).close()
    servers.catch_up()
    base, _, name = address.partition("/../")
    given = base.format(replica=servers.read_from, primary=servers.store)
    answer = opened(given.replace("/speckit?", f"/{name}?") if name else given).search("zebra")
    assert (found(answer), source(answer)) == ({"first"}, "")
    assert f"is not read from: {problem}" in answer.notes.warnings[0]


def test_a_read_that_a_replica_has_to_end_is_repeated(
    servers: Servers, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    memory = opened()
    save(memory, tmp_path, "first")
    servers.catch_up()
    schema = value(memory.session.database.reader(), "SELECT current_schema()")
    replicas_read: list[ReplicaState | None] = []

    def read(store: Any) -> int:
        with store.database.snapshot_read(0) as connection:
            replicas_read.append(store.database.read_source().replica)
            counted = int(value(connection, "SELECT count(*) FROM memories"))
            if len(replicas_read) == 1:
                # a lock that the replica takes too ends the reads of its table
                servers.ask(servers.primary, f"DO 'BEGIN LOCK TABLE {schema}.memories; END'", "speckit")
                servers.catch_up()
            return counted + int(value(connection, "SELECT count(*) FROM chunks"))

    servers.ask(servers.replica, "ALTER SYSTEM SET max_standby_streaming_delay = 0")
    servers.ask(servers.replica, "SELECT pg_reload_conf()")
    while servers.ask(servers.replica, "SHOW max_standby_streaming_delay") != "0":
        pass
    assert memory.session.read(read) == 2
    assert [one.address for one in replicas_read if one] == [servers.read_from] * 2
