"""What a search looks up in the store is looked up once, however many steps read it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from speckit_memory.engine.api.memory import Memory
from speckit_memory.memory.store.read_model.words.term_index import PostingsIndex
from speckit_memory.memory.store.reading import traversal
from speckit_memory.pipeline.ports import Postings

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"
QUESTION = "why are memory mapping and late interaction left out of the pipeline"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    root = tmp_path_factory.mktemp("lookups")
    shutil.copytree(DECISIONS, root / "docs")
    with Memory.open(root / "m.db", root=root, environ={}, shadows=False) as memory:
        memory.index([root / "docs"])
        memory.models.load_vectors()
        yield memory


@pytest.mark.requirement("C3")
def test_each_word_is_looked_up_once_in_each_index(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[tuple[int, str]] = Counter()
    look_up = PostingsIndex._looked_up

    def counted(index: PostingsIndex, term: str) -> Postings:
        asked[id(index), term] += 1
        return look_up(index, term)

    monkeypatch.setattr(PostingsIndex, "_looked_up", counted)
    terms = memory.search(QUESTION, deadline_ms=None).outcome.query.terms

    assert {term for _, term in asked} >= set(terms)
    assert set(asked.values()) == {1}


@pytest.mark.requirement("C15")
def test_the_graph_is_walked_once_for_its_coverage_and_its_channel(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[int] = []
    walk = traversal._walk

    def counted(*arguments: object) -> list[tuple[int, int, int, int, int, str, float]]:
        walks.append(1)
        return walk(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(traversal, "_walk", counted)
    answer = memory.search("rank fusion by standardised scores", deadline_ms=None)

    assert walks == [1]
    assert answer.plan.coverage is not None
    assert answer.plan.coverage.connected > 0
