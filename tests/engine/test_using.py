"""Several pipelines on one open store."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from speckit_memory import ConfigurationError, Memory, StoreClosedError

QUERY = "gateway retries"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "gateway.md").write_text("# Gateway\n\nThe gateway retries three times.\n")
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as opened:
        opened.index(tmp_path)
        yield opened


def found(memory: Memory) -> list[str]:
    return [row.key for row in memory.search(QUERY).results]


def test_another_pipeline_shares_the_store_and_the_models(memory: Memory) -> None:
    with memory.using("bm25") as other:
        assert (other.pipelines.current.name, memory.pipelines.current.name) == ("bm25", "default")
        assert other.session.database is memory.session.database
        assert other.models.embedder is memory.models.embedder
        assert found(other) == ["gateway.md"]


@pytest.mark.parametrize("first", [0, 1])
def test_closing_one_closes_neither_the_other_nor_the_store(memory: Memory, first: int) -> None:
    both = [memory, memory.using("bm25")]
    closed, left = both[first], both[1 - first]

    closed.close()
    closed.close()

    assert found(left) == ["gateway.md"]
    database = left.session.database
    left.close()
    with pytest.raises(StoreClosedError):
        database.reader()


def test_what_is_closed_says_so_whatever_it_is_asked(memory: Memory, tmp_path: Path) -> None:
    other = memory.using("bm25")
    result = other.search(QUERY)
    other.close()

    for use in (
        lambda: other.search(QUERY), lambda: other.explain.plan(QUERY), lambda: other.get("gateway.md"),
        lambda: other.index(tmp_path), lambda: other.explain.row(result, "gateway.md"),
        lambda: other.feedback.delivered(result),
        lambda: other.using("vector"), other.status, other.inventory.stats, other.session.view,
    ):  # fmt: skip
        with pytest.raises(StoreClosedError, match=r"^E027 this Memory of .*m\.db has been closed$"):
            use()
    assert found(memory) == ["gateway.md"]


def test_they_nest_and_each_keeps_its_own_settings(memory: Memory) -> None:
    with memory.using("bm25", {"bm25.limit": "7"}) as one, one.using("vector") as two:
        one.close()
        assert two.pipelines.current.name == "vector"
        assert found(two) == ["gateway.md"]
    assert [memory.session.settings.pipeline, one.session.settings.pipeline, two.session.settings.pipeline][1:] == [
        "bm25",
        "vector",
    ]
    assert found(memory) == ["gateway.md"]


def test_a_pipeline_that_is_wrong_takes_no_share_of_the_store(memory: Memory) -> None:
    with pytest.raises(ConfigurationError):
        memory.using("no-such-pipeline")
    database = memory.session.database
    memory.close()

    with pytest.raises(StoreClosedError):
        database.reader()


def test_threads_open_and_close_pipelines_while_others_search(memory: Memory) -> None:
    together = Barrier(4)

    def work(number: int) -> list[list[str]]:
        together.wait()
        answers = []
        for _ in range(5):
            with memory.using(("bm25", "fts5", "vector", "default")[number]) as other:
                answers.append(found(other))
        return answers

    with ThreadPoolExecutor(4) as pool:
        answers = [answer for several in pool.map(work, range(4)) for answer in several]
    assert answers == [["gateway.md"]] * 20
    assert found(memory) == ["gateway.md"]
