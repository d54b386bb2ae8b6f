"""A search answers from the state of the store that it began with, whenever during the search somebody writes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frame.hostile import SLOTS, component, registered
from frame.observed import observed, through

from speckit_memory.config.pipelines.sources import pipeline_text
from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import Source
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.model.columns import Hits, Notes, Selected
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.roles.contracts import Role

NOW = 1_800_000_000.0
TEXT = "payment gateway retries"
ROLES = [Role.UNDERSTANDER, Role.CHANNEL, Role.RERANKER, Role.ANNOTATOR]


def sources(side: int) -> Iterator[Source]:
    words = ("payment gateway retries", "retries of the payment gateway after a crash")[side]
    for number in range(6):
        yield Source(
            key=f"docs/{number}.md", text=f"# Note {number}\n\n{words} {'again ' * (number + side)}",
            title=f"Gateway {number + side}", triggers=(words,), created_at=NOW - 1000.0 * (number + 1),
        )  # fmt: skip


def store(memory: Memory, side: int) -> None:
    memory.index_documents(sources(side))
    memory.graph.add_edges([("docs/0.md", "caused", f"docs/{2 + side}.md", 0.5)], created_by="manual")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "memory.db") as memory:
        store(memory, 0)
    return tmp_path / "memory.db"


def answering(role: Role, meanwhile: Callable[[], None]) -> type[Any]:
    """A component that changes nothing itself."""

    def work(*asked: Any) -> Any:
        meanwhile()
        match role:
            case Role.UNDERSTANDER:
                return asked[1]
            case Role.CHANNEL:
                return Hits(np.empty(0, np.int64), np.empty(0), Scale.UNIT)
            case Role.RERANKER:
                return Selected(np.ones(len(asked[1]), np.bool_))
        return Notes()

    return component(role, work)


@pytest.mark.requirement("M1.state")
@pytest.mark.parametrize("name", ["default", "catalogue"])
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("role", ROLES)
def test_what_is_written_during_a_search_is_not_in_its_answer(
    path: Path, tmp_path: Path, role: Role, warm: bool, name: str
) -> None:
    """Warm: all is in memory. Cold: what the steps behind the write need is read when it has changed."""
    with Memory.open(path) as memory, Memory.open(path) as other:
        turns = iter([0])

        def meanwhile() -> None:
            if next(turns, None) is not None:
                writing = threading.Thread(target=store, args=(other, 1))
                writing.start()
                writing.join()

        made = [
            through(memory, pipeline(tmp_path, name, role, answering(role, work))) for work in (lambda: None, meanwhile)
        ]

        def ask(behind: Memory) -> Any:
            found = behind.search(TEXT, now=NOW, deadline_ms=None, content=True)
            assert not found.notes.degraded
            return observed(found)

        with Memory.open(path) as another:
            before = ask(through(another, made[0].pipelines.current))
        if warm:
            assert ask(made[0]) == before
        assert ask(made[1]) == before
        assert next(turns, None) is None
        assert ask(made[1]) != before


def pipeline(folder: Path, name: str, role: Role, hostile: type[Any]) -> Pipeline:
    """A shipped pipeline with this step in front of the others of its slot."""
    shipped, _ = pipeline_text(name)
    slot = SLOTS[role]
    line = re.search(rf"^ *{slot}:.*\n", shipped, re.MULTILINE)
    assert line is not None
    indent = "  " if slot in ("rerank", "annotate") else "    "
    at = line.end()
    file = folder / "meanwhile.yaml"
    file.write_text(f"{shipped[:at]}{indent}- {{use: hostile}}\n{shipped[at:]}", encoding="utf-8")
    return build(str(file), registered((role, hostile, "hostile")), {})
