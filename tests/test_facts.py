"""Facts that bind the product and that no other test tells by their figures."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.errors.codes import CODES
from speckit_memory.memory.indexing.documents import content_hash
from speckit_memory.memory.models.embedders.encoder import REMEMBERED_QUERIES
from speckit_memory.memory.parsing import classify
from speckit_memory.memory.store.records import Relation
from speckit_memory.server.operations.mcp_tools import operations_of_tools

SECTION = "{word} " * 150 + "\n\n"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    long = "# Long\n\n" + "".join(
        f"## {word}\n\n{SECTION.format(word=word)}" for word in ("quokka", "wallaby", "numbat", "quokka quokka")
    )
    (tmp_path / "long.md").write_text(long, encoding="utf-8")
    (tmp_path / "short.md").write_text("# Short\n\nThe bilby sleeps.\n", encoding="utf-8")
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}, strict=True) as opened:
        opened.index([tmp_path])
        yield opened


@pytest.mark.requirement("R4.order")
def test_the_passages_of_a_result_stand_in_the_order_of_the_document(memory: Memory) -> None:
    passages = memory.session.view().passages.of_memory(memory.get("long.md").id)

    lines = [passage.first_line for passage in passages]
    assert len(lines) > 3
    assert lines == sorted(lines)


@pytest.mark.requirement("C5.fresh")
def test_degrees_follow_every_change_of_an_edge(memory: Memory) -> None:
    def degrees() -> dict[int, float]:
        ids, sums = memory.session.view().graph.degrees({"caused": 1.0})
        return dict(zip(ids.tolist(), sums.tolist(), strict=True))

    ids = [memory.get(key).id for key in ("long.md", "short.md")]
    assert degrees() == {}
    memory.graph.add_edges([("long.md", "caused", "short.md", 0.5)])
    assert degrees() == dict.fromkeys(ids, 0.5)
    memory.graph.add_edges([("long.md", "caused", "short.md", 0.75)])
    assert degrees() == dict.fromkeys(ids, 0.75)


@pytest.mark.requirement("M7.facts")
def test_six_relations_link_memories() -> None:
    assert {str(relation) for relation in Relation} == {
        "caused", "enabled", "supersedes", "contradicts", "derived_from", "supports",
    }  # fmt: skip


@pytest.mark.requirement("I1.hash")
def test_the_content_hash_is_sha_256_of_the_text() -> None:
    assert content_hash("Größe") == sha256("Größe".encode()).hexdigest()


@pytest.mark.requirement("I4.memory", "I4.documents")
def test_there_are_nine_memory_types_and_eight_names_of_spec_documents() -> None:
    assert len(set(classify.MEMORY_TYPES)) == 9
    assert len(classify.SPEC_DOCUMENTS) == 8


@pytest.mark.requirement("I6.remembered")
def test_a_thousand_queries_are_remembered() -> None:
    assert REMEMBERED_QUERIES == 1_000


@pytest.mark.requirement("T26.codes")
def test_more_than_forty_codes_say_what_to_do() -> None:
    assert len(CODES) > 40
    for code in CODES.values():
        assert code.hint
        assert code.actions
        assert code.severity in ("low", "medium", "high", "critical")


@pytest.mark.requirement("T24.layers")
def test_each_layer_of_tools_has_its_budget() -> None:
    budgets = {tool.name: tool.budget for _, tool in operations_of_tools()}
    named = ("context", "search", "save", "list", "stats", "health", "validate", "index_scan")

    assert [budgets[f"memory_{name}"] for name in named] == [2000, 1500, 1500, 800, 800, 800, 500, 1000]


@pytest.mark.requirement("C1.unit")
def test_similarities_of_real_texts_lie_in_the_unit_interval(memory: Memory) -> None:
    result = memory.search("quokka", deadline_ms=None)

    found = [row.channels["vector"].score for row in result.results if "vector" in row.channels]
    assert found
    assert all(0.0 <= score <= 1.0 for score in found)
