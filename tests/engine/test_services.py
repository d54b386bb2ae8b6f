"""Each service of a memory works on a session alone: nothing needs the object that carries them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.api.checkpoints import CheckpointService
from speckit_memory.engine.api.deletions import DeletionService
from speckit_memory.engine.api.documents import DocumentService
from speckit_memory.engine.api.exchange import ExchangeService
from speckit_memory.engine.api.explain import ExplainService
from speckit_memory.engine.api.feedback import FeedbackService
from speckit_memory.engine.api.graph import GraphService
from speckit_memory.engine.api.inventory import InventoryService
from speckit_memory.engine.api.learning import LearningService
from speckit_memory.engine.api.lifecycle import LifecycleService
from speckit_memory.engine.api.models import ModelService
from speckit_memory.engine.api.pipelines import PipelineService
from speckit_memory.engine.api.shadows import ShadowService
from speckit_memory.engine.api.triggers import TriggerService
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.errors import StoreClosedError

KEY = "notes/fusion.md"
TEXT = "---\ntitle: Rank fusion\ntrigger_phrases: [reciprocal rank]\n---\n# Rank fusion\n\nScores are added.\n"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[StoreSession]:
    """A session of a store with two memories."""
    session = StoreSession.open(tmp_path / "memory.db", "bm25", root=tmp_path, environ={}, strict=True, shadows=False)
    (tmp_path / "notes").mkdir()
    for name, text in ((KEY, TEXT), ("notes/other.md", "# Other\n\nA gateway retries.\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        DocumentService(session).save(tmp_path / name)
    yield session
    session.end()


USES: dict[type, Any] = {
    DocumentService: lambda documents: documents.read(KEY).memory.key == KEY,
    DeletionService: lambda deletions: (
        deletions.undelete(deletions.delete(KEY).name).memories == (KEY,) and not deletions.list()
    ),
    CheckpointService: lambda checkpoints: (
        checkpoints.create("first") and [one.name for one in checkpoints.list()] == ["first"]
    ),
    ExchangeService: lambda exchange: (
        exchange.export(exchange.session.root / "out") and (exchange.session.root / "out").is_dir()
    ),
    GraphService: lambda graph: (
        graph.link(KEY, "supports", "notes/other.md").source == KEY and len(graph.history(KEY)) == 1
    ),
    TriggerService: lambda triggers: [one.memory.key for one in triggers.match("a reciprocal rank").matches] == [KEY],
    LearningService: lambda learning: learning.validate(KEY, useful=True) and len(learning.judgements(KEY)) == 1,
    LifecycleService: lambda lifecycle: lifecycle.check() == () and lifecycle.archived() == (),
    ModelService: lambda models: models.list().build is None and models.count_tokens(["rank fusion"]) == [2],
    ExplainService: lambda explain: explain.plan("rank fusion", folder="notes").channels,
    ShadowService: lambda shadows: shadows.list() == () and shadows.finish(),
    FeedbackService: lambda feedback: (
        feedback.opened(DocumentService(feedback.session).read(KEY)) is None and feedback.write() is None
    ),
    PipelineService: lambda pipelines: pipelines.current.name == "bm25" and pipelines.reload() is None,
    InventoryService: lambda inventory: inventory.keys() == [KEY, "notes/other.md"] and inventory.stats().memories == 2,
}


@pytest.mark.parametrize("kind", USES, ids=lambda kind: kind.__name__)
def test_a_service_is_built_from_a_session_and_works(kind: type, session: StoreSession) -> None:
    assert USES[kind](kind(session))


def test_every_service_of_a_memory_is_one_of_them_and_keeps_nothing_but_the_session() -> None:
    carried = {
        getattr(import_module(f"speckit_memory.engine.api.{name}"), kind)
        for name, kind in Memory.__annotations__.items()
    }

    assert carried == set(USES)
    assert all(list(inspect.signature(kind).parameters) == ["session"] for kind in carried)


def test_a_session_that_has_ended_gives_no_store_to_a_service(session: StoreSession) -> None:
    other = session.another(session.configuration.now)
    other.end()

    with pytest.raises(StoreClosedError):
        InventoryService(other).keys()
    assert len(InventoryService(session).keys()) == 2
