"""Documents that name the same are linked, where edges are few, and what is linked is taken out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

BODIES = {
    "gateway": "The Tenant Gateway is behind the Ledger Epoch.",
    "billing": "Invoices of the Tenant Gateway are kept.",
    "clocks": "Only the Ledger Epoch counts; see the Write Barrier.",
    "barrier": "A Write Barrier, and a Ledger Epoch after it.",
    "lunch": "Soup is at noon.",
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Five notes of which four share names: a name of two of them is worth 0.5, one of three 0.25."""
    (tmp_path / ".speckit").mkdir()
    for name, body in BODIES.items():
        write(tmp_path, name, body)
    assert call(tmp_path, ["index", "docs"]).status == 0
    return tmp_path


def write(root: Path, name: str, body: str) -> None:
    (root / "docs").mkdir(exist_ok=True)
    (root / "docs" / f"{name}.md").write_text(f"# On {name}\n\n{body}\n", encoding="utf-8")


def configured(root: Path, text: str) -> None:
    (root / ".speckit" / "config.yaml").write_text(text, encoding="utf-8")


def linked(root: Path) -> dict[frozenset[str], tuple[float, str]]:
    """The pairs that names link, with the strength and the evidence."""
    with Memory.open(root / "memory.db", root=root) as memory:
        names = {row.id: Path(row.key).stem for row in memory.list(limit=100)[0]}
        found = memory.session.database.reader().execute(
            "SELECT source_id, target_id, strength, evidence, relation FROM causal_edges WHERE created_by = 'entities'"
        )
        edges = {}
        for source, target, strength, evidence, relation in found:
            assert (source > target, relation) == (True, "supports")
            edges[frozenset((names[source], names[target]))] = strength, evidence
        return edges


EXPECTED = {
    frozenset(("gateway", "billing")): (0.5, "both name tenant gateway"),
    frozenset(("clocks", "barrier")): (0.5, "both name write barrier, ledger epoch"),
    frozenset(("gateway", "clocks")): (0.25, "both name ledger epoch"),
    frozenset(("gateway", "barrier")): (0.25, "both name ledger epoch"),
}


@pytest.mark.requirement("M10.linked")
def test_a_command_links_what_names_the_same_and_doing_so_again_changes_nothing(notes: Path) -> None:
    ran = call(notes, ["graph", "link", "--json"])
    assert ran.json == {"searched": 5, "added": 4, "removed": 0, "room": 5}
    assert linked(notes) == EXPECTED
    assert call(notes, ["graph", "link"]).out == "0 memories searched for names, 0 links added, 0 removed\n"
    shown = call(notes, ["graph", "show", "--json"]).json
    assert (shown["made_by"], shown["searched"], shown["names"]) == ({"entities": 4}, 5, 3)
    lineage = call(notes, ["lineage", "docs/gateway.md"])
    assert "both name tenant gateway" in lineage.out
    assert call(notes, ["doctor"]).status == 0


@pytest.mark.requirement("M10.linked", "M10.background")
def test_links_follow_the_texts_in_the_background_only_where_that_is_configured(notes: Path) -> None:
    assert "entities" not in {job["job"] for job in call(notes, ["maintain", "--json"]).json["jobs"]}
    assert linked(notes) == {}
    configured(notes, "entities: link\n")
    foreseen = {job["job"]: job["count"] for job in call(notes, ["maintain", "--dry-run", "--json"]).json["jobs"]}
    assert foreseen["names"] == 5
    jobs = {job["job"]: (job["state"], job["count"]) for job in call(notes, ["maintain", "--json"]).json["jobs"]}
    assert (jobs["names"], jobs["entities"]) == (("ran", 5), ("ran", 4))
    assert linked(notes) == EXPECTED
    [health] = calls(notes, ("memory_health", {}))
    [maintenance] = [check for check in health["data"]["checks"] if check["name"] == "maintenance"]
    assert "4 links between memories that share names changed" in maintenance["detail"]
    write(notes, "billing", "Invoices are kept.")
    write(notes, "lunch", "Soup for the Tenant Gateway.")
    (notes / "docs" / "barrier.md").unlink()
    assert call(notes, ["index", "docs"]).status == 0
    with Memory.open(notes / "memory.db", root=notes) as memory:
        with memory.session.database.write() as txn:
            txn.connection.execute("DELETE FROM job_runs")  # its time has come
        assert not memory.lifecycle.maintain().failed
    assert linked(notes) == {
        frozenset(("gateway", "lunch")): (0.5, "both name tenant gateway"),
        frozenset(("gateway", "clocks")): (0.5, "both name ledger epoch"),
    }


@pytest.mark.requirement("M10.removed")
def test_what_was_linked_is_taken_out_and_brought_back_by_one_command(notes: Path) -> None:
    assert call(notes, ["graph", "link"]).status == 0
    assert call(notes, ["graph", "remove", "--by", "entities", "--json"]).json["edges"] == 4
    assert linked(notes) == {}
    call(notes, ["links", "undo", "--by", "graph remove"]).ok()
    assert linked(notes) == EXPECTED


@pytest.mark.requirement("M10.linked")
def test_a_link_that_a_person_took_away_stays_away_until_it_is_brought_back(notes: Path) -> None:
    assert call(notes, ["graph", "link"]).status == 0
    with Memory.open(notes / "memory.db", root=notes) as memory:
        [(edge,)] = memory.session.database.reader().execute(
            "SELECT id FROM causal_edges WHERE evidence = 'both name tenant gateway'"
        )
    assert call(notes, ["links", "remove", str(edge)]).status == 0
    assert call(notes, ["graph", "link", "--json"]).json["added"] == 0
    assert frozenset(("gateway", "billing")) not in linked(notes)
    changes = call(notes, ["links", "history", "--json"]).json["changes"]
    assert call(notes, ["links", "undo", str(changes[0]["id"])]).status == 0
    assert call(notes, ["graph", "link", "--json"]).json["removed"] == 0
    assert linked(notes) == EXPECTED


@pytest.mark.requirement("M10.gate")
def test_nothing_is_linked_where_others_made_the_graph_dense(notes: Path) -> None:
    keys = [f"docs/{name}.md" for name in BODIES]
    pairs = [(one, "caused", other, 0.5) for one in keys for other in keys if one < other]
    with Memory.open(notes / "memory.db", root=notes) as memory:
        assert memory.graph.link_names().added == 4
        memory.graph.add_edges(pairs[:4])
        found = memory.graph.link_names()
        assert (found.room, found.searched) == (1, 0)
        assert memory.graph.report().makers == {"entities": 1, "manual": 4}
        memory.graph.add_edges(pairs[4:5])
        assert memory.graph.link_names().room == 0
        assert memory.graph.report().makers == {"manual": 5}
        assert memory.graph.report().density.band == "dense"
    ran = call(notes, ["graph", "link"])
    assert ran.out.endswith("0 links added, 0 removed; the graph is dense enough without links by name\n")


@pytest.mark.parametrize(
    ("written", "status", "message"),
    [
        ("link", 0, ""),
        ('"off"', 0, ""),
        ("links", 2, "'entities' is 'links'; did you mean 'link'?"),
        ("[link]", 2, "'entities' must be one of \"off\", link; found a list"),
    ],
)
def test_the_key_of_the_workspace_is_checked(notes: Path, written: str, status: int, message: str) -> None:
    configured(notes, f"\nentities: {written}\n")
    ran = call(notes, ["maintain"])
    assert ran.status == status
    if status:
        assert "config.yaml:2:11" in ran.err
        assert message in ran.err
    told = call(notes, ["doctor", "--json"])
    assert told.status == (1 if status else 0)
