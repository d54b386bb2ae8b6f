"""The contract of a store: modules whose tests run over both engines, with new stores in files and in PostgreSQL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from postgres_server import link_at

from speckit_memory.memory.store.file.connection import Database

CONTRACT = (
    *("memory/store/test_consolidation", "memory/store/test_statements", "memory/store/tables/test_edges"),
    *("memory/store/tables/test_link_targets", "memory/store/tables/test_working_memory"),
    *("memory/store/writing/test_near_duplicates", "memory/store/evaluation/test_records_of_answers"),
)
"""They run over PostgreSQL in the fast tier too."""
CONTRACT_OF_PROOF = (
    *("memory/store/tables/test_changes", "memory/store/tables/test_embedding_cache"),
    *("memory/store/tables/test_fulltext", "memory/store/tables/test_stale_words"),
    *("memory/store/tables/test_surface", "memory/store/tables/test_vectors"),
    *("memory/store/reading/test_density", "memory/store/reading/test_lineage"),
    *("memory/store/reading/test_reader", "memory/store/reading/test_traversal"),
    *("memory/store/transfer/test_table_map", "memory/store/writing/test_many", "memory/store/writing/test_writer"),
    *("memory/lifecycle/test_archival", "memory/lifecycle/test_judging", "memory/lifecycle/test_learned_triggers"),
    *("memory/lifecycle/test_reviews", "memory/lifecycle/test_validations"),
    *("memory/graph/test_communities", "memory/graph/test_entities", "memory/graph/test_pagerank"),
    *("memory/exchange/test_round_trip", "engine/test_lineage", "engine/test_maintenance", "engine/test_models"),
    *("engine/test_sessions", "engine/test_indexing", "engine/test_consumption"),
)
"""Further ones, which run over PostgreSQL in the proof tier."""
_TESTS = Path(__file__).parent.parent


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Runs the tests of the contract that have a folder for a store over both engines."""
    module = str(Path(metafunc.module.__file__ or "").with_suffix("")).removeprefix(f"{_TESTS}/")
    fixtures = {"tmp_path", "in_a_file"}.intersection(metafunc.fixturenames)
    if module in (*CONTRACT, *CONTRACT_OF_PROOF) and fixtures == {"tmp_path"}:
        marks = () if module in CONTRACT else pytest.mark.proof
        metafunc.parametrize("engine", ["sqlite", pytest.param("postgres", marks=marks)], indirect=True)


def open_in_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a store link to a new workspace wherever a new store is opened."""
    open_store = Database.open

    def opened(path: Path, **options: Any) -> Database:
        # other files that hold rows, such as checkpoints that are being written, have other endings
        if path.suffix == ".db" and options.get("create", True) and not os.path.lexists(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            link_at(path)
        return open_store(path, **options)

    monkeypatch.setattr(Database, "open", staticmethod(opened))
