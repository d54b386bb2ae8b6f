"""A store large enough for an index of its vectors, through the door: what it finds, says, and leaves exact."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from speckit_memory.engine import Memory
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.store.read_model.vectors import ivf_lists
from speckit_memory.memory.store.read_model.vectors.ivf_lists import INSTALL
from speckit_memory.memory.store.segment_files.container import Container

APPROXIMATE = ("vectors_from", "lists")

pytest.importorskip("faiss")

COUNT = 600
FOLDERS = ("a", "b")
SUBJECTS = """
river mountain database index vector cat dog engine wheel bread music colour winter summer garden network thread memory
segment query bank coin market ship harbour storm cloud light shadow mirror glass paper ink letter number prime circle
square angle force mass speed orbit planet star galaxy atom cell gene virus doctor nurse patient school teacher pupil
law court judge crime city village road bridge tunnel train plane
"""
WORDS = SUBJECTS.split()
NOW = 1_800_000_000.0


def text(rng: np.random.Generator) -> str:
    subject = rng.choice(WORDS, 5, replace=False)
    return " ".join(rng.choice(subject, 12)) + ".\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose segment holds an index."""
    root = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(55)
    with opened(root, "1") as memory:
        memory.index_documents([Source(f"{FOLDERS[n % 2]}/{n:03}.md", text(rng)) for n in range(COUNT)])
        memory.lifecycle.write_segment()
    return root


def opened(root: Path, setting: str) -> Memory:
    environ = {"SPECKIT_VECTOR_INDEX": setting, "SPECKIT_EVALUATION": "off"}
    return Memory.open(root / "memory.db", "vector", root=root, environ=environ)


@pytest.fixture
def few_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question reads three quarters of the lists; by itself it would read all of so small a store."""
    lists = ivf_lists.list_count(COUNT)
    monkeypatch.setattr(ivf_lists, "PROBES", 0.75 * lists / lists**0.5)


@pytest.fixture
def listed(root: Path, few_lists: None) -> Iterator[Memory]:
    with opened(root, "1") as memory:
        yield memory


@pytest.fixture
def exact(root: Path) -> Iterator[Memory]:
    with opened(root, "exact") as memory:
        yield memory


def questions() -> list[str]:
    rng = np.random.default_rng(7)
    return [" ".join(rng.choice(WORDS, 3, replace=False)) for _ in range(30)]


def found(memory: Memory, question: str, limit: int = 50, folder: str = "") -> dict[str, float]:
    result = memory.search(question, limit=limit, folder=folder, now=NOW, deadline_ms=None, snippet=0)
    return {row.key: row.score for row in result.results}


def told(memory: Memory) -> tuple[str, str]:
    (check,) = (check for check in memory.status().checks if check.name == "vectors")
    assert check.ok
    return check.detail, check.hint


@pytest.mark.requirement("C1.beyond")
def test_nearly_all_of_the_nearest_are_found_and_the_answer_says_how(listed: Memory, exact: Memory) -> None:
    shares = []
    for question in questions():
        meant, near = found(exact, question, 10), found(listed, question, 10)
        assert all(meant[key] == score for key, score in near.items() if key in meant)
        shares.append(len(meant.keys() & near.keys()) / len(meant))
        assert APPROXIMATE in listed.search(question, now=NOW, deadline_ms=None).notes.facts.items()
        assert APPROXIMATE not in exact.search(question, now=NOW, deadline_ms=None).notes.facts.items()
    assert np.mean(shares) >= 0.99


@pytest.mark.requirement("C1.beyond")
def test_within_a_folder_all_is_compared_and_nothing_said(listed: Memory, exact: Memory) -> None:
    for question in questions()[:10]:
        assert found(listed, question, folder="a") == found(exact, question, folder="a")
        result = listed.search(question, folder="a", now=NOW, deadline_ms=None)
        assert APPROXIMATE not in result.notes.facts.items()
        assert all(row.key.startswith("a/") for row in result.results)


def test_what_was_saved_and_forgotten_since_is_answered_as_it_is_now(
    root: Path, tmp_path: Path, few_lists: None
) -> None:
    rng = np.random.default_rng(3)
    with opened(tmp_path, "1") as memory:
        memory.index_documents([Source(f"{n:03}.md", text(rng)) for n in range(COUNT)])
        memory.lifecycle.write_segment()
    with opened(tmp_path, "1") as memory:
        nearest = next(iter(found(memory, "harbour storm ship", 1)))
        replaced = Source(nearest, "An orbit of the planet.\n")
        memory.index_documents([replaced, Source("new.md", "harbour storm ship.\n")])
        now = found(memory, "harbour storm ship", 20)
        assert next(iter(now)) == "new.md"
        assert nearest not in now
        assert APPROXIMATE in memory.search("harbour storm ship", now=NOW).notes.facts.items()


def test_health_says_how_vectors_are_compared(root: Path, listed: Memory, exact: Memory) -> None:
    assert told(listed) == ("an approximate index finds the nearest of 600 vectors (from 1 on)", "")
    assert told(exact) == ("all 600 vectors are compared; an index may be built but not used", "")
    with opened(root, "off") as memory:
        assert told(memory) == ("all 600 vectors are compared; the index is switched off", "")
    with opened(root, "601") as memory:
        assert told(memory) == ("all 600 vectors are compared; an approximate index is used from 601 on", "")
        assert APPROXIMATE not in memory.search("ship", now=NOW).notes.facts.items()


def test_health_says_what_is_to_be_done_for_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    with opened(tmp_path, "off") as memory:
        memory.index_documents([Source(f"{n:03}.md", text(rng)) for n in range(120)])
        memory.lifecycle.write_segment()
    (segment,) = (tmp_path / "memory.db.segments").glob("*.seg")
    assert "vector.lists" not in Container.open(segment)
    with opened(tmp_path, "1") as memory:
        detail, hint = told(memory)
        assert detail.endswith("although there are many: the segment in use has no index of them")
        assert "`speckit-memory doctor --fix`" in hint
        with monkeypatch.context() as without:
            without.setattr("speckit_memory.engine.diagnostics.configuration_health.is_faiss_installed", lambda: False)
            detail, hint = told(memory)
            assert detail == "all 120 vectors are compared, although there are many"
            assert INSTALL in hint
        memory.lifecycle.write_segment()
    with opened(tmp_path, "1") as memory:
        assert told(memory)[0].startswith("an approximate index finds")


def test_without_the_library_all_is_compared_and_no_index_written(
    root: Path, tmp_path: Path, exact: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert not ivf_lists.is_faiss_installed()
    with opened(root, "1") as memory:
        for question in questions()[:5]:
            assert found(memory, question) == found(exact, question)
        assert APPROXIMATE not in memory.search("ship", now=NOW).notes.facts.items()
    rng = np.random.default_rng(3)
    with opened(tmp_path, "1") as memory:
        memory.index_documents([Source(f"{n:03}.md", text(rng)) for n in range(120)])
        memory.lifecycle.write_segment()
    (segment,) = (tmp_path / "memory.db.segments").glob("*.seg")
    assert "vector.lists" not in Container.open(segment)
